//===- ReferenceScore.cpp - Score regions over doubles --------------------===//
//
// Each operation becomes one closure over a vector of cells. Operations are
// known by name, so that the dialect does not link the math dialect for them.
//
//===----------------------------------------------------------------------===//

#include "dialect/ReferenceScore.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace tokentile::attn {

namespace {

using Unary = double (*)(double);
using Binary = double (*)(double, double);
using IntegerBinary = int64_t (*)(int64_t, int64_t);

Unary unaryNamed(StringRef name) {
  return llvm::StringSwitch<Unary>(name)
      .Case("arith.negf", [](double x) { return -x; })
      .Cases({"arith.extf", "arith.truncf"}, [](double x) { return x; })
      .Case("math.absf", [](double x) { return std::fabs(x); })
      .Case("math.ceil", [](double x) { return std::ceil(x); })
      .Case("math.cos", [](double x) { return std::cos(x); })
      .Case("math.erf", [](double x) { return std::erf(x); })
      .Case("math.exp", [](double x) { return std::exp(x); })
      .Case("math.exp2", [](double x) { return std::exp2(x); })
      .Case("math.floor", [](double x) { return std::floor(x); })
      .Case("math.log", [](double x) { return std::log(x); })
      .Case("math.log1p", [](double x) { return std::log1p(x); })
      .Case("math.log2", [](double x) { return std::log2(x); })
      .Case("math.rsqrt", [](double x) { return 1 / std::sqrt(x); })
      .Case("math.sin", [](double x) { return std::sin(x); })
      .Case("math.sqrt", [](double x) { return std::sqrt(x); })
      .Case("math.tanh", [](double x) { return std::tanh(x); })
      .Default(nullptr);
}

/// maximumf and minimumf hand a NaN on; maxnumf and minnumf drop it.
double maximum(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? NAN : std::fmax(x, y);
}
double minimum(double x, double y) { return -maximum(-x, -y); }

Binary binaryNamed(StringRef name) {
  return llvm::StringSwitch<Binary>(name)
      .Case("arith.addf", [](double x, double y) { return x + y; })
      .Case("arith.subf", [](double x, double y) { return x - y; })
      .Case("arith.mulf", [](double x, double y) { return x * y; })
      .Case("arith.divf", [](double x, double y) { return x / y; })
      .Case("arith.remf", [](double x, double y) { return std::fmod(x, y); })
      .Case("arith.maximumf", maximum)
      .Case("arith.minimumf", minimum)
      .Case("arith.maxnumf", [](double x, double y) { return std::fmax(x, y); })
      .Case("arith.minnumf", [](double x, double y) { return std::fmin(x, y); })
      .Case("math.powf", [](double x, double y) { return std::pow(x, y); })
      .Default(nullptr);
}

/// Where arith leaves division undefined, this is what the lane executor has:
/// division by zero gives minus one and leaves all, and by minus one wraps.
int64_t quotient(int64_t x, int64_t y) {
  if (y == 0)
    return -1;
  return y == -1 ? int64_t(0 - uint64_t(x)) : x / y;
}
int64_t remainder(int64_t x, int64_t y) {
  if (y == 0)
    return x;
  return y == -1 ? 0 : x % y;
}

IntegerBinary integerNamed(StringRef name) {
  using I = int64_t;
  return llvm::StringSwitch<IntegerBinary>(name)
      .Case("arith.addi", [](I x, I y) { return I(uint64_t(x) + uint64_t(y)); })
      .Case("arith.subi", [](I x, I y) { return I(uint64_t(x) - uint64_t(y)); })
      .Case("arith.muli", [](I x, I y) { return I(uint64_t(x) * uint64_t(y)); })
      .Case("arith.divsi", quotient)
      .Case("arith.remsi", remainder)
      .Case("arith.andi", [](I x, I y) { return x & y; })
      .Case("arith.ori", [](I x, I y) { return x | y; })
      .Case("arith.xori", [](I x, I y) { return x ^ y; })
      .Case("arith.maxsi", [](I x, I y) { return std::max(x, y); })
      .Case("arith.minsi", [](I x, I y) { return std::min(x, y); })
      .Default(nullptr);
}

/// Brings an integer into the range of its type; i1 is 0 or 1.
int64_t wrap(int64_t value, Type type) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return width == 1    ? value & 1
         : width >= 64 ? value
                       : llvm::SignExtend64(uint64_t(value), width);
}

/// Towards zero, and where arith leaves it undefined as on the GPU: the nearest
/// value of `type`, zero for a NaN.
int64_t toInteger(double value, Type type) {
  unsigned bits =
      type.isIndex() ? 64 : std::min(type.getIntOrFloatBitWidth(), 64u);
  double end = std::ldexp(1.0, int(bits) - 1);
  if (std::isnan(value))
    return 0;
  if (value >= end)
    return llvm::maxIntN(bits);
  return value <= -end ? llvm::minIntN(bits) : int64_t(value);
}

} // namespace

unsigned ScoreFunction::slotOf(Value value) {
  return slots.try_emplace(value, unsigned(slots.size())).first->second;
}

ScoreFunction::Step ScoreFunction::compileReal(Operation *op) {
  StringRef name = op->getName().getStringRef();
  unsigned to = slotOf(op->getResult(0));
  unsigned count = op->getNumOperands();
  unsigned a = count > 0 ? slotOf(op->getOperand(0)) : 0;
  unsigned b = count > 1 ? slotOf(op->getOperand(1)) : 0;
  if (Unary apply = unaryNamed(name))
    return [=](Cell *c) { c[to].real = apply(c[a].real); };
  if (Binary apply = binaryNamed(name))
    return [=](Cell *c) { c[to].real = apply(c[a].real, c[b].real); };
  if (name == "math.fma") {
    unsigned d = slotOf(op->getOperand(2));
    return [=](Cell *c) {
      c[to].real = std::fma(c[a].real, c[b].real, c[d].real);
    };
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    arith::CmpFPredicate predicate = compare.getPredicate();
    return [=](Cell *c) {
      c[to].integer = arith::applyCmpPredicate(predicate, APFloat(c[a].real),
                                               APFloat(c[b].real));
    };
  }
  return nullptr;
}

ScoreFunction::Step ScoreFunction::compileInteger(Operation *op) {
  StringRef name = op->getName().getStringRef();
  unsigned to = slotOf(op->getResult(0));
  Type type = op->getResult(0).getType();
  unsigned count = op->getNumOperands();
  unsigned a = count > 0 ? slotOf(op->getOperand(0)) : 0;
  unsigned b = count > 1 ? slotOf(op->getOperand(1)) : 0;
  if (IntegerBinary apply = integerNamed(name))
    return [=](Cell *c) {
      c[to].integer = wrap(apply(c[a].integer, c[b].integer), type);
    };
  if (name == "math.absi")
    return [=](Cell *c) {
      int64_t x = c[a].integer;
      c[to].integer = wrap(x < 0 ? int64_t(0 - uint64_t(x)) : x, type);
    };
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    arith::CmpIPredicate predicate = compare.getPredicate();
    return [=](Cell *c) {
      c[to].integer =
          arith::applyCmpPredicate(predicate, APInt(64, uint64_t(c[a].integer)),
                                   APInt(64, uint64_t(c[b].integer)));
    };
  }
  return nullptr;
}

ScoreFunction::Step ScoreFunction::compileConversion(Operation *op) {
  StringRef name = op->getName().getStringRef();
  unsigned to = slotOf(op->getResult(0));
  unsigned a = slotOf(op->getOperand(0));
  Type from = op->getOperand(0).getType();
  Type type = op->getResult(0).getType();
  unsigned width = from.isIntOrFloat() ? from.getIntOrFloatBitWidth() : 64;
  uint64_t mask = width < 64 ? (uint64_t(1) << width) - 1 : ~uint64_t(0);
  if (name == "arith.sitofp")
    return [=](Cell *c) {
      c[to].real = double(width == 1 ? -c[a].integer : c[a].integer);
    };
  if (name == "arith.uitofp")
    return [=](Cell *c) { c[to].real = double(uint64_t(c[a].integer) & mask); };
  if (name == "arith.fptosi")
    return [=](Cell *c) {
      c[to].integer = wrap(toInteger(c[a].real, type), type);
    };
  if (name == "arith.extsi")
    return [=](Cell *c) {
      c[to].integer = width == 1 ? -c[a].integer : c[a].integer;
    };
  if (name == "arith.extui")
    return [=](Cell *c) {
      c[to].integer = int64_t(uint64_t(c[a].integer) & mask);
    };
  if (name == "arith.trunci" || name == "arith.index_cast")
    return [=](Cell *c) { c[to].integer = wrap(c[a].integer, type); };
  return nullptr;
}

ScoreFunction::Step ScoreFunction::compile(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0)
    return nullptr;
  unsigned to = slotOf(op->getResult(0));
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    Cell cell;
    if (auto real = dyn_cast<FloatAttr>(constant.getValue()))
      cell.real = real.getValueAsDouble();
    else if (auto integer = dyn_cast<IntegerAttr>(constant.getValue()))
      cell.integer =
          wrap(integer.getValue().getSExtValue(), constant.getType());
    else
      return nullptr;
    return [=](Cell *c) { c[to] = cell; };
  }
  if (isa<arith::SelectOp>(op)) {
    unsigned condition = slotOf(op->getOperand(0));
    unsigned yes = slotOf(op->getOperand(1));
    unsigned no = slotOf(op->getOperand(2));
    return [=](Cell *c) { c[to] = c[c[condition].integer ? yes : no]; };
  }
  if (op->getNumOperands() == 0)
    return nullptr;
  if (Step step = compileReal(op))
    return step;
  if (Step step = compileInteger(op))
    return step;
  return compileConversion(op);
}

FailureOr<ScoreFunction> ScoreFunction::create(KernelOp kernel) {
  ScoreFunction function;
  Region &region = kernel.getScore();
  if (region.empty())
    return function;
  function.identity = false;
  if (!region.hasOneBlock() || region.getNumArguments() != 4) {
    kernel.emitOpError("expected a 'score' region of one block with four "
                       "arguments for the reference");
    return failure();
  }
  for (auto [i, argument] : llvm::enumerate(region.getArguments())) {
    function.arguments[i] = function.slotOf(argument);
  }
  for (Operation &op : region.front()) {
    if (auto yield = dyn_cast<YieldOp>(op)) {
      function.result = function.slotOf(yield.getValue());
      break;
    }
    Step step = function.compile(&op);
    if (!step) {
      op.emitOpError("is unknown to the reference inside a 'score' region");
      return failure();
    }
    function.steps.push_back(std::move(step));
  }
  function.cells.resize(function.slots.size());
  return function;
}

double ScoreFunction::operator()(double score, int64_t head,
                                 int64_t queryPosition, int64_t keyPosition) {
  if (identity)
    return score;
  const int64_t others[] = {0, head, queryPosition, keyPosition};
  for (int i = 0; i < 4; ++i) {
    Cell &cell = cells[arguments[i]];
    cell.real = i == 0 ? score : double(others[i]);
    cell.integer = others[i];
  }
  for (const Step &step : steps)
    step(cells.data());
  return cells[result].real;
}

} // namespace tokentile::attn
