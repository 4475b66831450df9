//===- TableMirror.cpp - Words kept on host and device --------------------===//

#include "runtime/TableMirror.h"

#include <algorithm>
#include <cstring>

using namespace tokentile;

StatusOr<TableMirror> TableMirror::create(Device &device, int64_t words) {
  TableMirror mirror;
  int64_t blocks = (words + blockWords - 1) / blockWords;
  size_t bytes = blocks * blockWords * sizeof(int32_t);
  mirror.host.resize(blocks * blockWords);
  mirror.isChanged.resize(blocks);
  StatusOr<Buffer> buffer = device.allocate(bytes);
  if (!buffer.ok())
    return buffer.status();
  mirror.buffer = std::move(*buffer);
  if (Status status = device.fill(mirror.buffer.data(), 0, bytes); !status.ok())
    return status;
  for (Stage &stage : mirror.stages) {
    StatusOr<Buffer> pinned = device.allocatePinned(bytes);
    if (!pinned.ok())
      return pinned.status();
    StatusOr<std::unique_ptr<Event>> copied = device.createEvent();
    if (!copied.ok())
      return copied.status();
    stage.pinned = std::move(*pinned);
    stage.copied = std::move(*copied);
  }
  return mirror;
}

void TableMirror::write(int64_t word, int32_t value) {
  if (host[word] == value)
    return;
  host[word] = value;
  int64_t block = word / blockWords;
  if (isChanged[block])
    return;
  isChanged[block] = true;
  changed.push_back(block);
}

Status TableMirror::copy(Stage &stage, int64_t firstBlock, int64_t endBlock,
                         Stream &stream) {
  int64_t first = firstBlock * blockWords;
  size_t bytes = (endBlock - firstBlock) * blockWords * sizeof(int32_t);
  int32_t *from = stage.pinned.as<int32_t>() + first;
  std::memcpy(from, host.data() + first, bytes);
  return stream.copyToDevice(buffer.as<int32_t>() + first, from, bytes);
}

Status TableMirror::upload(Stream &stream) {
  if (changed.empty())
    return Status();
  constexpr int64_t maxGap = 4096 / (blockWords * sizeof(int32_t));
  Stage &stage = stages[nextStage];
  if (Status status = stage.copied->synchronize(); !status.ok())
    return status;
  std::sort(changed.begin(), changed.end());
  for (size_t i = 0; i < changed.size();) {
    int64_t first = changed[i];
    int64_t end = first + 1;
    for (++i; i < changed.size() && changed[i] - end < maxGap; ++i)
      end = changed[i] + 1;
    if (Status status = copy(stage, first, end, stream); !status.ok())
      return status;
  }
  if (Status status = stream.record(*stage.copied); !status.ok())
    return status;
  nextStage = (nextStage + 1) % stages.size();
  for (int64_t block : changed)
    isChanged[block] = false;
  changed.clear();
  return Status();
}
