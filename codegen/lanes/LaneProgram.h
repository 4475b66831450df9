//===- LaneProgram.h - The decoded form of a kernel -------------*- C++ -*-===//
//
// A kernel is decoded once into a flat list of instructions over slots of a
// register file. Structs and vectors are flattened into scalars (*leaves*), so
// that extracting and inserting elements cost nothing, and structured control
// flow becomes jumps plus a stack of masks, so that a warp can stop at a
// barrier and go on later.
//
// A slot is an offset into the register file of a warp, in 32-bit words. A leaf
// of up to 32 bits takes one word for each lane, zero-extended; a wider one
// two.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_CODEGEN_LANES_LANEPROGRAM_H
#define TOKENTILE_CODEGEN_LANES_LANEPROGRAM_H

#include <cstdint>
#include <string>
#include <vector>

namespace mlir {
class Operation;
} // namespace mlir

namespace tokentile::lanes {

using Slot = uint32_t;
constexpr unsigned kLanes = 32;
constexpr uint32_t kAllLanes = 0xffffffffu;

/// Where shared memory appears among generic addresses.
constexpr uint64_t kSharedWindow = uint64_t(1) << 62;
constexpr uint64_t kSharedWindowSize = uint64_t(1) << 32;

enum class Opcode : uint8_t {
  Return,
  // Control: `target` is the instruction to jump to.
  IfBegin, // a = condition, target = the IfElse
  IfElse,  // target = the IfEnd
  IfEnd,
  ForBegin, // a, b, c = bounds and step, dst = induction variable,
            // target = after the ForNext
  ForNext,  // dst = induction variable, target = the first of the body
  Copies,   // list = pairs (to, from), read before written: `count` of
            // 32-bit leaves, then `imm` of 64-bit ones
  Barrier,
  WarpSync, // c = member mask
  GridWait,
  Special, // imm = SpecialRegister
  // Integers of `width` bits.
  AddI,
  SubI,
  MulI,
  DivS,
  DivU,
  RemS,
  RemU,
  CeilDivS,
  CeilDivU,
  FloorDivS,
  And,
  Or,
  Xor,
  Shl,
  ShrU,
  ShrS,
  MinS,
  MaxS,
  MinU,
  MaxU,
  CmpI,   // imm = predicate
  Select, // a = condition
  ExtS,   // from width to width2
  ExtU,
  Trunc,
  CtPop,
  AddScaled, // dst = a + imm * sign-extended b; 64 bits, b of width
  AddImm,    // 64 bits
  // Floats of `kind`.
  AddF,
  SubF,
  MulF,
  DivF,
  NegF,
  AbsF,
  MaximumF,
  MaxNumF,
  MinimumF,
  MinNumF,
  CmpF, // imm = predicate
  FmaF,
  Exp2,
  Exp2Ftz,
  Log2,
  Log2Ftz,
  Rcp,
  RcpFtz,
  Sqrt,
  Tanh,
  ConvertF, // from kind to kind2
  SIToFP,
  UIToFP,
  FPToSI,
  FPToUI,
  // Bit casts between lists of leaves: width to width2 bits each.
  Recast, // list = sources then destinations, count = sources, imm = dests
  // Memory.
  Load,      // a = address, list = leaves, imm = alignment, width = leaf bits
  Store,     // likewise
  LdMatrix,  // a = address, list = results, count = matrices, imm = transposed
  Mma,       // list = A (4), B (2), C (4), D (4), kind = element type
  CopyAsync, // dst = destination, a = source, b = source bytes, imm = size
  CommitGroup,
  WaitGroup, // imm = groups still allowed in flight, -1: none, open one
             // included
  // Between lanes: a = value or predicate, c = member mask.
  Shuffle, // b = offset, d = segment mask and clamp, list = validity if
           // count, imm = ShuffleKind
  Vote,    // imm = VoteKind
  Redux,   // imm = opcode of the reduction
};

enum class FloatKind : uint8_t { None, F32, F16, BF16 };

enum class SpecialRegister {
  TidX,
  TidY, // also TidZ: zero
  BlockX,
  BlockY,
  BlockZ,
  ThreadsX,
  ThreadsY, // also ThreadsZ: one
  GridX,
  GridY,
  GridZ,
  Lane,
  WarpId,
  WarpSize,
};

enum class ShuffleKind { Up, Down, Butterfly, Index };
enum class VoteKind { Any, All, Ballot, Uniform };
enum class Space : uint8_t { Generic, Global, Shared };

struct Instr {
  Opcode op;
  uint8_t width = 32;
  uint8_t width2 = 32;
  FloatKind kind = FloatKind::None;
  FloatKind kind2 = FloatKind::None;
  Space space = Space::Generic;
  Slot dst = 0;
  Slot a = 0;
  Slot b = 0;
  Slot c = 0;
  Slot d = 0;
  uint32_t list = 0;
  uint32_t count = 0;
  uint32_t target = 0;
  int64_t imm = 0;
  mlir::Operation *source = nullptr;
};

struct Constant {
  Slot slot;
  uint8_t width;
  uint64_t bits;
};

struct Program {
  std::vector<Instr> code;
  std::vector<Slot> lists;
  /// Written to every lane once, when a warp starts.
  std::vector<Constant> constants;
  /// Words of a warp's register file.
  uint32_t words = 0;
  bool hasArgument = false;
  Slot argument = 0;
};

/// "'nvvm.ldmatrix' at loc(...)", for messages.
std::string describe(mlir::Operation *op);

} // namespace tokentile::lanes

#endif // TOKENTILE_CODEGEN_LANES_LANEPROGRAM_H
