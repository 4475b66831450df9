//===- LaneTeam.h - Lanes that work on one answer ---------------*- C++ -*-===//
//
// What a block knows of all requests it finds out by looking at one request a
// lane. A warp does so with its 32 lanes; a thread alone, as on the host, is a
// team of one, for which nothing is to be exchanged.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_LANETEAM_H
#define TOKENTILE_CODEGEN_LANETEAM_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tokentile {

/// Values are i32. All lanes of the team run what is emitted.
class LaneTeam {
public:
  using OpBuilder = mlir::OpBuilder;
  using Value = mlir::Value;

  virtual ~LaneTeam() = default;
  virtual int64_t count() const { return 1; }
  /// This lane, from 0.
  virtual Value lane(OpBuilder &b, mlir::Location loc) const;
  /// i1: this lane writes what the whole block knows.
  virtual Value speaks(OpBuilder &b, mlir::Location loc) const;
  /// Over all lanes.
  virtual Value sum(OpBuilder &, mlir::Location, Value v) const { return v; }
  virtual Value largest(OpBuilder &, mlir::Location, Value v) const {
    return v;
  }
  /// The sum over the lanes before this one.
  virtual Value before(OpBuilder &b, mlir::Location loc, Value value) const;
  /// What lane `lane` holds.
  virtual Value of(OpBuilder &, mlir::Location, Value v, Value lane) const {
    return v;
  }
  /// What `body` emits and returns, worked out by one team where several work
  /// side by side and want to know the same.
  virtual llvm::SmallVector<Value>
  once(mlir::ImplicitLocOpBuilder &,
       llvm::function_ref<llvm::SmallVector<Value>()> body) const {
    return body();
  }
};

} // namespace tokentile

#endif // TOKENTILE_CODEGEN_LANETEAM_H
