//===- SpecBuilder.h - Specs for tests of the generator ---------*- C++ -*-===//

#ifndef TOKENTILE_TEST_CODEGEN_SPECBUILDER_H
#define TOKENTILE_TEST_CODEGEN_SPECBUILDER_H

#include "codegen/Compiler.h"

#include <string>
#include <vector>

namespace tokentile::test {

/// The clauses that tests vary.
struct Spec {
  int64_t queryHeads = 24;
  int64_t kvHeads = 4;
  int64_t dim = 256;
  int64_t tokens = 16;
  std::string sees = "prefix all, suffix causal";
  std::string keys = "bf16";
  std::string values = "bf16";
  std::string paging = "page_major page 64";
  /// Clauses behind `paging`.
  std::string rest;

  std::string text() const;
};

/// The published geometries: query heads, kv heads, dimension.
std::vector<Spec> publishedGeometries();

/// A context with a handler that keeps what it reports.
class SpecContext {
public:
  SpecContext();
  /// Parses `spec`, which must be valid.
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);
  static attn::KernelOp kernel(mlir::ModuleOp module);
  /// The diagnostics since the last call.
  std::string takeErrors();
  mlir::MLIRContext &get() { return *context; }

private:
  std::unique_ptr<mlir::MLIRContext> context;
  std::string errors;
};

} // namespace tokentile::test

#endif // TOKENTILE_TEST_CODEGEN_SPECBUILDER_H
