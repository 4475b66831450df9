//===- Qualifier.cpp - Kernels of specs, judged case by case --------------===//

#include "tools/ninfer-qualify/Qualifier.h"

#include "runtime/JitCompiler.h"
#include "test/numerics/Npy.h"
#include "tools/front/Tool.h"

#include <chrono>

using namespace tokentile;

StatusOr<std::unique_ptr<Qualifier>>
Qualifier::create(const std::string &deviceName) {
  StatusOr<std::unique_ptr<Device>> device = openDevice(deviceName);
  if (!device.ok())
    return device.status();
  StatusOr<Runner> runner = Runner::create(**device);
  if (!runner.ok())
    return runner.status();
  return std::unique_ptr<Qualifier>(
      new Qualifier(*std::move(device), *std::move(runner)));
}

StatusOr<CompiledKernel> Qualifier::compileOrAdopt(const std::string &text,
                                                   const std::string &name,
                                                   const std::string &ptx) {
  const std::string &chip = device->facts().chip;
  if (ptx.empty())
    return compileKernel(text, chip);
  auto plan = parseSpec(text, name, *context);
  if (!plan)
    return toStatus(plan.takeError());
  if (llvm::Error error = lowerTo(**plan, Level::Plan, chip))
    return toStatus(std::move(error));
  CompiledKernel kernel;
  kernel.info = describeKernel(*(*plan)->getOps<attn::KernelOp>().begin());
  kernel.ptx = ptx;
  return kernel;
}

StatusOr<LoadedSpec> Qualifier::load(const std::string &text,
                                     const std::string &name,
                                     const std::string &ptx) {
  LoadedSpec loaded;
  loaded.text = text;
  auto module = parseSpec(text, name, *context);
  if (!module)
    return toStatus(module.takeError());
  loaded.module = std::move(*module);
  loaded.spec = *loaded.module->getOps<attn::KernelOp>().begin();

  auto start = std::chrono::steady_clock::now();
  StatusOr<CompiledKernel> compiled = compileOrAdopt(text, name, ptx);
  if (!compiled.ok())
    return compiled.status();
  std::chrono::duration<double, std::milli> spent =
      std::chrono::steady_clock::now() - start;
  loaded.compileMilliseconds = spent.count();

  StatusOr<std::unique_ptr<Kernel>> kernel = device->load(*compiled);
  if (!kernel.ok())
    return kernel.status();
  loaded.kernel = *std::move(kernel);
  return loaded;
}

StatusOr<Outcome> Qualifier::judge(LoadedSpec &loaded, const Case &testCase,
                                   const std::string &dumpFolder) {
  std::string error;
  std::unique_ptr<Problem> problem =
      Problem::create(loaded.spec, testCase, error);
  if (!problem)
    return Status(StatusCode::InvalidArgument, error);
  StatusOr<Outcome> outcome = runner.run(*loaded.kernel, *problem);
  if (outcome.ok() && !dumpFolder.empty() &&
      !dumpProblem(*problem, dumpFolder, error))
    return Status(StatusCode::NotFound, error);
  return outcome;
}
