//===- TilesToHostOps.h - One emitter for each tile operation ---*- C++ -*-===//
//
// Every function emits one operation of dialect/AttnTileOps.td, whose
// description says what it means. Buffers have the shapes of the operation's
// tensors; an input and an output may be the same buffer where it says so.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_TILESTOHOSTOPS_H
#define TOKENTILE_CODEGEN_TILESTOHOSTOPS_H

#include "codegen/BlockContext.h"
#include "codegen/TilesToHostBuilder.h"

namespace tokentile::host {

/// What the emitters of one program share.
struct Emitter {
  HostBuilder &h;
  BlockContext &ctx;

  //===--- Memory ---------------------------------------------------------===//

  void loadQuery(TileBuffer result);
  void lookupPages(mlir::Value tile, TileBuffer pages);
  void loadTile(attn::Plane plane, mlir::Value tile, TileBuffer pages,
                TileBuffer result);

  //===--- Mathematics ----------------------------------------------------===//

  void scores(TileBuffer query, TileBuffer keys, TileBuffer result);
  /// `result` may be `scores`.
  void mask(TileBuffer scores, mlir::Value tile, TileBuffer result);
  struct Softmax {
    TileBuffer scores, max, sum, probabilities, alpha, newMax, newSum;
  };
  /// Each output may be the input of its shape.
  void softmax(const Softmax &tiles);
  /// `result` may be `output`.
  void accumulate(TileBuffer output, TileBuffer alpha, TileBuffer probabilities,
                  TileBuffer values, TileBuffer result);

  //===--- Results --------------------------------------------------------===//

  struct Result {
    TileBuffer max, sum, output;
  };
  /// Each output may be the input of its shape.
  void addSink(const Result &from, const Result &to);
  void storeResult(const Result &result);
  void storePartial(const Result &result);
  void mergePartials(const Result &result);

private:
  mlir::Value rowOf(mlir::Value index);
  mlir::Value firstKey(mlir::Value tile);
  mlir::Value pageOfKey(mlir::Value key);
  mlir::Value keyPointer(attn::Plane plane, mlir::Value tile, mlir::Value key,
                         TileBuffer pages);
  void product(TileBuffer a, TileBuffer b, TileBuffer result,
               const TileBuffer *accumulator, const TileBuffer *factor);
  void storeRowResult(const Result &result, mlir::Value index, mlir::Value row);
};

} // namespace tokentile::host

#endif // TOKENTILE_CODEGEN_TILESTOHOSTOPS_H
