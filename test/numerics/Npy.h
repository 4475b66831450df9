//===- Npy.h - Tensors as .npy files ----------------------------*- C++ -*-===//
//
// Writes the tensors of a problem so that numpy can read them, with a JSON
// file beside them that names shapes, types and the spec.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_NUMERICS_NPY_H
#define TOKENTILE_TEST_NUMERICS_NPY_H

#include "test/numerics/Problem.h"

namespace tokentile {

/// Writes every tensor of `problem` (`<name>.npy`), the reference results
/// (`reference.npy`, `naive.npy`, `reference_lse.npy`, `naive_lse.npy`) and
/// `problem.json` into `folder`, which is made if need be. bf16 is stored as
/// uint16, since numpy has no such type; the JSON says so. Axes with gaps
/// between their rows are written without the gaps. Returns false and says why
/// in `error` if a file cannot be written.
bool dumpProblem(const Problem &problem, const std::string &folder,
                 std::string &error);

} // namespace tokentile

#endif // TOKENTILE_TEST_NUMERICS_NPY_H
