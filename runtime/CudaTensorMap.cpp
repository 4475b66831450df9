//===- CudaTensorMap.cpp - Maps of key and value pools --------------------===//

#include "runtime/CudaTensorMap.h"

#include <algorithm>
#include <limits>

using namespace tokentile;
using namespace tokentile::cuda;

namespace {

// CUtensorMapDataType and CUtensorMapSwizzle; both element types have 16 bits.
constexpr int mapUint16 = 1;
constexpr int mapSwizzle128 = 3;

struct Pool {
  const void *base;
  int64_t slotStride, headStride, pageStride;
};

Status makeMap(const Driver &driver, const KernelInfo &info, int32_t pages,
               const Pool &pool, TensorMap &map) {
  constexpr int rank = 5;
  constexpr uint64_t unknown = std::numeric_limits<int32_t>::max();
  constexpr int64_t panelBytes = kBoxColumns * 2;
  bool contiguous = info.pageOrder == PageOrder::Contiguous;
  // Every copied key lies in a page that the table names, so a bound that is
  // not known is not needed.
  uint64_t slots = contiguous ? unknown : info.pageSize;
  uint64_t pageCount = contiguous ? 1 : pages > 0 ? pages : unknown;
  uint64_t panels = info.headDim / kBoxColumns;
  uint64_t sizes[rank] = {kBoxColumns, slots, panels, uint64_t(info.kvHeads),
                          pageCount};
  uint64_t strides[rank - 1] = {
      uint64_t(pool.slotStride), panelBytes, uint64_t(pool.headStride),
      uint64_t(std::max(pool.pageStride, panelBytes))};
  uint32_t box[rank] = {kBoxColumns, kBoxRows, uint32_t(panels), 1, 1};
  uint32_t steps[rank] = {1, 1, 1, 1, 1};
  return driver.check(driver.cuTensorMapEncodeTiled(
                          &map, mapUint16, rank, const_cast<void *>(pool.base),
                          sizes, strides, box, steps, /*interleave=*/0,
                          mapSwizzle128, /*l2Promotion=*/0,
                          /*oobFill=*/0),
                      "cuTensorMapEncodeTiled");
}

} // namespace

Status tokentile::cuda::makeTensorMaps(const Driver &driver,
                                       const KernelInfo &info,
                                       const KernelArgs &args,
                                       TensorMap (&maps)[2]) {
  if (!driver.cuTensorMapEncodeTiled)
    return Status(StatusCode::DriverError,
                  "kernel '" + info.name +
                      "' copies through tensor maps, which this driver lacks; "
                      "install one of CUDA 12 or newer, or compile the kernel "
                      "with schedule<mma>");
  Pool keys{args.keys, info.keySlotStride, args.keyHeadStride,
            args.keyPageStride};
  Pool values{args.values, info.valueSlotStride, args.valueHeadStride,
              args.valuePageStride};
  if (Status status = makeMap(driver, info, args.poolPages, keys, maps[0]);
      !status.ok())
    return status;
  return makeMap(driver, info, args.poolPages, values, maps[1]);
}
