//===- PoolModel.h - What the pool and the tables must show -----*- C++ -*-===//
//
// A simple model of requests: the tokens of each. `Audit` compares the pool,
// the tables and the memory behind them with it: no page lost, none used
// twice, every length right, every live row where a kernel looks for it.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_RUNTIME_POOLMODEL_H
#define TOKENTILE_TEST_RUNTIME_POOLMODEL_H

#include "PoolFixture.h"

#include <algorithm>
#include <map>

namespace tokentile::test {

using Tokens = std::vector<int64_t>;

struct ModelRequest {
  bool live = false;
  Tokens tokens;
};

/// The recurrence that stands for a recurrent layer.
inline int64_t nextState(int64_t state, int64_t token) {
  return int64_t(uint64_t(state) * 6364136223846793005u + uint64_t(token) + 1);
}

inline int64_t stateOf(const Tokens &tokens, size_t count) {
  int64_t state = 0;
  for (size_t i = 0; i < count; ++i)
    state = nextState(state, tokens[i]);
  return state;
}

/// Pages of a table that a request of `tokens` tokens holds between steps.
inline int32_t pagesOf(int32_t table, int64_t entries, int64_t tokens) {
  if (table == stateTable)
    return tokens > 0;
  int64_t pages = (tokens + pageTokens[table] - 1) / pageTokens[table];
  return int32_t(std::min(pages, entries));
}

struct Audit {
  PoolFixture &f;
  const std::vector<ModelRequest> &model;

  /// Lengths, counts of pages, references and chunks. Between steps.
  void pool() const {
    std::map<int64_t, int32_t> chunkOwner;
    for (int32_t table = 0; table < f.pool->classes(); ++table) {
      std::map<int32_t, int32_t> references;
      int64_t total = 0;
      int64_t stride = f.tables->stride(table);
      for (int32_t slot = 0; slot < f.tables->slots(); ++slot) {
        int64_t tokens = int64_t(model[slot].tokens.size());
        ASSERT_EQ(f.tables->live(slot), model[slot].live);
        ASSERT_EQ(f.tables->length(slot), tokens);
        int32_t held = pagesOf(table, stride, tokens);
        ASSERT_EQ(f.tables->held(table, slot), held);
        for (int32_t i = 0; i < stride; ++i)
          if (i < held)
            references[f.tables->entry(table, slot, i)] += 1;
          else
            ASSERT_EQ(f.tables->entry(table, slot, i), 0);
        total += held;
      }
      PageClassUse use = f.pool->use(table);
      ASSERT_EQ(use.pages, int64_t(references.size()));
      ASSERT_EQ(use.references, total);
      int64_t bytes = f.pool->pageClass(table).pageBytes;
      for (auto [page, count] : references) {
        ASSERT_EQ(f.pool->references(table, page), count);
        int64_t chunk = page * bytes / f.pool->bytesPerChunk();
        ASSERT_EQ(chunk, ((page + 1) * bytes - 1) / f.pool->bytesPerChunk());
        auto [owner, first] = chunkOwner.insert({chunk, table});
        ASSERT_EQ(owner->second, table);
      }
    }
    ASSERT_EQ(f.pool->freeChunkCount(),
              f.pool->chunkCount() - int64_t(chunkOwner.size()));
  }

  /// What the device has of one slot. After an upload.
  void device(int32_t slot) const {
    ASSERT_EQ(f.tables->deviceLengths()[slot], f.tables->length(slot));
    for (int32_t table = 0; table < f.pool->classes(); ++table) {
      int64_t stride = f.tables->stride(table);
      for (int32_t i = 0; i < stride; ++i)
        ASSERT_EQ(f.tables->deviceTable(table)[slot * stride + i],
                  f.tables->entry(table, slot, i));
    }
    const Tokens &tokens = model[slot].tokens;
    int64_t length = int64_t(tokens.size());
    for (int64_t p = 0; p < length; ++p)
      ASSERT_EQ(*f.row(targetTable, slot, p), tokens[p]);
    for (int64_t p = std::max<int64_t>(0, length - window + 1); p < length;
         ++p) {
      ASSERT_EQ(*f.row(draftTable, slot, p), tokens[p]);
      ASSERT_EQ(*f.row(blockTable, slot, p), tokens[p]);
    }
    if (f.pool->classes() > stateTable && length > 0) {
      ASSERT_EQ(*f.state(slot, 0), stateOf(tokens, length));
    }
  }
};

} // namespace tokentile::test

#endif // TOKENTILE_TEST_RUNTIME_POOLMODEL_H
