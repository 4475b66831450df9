//===- CudaStream.cpp - Streams, events and graphs of a GPU ---------------===//

#include "runtime/CudaStream.h"

using namespace tokentile;
using namespace tokentile::cuda;

namespace {

CUdeviceptr address(const void *pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

/// Binds the device's context, then makes `call` and checks its result.
template <typename Call>
Status bound(const CudaDevice &device, const char *name, Call call) {
  if (Status status = device.bind(); !status.ok())
    return status;
  return device.driver().check(call(device.driver()), name);
}

} // namespace

CudaEvent::~CudaEvent() {
  if (owner.bind().ok())
    owner.driver().cuEventDestroy_v2(event);
}

Status CudaEvent::synchronize() {
  return bound(owner, "cuEventSynchronize",
               [&](const Driver &d) { return d.cuEventSynchronize(event); });
}

StatusOr<double> CudaEvent::elapsedMicroseconds(const Event &start) const {
  float milliseconds = 0;
  CUevent from = static_cast<const CudaEvent &>(start).event;
  if (Status status = bound(owner, "cuEventElapsedTime",
                            [&](const Driver &d) {
                              return d.cuEventElapsedTime(&milliseconds, from,
                                                          event);
                            });
      !status.ok())
    return status;
  return double(milliseconds) * 1000.0;
}

CudaGraph::~CudaGraph() {
  if (owner.bind().ok())
    owner.driver().cuGraphExecDestroy(graph);
}

Status CudaGraph::replay(Stream &stream) {
  if (&stream.device() != &owner)
    return Status(StatusCode::InvalidArgument,
                  "graph and stream belong to different devices");
  CUstream handle = static_cast<CudaStream &>(stream).handle();
  count(stream);
  return bound(owner, "cuGraphLaunch",
               [&](const Driver &d) { return d.cuGraphLaunch(graph, handle); });
}

CudaStream::~CudaStream() {
  if (owned && owner.bind().ok())
    owner.driver().cuStreamDestroy_v2(stream);
}

StatusOr<bool> CudaStream::capturing() const {
  int state = 0;
  if (Status status = bound(owner, "cuStreamIsCapturing",
                            [&](const Driver &d) {
                              return d.cuStreamIsCapturing(stream, &state);
                            });
      !status.ok())
    return status;
  return state != 0;
}

Status CudaStream::synchronize() {
  // Asked first, because synchronizing would spoil the capture.
  StatusOr<bool> recording = capturing();
  if (!recording.ok())
    return recording.status();
  if (*recording)
    return Status(StatusCode::FailedPrecondition,
                  "stream cannot be synchronized while it is capturing; end "
                  "the capture first");
  tally().synchronizations += 1;
  return bound(owner, "cuStreamSynchronize",
               [&](const Driver &d) { return d.cuStreamSynchronize(stream); });
}

Status CudaStream::copyToDevice(void *to, const void *from, size_t bytes) {
  tally().copiesToDevice += 1;
  return bound(owner, "cuMemcpyHtoDAsync", [&](const Driver &d) {
    return d.cuMemcpyHtoDAsync_v2(address(to), from, bytes, stream);
  });
}

Status CudaStream::copyToHost(void *to, const void *from, size_t bytes) {
  tally().copiesToHost += 1;
  return bound(owner, "cuMemcpyDtoHAsync", [&](const Driver &d) {
    return d.cuMemcpyDtoHAsync_v2(to, address(from), bytes, stream);
  });
}

Status CudaStream::copyOnDevice(void *to, const void *from, size_t bytes) {
  return bound(owner, "cuMemcpyDtoDAsync", [&](const Driver &d) {
    return d.cuMemcpyDtoDAsync_v2(address(to), address(from), bytes, stream);
  });
}

Status CudaStream::fill(void *to, uint8_t value, size_t bytes) {
  return bound(owner, "cuMemsetD8Async", [&](const Driver &d) {
    return d.cuMemsetD8Async(address(to), value, bytes, stream);
  });
}

Status CudaStream::record(Event &event) {
  CUevent handle = static_cast<CudaEvent &>(event).handle();
  return bound(owner, "cuEventRecord", [&](const Driver &d) {
    return d.cuEventRecord(handle, stream);
  });
}

Status CudaStream::wait(Event &event) {
  CUevent handle = static_cast<CudaEvent &>(event).handle();
  return bound(owner, "cuStreamWaitEvent", [&](const Driver &d) {
    return d.cuStreamWaitEvent(stream, handle, 0);
  });
}

Status CudaStream::beginCapture() {
  StatusOr<bool> recording = capturing();
  if (!recording.ok())
    return recording.status();
  if (*recording)
    return Status(StatusCode::FailedPrecondition,
                  "stream is capturing already; end that capture first");
  Status status = bound(owner, "cuStreamBeginCapture", [&](const Driver &d) {
    return d.cuStreamBeginCapture_v2(stream, captureThreadLocal);
  });
  if (status.ok())
    startTally();
  return status;
}

StatusOr<std::unique_ptr<Graph>> CudaStream::endCapture() {
  StatusOr<bool> recording = capturing();
  if (!recording.ok())
    return recording.status();
  if (!*recording)
    return Status(StatusCode::FailedPrecondition,
                  "stream is not capturing; begin a capture first");
  StreamCounters recorded = endTally();
  tally().captures += 1;
  CUgraph graph = nullptr;
  if (Status status = bound(owner, "cuStreamEndCapture",
                            [&](const Driver &d) {
                              return d.cuStreamEndCapture(stream, &graph);
                            });
      !status.ok())
    return status;
  CUgraphExec executable = nullptr;
  Status status = bound(owner, "cuGraphInstantiate", [&](const Driver &d) {
    return d.cuGraphInstantiateWithFlags(&executable, graph, 0);
  });
  owner.driver().cuGraphDestroy(graph);
  if (!status.ok())
    return status;
  return std::unique_ptr<Graph>(
      std::make_unique<CudaGraph>(owner, executable, recorded));
}
