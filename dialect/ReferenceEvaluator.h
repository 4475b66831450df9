//===- ReferenceEvaluator.h - One evaluation of a spec ----------*- C++ -*-===//
//
// The state of evaluateReference(): private to the files that implement it.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_DIALECT_REFERENCEEVALUATOR_H
#define TOKENTILE_DIALECT_REFERENCEEVALUATOR_H

#include "dialect/AttnReference.h"
#include "dialect/ReferenceScore.h"

namespace tokentile::attn {

/// One request: where its rows and keys are.
struct ReferenceRequest {
  int64_t index;
  int64_t firstToken;
  int64_t columns;
  int64_t context;
  int64_t length;
};

/// Key or value rows of one request and kv head, decoded when first needed.
struct DecodedRows {
  std::vector<double> rows;
  std::vector<bool> present;
};

class ReferenceEvaluator {
public:
  ReferenceEvaluator(KernelOp kernel, const ReferenceInputs &in);

  mlir::FailureOr<ReferenceResult> run();

private:
  mlir::LogicalResult checkAxes();
  mlir::LogicalResult checkStorage(StorageAttr storage,
                                   const ReferencePlane &plane,
                                   llvm::StringRef axis, int64_t width);
  mlir::FailureOr<ReferenceRequest> findRequest(int64_t index);
  const double *getRow(DecodedRows &decoded, const ReferencePlane &plane,
                       StorageAttr storage, int64_t width,
                       const ReferenceRequest &request, int64_t head,
                       int64_t key);
  bool isSeen(const ReferenceRequest &request, int64_t token, int64_t position,
              int64_t key);
  void evaluateHead(const ReferenceRequest &request, int64_t kvHead);
  void evaluateRow(const ReferenceRequest &request, int64_t column,
                   int64_t head, DecodedRows &keys, DecodedRows &values);
  /// The row as the naive computation meets it: quantised elements are rounded
  /// to the query's type, into `out`.
  const double *widen(StorageAttr storage, const double *row, int64_t width,
                      std::vector<double> &out);
  template <typename T>
  T scoreOf(T product, int64_t head, int64_t position, int64_t key);
  template <typename T>
  void finishRow(const std::vector<T> &scores,
                 const std::vector<const double *> &values, int64_t token,
                 int64_t head);
  void setEmpty(int64_t token, int64_t head, double value);

  KernelOp kernel;
  const ReferenceInputs &in;
  HeadsAttr heads;
  SeesAttr sees;
  PagingAttr paging;
  QueryAttr query;
  OutputAttr resultSpec;
  StorageAttr keyStorage, valueStorage;
  ElementKind probability;
  double factor;
  int64_t dim, valueDim;
  bool dense;
  ScoreFunction score;
  ReferenceResult result;
};

} // namespace tokentile::attn

#endif // TOKENTILE_DIALECT_REFERENCEEVALUATOR_H
