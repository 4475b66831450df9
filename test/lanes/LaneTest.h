//===- LaneTest.h - Small kernels for the lane executor ---------*- C++ -*-===//
//
// A fixture that wraps the body of a kernel in a function with some values at
// hand, runs one block, and returns what it wrote.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_LANES_LANETEST_H
#define TOKENTILE_TEST_LANES_LANETEST_H

#include "codegen/lanes/LaneExecutor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tokentile {

class LaneTest : public ::testing::Test {
protected:
  LaneTest() {
    context.loadDialect<mlir::arith::ArithDialect, mlir::gpu::GPUDialect,
                        mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect,
                        mlir::scf::SCFDialect>();
    options.threads = 32;
    options.sharedBytes = 4096;
  }

  /// Runs `body`, which may use %in and %out (pointers to the vectors below,
  /// %in also as %global in space 1), %tid, %lane, %shared (space 3) and %mine
  /// (&out[tid], one i32 for each thread). Returns the error, or "".
  std::string run(const std::string &body) {
    std::string text = R"(gpu.module @m {
      llvm.mlir.global external @shared() {addr_space = 3 : i32}
          : !llvm.array<0 x i8>
      llvm.func @kernel(%args: !llvm.ptr {llvm.byval = !llvm.array<200 x i8>}) {
        %in = llvm.load %args : !llvm.ptr -> !llvm.ptr
        %outAt = llvm.getelementptr %args[8] : (!llvm.ptr) -> !llvm.ptr, i8
        %out = llvm.load %outAt : !llvm.ptr -> !llvm.ptr
        %global = llvm.addrspacecast %in : !llvm.ptr to !llvm.ptr<1>
        %tid = nvvm.read.ptx.sreg.tid.x : i32
        %lane = nvvm.read.ptx.sreg.laneid : i32
        %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
        %mine = llvm.getelementptr %out[%tid]
            : (!llvm.ptr, i32) -> !llvm.ptr, i32
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c2 = arith.constant 2 : i32
        %c4 = arith.constant 4 : i32
        %c8 = arith.constant 8 : i32
        %c16 = arith.constant 16 : i32
        %c15 = arith.constant 15 : i32
        %c31 = arith.constant 31 : i32
        %all = arith.constant -1 : i32
        )" + body + R"(
        llvm.return
      }
    })";
    auto module =
        mlir::parseSourceString<mlir::ModuleOp>(text, &context, "kernel.mlir");
    if (!module)
      return "does not parse";
    mlir::LLVM::LLVMFuncOp kernel;
    module->walk([&](mlir::LLVM::LLVMFuncOp func) { kernel = func; });
    KernelArgs args = {};
    args.query = in.data();
    args.output = out.data();
    options.global = {{in.data(), in.data() + in.size(), false},
                      {out.data(), out.data() + out.size(), true}};
    auto decoded = LaneKernel::decode(kernel);
    if (!decoded)
      return llvm::toString(decoded.takeError());
    auto result = decoded->run(args, 3, 4, 5, options);
    if (!result)
      return llvm::toString(result.takeError());
    report = *result;
    unreached.clear();
    for (mlir::Operation *op : decoded->unreached(report))
      unreached.push_back(op->getName().getStringRef().str());
    return "";
  }

  /// Whether `text` contains every one of `parts`.
  static ::testing::AssertionResult has(const std::string &text,
                                        std::vector<std::string> parts) {
    for (const std::string &part : parts)
      if (text.find(part) == std::string::npos)
        return ::testing::AssertionFailure()
               << "'" << text << "' lacks '" << part << "'";
    return ::testing::AssertionSuccess();
  }

  mlir::MLIRContext context;
  LaneOptions options;
  LaneReport report;
  /// Names of the operations that the last run did not reach.
  std::vector<std::string> unreached;
  std::vector<uint32_t> in = std::vector<uint32_t>(2048);
  std::vector<uint32_t> out = std::vector<uint32_t>(2048);
};

} // namespace tokentile

#endif // TOKENTILE_TEST_LANES_LANETEST_H
