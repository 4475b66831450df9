//===- TilesToHostBuilder.h - Loops and vectors over host tiles -*- C++ -*-===//
//
// The small vocabulary in which the host lowering writes tile operations: tile
// buffers on the stack, rolled loops, vectors of fp32, and conversions from
// and to the 16-bit elements in memory.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_TILESTOHOSTBUILDER_H
#define TOKENTILE_CODEGEN_TILESTOHOSTBUILDER_H

#include "dialect/AttnOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tokentile::host {

/// A tile on the function's stack, row by row, 64-byte aligned. Elements are
/// f32, whatever 16-bit type the values have been rounded to, or i32 page ids.
struct TileBuffer {
  mlir::Value base;
  mlir::Type element;
  int64_t rows = 0;
  int64_t columns = 0;

  bool operator==(const TileBuffer &other) const { return base == other.base; }
};

/// Emits at its insertion point. Indices of loops and buffers are i64.
class HostBuilder : public mlir::ImplicitLocOpBuilder {
public:
  /// Buffers are allocated at the start of `entry`.
  HostBuilder(mlir::Location loc, mlir::Block *entry);

  /// fp32 elements of one vector for a row of `columns`: 16, or the largest
  /// power of two below that divides the row.
  static int64_t lanes(int64_t columns);

  //===--- Scalars and vectors --------------------------------------------===//

  mlir::Value i64(int64_t value);
  mlir::Value i32(int64_t value);
  mlir::Value f32(double value);
  /// The constant in the type of `like`: f32 or a vector of it.
  mlir::Value f32Like(double value, mlir::Value like);
  mlir::Value toI32(mlir::Value index);
  mlir::Value toI64(mlir::Value value);
  mlir::Type floats(int64_t lanes);
  mlir::Value broadcast(mlir::Value scalar, int64_t lanes);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value left,
                      mlir::Value right);
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value left,
                      mlir::Value right);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  /// a * b + c, fused where the processor can.
  mlir::Value multiplyAdd(mlir::Value a, mlir::Value b, mlir::Value c);
  /// 2^x for x <= 0 to about one unit in the last place, without a library
  /// call. Results below 2^-125 are zero; NaN stays NaN.
  mlir::Value exp2(mlir::Value x);

  //===--- Control --------------------------------------------------------===//

  using Body = llvm::function_ref<void(mlir::Value)>;
  using Fold = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value, mlir::ValueRange)>;

  /// for (i = 0; i < upper; i += step)
  void loop(int64_t upper, int64_t step, Body body);
  void loop(mlir::Value upper, int64_t step, Body body);
  /// The same, folding values; returns the last ones.
  llvm::SmallVector<mlir::Value> fold(mlir::Value upper, int64_t step,
                                      mlir::ValueRange init, Fold body);
  void branch(mlir::Value condition, llvm::function_ref<void()> yes,
              llvm::function_ref<void()> no = nullptr);
  mlir::Value chooseI64(mlir::Value condition,
                        llvm::function_ref<mlir::Value()> yes,
                        llvm::function_ref<mlir::Value()> no);

  //===--- Memory ---------------------------------------------------------===//

  TileBuffer allocate(int64_t rows, int64_t columns, mlir::Type element);
  TileBuffer allocate(int64_t rows, int64_t columns);
  mlir::Value load(TileBuffer tile, mlir::Value row, mlir::Value column,
                   int64_t lanes = 1);
  void store(mlir::Value value, TileBuffer tile, mlir::Value row,
             mlir::Value column);
  void fill(TileBuffer tile, mlir::Value scalar);
  void copy(TileBuffer from, TileBuffer to);

  /// Elements `column` to `column + lanes - 1` of the row of 16-bit elements
  /// at `pointer`, as fp32.
  mlir::Value loadRow(mlir::Value pointer, mlir::Value column, int64_t lanes,
                      attn::ElementKind kind);
  /// Stores fp32 values to such a row, rounded to nearest even.
  void storeRow(mlir::Value values, mlir::Value pointer, mlir::Value column,
                attn::ElementKind kind);
  /// fp32 values rounded to nearest even as `kind` would hold them.
  mlir::Value round(mlir::Value values, attn::ElementKind kind);
  mlir::Value loadFloats(mlir::Value pointer, mlir::Value column,
                         int64_t lanes);
  void storeFloats(mlir::Value values, mlir::Value pointer, mlir::Value column);

private:
  mlir::Value widen(mlir::Value bits, attn::ElementKind kind);
  mlir::Value narrow(mlir::Value values, attn::ElementKind kind);
  mlir::Value address(mlir::Value base, mlir::Type element, mlir::Value index);
  mlir::Value address(TileBuffer tile, mlir::Value row, mlir::Value column);
  /// `element`, in a vector as long as `like`.
  mlir::Type typeLike(mlir::Type element, mlir::Value like);
  mlir::Value integerLike(int64_t value, mlir::Type type);

  mlir::Block *entry;
};

} // namespace tokentile::host

#endif // TOKENTILE_CODEGEN_TILESTOHOSTBUILDER_H
