//===- Compiler.cpp - From a spec to a kernel, in process -----------------===//

#include "codegen/Compiler.h"

#include "codegen/BlockContext.h"
#include "codegen/ChipFacts.h"
#include "codegen/HostEngine.h"
#include "codegen/Pipelines.h"
#include "codegen/Ptx.h"
#include "codegen/Registration.h"
#include "codegen/Schedule.h"
#include "codegen/mma/MmaEmitter.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

namespace {

/// Keeps the first error that is reported while it lives.
class FirstError {
public:
  explicit FirstError(MLIRContext &context)
      : handler(&context, [this](Diagnostic &diagnostic) {
          if (message.empty() &&
              diagnostic.getSeverity() == DiagnosticSeverity::Error) {
            message = print(diagnostic);
            refuses = isRefusal(diagnostic);
          }
          return success();
        }) {}

  llvm::Error take(StringRef otherwise) {
    if (refuses)
      return llvm::make_error<NotCovered>(message);
    return llvm::createStringError(message.empty() ? otherwise.str() : message);
  }

private:
  static std::string print(Diagnostic &diagnostic) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (auto at = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
      stream << at.getFilename().getValue() << ":" << at.getLine() << ":"
             << at.getColumn() << ": ";
    stream << diagnostic;
    return text;
  }

  std::string message;
  bool refuses = false;
  ScopedDiagnosticHandler handler;
};

/// Adds a phase's time when it ends.
class Phase {
public:
  Phase(std::vector<PhaseTime> &times, StringRef name)
      : times(times), name(name), start(Clock::now()) {}
  ~Phase() {
    std::chrono::duration<double, std::milli> spent = Clock::now() - start;
    times.push_back({name.str(), spent.count()});
  }

private:
  using Clock = std::chrono::steady_clock;
  std::vector<PhaseTime> &times;
  StringRef name;
  Clock::time_point start;
};

} // namespace

char NotCovered::ID = 0;

std::unique_ptr<MLIRContext> tokentile::createContext() {
  DialectRegistry registry;
  registerDialects(registry);
  // One compile is a handful of small passes; threads only add latency.
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

llvm::Expected<OwningOpRef<ModuleOp>>
tokentile::parseSpec(StringRef text, StringRef name, MLIRContext &context) {
  FirstError error(context);
  auto module = parseSourceString<ModuleOp>(text, ParserConfig(&context), name);
  if (!module)
    return error.take(name.str() + ": is not an attention spec");
  if (module->getOps<KernelOp>().empty())
    return llvm::createStringError(name + ": holds no attn.kernel; write one");
  return module;
}

using Build = llvm::function_ref<void(OpPassManager &)>;

static llvm::Error runPipeline(ModuleOp module, Build build) {
  FirstError error(*module.getContext());
  PassManager pm(module.getContext());
  build(pm);
  if (failed(pm.run(module)))
    return error.take("lowering failed");
  return llvm::Error::success();
}

llvm::Error tokentile::lowerTo(ModuleOp module, Level level, StringRef chip) {
  bool host = chip == "host";
  if (host && level > Level::Tiles)
    return llvm::createStringError(
        "the host has no staged level and below; tiles is its last");
  return runPipeline(module, [&](OpPassManager &pm) {
    if (level >= Level::Plan)
      buildPlanPipeline(pm, chip);
    if (level >= Level::Tiles)
      buildTilesPipeline(pm);
    if (level >= Level::Staged)
      buildStagedPipeline(pm);
    if (level >= Level::Machine)
      buildMachinePipeline(pm);
    if (level >= Level::Nvvm)
      buildNvvmPipeline(pm);
  });
}

static llvm::Expected<KernelOp> singleKernel(ModuleOp module) {
  auto kernels = llvm::to_vector(module.getOps<KernelOp>());
  if (kernels.size() != 1)
    return llvm::createStringError("expected one attn.kernel, got " +
                                   std::to_string(kernels.size()));
  return kernels.front();
}

static llvm::Error compileHost(ModuleOp module, CompileResult &result) {
  {
    Phase phase(result.times, "tiles");
    if (llvm::Error error = runPipeline(module, buildTilesPipeline))
      return error;
  }
  llvm::Expected<HostCode> code =
      jitHostModule(module, result.info.sweepSymbol, result.info.mergeSymbol);
  if (!code)
    return code.takeError();
  result.sweep = code->sweep;
  result.merge = code->merge;
  result.code = code->keepAlive;
  result.times.push_back({"lowering", code->times.lowering});
  result.times.push_back({"optimization", code->times.optimization});
  result.times.push_back({"backend", code->times.generation});
  return llvm::Error::success();
}

static llvm::Error compileGpu(ModuleOp module, CompileResult &result) {
  std::pair<StringRef, void (*)(OpPassManager &)> steps[] = {
      {"tiles", buildTilesPipeline},
      {"staged", buildStagedPipeline},
      {"machine", buildMachinePipeline},
      {"nvvm", buildNvvmPipeline}};
  for (auto [name, build] : steps) {
    Phase phase(result.times, name);
    if (llvm::Error error = runPipeline(module, build))
      return error;
  }
  PtxTimes times;
  llvm::Expected<std::string> ptx =
      emitPtx(*module.getOps<gpu::GPUModuleOp>().begin(), &times);
  if (!ptx)
    return ptx.takeError();
  result.ptx = std::move(*ptx);
  result.times.push_back({"optimization", times.optimization});
  result.times.push_back({"backend", times.backend});
  return llvm::Error::success();
}

llvm::Expected<CompileResult> tokentile::compile(OwningOpRef<ModuleOp> module,
                                                 StringRef chip) {
  CompileResult result;
  {
    Phase phase(result.times, "plan");
    if (llvm::Error error = lowerTo(*module, Level::Plan, chip))
      return error;
  }
  llvm::Expected<KernelOp> plan = singleKernel(*module);
  if (!plan)
    return plan.takeError();
  result.info = describeKernel(*plan);
  bool host = result.info.chip == "host";
  if (llvm::Error error =
          host ? compileHost(*module, result) : compileGpu(*module, result))
    return error;
  return result;
}

llvm::Expected<std::string>
tokentile::compileHostObject(OwningOpRef<ModuleOp> module) {
  if (llvm::Error error = lowerTo(*module, Level::Tiles, "host"))
    return error;
  return emitHostObject(*module);
}

//===----------------------------------------------------------------------===//
// Launch facts
//===----------------------------------------------------------------------===//

static Element elementOf(ElementKind kind) {
  return kind == ElementKind::FP16 ? Element::Float16 : Element::BFloat16;
}

static PageOrder orderOf(PageOrderKind kind) {
  switch (kind) {
  case PageOrderKind::PageMajor:
    return PageOrder::PageMajor;
  case PageOrderKind::HeadMajor:
    return PageOrder::HeadMajor;
  case PageOrderKind::NHD:
    return PageOrder::TokenMajor;
  case PageOrderKind::Contiguous:
    return PageOrder::Contiguous;
  }
  return PageOrder::PageMajor;
}

static Columns columnsOf(ColumnsKind kind) {
  switch (kind) {
  case ColumnsKind::Uniform:
    return Columns::Uniform;
  case ColumnsKind::Counted:
    return Columns::Counted;
  case ColumnsKind::Packed:
    return Columns::Packed;
  }
  return Columns::Uniform;
}

static SplitPolicy policyOf(SplitKind kind) {
  switch (kind) {
  case SplitKind::Auto:
    return SplitPolicy::Auto;
  case SplitKind::Count:
    return SplitPolicy::Count;
  case SplitKind::Keys:
    return SplitPolicy::Keys;
  case SplitKind::Pieces:
    return SplitPolicy::Pieces;
  }
  return SplitPolicy::Auto;
}

KernelInfo tokentile::describeKernel(KernelOp plan) {
  KernelInfo info;
  ScheduleAttr schedule = plan.getScheduleOrDefault();
  QueryAttr query = plan.getQueryOrDefault();
  OutputAttr output = plan.getOutputOrDefault();
  RowShape rows(plan);

  info.name = plan.getSymName().str();
  info.sweepSymbol = info.name + "_sweep";
  info.mergeSymbol = info.name + "_merge";
  info.chip = schedule.getChip().getValue().str();
  llvm::raw_string_ostream(info.spec) << *plan;

  info.queryHeads = plan.getHeads().getQuery();
  info.kvHeads = plan.getHeads().getKv();
  info.headDim = plan.getHeads().getDim();
  info.tokens = plan.getTokens();
  info.queryElement = elementOf(query.getElement());
  info.outputElement = elementOf(output.getElement());
  info.keyElement = elementOf(plan.getKeys().getElement());
  info.valueElement = elementOf(plan.getValues().getElement());
  info.queryHeadMajor = query.getOrder() == RowOrder::HeadMajor;
  info.outputHeadMajor = output.getOrder() == RowOrder::HeadMajor;
  info.pageOrder = orderOf(plan.getPaging().getOrder());
  info.pageSize = plan.getPaging().getPage();
  info.keySlotStride = plan.getSlotStride(plan.getKeys(), info.headDim);
  info.valueSlotStride = plan.getSlotStride(plan.getValues(), info.headDim);
  info.columns = columnsOf(query.getColumns());
  info.denseBlock = plan.getBlockKind() == BlockKind::Dense;
  info.positionsGiven = query.getPositions() == PositionsKind::Given;
  info.lengthsTotal = query.getLengths() == LengthsKind::Total;
  info.logSumExp = output.getExtra() == ExtraResult::LogSumExp;
  info.sink = plan.getSink();
  info.ring = plan.getPaging().getRing();
  info.window = plan.getSees().getWindow();

  info.rows = rows.rows;
  info.paddedRows = rows.paddedRows();
  info.rowBlocks = rows.rowBlocks;
  info.sweeps = rows.rowBlocks;
  info.keyTile = schedule.getKeyTile();
  info.splitPolicy = policyOf(plan.getSplitOrDefault().getKind());
  info.splitValue = plan.getSplitOrDefault().getValue();
  if (!isForGpu(plan))
    return info;
  MmaSchedule mma = readSchedule(schedule);
  info.tensorMaps = mma.wgmma;
  if (sweepsRanges(plan))
    info.rangesSymbol = rangesSymbol(plan);
  info.partialElementBytes = gpuPartialBytes;
  info.threads = mma.blockThreads();
  info.mergeThreads = mergeThreads(plan);
  info.mergeSlices = mergeSlices(plan);
  info.mergeBlocksPerSm = mergesPerSm(plan);
  info.sharedBytes = sharedLayout(plan, mma).bytes;
  info.mergeSharedBytes = mergeSharedBytes(plan);
  info.blocksPerSm = blocksPerSm(plan, mma, chipOf(plan));
  return info;
}
