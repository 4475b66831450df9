//===- CudaStream.h - Streams, events and graphs of a GPU -------*- C++ -*-===//
//
// Internal to runtime/.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_CUDASTREAM_H
#define TOKENTILE_RUNTIME_CUDASTREAM_H

#include "runtime/CudaDevice.h"

namespace tokentile {

class CudaEvent final : public Event {
public:
  CudaEvent(CudaDevice &owner, cuda::CUevent event)
      : owner(owner), event(event) {}
  ~CudaEvent() override;
  cuda::CUevent handle() const { return event; }

  Status synchronize() override;
  StatusOr<double> elapsedMicroseconds(const Event &start) const override;

private:
  CudaDevice &owner;
  cuda::CUevent event;
};

class CudaGraph final : public Graph {
public:
  CudaGraph(CudaDevice &owner, cuda::CUgraphExec graph,
            const StreamCounters &recorded)
      : Graph(recorded), owner(owner), graph(graph) {}
  ~CudaGraph() override;
  Status replay(Stream &stream) override;

private:
  CudaDevice &owner;
  cuda::CUgraphExec graph;
};

class CudaStream final : public Stream {
public:
  /// Destroys `stream` at the end if `owned`.
  CudaStream(CudaDevice &owner, cuda::CUstream stream, bool owned)
      : Stream(owner), owner(owner), stream(stream), owned(owned) {}
  ~CudaStream() override;
  cuda::CUstream handle() const { return stream; }

  void *native() const override { return stream; }
  Status synchronize() override;
  Status copyToDevice(void *to, const void *from, size_t bytes) override;
  Status copyToHost(void *to, const void *from, size_t bytes) override;
  Status copyOnDevice(void *to, const void *from, size_t bytes) override;
  Status fill(void *to, uint8_t value, size_t bytes) override;
  Status record(Event &event) override;
  Status wait(Event &event) override;
  Status beginCapture() override;
  StatusOr<std::unique_ptr<Graph>> endCapture() override;

private:
  StatusOr<bool> capturing() const;

  CudaDevice &owner;
  cuda::CUstream stream;
  bool owned;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_CUDASTREAM_H
