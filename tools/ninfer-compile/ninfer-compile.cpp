//===- ninfer-compile.cpp - From a spec to any level of a kernel ----------===//

#include "tools/front/Front.h"
#include "tools/front/Tool.h"
#include "tools/ninfer-compile/Explain.h"
#include "tools/ninfer-compile/Ship.h"

#include "llvm/Support/raw_ostream.h"

using namespace tokentile;

namespace {

/// What a grid holds, and keys whose count stays within 32 bits.
constexpr int32_t maxBatch = 65535;
constexpr int32_t maxContext = 1 << 30;

struct Options {
  FrontOptions front;
  ExplainedLaunch launch;
  std::string emit;
  std::string output;
  std::string ship;
  bool explain = false;
};

Status badChip(const std::string &what) {
  std::string known;
  for (const ChipFacts &chip : knownChips())
    known += (known.empty() ? "" : ", ") + chip.name.str();
  return Status(StatusCode::InvalidArgument, what + "; " + known + " work");
}

/// The chip that is meant: the option's, else the schedule's own.
StatusOr<const ChipFacts *> chooseChip(const Options &options,
                                       mlir::ModuleOp module) {
  std::string name = options.front.chip;
  module.walk([&](attn::KernelOp kernel) {
    if (auto own = kernel.getScheduleOrDefault().getChip(); name.empty() && own)
      name = own.str();
  });
  if (name.empty())
    return badChip("no --chip is given");
  const ChipFacts *chip = findChip(name);
  if (!chip)
    return badChip("--chip '" + name + "' is unknown");
  return chip;
}

/// The level that is printed as a module, if `emit` is one.
std::optional<Level> levelOf(const std::string &emit) {
  const std::pair<const char *, Level> levels[] = {
      {"spec", Level::Spec},       {"plan", Level::Plan},
      {"tiles", Level::Tiles},     {"staged", Level::Staged},
      {"machine", Level::Machine}, {"nvvm", Level::Nvvm}};
  for (auto [name, level] : levels)
    if (emit == name)
      return level;
  return std::nullopt;
}

/// What does not go together, before anything is compiled.
Status checkOptions(const Options &options) {
  const std::string &emit = options.emit;
  if (!levelOf(emit) && emit != "ptx" && emit != "object" && !emit.empty())
    return Status(StatusCode::InvalidArgument,
                  "--emit '" + emit +
                      "' is unknown; spec, plan, tiles, staged, machine, "
                      "nvvm, ptx and object work");
  if (emit.empty() && !options.explain && options.ship.empty())
    return Status(StatusCode::InvalidArgument,
                  "nothing is asked for; give --emit=LEVEL, --explain or "
                  "--ship=DIR");
  if (emit == "object" && options.output.empty())
    return Status(StatusCode::InvalidArgument,
                  "--emit 'object' is binary; give -o FILE");
  if (options.launch.batch < 1 || options.launch.batch > maxBatch ||
      options.launch.context < 0 || options.launch.context > maxContext)
    return Status(StatusCode::InvalidArgument,
                  "--batch " + std::to_string(options.launch.batch) +
                      " and --context " +
                      std::to_string(options.launch.context) +
                      " do not fit; 1 to " + std::to_string(maxBatch) +
                      " and 0 to " + std::to_string(maxContext) + " work");
  return Status();
}

Status checkLevel(const std::string &emit, const ChipFacts &chip) {
  bool needsGpu =
      emit == "staged" || emit == "machine" || emit == "nvvm" || emit == "ptx";
  if (needsGpu && chip.isHost())
    return Status(StatusCode::InvalidArgument,
                  "--emit '" + emit +
                      "' does not go with --chip 'host'; spec, plan, tiles "
                      "and object work");
  if (emit == "object" && !chip.isHost())
    return Status(StatusCode::InvalidArgument,
                  "--emit 'object' does not go with --chip '" +
                      chip.name.str() + "'; ptx works");
  return Status();
}

/// Text or bytes of what --emit names. Consumes the module.
llvm::Expected<std::string> emitLevel(const std::string &emit,
                                      mlir::OwningOpRef<mlir::ModuleOp> module,
                                      llvm::StringRef chip) {
  if (emit == "object")
    return compileHostObject(std::move(module));
  if (emit == "ptx") {
    auto result = compile(std::move(module), chip);
    if (!result)
      return result.takeError();
    return std::move(result->ptx);
  }
  if (llvm::Error error = lowerTo(*module, *levelOf(emit), chip))
    return std::move(error);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  stream << "\n";
  return text;
}

StatusOr<int> write(const Options &options,
                    const std::optional<CompileResult> &compiled,
                    const std::optional<std::string> &emitted,
                    const ChipFacts &chip) {
  if (!options.ship.empty())
    if (Status status = ship(options.ship, *compiled); !status.ok())
      return status;
  if (emitted)
    if (Status status = writeText(options.output, *emitted); !status.ok())
      return status;
  if (options.explain)
    if (Status status = writeText("", explain(*compiled, chip, options.launch));
        !status.ok())
      return status;
  return 0;
}

StatusOr<int> run(const Options &options) {
  if (Status status = checkOptions(options); !status.ok())
    return status;
  StatusOr<std::string> spec = buildSpec(options.front);
  if (!spec.ok())
    return spec.status();
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  auto parse = [&] {
    return parseSpec(*spec, specName(options.front), *context);
  };
  auto module = parse();
  if (!module)
    return toStatus(module.takeError());

  bool needsChip =
      options.emit != "spec" || options.explain || !options.ship.empty();
  const ChipFacts *chip = findChip("host");
  if (needsChip) {
    StatusOr<const ChipFacts *> chosen = chooseChip(options, **module);
    if (!chosen.ok())
      return chosen.status();
    chip = *chosen;
    if (Status status = checkLevel(options.emit, *chip); !status.ok())
      return status;
  }

  // Everything is computed before anything is written.
  std::optional<CompileResult> compiled;
  if (options.explain || !options.ship.empty()) {
    auto again = parse();
    if (!again)
      return toStatus(again.takeError());
    auto result = compile(std::move(*again), chip->name);
    if (!result)
      return toStatus(result.takeError());
    compiled = std::move(*result);
  }
  std::optional<std::string> emitted;
  if (!options.emit.empty()) {
    auto text = emitLevel(options.emit, std::move(*module), chip->name);
    if (!text)
      return toStatus(text.takeError());
    emitted = std::move(*text);
  }
  return write(options, compiled, emitted, *chip);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Compiles one attention spec and shows any level of it",
               "ninfer-compile");
  Options options;
  addFrontOptions(app, options.front, /*withChip=*/true);
  app.add_option("--emit", options.emit,
                 "spec, plan, tiles, staged, machine, nvvm, ptx or object");
  app.add_option("-o", options.output,
                 "File to write (default: standard "
                 "output)");
  app.add_flag("--explain", options.explain,
               "Print what the kernel needs and reads, and the compile's "
               "phases");
  app.add_option("--batch", options.launch.batch,
                 "Requests of the explained launch (default: 1)");
  app.add_option("--context", options.launch.context,
                 "Keys before the block of the explained launch (default: 0)");
  app.add_option("--ship", options.ship,
                 "Write the kernel's PTX into this folder and its facts into "
                 "the folder's manifest");
  return runTool(app, argc, argv, [&] { return run(options); });
}
