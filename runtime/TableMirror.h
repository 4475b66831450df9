//===- TableMirror.h - Words kept on host and device ------------*- C++ -*-===//
//
// An array of int32 words that the host changes and the device reads. Changes
// are collected on the host and sent with `upload`, through pinned staging.
// There are two staging buffers; one is written again only when the copies
// from it are done, which two uploads later they nearly always are.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_TABLEMIRROR_H
#define TOKENTILE_RUNTIME_TABLEMIRROR_H

#include "runtime/Device.h"

#include <array>
#include <vector>

namespace tokentile {

class TableMirror {
public:
  /// `words` words, zero on host and device.
  static StatusOr<TableMirror> create(Device &device, int64_t words);

  int32_t read(int64_t word) const { return host[word]; }
  /// Sets a word; it is sent with the next upload if it changed.
  void write(int64_t word, int32_t value);
  /// Sets a word that the device has set to the same value.
  void adopt(int64_t word, int32_t value) { host[word] = value; }

  /// Queues copies of all changed words, in runs of 64; runs less than 4 KiB
  /// apart are sent as one copy. Waits for the copies of the upload before the
  /// last. After an error the changes stay to be sent. Not while capturing.
  Status upload(Stream &stream);

  /// Where the device has word `word`.
  int32_t *device(int64_t word) const { return buffer.as<int32_t>() + word; }

private:
  static constexpr int64_t blockWords = 64;
  struct Stage {
    Buffer pinned;
    std::unique_ptr<Event> copied;
  };

  TableMirror() = default;
  Status copy(Stage &stage, int64_t firstBlock, int64_t endBlock,
              Stream &stream);

  std::vector<int32_t> host;
  /// Blocks to send, and whether a block is among them.
  std::vector<int64_t> changed;
  std::vector<bool> isChanged;
  Buffer buffer;
  std::array<Stage, 2> stages;
  size_t nextStage = 0;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_TABLEMIRROR_H
