//===- WgmmaProducts.cpp - Products of a warpgroup ------------------------===//
//
// Scores: queries and keys in shared memory. Outputs: probabilities from the
// registers that softmax left them in, values in shared memory with their rows
// as the depth. Registers that a wgmma reads or writes pass through the fence
// before it and the wait behind it, so that nothing moves between.
//
//===----------------------------------------------------------------------===//

#include "codegen/wgmma/WgmmaEmitter.h"

using namespace mlir;
using namespace tokentile;
using namespace tokentile::attn;

Registers WgmmaEmitter::update(StringRef text, ArrayRef<Value> registers,
                               StringRef constraints,
                               ArrayRef<Value> operands) {
  // Each register is an output and the input tied to it.
  SmallVector<Type> types;
  std::string outputs, inputs;
  for (auto [i, value] : llvm::enumerate(registers)) {
    types.push_back(value.getType());
    outputs += value.getType().isF32() ? "=f," : "=r,";
    inputs += std::to_string(i) + ",";
  }
  SmallVector<Value> all(registers);
  llvm::append_range(all, operands);
  Type result = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  std::string tail = constraints.empty() ? "" : constraints.str() + ",";
  auto code = LLVM::InlineAsmOp::create(
      b, result, all, text, outputs + inputs + tail + "~{memory}",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
      ArrayAttr());
  Registers updated;
  for (size_t i = 0; i < types.size(); ++i)
    updated.push_back(LLVM::ExtractValueOp::create(b, code.getResult(0), i));
  return updated;
}

void WgmmaEmitter::multiply(MutableArrayRef<Value> acc, ArrayRef<Value> left,
                            Value right, bool transposed, bool fresh,
                            Type element) {
  size_t count = acc.size();
  std::string columns = std::to_string(count * 2);
  std::string type = element.isF16() ? "f16" : "bf16";
  auto list = [](size_t from, size_t count) {
    std::string text = "{";
    for (size_t i = 0; i < count; ++i)
      text += (i ? ", $" : "$") + std::to_string(from + i);
    return text + "}";
  };
  bool registers = left.size() > 1;
  size_t next = 2 * count + left.size();
  std::string text = "{\n  .reg .pred keep;\n  setp.ne.b32 keep, " +
                     std::string(fresh ? "0" : "1") +
                     ", 0;\n  wgmma.mma_async.sync.aligned.m64n" + columns +
                     "k16.f32." + type + "." + type + " " + list(0, count) +
                     ", ";
  text += registers ? list(2 * count, left.size())
                    : "$" + std::to_string(2 * count);
  text += ", $" + std::to_string(next) + ", keep, 1, 1, ";
  text += registers ? "" : "0, ";
  text += transposed ? "1;\n}" : "0;\n}";
  SmallVector<Value> operands(left);
  operands.push_back(right);
  Registers sums = update(text, acc, registers ? "r,r,r,r,l" : "l,l", operands);
  llvm::copy(sums, acc.begin());
}

Value WgmmaEmitter::descriptor(Value base) {
  Value address =
      LLVM::PtrToIntOp::create(b, b.getI32Type(), b.offset(shared, base));
  Value sixteenths = arith::ShRUIOp::create(b, address, b.i32(4));
  Value wide = arith::ExtUIOp::create(b, b.getI64Type(), sixteenths);
  return b.add(wide, int64_t(layout::matrixDescriptor(dim)));
}

void WgmmaEmitter::emit(ScoresOp op) {
  Type element =
      cast<RankedTensorType>(op.getQuery().getType()).getElementType();
  int64_t tileBytes = layout::kWgmmaRows * dim * 2;
  Value rows = b.mul(warpgroup, mma.rowTiles * tileBytes);
  Value query = descriptor(b.add(single(op.getQuery()), rows));
  Value keys = descriptor(single(op.getKeys()));
  int64_t perTile = keyTile / 2;
  Registers scores(mma.rowTiles * perTile, b.f32(0));
  scores = update("wgmma.fence.sync.aligned;", scores);
  for (int64_t step = 0; step < dim / layout::kDepth; ++step) {
    int64_t ahead = layout::columnStep(step) / 16;
    for (int64_t tile = 0; tile < mma.rowTiles; ++tile)
      multiply(MutableArrayRef<Value>(scores).slice(tile * perTile, perTile),
               {b.add(query, tile * tileBytes / 16 + ahead)},
               b.add(keys, ahead), /*transposed=*/false, /*fresh=*/step == 0,
               element);
  }
  ptx("wgmma.commit_group.sync.aligned;", "~{memory}", {});
  map[op.getScores()] = update("wgmma.wait_group.sync.aligned 0;", scores);
}

void WgmmaEmitter::emit(AccumulateOp op) {
  Type element =
      cast<RankedTensorType>(op.getProbabilities().getType()).getElementType();
  // Outputs, then probabilities.
  Registers all = rescale(op);
  size_t outputs = all.size(), perOutput = outputs / mma.rowTiles;
  llvm::append_range(all, registers(op.getProbabilities()));
  size_t perLeft = (all.size() - outputs) / mma.rowTiles;
  all = update("wgmma.fence.sync.aligned;", all);
  MutableArrayRef<Value> output =
      MutableArrayRef<Value>(all).take_front(outputs);
  ArrayRef<Value> left = ArrayRef<Value>(all).drop_front(outputs);
  Value values = descriptor(single(op.getValues()));
  for (int64_t step = 0; step < keyTile / layout::kDepth; ++step)
    for (int64_t tile = 0; tile < mma.rowTiles; ++tile)
      multiply(output.slice(tile * perOutput, perOutput),
               left.slice(tile * perLeft + step * 4, 4),
               b.add(values, layout::rowStep(step, dim) / 16),
               /*transposed=*/true, /*fresh=*/false, element);
  ptx("wgmma.commit_group.sync.aligned;", "~{memory}", {});
  all = update("wgmma.wait_group.sync.aligned 0;", all);
  map[op.getResult()] = Registers(ArrayRef<Value>(all).take_front(outputs));
}
