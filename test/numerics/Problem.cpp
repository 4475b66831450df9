//===- Problem.cpp - The tensors of a case --------------------------------===//

#include "test/numerics/Problem.h"
#include "test/numerics/ProblemBuilder.h"

#include "dialect/ReferenceElements.h"
#include "mlir/IR/Diagnostics.h"

#include <algorithm>
#include <cstring>

using namespace tokentile::attn;

namespace tokentile {

std::unique_ptr<Problem> Problem::create(KernelOp kernel, const Case &testCase,
                                         std::string &error) {
  error.clear();
  std::unique_ptr<Problem> problem =
      ProblemBuilder(kernel, testCase).build(error);
  if (!problem)
    return nullptr;
  mlir::ScopedDiagnosticHandler handler(kernel.getContext(),
                                        [&](mlir::Diagnostic &diagnostic) {
                                          error += diagnostic.str();
                                          return mlir::success();
                                        });
  mlir::FailureOr<ReferenceResult> reference =
      evaluateReference(kernel, problem->getReferenceInputs());
  if (mlir::failed(reference))
    return nullptr;
  problem->reference = std::move(*reference);
  return problem;
}

const HostTensor &Problem::getTensor(llvm::StringRef name) const {
  return *std::find_if(
      tensors.begin(), tensors.end(),
      [&](const HostTensor &tensor) { return tensor.name == name; });
}

HostTensor &Problem::getTensor(llvm::StringRef name) {
  return const_cast<HostTensor &>(std::as_const(*this).getTensor(name));
}

bool Problem::hasTensor(llvm::StringRef name) const {
  return std::any_of(
      tensors.begin(), tensors.end(),
      [&](const HostTensor &tensor) { return tensor.name == name; });
}

KernelArgs
Problem::getArgs(const std::function<void *(const HostTensor &)> &place) const {
  KernelArgs args = layout;
  auto find = [&](llvm::StringRef name) -> char * {
    return hasTensor(name) ? static_cast<char *>(place(getTensor(name)))
                           : nullptr;
  };
  auto ids = [&](llvm::StringRef name) {
    return reinterpret_cast<const int32_t *>(find(name));
  };
  args.query = find("query");
  args.output = find("output");
  args.logSumExp = reinterpret_cast<float *>(find("lse"));
  if (valueOffset) {
    char *pool = find("keys_values");
    args.keys = pool;
    args.values = pool + valueOffset;
  } else {
    args.keys = find("keys");
    args.values = find("values");
  }
  args.blockKeys = find("block_keys");
  args.blockValues = find("block_values");
  args.table = ids("table");
  args.lengths = ids("lengths");
  args.columns = ids("columns");
  args.positions = ids("positions");
  args.keyOffsets = ids("key_offsets");
  args.sinks = reinterpret_cast<const float *>(find("sinks"));
  return args;
}

KernelArgs Problem::getHostArgs() {
  return getArgs([](const HostTensor &tensor) {
    return const_cast<uint8_t *>(tensor.data());
  });
}

ReferenceInputs Problem::getReferenceInputs() const {
  KernelArgs args = getArgs([](const HostTensor &tensor) {
    return const_cast<uint8_t *>(tensor.data());
  });
  ReferenceInputs in;
  in.query = args.query;
  in.queryTokenStride = args.queryTokenStride;
  in.queryHeadStride = args.queryHeadStride;
  in.keys = {args.keys, args.keyPageStride, args.keyHeadStride, keySlotStride,
             args.blockKeys};
  in.values = {args.values, args.valuePageStride, args.valueHeadStride,
               valueSlotStride, args.blockValues};
  in.table = args.table;
  in.tableStride = args.tableStride;
  in.lengths = args.lengths;
  in.columns = args.columns;
  in.positions = args.positions;
  in.keyOffsets = args.keyOffsets;
  in.sinks = args.sinks;
  in.batch = args.batch;
  in.maxKeys = args.maxKeys;
  return in;
}

void Problem::poisonOutputs() {
  for (HostTensor &tensor : tensors)
    if (tensor.written)
      std::fill(tensor.storage.begin(), tensor.storage.end(), outputPoison);
}

std::vector<double> Problem::readOutput() const {
  const HostTensor &tensor = getTensor("output");
  ElementKind element = *symbolizeElementKind(tensor.element);
  std::vector<double> values;
  values.reserve(reference.output.size());
  for (int64_t token = 0; token < reference.tokens; ++token)
    for (int64_t head = 0; head < reference.heads; ++head) {
      const uint8_t *row = tensor.data() + token * layout.outputTokenStride +
                           head * layout.outputHeadStride;
      for (int64_t d = 0; d < reference.dim; ++d) {
        uint16_t bits;
        std::memcpy(&bits, row + 2 * d, sizeof(bits));
        values.push_back(decodeHalf(bits, element));
      }
    }
  return values;
}

std::vector<double> Problem::readLogSumExp() const {
  if (!hasTensor("lse"))
    return {};
  auto *values = reinterpret_cast<const float *>(getTensor("lse").data());
  return {values, values + reference.tokens * reference.heads};
}

std::string Problem::findOverrun() const {
  for (const HostTensor &tensor : tensors) {
    // Bytes that no element covers: guards, and gaps between rows.
    std::vector<bool> covered(tensor.storage.size());
    int64_t row = tensor.shape.back() * tensor.strides.back();
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < tensor.shape.size(); ++i)
      rows *= tensor.shape[i];
    for (int64_t index = 0; index < rows; ++index) {
      int64_t at = tensor.offset, rest = index;
      for (size_t i = tensor.shape.size() - 1; i-- > 0;) {
        at += rest % tensor.shape[i] * tensor.strides[i];
        rest /= tensor.shape[i];
      }
      std::fill_n(covered.begin() + at, row, true);
    }
    uint8_t poison = tensor.written ? outputPoison : inputPoison;
    for (size_t i = 0; i < covered.size(); ++i)
      if (!covered[i] && tensor.storage[i] != poison)
        return "'" + tensor.name + "' was written outside its rows at byte " +
               std::to_string(int64_t(i) - tensor.offset) + " of " +
               std::to_string(tensor.bytes);
  }
  return "";
}

Comparison Problem::check() const {
  Comparison result;
  std::string overrun = findOverrun();
  if (overrun.empty())
    result = compare(reference, readOutput(), readLogSumExp(), precision);
  else
    result = {false, overrun};
  if (!result.ok)
    result.message += "\n  in " + testCase.describe();
  return result;
}

} // namespace tokentile
