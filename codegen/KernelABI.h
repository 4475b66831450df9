//===- KernelABI.h - What generated kernels and their callers share -------===//
//
// The seam between the compiler and the runtime. It holds the one parameter
// block that every generated kernel reads, and the facts a caller must know to
// launch one. This header includes neither MLIR nor LLVM nor CUDA, so that a
// program that ships pre-compiled kernels needs none of them.
//
// A kernel is a pair of functions. The *sweep* reads the keys and values once
// (KernelInfo::sweeps and mostSweeps say where more often).
// Its blocks divide the requests into parts by the lengths they find on the
// device; of a request with one part they leave the output, of others a partial
// result for each part, which the *merge* combines. Pieces of keys are always
// merged: a row's bits must not depend on whether another row of its request
// made a second one. On a GPU both are kernels that take KernelArgs by
// value; on the host both have the type HostKernelFn. Their grids have one
// dimension, and they are called once for each block.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_KERNELABI_H
#define TOKENTILE_CODEGEN_KERNELABI_H

#include <cstdint>
#include <string>

namespace tokentile {

/// The parameter block of every generated kernel, passed by value. The layout
/// is part of the ABI: 8-byte fields, then an even number of 4-byte ones, then
/// 8-byte fields, no padding. All strides are in bytes. All pointers are device
/// pointers (host pointers for host kernels) and 16-byte aligned.
///
/// Words: B requests; N query tokens per request at most; T query tokens in
/// all; D head dimension; a *key* is one cached token, its index is its
/// position in the request.
struct KernelArgs {
  /// Query rows, element (token, head, 0) at
  /// query + token * queryTokenStride + head * queryHeadStride.
  const void *query;
  /// Output rows, addressed like the query with the output's strides.
  void *output;
  /// Log-sum-exp (natural logarithm) as float [T, queryHeads], or null.
  float *logSumExp;
  /// Key and value pools. Row `slot` of page `page` of kv head `head` starts at
  /// pool + page * pageStride + head * headStride + slot * slotStride.
  /// Contiguous keys: row at pool + (keyOffsets[b] + key) * slotStride + ....
  const void *keys;
  const void *values;
  /// Dense block rows [T, kvHeads, D], or null when they lie in the pages.
  const void *blockKeys;
  const void *blockValues;
  /// Page ids [B, tableStride]; entries past a request's last page, and those
  /// of pages older than the window of every row, are never read as page ids.
  const int32_t *table;
  /// Committed keys of each request before its block (`lengths<context>`), or
  /// including it (`lengths<total>`): [B].
  const int32_t *lengths;
  /// `columns<counted>`: query tokens of each request, 0 to N, [B].
  /// `columns<packed>`: first query token of each request, [B + 1].
  const int32_t *columns;
  /// `positions<given>`: the position of each query token, [T].
  const int32_t *positions;
  /// `paging<contiguous>`: first key row of each request, [B + 1].
  const int32_t *keyOffsets;
  /// Unnormalised partial outputs [slots of parts, kvHeads, paddedRows, D] in
  /// elements of KernelInfo::partialElementBytes: on the host float, on a GPU
  /// fp16 that the row's factor multiplies, the dimensions in the order of
  /// layout::partialPlace, in blocks of 32 or what a warp has of a row. Null if
  /// there is no merge.
  void *partialOutput;
  /// Of each partial row the running maximum (in log2 units), the sum, and on a
  /// GPU the factor, float [slots of parts, kvHeads, paddedRows, 4]; null if
  /// there is no merge.
  float *partialStats;
  /// Parts of each request and the slot of its first, [B, 2], which a sweep of
  /// `split<auto>` leaves for the merge of several requests; null if there is
  /// no merge.
  int32_t *divisions;
  /// `sink`: the logit of each query head, [queryHeads].
  const float *sinks;
  int64_t queryTokenStride;
  int64_t queryHeadStride;
  int64_t outputTokenStride;
  int64_t outputHeadStride;
  int64_t keyPageStride;
  int64_t keyHeadStride;
  int64_t valuePageStride;
  int64_t valueHeadStride;
  int64_t tableStride;
  int32_t batch;
  /// Items of one kv head in this launch, at least one a request, or ranges of
  /// tiles; the sweep has a block for each of them, kv head and row block. What
  /// exceeds the parts that the lengths give rise to is idle.
  int32_t items;
  /// Multiprocessors, or with a split of fixed count or size the most parts of
  /// a request; with pieces that grow the most that have one size.
  int32_t slots;
  /// Blocks of the merge, which share the rows to merge.
  int32_t mergeBlocks;
  /// Upper bound of a request's keys, block included. A longer device-side
  /// length is clamped to it, so that the table is never read past its end.
  int32_t maxKeys;
  /// Pages in the pool (a bound for copies that need one), 0 if unknown.
  int32_t poolPages;
  /// Slots of partial results of one kv head.
  int64_t partials;
};
static_assert(sizeof(KernelArgs) == 16 * 8 + 9 * 8 + 6 * 4 + 8,
              "the parameter block has no padding");

/// A host kernel: executes block x of the grid.
using HostKernelFn = void (*)(const KernelArgs *args, int32_t x);

/// Bytes of an element of partial outputs on a GPU, and rows that a block of
/// its merge has where a launch may have several requests.
constexpr int32_t gpuPartialBytes = 2, mergeUnitRows = 8;

/// Tiles of the smallest piece of a split into pieces that grow: 256 keys, so
/// that partial results are a fraction of the keys and values that they are of.
constexpr int64_t leastTilesOfPiece(int64_t keyTile) {
  return (256 + keyTile - 1) / keyTile;
}

/// What one copy through a tensor map moves: keys, and elements of a panel.
constexpr int32_t kBoxRows = 8, kBoxColumns = 64;

/// Element types of tensors in memory.
enum class Element { BFloat16, Float16 };

/// How pages are laid out, which fixes default strides.
/// PageMajor [pages, kvHeads, pageSize, D]; HeadMajor [kvHeads, pages,
/// pageSize, D]; TokenMajor ("NHD") [pages, pageSize, kvHeads, D];
/// Contiguous [keys, kvHeads, D] without a table.
enum class PageOrder { PageMajor, HeadMajor, TokenMajor, Contiguous };

/// How many query tokens each request has: always N; a count per request (the
/// rest are masked columns, whose output rows are zero); or packed rows with
/// offsets.
enum class Columns { Uniform, Counted, Packed };

/// How the keys of a request are divided: by the lengths of all requests, into
/// a fixed count, into pieces of a fixed number of keys (batch-invariant), or
/// into a number of pieces that grow with a row's position.
enum class SplitPolicy { Auto, Count, Keys, Pieces };

/// Everything a caller must know to launch a kernel. Written by the compiler,
/// stored in manifests, read by the runtime.
struct KernelInfo {
  /// Symbol of the attn.kernel; the functions are those that follow.
  std::string name;
  std::string sweepSymbol;
  /// The sweep of batches that are divided into ranges of tiles: each block has
  /// one after another of the requests that its range touches. Empty if there
  /// is none.
  std::string rangesSymbol;
  std::string mergeSymbol;
  /// "host" or a GPU such as "sm_90a".
  std::string chip;
  /// The plan that was compiled, in the dialect's text.
  std::string spec;

  int32_t queryHeads = 0;
  int32_t kvHeads = 0;
  int32_t headDim = 0;
  /// N: query tokens of one request in one launch, at most.
  int32_t tokens = 0;
  Element queryElement = Element::BFloat16;
  Element outputElement = Element::BFloat16;
  Element keyElement = Element::BFloat16;
  Element valueElement = Element::BFloat16;
  bool queryHeadMajor = false;
  bool outputHeadMajor = false;
  PageOrder pageOrder = PageOrder::PageMajor;
  /// Keys per page; 0 for contiguous keys.
  int32_t pageSize = 0;
  /// Bytes between two keys of a page.
  int64_t keySlotStride = 0;
  int64_t valueSlotStride = 0;
  Columns columns = Columns::Uniform;
  bool denseBlock = false;
  bool positionsGiven = false;
  /// `lengths` count the block rows too.
  bool lengthsTotal = false;
  bool logSumExp = false;
  /// Each query head has a sink.
  bool sink = false;
  /// 0, or the keys that a ring of pages holds: the table has ring / pageSize
  /// entries, and key k is at entry k mod ring / pageSize.
  int32_t ring = 0;
  /// 0, or the window in keys: bounds the keys a row can see.
  int32_t window = 0;

  /// Query rows of one kv head: tokens * group, and as padded by the kernel.
  int32_t rows = 0;
  int32_t paddedRows = 0;
  /// Blocks that share the rows of one kv head; each reads the keys again.
  int32_t rowBlocks = 1;
  /// Times the keys are read: rowBlocks of the sweep. See mostSweeps.
  int32_t sweeps = 1;
  /// Keys of one tile; parts of a request are whole tiles.
  int32_t keyTile = 0;
  SplitPolicy splitPolicy = SplitPolicy::Auto;
  /// Parts of a request, keys of a part or pieces, as the policy says.
  int32_t splitValue = 0;
  /// The sweep takes two tensor maps behind KernelArgs, of keys and of values:
  /// boxes of kBoxRows keys, all their elements in panels of kBoxColumns, with
  /// 128-byte swizzle.
  bool tensorMaps = false;
  /// Bytes of an element of partial outputs.
  int32_t partialElementBytes = 4;
  /// Launch facts. Host kernels have one thread and no shared memory.
  int32_t threads = 1;
  int32_t mergeThreads = 1;
  /// Merge blocks that share a row where the parts of a launch are fixed, or it
  /// has one request.
  int32_t mergeSlices = 1;
  /// Merge blocks that a multiprocessor holds at one time.
  int32_t mergeBlocksPerSm = 8;
  int32_t sharedBytes = 0;
  int32_t mergeSharedBytes = 0;
  /// Blocks of the sweep that share a multiprocessor, if there are so many.
  int32_t blocksPerSm = 1;

  /// Bytes of K and V that one key of one request occupies, all kv heads.
  int64_t keyBytesPerToken() const {
    return int64_t(kvHeads) * headDim * 2 * 2;
  }
};

/// Times the keys are read by a launch whose rows have pieces of two sizes.
inline int32_t mostSweeps(const KernelInfo &info) {
  return info.splitPolicy == SplitPolicy::Pieces ? 2 * info.sweeps
                                                 : info.sweeps;
}

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_KERNELABI_H
