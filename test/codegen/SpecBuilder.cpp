//===- SpecBuilder.cpp - Specs for tests of the generator -----------------===//

#include "SpecBuilder.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tokentile;
using namespace tokentile::test;

std::string Spec::text() const {
  return "attn.kernel @k heads<" + std::to_string(queryHeads) + " over " +
         std::to_string(kvHeads) + ", dim " + std::to_string(dim) +
         "> tokens<" + std::to_string(tokens) + "> sees<" + sees + "> keys<" +
         keys + "> values<" + values + "> paging<" + paging + "> " + rest;
}

std::vector<Spec> test::publishedGeometries() {
  std::vector<Spec> specs(5);
  int64_t heads[5][3] = {
      {24, 4, 256}, {16, 2, 256}, {32, 8, 128}, {64, 8, 128}, {32, 4, 128}};
  for (int i = 0; i < 5; ++i) {
    specs[i].queryHeads = heads[i][0];
    specs[i].kvHeads = heads[i][1];
    specs[i].dim = heads[i][2];
  }
  return specs;
}

SpecContext::SpecContext() : context(createContext()) {
  context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    return success();
  });
}

OwningOpRef<ModuleOp> SpecContext::parse(const std::string &text) {
  auto module = parseSourceString<ModuleOp>(text, ParserConfig(context.get()));
  EXPECT_TRUE(module) << text << "\n" << errors;
  return module;
}

attn::KernelOp SpecContext::kernel(ModuleOp module) {
  return *module.getOps<attn::KernelOp>().begin();
}

std::string SpecContext::takeErrors() {
  std::string taken;
  taken.swap(errors);
  return taken;
}
