//===- AttnEnums.td - Closed choices of the attn dialect --------*- tablegen -*-===//

#ifndef TOKENTILE_DIALECT_ATTNENUMS_TD
#define TOKENTILE_DIALECT_ATTNENUMS_TD

include "mlir/IR/EnumAttr.td"

class Attn_Enum<string name, string summary, list<EnumCase> cases>
    : I32Enum<name, summary, cases> {
  let cppNamespace = "::tokentile::attn";
}

def Attn_ElementKind : Attn_Enum<"ElementKind", "element of a stored tensor", [
  I32EnumCase<"BF16", 0, "bf16">, I32EnumCase<"FP16", 1, "fp16">,
  I32EnumCase<"E4M3", 2, "e4m3">, I32EnumCase<"Int8", 3, "int8">,
  I32EnumCase<"NVFP4", 4, "nvfp4">]>;

def Attn_ScaleKind : Attn_Enum<"ScaleKind", "what shares one scale", [
  I32EnumCase<"None", 0, "none">, I32EnumCase<"Row", 1, "row">,
  I32EnumCase<"Head", 2, "head">, I32EnumCase<"Tensor", 3, "tensor">,
  I32EnumCase<"Group", 4, "group">]>;

def Attn_Rotation : Attn_Enum<"Rotation", "rotation applied before storing", [
  I32EnumCase<"None", 0, "none">, I32EnumCase<"Hadamard", 1, "hadamard">]>;

def Attn_PrefixKind : Attn_Enum<"PrefixKind", "which keys a row may see", [
  I32EnumCase<"All", 0, "all">, I32EnumCase<"Left", 1, "left">,
  I32EnumCase<"Symmetric", 2, "symmetric">]>;

def Attn_SuffixKind : Attn_Enum<"SuffixKind", "which block rows a row sees", [
  I32EnumCase<"Causal", 0, "causal">,
  I32EnumCase<"Bidirectional", 1, "bidirectional">,
  I32EnumCase<"Ancestors", 2, "ancestors">]>;

def Attn_PageOrderKind : Attn_Enum<"PageOrderKind", "order of axes of a pool", [
  I32EnumCase<"PageMajor", 0, "page_major">,
  I32EnumCase<"HeadMajor", 1, "head_major">, I32EnumCase<"NHD", 2, "nhd">,
  I32EnumCase<"Contiguous", 3, "contiguous">]>;

def Attn_IndexKind : Attn_Enum<"IndexKind", "type of a page id", [
  I32EnumCase<"I32", 0, "i32">, I32EnumCase<"I64", 1, "i64">]>;

def Attn_BlockKind : Attn_Enum<"BlockKind", "where the block's rows lie", [
  I32EnumCase<"InPages", 0, "in_pages">, I32EnumCase<"Dense", 1, "dense">]>;

def Attn_RowOrder : Attn_Enum<"RowOrder", "order of query or output axes", [
  I32EnumCase<"TokenMajor", 0, "token_major">,
  I32EnumCase<"HeadMajor", 1, "head_major">]>;

def Attn_ColumnsKind : Attn_Enum<"ColumnsKind", "query tokens of a request", [
  I32EnumCase<"Uniform", 0, "uniform">, I32EnumCase<"Counted", 1, "counted">,
  I32EnumCase<"Packed", 2, "packed">]>;

def Attn_PositionsKind : Attn_Enum<"PositionsKind", "where positions come from", [
  I32EnumCase<"FromLengths", 0, "from_lengths">,
  I32EnumCase<"Given", 1, "given">]>;

def Attn_LengthsKind : Attn_Enum<"LengthsKind", "what a length counts", [
  I32EnumCase<"Context", 0, "context">, I32EnumCase<"Total", 1, "total">]>;

def Attn_ExtraResult : Attn_Enum<"ExtraResult", "what is returned besides", [
  I32EnumCase<"None", 0, "none">, I32EnumCase<"LogSumExp", 1, "lse">]>;

def Attn_EmptyKind : Attn_Enum<"EmptyKind", "output of a row that sees nothing", [
  I32EnumCase<"Zero", 0, "zero">, I32EnumCase<"NaN", 1, "nan">]>;

def Attn_SplitKind : Attn_Enum<"SplitKind", "how keys are divided", [
  I32EnumCase<"Auto", 0, "auto">, I32EnumCase<"Count", 1, "count">,
  I32EnumCase<"Keys", 2, "keys">, I32EnumCase<"Pieces", 3, "pieces">]>;

def Attn_LoweringKind : Attn_Enum<"LoweringKind", "which lowering runs a plan", [
  I32EnumCase<"Auto", 0, "auto">, I32EnumCase<"Host", 1, "host">,
  I32EnumCase<"Mma", 2, "mma">, I32EnumCase<"Wgmma", 3, "wgmma">]>;

def Attn_QueryPlace : Attn_Enum<"QueryPlace", "where query operands rest", [
  I32EnumCase<"Auto", 0, "auto">, I32EnumCase<"Shared", 1, "shared">,
  I32EnumCase<"Registers", 2, "registers">]>;

def Attn_MeetKind : Attn_Enum<"MeetKind", "when key warps meet", [
  I32EnumCase<"Auto", 0, "auto">, I32EnumCase<"End", 1, "end">,
  I32EnumCase<"Tile", 2, "tile">]>;

def Attn_ProgramRole : Attn_Enum<"ProgramRole", "part of a kernel", [
  I32EnumCase<"Sweep", 0, "sweep">, I32EnumCase<"Merge", 1, "merge">]>;

def Attn_Plane : Attn_Enum<"Plane", "keys or values", [
  I32EnumCase<"Keys", 0, "keys">, I32EnumCase<"Values", 1, "values">]>;

def Attn_FragmentKind : Attn_Enum<"FragmentKind", "a distribution over lanes", [
  I32EnumCase<"Query", 0, "query">, I32EnumCase<"Scores", 1, "scores">,
  I32EnumCase<"Probabilities", 2, "probabilities">,
  I32EnumCase<"Output", 3, "output">,
  I32EnumCase<"Statistics", 4, "statistics">,
  I32EnumCase<"Slices", 5, "slices">]>;

#endif // TOKENTILE_DIALECT_ATTNENUMS_TD
