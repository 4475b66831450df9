//===- TestKernel.h - A kernel for the runtime's tests ----------*- C++ -*-===//
//
// A hand-written pair of host functions that records what it was called with,
// where a generated kernel would attend.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_RUNTIME_TESTKERNEL_H
#define TOKENTILE_TEST_RUNTIME_TESTKERNEL_H

#include "runtime/Kernel.h"

#include <gtest/gtest.h>

namespace tokentile::test {

/// Asserts that a Status is ok, and shows it if not.
#define ASSERT_OK(expression)                                                  \
  do {                                                                         \
    ::tokentile::Status okStatus = (expression);                               \
    ASSERT_TRUE(okStatus.ok()) << okStatus.toString();                         \
  } while (false)

/// Expects an error of this code whose message contains `text`.
inline void expectError(const Status &status, StatusCode code,
                        const std::string &text) {
  EXPECT_EQ(status.code(), code) << status.toString();
  EXPECT_NE(status.message().find(text), std::string::npos)
      << "'" << text << "' is not in: " << status.toString();
}

/// Facts of a paged kernel: 8 query heads over 2, 3 tokens, pages of 16 keys.
inline KernelInfo testInfo() {
  KernelInfo info;
  info.name = "verify";
  info.sweepSymbol = "verify_sweep";
  info.mergeSymbol = "verify_merge";
  info.chip = "host";
  info.spec = "attn.kernel @verify";
  info.queryHeads = 8;
  info.kvHeads = 2;
  info.headDim = 64;
  info.tokens = 3;
  info.pageSize = 16;
  info.keySlotStride = 64 * 2;
  info.valueSlotStride = 64 * 2;
  info.rows = 12;
  info.paddedRows = 16;
  info.keyTile = 32;
  return info;
}

/// Memory that stands for every tensor of a launch, and valid arguments for
/// testInfo() with bounds {2, 100}.
struct TestTensors {
  alignas(16) char memory[16] = {};
  alignas(16) int32_t indices[64] = {};
  alignas(256) char workspace[1 << 17] = {};

  LaunchArgs args() {
    LaunchArgs args;
    args.query = memory;
    args.output = memory;
    args.keys = memory;
    args.values = memory;
    args.table = indices;
    args.lengths = indices;
    args.tableStride = 7;
    args.workspace = workspace;
    args.workspaceBytes = sizeof(workspace);
    return args;
  }
};

/// The arguments that the latest sweep of captureArgs saw.
inline KernelArgs seenArgs;

inline void captureArgs(const KernelArgs *args, int32_t x) {
  if (x == 0)
    seenArgs = *args;
}

/// A device, a kernel with `info` that captures its arguments, and a stream.
struct TestSetup {
  explicit TestSetup(
      const KernelInfo &info, HostKernelFn sweep = captureArgs,
      HostKernelFn merge = [](const KernelArgs *, int32_t) {}) {
    device = *openDevice("host");
    CompiledKernel compiled;
    compiled.info = info;
    compiled.sweep = sweep;
    compiled.merge = merge;
    StatusOr<std::unique_ptr<Kernel>> loaded = device->load(compiled);
    EXPECT_TRUE(loaded.ok()) << loaded.status().toString();
    kernel = *std::move(loaded);
    stream = *device->createStream();
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Stream> stream;
};

} // namespace tokentile::test

#endif // TOKENTILE_TEST_RUNTIME_TESTKERNEL_H
