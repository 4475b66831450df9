//===- Attention.h - Generated kernels of one kind of layer -----*- C++ -*-===//
//
// Compiles the attention of a model's layers for each width, plans it for each
// batch, and launches it. Compiling and planning is what `prepare` does;
// `launch` only queues.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TOOLS_REFERENCEMODEL_ATTENTION_H
#define TOKENTILE_TOOLS_REFERENCEMODEL_ATTENTION_H

#include "runtime/Append.h"
#include "runtime/SpecModel.h"
#include "tools/reference-model/ReferenceConfig.h"

#include <map>

namespace tokentile::reference {

/// The pages of one class, as a model sees them. Each layer of the class has
/// its keys, then its values, at its own offset of a page, page-major.
struct CachePlace {
  char *memory = nullptr;
  /// Of the pool.
  int32_t pageClass = 0;
  int64_t pageBytes = 0;
  int32_t pageIds = 0;
  int32_t pageTokens = 0;
  /// Keys of the ring, 0 if the class is linear.
  int32_t ringKeys = 0;
};

/// What a kernel of these layers computes.
struct AttentionKind {
  int32_t queryHeads = 0;
  int32_t kvHeads = 0;
  int32_t headDim = 0;
  /// 0: all keys.
  int32_t window = 0;
  /// A target's rows see what is before them; their keys are in the pages, and
  /// the schedule is invariant. A draft's see their whole block, which is a
  /// dense segment.
  bool isDraft = false;
};

/// The dialect's text of such a kernel.
std::string attentionSpec(const AttentionKind &kind, const CachePlace &cache,
                          int32_t width);

/// Compiles and loads it.
StatusOr<std::unique_ptr<Kernel>> loadAttention(Device &device,
                                                const std::string &spec);

class Attention {
public:
  /// `maxKeys` bounds a request's keys, block included.
  Attention(Device &device, const AttentionKind &kind, const CachePlace &cache,
            int32_t maxKeys)
      : device(device), kind(kind), cache(cache), maxKeys(maxKeys) {}

  /// Makes ready for launches of `batch` requests of up to `width` rows.
  Status prepare(int32_t width, int32_t batch);

  /// Arguments of layer `layer` of the class; the caller adds the rows.
  /// REQUIRES: prepare(width, batch).
  LaunchArgs argsOf(const StepBatch &batch, int32_t layer) const;
  Status launch(int32_t width, int32_t batch, LaunchArgs args, Stream &stream);
  /// Writes the first counts[b] rows of each request, bf16 [rows, kv heads,
  /// dim], to where launches read them. Needs no prepare.
  Status append(const Appender &appender, const StepBatch &batch, int32_t layer,
                const Buffer &keys, const Buffer &values, const int32_t *counts,
                Stream &stream) const;

  /// Bytes of keys or of values of one layer in a page.
  static int64_t planeBytes(const AttentionKind &kind, int32_t pageTokens) {
    return int64_t(pageTokens) * kind.kvHeads * kind.headDim * 2;
  }

private:
  Device &device;
  AttentionKind kind;
  CachePlace cache;
  int32_t maxKeys;
  std::map<int32_t, std::unique_ptr<Kernel>> kernels;
  std::map<std::pair<int32_t, int32_t>, Plan> plans;
  /// The last is in use; recorded launches may hold the others.
  std::vector<Buffer> workspaces;
};

} // namespace tokentile::reference

#endif // TOKENTILE_TOOLS_REFERENCEMODEL_ATTENTION_H
