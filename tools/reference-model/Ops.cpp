//===- Ops.cpp - Operations of the reference model ------------------------===//

#include "tools/reference-model/Ops.h"

#include "runtime/Nvrtc.h"

using namespace tokentile;
using namespace tokentile::reference;

namespace tokentile {
/// Embedded by the build.
extern const char *const referenceOpsSource;
} // namespace tokentile

std::string reference::opsSource() {
  return std::string(serviceSource) + referenceOpsSource;
}

StatusOr<std::unique_ptr<Ops>> Ops::create(Device &device) {
  std::unique_ptr<Ops> ops(new Ops());
  std::string cubin;
  ops->isCuda = device.facts().kind == DeviceKind::Cuda;
  if (ops->isCuda) {
    StatusOr<std::string> image = compileCuda(
        opsSource(), "ops.cu", device.facts().chip, {"--std=c++17"});
    if (!image.ok())
      return image.status();
    cubin = *std::move(image);
  }
  Status status;
  auto load = [&](auto &kernel, const char *symbol, auto function) {
    auto made =
        std::decay_t<decltype(kernel)>::create(device, cubin, symbol, function);
    if (made.ok())
      kernel = *std::move(made);
    else if (status.ok())
      status = made.status();
  };
  load(ops->linear1, "tokentile_linear1", linearOnHost);
  load(ops->linear2, "tokentile_linear2", linearOnHost);
  load(ops->linear4, "tokentile_linear4", linearOnHost);
#define TOKENTILE_OP(name, Args, threads)                                      \
  load(ops->name##Kernel, "tokentile_" #name, reference::name);
#include "tools/reference-model/OpList.def"
#undef TOKENTILE_OP
  if (!status.ok())
    return status;
  return ops;
}

Status Ops::linear(const LinearArgs &args, Stream &stream) const {
  if (!isCuda) {
    int32_t blocks = (args.columns + hostLinearColumns - 1) / hostLinearColumns;
    return linear1.launch({blocks, 1, 1}, 1, args, stream);
  }
  int32_t rows = args.rows <= 16 ? 16 : args.rows <= 32 ? 32 : 64;
  const ServiceKernel<LinearArgs> &kernel = rows == 16   ? linear1
                                            : rows == 32 ? linear2
                                                         : linear4;
  return kernel.launch(
      {(args.columns + 31) / 32, (args.rows + rows - 1) / rows, 1}, 256, args,
      stream);
}
