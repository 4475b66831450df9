//===- TableMirrorTest.cpp - Staging that is not reused too early ---------===//

#include "TestKernel.h"

#include "runtime/RawKernel.h"
#include "runtime/TableMirror.h"

#include <cstring>
#include <functional>

using namespace tokentile;
using namespace tokentile::test;

namespace {

/// A queue whose copies are done late: when someone waits.
struct Queue {
  std::vector<std::function<void()>> work;
  size_t done = 0;
  size_t waits = 0;
  void runTo(size_t end) {
    for (; done < end; ++done)
      work[done]();
  }
};

class LateEvent final : public Event {
public:
  explicit LateEvent(Queue &queue) : queue(queue) {}
  Status synchronize() override {
    queue.waits += point > queue.done;
    queue.runTo(point);
    return Status();
  }
  StatusOr<double> elapsedMicroseconds(const Event &) const override {
    return 0.0;
  }
  Queue &queue;
  size_t point = 0;
};

class LateStream final : public Stream {
public:
  LateStream(Device &device, Queue &queue) : Stream(device), queue(queue) {}
  void *native() const override { return nullptr; }
  Status synchronize() override {
    queue.runTo(queue.work.size());
    return Status();
  }
  Status copyToDevice(void *to, const void *from, size_t bytes) override {
    queue.work.push_back([=] { std::memcpy(to, from, bytes); });
    return Status();
  }
  Status copyToHost(void *to, const void *from, size_t bytes) override {
    return copyToDevice(to, from, bytes);
  }
  Status copyOnDevice(void *to, const void *from, size_t bytes) override {
    return copyToDevice(to, from, bytes);
  }
  Status fill(void *, uint8_t, size_t) override { return Status(); }
  Status record(Event &event) override {
    static_cast<LateEvent &>(event).point = queue.work.size();
    return Status();
  }
  Status wait(Event &) override { return Status(); }
  Status beginCapture() override { return Status(); }
  StatusOr<std::unique_ptr<Graph>> endCapture() override {
    return Status(StatusCode::Unavailable, "no graphs here");
  }

private:
  Queue &queue;
};

/// Plain memory, and nothing but what a TableMirror uses.
class LateDevice final : public Device {
public:
  StatusOr<std::unique_ptr<Event>> createEvent() override {
    return std::unique_ptr<Event>(std::make_unique<LateEvent>(queue));
  }
  StatusOr<std::unique_ptr<Stream>> createStream() override { return none(); }
  StatusOr<std::unique_ptr<Stream>> borrowStream(void *) override {
    return none();
  }
  Status copyToDevice(void *, const void *, size_t) override { return none(); }
  Status copyToHost(void *, const void *, size_t) override { return none(); }
  Status fill(void *to, uint8_t value, size_t bytes) override {
    std::memset(to, value, bytes);
    return Status();
  }
  StatusOr<std::unique_ptr<Kernel>> load(const CompiledKernel &) override {
    return none();
  }
  StatusOr<std::unique_ptr<RawKernel>> loadRaw(const std::string &,
                                               const std::string &) override {
    return none();
  }

  Queue queue;

private:
  static Status none() {
    return Status(StatusCode::Unavailable, "not on this device");
  }
  StatusOr<Buffer> allocateIn(MemorySpace space, size_t bytes) override {
    return Buffer(*this, ::operator new(bytes), bytes, space);
  }
  void release(MemorySpace, void *pointer) override {
    ::operator delete(pointer);
  }
};

} // namespace

TEST(TableMirror, EveryUploadSendsTheValuesOfItsTime) {
  LateDevice device;
  LateStream stream(device, device.queue);
  StatusOr<TableMirror> mirror = TableMirror::create(device, 1000);
  ASSERT_OK(mirror.status());
  std::vector<int32_t> seen;
  for (int32_t step = 1; step <= 6; ++step) {
    mirror->write(3, step);
    ASSERT_OK(mirror->upload(stream));
    device.queue.work.push_back([&] { seen.push_back(*mirror->device(3)); });
  }
  ASSERT_OK(stream.synchronize());
  EXPECT_EQ(seen, (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
  // The first two uploads found a staging buffer unused.
  EXPECT_EQ(device.queue.waits, 4u);
}

TEST(TableMirror, SendsOnlyWhatChanged) {
  LateDevice device;
  LateStream stream(device, device.queue);
  StatusOr<TableMirror> mirror = TableMirror::create(device, 1 << 16);
  ASSERT_OK(mirror.status());
  ASSERT_OK(mirror->upload(stream));
  mirror->write(5, 0);
  ASSERT_OK(mirror->upload(stream));
  EXPECT_EQ(device.queue.work.size(), 0u);
  // Two runs far apart are two copies, near ones are one.
  mirror->write(60'000, 4);
  mirror->write(5, 1);
  mirror->write(500, 2);
  mirror->write(501, 3);
  ASSERT_OK(mirror->upload(stream));
  EXPECT_EQ(device.queue.work.size(), 2u);
  ASSERT_OK(stream.synchronize());
  EXPECT_EQ(*mirror->device(5), 1);
  EXPECT_EQ(*mirror->device(500), 2);
  EXPECT_EQ(*mirror->device(501), 3);
  EXPECT_EQ(*mirror->device(60'000), 4);
}

TEST(TableMirror, AdoptedWordsAreNotSent) {
  LateDevice device;
  LateStream stream(device, device.queue);
  StatusOr<TableMirror> mirror = TableMirror::create(device, 10);
  ASSERT_OK(mirror.status());
  mirror->adopt(2, 9);
  ASSERT_OK(mirror->upload(stream));
  EXPECT_EQ(device.queue.work.size(), 0u);
  EXPECT_EQ(mirror->read(2), 9);
}
