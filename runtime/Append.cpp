//===- Append.cpp - Keys and values into the pages of requests ------------===//

#include "runtime/Append.h"
#include "runtime/KernelChecks.h"

#include <algorithm>

using namespace tokentile;
using services::AppendArgs;

namespace {

Status invalid(const std::string &message) {
  return Status(StatusCode::InvalidArgument, "append: " + message);
}

services::Scalar scalarOf(Element element) {
  return element == Element::BFloat16 ? services::Scalar::BFloat16
                                      : services::Scalar::Float16;
}

Status checkArgs(const AppendArgs &args) {
  const std::pair<const char *, const void *> pointers[] = {
      {"keys.data", args.keys.data},
      {"values.data", args.values.data},
      {"keyPages.pool", args.keyPages.pool},
      {"valuePages.pool", args.valuePages.pool},
      {"table.ids", args.table.ids},
      {"lengths", args.lengths},
      {"counts", args.counts}};
  for (auto [field, pointer] : pointers)
    if (!pointer)
      return invalid(std::string(field) + " is null");
  const std::pair<const char *, int64_t> sizes[] = {
      {"batch", args.batch},
      {"width", args.width},
      {"kvHeads", args.kvHeads},
      {"headDim", args.headDim},
      {"table.stride", args.table.stride},
      {"table.pageTokens", args.table.pageTokens}};
  for (auto [field, size] : sizes)
    if (size < 1)
      return invalid(std::string(field) + " " + std::to_string(size) +
                     "; it must be positive");
  if (args.ropeFrequencies && (args.rotaryDim < 2 || args.rotaryDim % 2 != 0 ||
                               args.rotaryDim > args.headDim))
    return invalid("rotaryDim " + std::to_string(args.rotaryDim) +
                   "; it must be even and 2 .. headDim " +
                   std::to_string(args.headDim));
  return Status();
}

} // namespace

StatusOr<AppendArgs> tokentile::appendArgsFor(const KernelInfo &info,
                                              const LaunchArgs &args) {
  if (info.pageOrder == PageOrder::Contiguous)
    return invalid("kernel '" + info.name +
                   "' reads contiguous keys; it has no pages");
  if (info.ring > 0 && args.tableStride != info.ring / info.pageSize)
    return invalid("tableStride " + std::to_string(args.tableStride) +
                   " is not that of kernel '" + info.name +
                   "', whose ring has " +
                   std::to_string(info.ring / info.pageSize) + " entries");
  AppendArgs out = {};
  out.keyPages = {const_cast<void *>(args.keys), args.keyPageStride,
                  args.keyHeadStride, info.keySlotStride,
                  scalarOf(info.keyElement)};
  out.valuePages = {const_cast<void *>(args.values), args.valuePageStride,
                    args.valueHeadStride, info.valueSlotStride,
                    scalarOf(info.valueElement)};
  if (Status status =
          setPoolStrides(info, args.poolPages, info.keySlotStride, "key",
                         out.keyPages.pageStride, out.keyPages.headStride);
      !status.ok())
    return status;
  if (Status status =
          setPoolStrides(info, args.poolPages, info.valueSlotStride, "value",
                         out.valuePages.pageStride, out.valuePages.headStride);
      !status.ok())
    return status;
  out.table = {args.table, args.tableStride, info.pageSize};
  out.lengths = args.lengths;
  out.kvHeads = info.kvHeads;
  out.headDim = info.headDim;
  return out;
}

StatusOr<Appender> Appender::create(Device &device) {
  StatusOr<ServiceKernel<AppendArgs>> kernel =
      ServiceKernel<AppendArgs>::create(device, "append", services::append);
  if (!kernel.ok())
    return kernel.status();
  return Appender(*std::move(kernel));
}

Status Appender::append(const AppendArgs &args, Stream &stream) const {
  if (Status status = checkArgs(args); !status.ok())
    return status;
  int32_t threads =
      std::min(services::teamThreads, (args.headDim + 31) / 32 * 32);
  return kernel.launch({args.width, args.kvHeads, args.batch}, threads, args,
                       stream);
}
