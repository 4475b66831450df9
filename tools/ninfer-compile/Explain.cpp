//===- Explain.cpp - What a compiled kernel will do -----------------------===//

#include "tools/ninfer-compile/Explain.h"

#include "runtime/Kernel.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace tokentile;

namespace {

class Lines {
public:
  explicit Lines(std::string &text) : stream(text) {}
  template <typename T>
  void add(llvm::StringRef key, const T &value) {
    stream << key << ": " << value << "\n";
  }

private:
  llvm::raw_string_ostream stream;
};

/// Keys of one request that at least one row sees.
int64_t visibleKeys(const KernelInfo &info, const ExplainedLaunch &launch) {
  int64_t keys = int64_t(launch.context) + info.tokens;
  if (!info.window)
    return keys;
  return std::min<int64_t>(keys, info.window - 1 + info.tokens);
}

/// Multiprocessors of the chip; on the host those of this machine.
int32_t multiprocessors(const ChipFacts &chip) {
  if (!chip.isHost())
    return chip.multiprocessors;
  StatusOr<std::unique_ptr<Device>> host = openDevice("host");
  return host.ok() ? (*host)->facts().multiprocessors : 1;
}

} // namespace

std::string tokentile::explain(const CompileResult &result,
                               const ChipFacts &chip,
                               const ExplainedLaunch &launch) {
  const KernelInfo &info = result.info;
  int32_t sms = multiprocessors(chip);
  WorkPlan work =
      planWork(info, {launch.batch, launch.context + info.tokens}, sms);
  int64_t sweepBytes =
      launch.batch * visibleKeys(info, launch) * info.keyBytesPerToken();
  std::string text;
  Lines lines(text);
  lines.add("kernel", info.name);
  lines.add("chip", chip.name);
  lines.add("part", chip.part);
  lines.add("multiprocessors", sms);
  lines.add("rows", info.rows);
  lines.add("padded_rows", info.paddedRows);
  lines.add("sweeps", info.sweeps);
  lines.add("most_sweeps", mostSweeps(info));
  lines.add("key_tile", info.keyTile);
  lines.add("key_bytes_per_token", info.keyBytesPerToken());
  lines.add("threads", info.threads);
  lines.add("shared_memory_bytes", info.sharedBytes);
  lines.add("batch", launch.batch);
  lines.add("context", launch.context);
  lines.add("items", work.items);
  lines.add("blocks", int64_t(work.items) * info.kvHeads * info.rowBlocks);
  lines.add("merge_blocks", work.mergeBlocks);
  lines.add("workspace_bytes", workspaceOf(info, work, launch.batch).bytes);
  lines.add("key_bytes_read", sweepBytes * info.sweeps);
  if (!chip.isHost())
    lines.add("key_read_microseconds_at_best",
              llvm::formatv("{0:F1}", sweepBytes * info.sweeps /
                                          chip.gigabytesPerSecond / 1e3));
  lines.add("spec", info.spec);
  for (const PhaseTime &time : result.times)
    lines.add("milliseconds." + time.phase,
              llvm::formatv("{0:F2}", time.milliseconds));
  return text;
}
