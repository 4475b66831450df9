//===- HostTiles.cpp - Programs over tiles for host kernels, as text ------===//

#include "HostProblem.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace tokentile;
using namespace tokentile::test;

static const char *nameOf(Element element) {
  return element == Element::BFloat16 ? "bf16" : "fp16";
}

static std::string planOf(const Spec &s) {
  std::string prefix =
      !s.window ? "all"
                : llvm::formatv("{0} within {1}",
                                s.symmetric ? "symmetric" : "left", s.window)
                      .str();
  std::string paging =
      s.page ? llvm::formatv("{0} page {1}", s.order, s.page) : s.order;
  std::string query = std::string(nameOf(s.query)) + " token_major";
  if (s.counted || s.packed)
    query += s.packed ? " columns packed" : " columns counted";
  if (s.given)
    query += " positions given";
  std::string output = std::string(nameOf(s.output)) + " token_major";
  if (s.lse)
    output += " with lse";
  if (s.emptyNaN)
    output += " empty nan";
  std::string text = llvm::formatv(
      "attn.kernel @k heads<{0} over {1}, dim {2}> tokens<{3}> "
      "sees<prefix {4}, suffix {5}> keys<{6}> values<{7}> paging<{8}>{9} "
      "query<{10}> ",
      s.queryHeads, s.kvHeads, s.dim, s.tokens, prefix,
      s.causal ? "causal" : "bidirectional", nameOf(s.keys), nameOf(s.values),
      paging, s.dense ? " block<dense>" : "", query);
  return text + llvm::formatv("output<{0}> split<count of {3}> schedule<host "
                              "chip \"host\" key_tile {1} row_blocks {2} "
                              "max_sweeps {2}>\n",
                              output, s.keyTile, s.rowBlocks, s.parts)
                    .str();
}

/// N parts, whatever the length: some may have no keys.
static const char *item =
    R"(%request, %part, %parts, %slot, %firstTile, %stopTile = attn.item {
  ^bb0(%n: i32, %c: i32, %t: i32, %old: i32, %new: i32):
    %none = arith.constant 0 : i32
    %size = arith.constant $K : i32
    %count = arith.constant $N : i32
    %stop = arith.ceildivsi %n, %size : i32
    attn.yield_tiles %none to %stop in %count
  })";

/// R, K, D, P, Q and V stand for the shapes and element types.
static const char *programs = R"(
attn.program @k_sweep role<sweep> of @k {
  $ITEM
  %length, %context, %columns, %first, %last = attn.request
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %keys = arith.constant $K : i32
  %q = attn.load_query : tensor<$Rx$Dx$Q>
  %m0 = arith.constant dense<0xFF800000> : tensor<$Rxf32>
  %l0 = arith.constant dense<0.0> : tensor<$Rxf32>
  %o0 = arith.constant dense<0.0> : tensor<$Rx$Dxf32>
  %m, %l, %o = scf.for %t = %firstTile to %stopTile step %c1
      iter_args(%mi = %m0, %li = %l0, %oi = %o0)
      -> (tensor<$Rxf32>, tensor<$Rxf32>, tensor<$Rx$Dxf32>) : i32 {
    %p = attn.lookup_pages %t : tensor<$Pxi32>
    %k = attn.load_tile plane<keys> of %t through %p
        : tensor<$Pxi32> -> tensor<$Kx$Dx$Q>
    %s = attn.scores %q, %k
        : tensor<$Rx$Dx$Q>, tensor<$Kx$Dx$Q> -> tensor<$Rx$Kxf32>
    %next = arith.addi %t, %c1 : i32
    %end = arith.muli %next, %keys : i32
    %full = arith.cmpi $COND : i32
    %x = scf.if %full -> tensor<$Rx$Kxf32> {
      scf.yield %s : tensor<$Rx$Kxf32>
    } else {
      %y = attn.mask %s of %t : tensor<$Rx$Kxf32>
      scf.yield %y : tensor<$Rx$Kxf32>
    }
    %pr, %alpha, %m1, %l1 = attn.softmax %x, %mi, %li
        : tensor<$Rx$Kxf32>, tensor<$Rxf32> -> tensor<$Rx$Kx$V>
    %v = attn.load_tile plane<values> of %t through %p
        : tensor<$Pxi32> -> tensor<$Kx$Dx$V>
    %o1 = attn.accumulate %oi, %alpha, %pr, %v
        : tensor<$Rx$Dxf32>, tensor<$Rxf32>, tensor<$Rx$Kx$V>,
          tensor<$Kx$Dx$V>
    scf.yield %m1, %l1, %o1
        : tensor<$Rxf32>, tensor<$Rxf32>, tensor<$Rx$Dxf32>
  }
  %one = arith.cmpi slt, %slot, %c0 : i32
  scf.if %one {
    attn.store_result %m, %l, %o
        : tensor<$Rxf32>, tensor<$Rxf32>, tensor<$Rx$Dxf32>
  } else {
    attn.store_result %m, %l, %o partial
        : tensor<$Rxf32>, tensor<$Rxf32>, tensor<$Rx$Dxf32>
  }
}
attn.program @k_merge role<merge> of @k {
  $ITEM
  %m, %l, %o = attn.merge_partials
      : tensor<1xf32>, tensor<1xf32>, tensor<1x$Dxf32>
  attn.store_result %m, %l, %o
      : tensor<1xf32>, tensor<1xf32>, tensor<1x$Dxf32>
}
)";

std::string tokentile::test::tilesOf(const Spec &s) {
  auto mlirName = [](Element e) {
    return e == Element::BFloat16 ? "bf16" : "f16";
  };
  // Without a window, a causal tile is full if its last key is not past the
  // first position; a tile of a window is always masked.
  std::string condition = s.window   ? "slt, %length, %c0"
                          : s.causal ? "sle, %end, %first"
                                     : "sle, %end, %length";
  int64_t rows = (s.rows() + s.rowBlocks - 1) / s.rowBlocks;
  int64_t pages = s.page ? std::max<int64_t>(1, s.keyTile / s.page) : 1;
  // The item has holes of its own.
  std::pair<std::string, std::string> holes[] = {
      {"$ITEM", item},
      {"$COND", condition},
      {"$N", std::to_string(s.parts)},
      {"$R", std::to_string(rows)},
      {"$K", std::to_string(s.keyTile)},
      {"$D", std::to_string(s.dim)},
      {"$P", std::to_string(pages)},
      {"$Q", mlirName(s.keys)},
      {"$V", mlirName(s.values)}};
  std::string text = planOf(s) + programs;
  for (auto &[hole, value] : holes)
    for (size_t at; (at = text.find(hole)) != std::string::npos;)
      text.replace(at, hole.size(), value);
  return text;
}
