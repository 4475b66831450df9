//===- FloorKernels.h - Loads of a sweep without mathematics ----*- C++ -*-===//

#ifndef TOKENTILE_BENCH_FLOORKERNELS_H
#define TOKENTILE_BENCH_FLOORKERNELS_H

#include <cstdint>

namespace tokentile {

/// Parameter of every floor kernel, by value. A *piece* is the contiguous part
/// of one page that belongs to one unit (a kv head, mostly) of one plane; the
/// pieces of all requests are dealt to the blocks in equal runs.
struct FloorArgs {
  const void *planes[2];
  const int32_t *table;
  /// A word that is written only if the data is one unlikely value.
  unsigned *sink;
  /// Entries of a table row; bytes from page to page, unit to unit, and from
  /// one request to the next where there is no table.
  int64_t tableStride;
  int64_t pageStride;
  int64_t unitStride;
  int64_t requestStride;
  int32_t batch;
  int32_t units;
  /// Pages [firstPage, firstPage + pages) of each request.
  int32_t firstPage;
  int32_t pages;
  int32_t pieceBytes;
  /// Bytes of a piece of the last page.
  int32_t lastBytes;
  /// Pieces in flight.
  int32_t stages;
  int32_t padding;
};

/// CUDA C++ of `floorBulk` (bulk copies, sm_90 and newer; 160 threads),
/// `floorAsync` (cp.async, with -DSTAGES=n; 256 threads) and `floorPlain`
/// (plain loads; 256 threads), each of one FloorArgs.
extern const char *const floorSource;

} // namespace tokentile

#endif // TOKENTILE_BENCH_FLOORKERNELS_H
