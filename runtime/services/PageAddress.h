//===- PageAddress.h - Where a row of a cache lies --------------*- C++ -*-===//
//
// The one definition of it for writers. Generated kernels read the same places
// (KernelABI.h); runtime/README.md, "Paged caches", has it in words.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_SERVICES_PAGEADDRESS_H
#define TOKENTILE_RUNTIME_SERVICES_PAGEADDRESS_H

#ifndef __CUDACC_RTC__
#include "runtime/services/Numbers.h"
#endif

namespace tokentile::services {

/// Key or value rows of one layer in the pages of one class: every page order
/// of the spec is a choice of strides. Strides in bytes.
struct PagedRows {
  void *pool;
  int64_t pageStride;
  int64_t headStride;
  int64_t slotStride;
  Scalar type;
};

/// The pages of the requests of a batch. Both linear classes and rings: a
/// linear table has an entry for every page of a request, so the remainder
/// changes nothing there.
struct PageTable {
  const int32_t *ids;
  /// Entries of a request.
  int64_t stride;
  int32_t pageTokens;
};

/// First element of the row of `head` at `position` of request `b`.
TOKENTILE_SERVICE void *rowAt(const PagedRows &rows, const PageTable &table,
                              int32_t b, int64_t position, int32_t head) {
  int64_t entry = position / table.pageTokens % table.stride;
  int64_t slot = position % table.pageTokens;
  int64_t page = table.ids[b * table.stride + entry];
  return static_cast<char *>(rows.pool) + page * rows.pageStride +
         head * rows.headStride + slot * rows.slotStride;
}

} // namespace tokentile::services

#endif // TOKENTILE_RUNTIME_SERVICES_PAGEADDRESS_H
