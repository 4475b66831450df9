//===- PoolTransactionTest.cpp - Random steps against a model -------------===//
//
// 100,000 random steps: admit, propose and accept any length, append, preempt,
// resume, share, park, truncate, finish, misuse, in a pool that is often full.
//
//===----------------------------------------------------------------------===//

#include "PoolModel.h"

#include <random>

using namespace tokentile;
using namespace tokentile::test;

namespace {

constexpr int32_t slots = 10;
constexpr int32_t steps = 100'000;

class Transactions : public testing::TestWithParam<bool> {
protected:
  int32_t draw(int32_t below) { return int32_t(random() % uint32_t(below)); }
  bool hasState() const { return GetParam(); }
  bool live(int32_t slot) const { return model[slot].live; }
  int32_t length(int32_t slot) const {
    return int32_t(model[slot].tokens.size());
  }

  /// Counts the outcome; an error must be one of the two that may occur.
  bool check(const Status &status, StatusCode allowed) {
    counts[statusCodeName(status.code())] += 1;
    if (status.ok())
      return true;
    bool expected = status.code() == StatusCode::ResourceExhausted ||
                    status.code() == allowed;
    EXPECT_TRUE(expected) << status.toString();
    return false;
  }

  void admit(int32_t slot) {
    if (live(slot)) {
      expectError(f.tables->admit(slot, 1), StatusCode::FailedPrecondition, "");
      return;
    }
    ASSERT_OK(f.tables->admit(slot, slot));
    model[slot].live = true;
    if (!saved.empty() && draw(2)) {
      // Resume what was preempted, by recomputing it.
      Tokens tokens = std::move(saved.back());
      saved.pop_back();
      append(slot, tokens);
      return;
    }
    append(slot, randomTokens(1 + draw(40)));
  }

  Tokens randomTokens(int32_t count) {
    Tokens tokens(count);
    for (int64_t &token : tokens)
      token = int64_t(random());
    return tokens;
  }

  /// Appends as a kernel would: every row, and the state in place.
  void append(int32_t slot, const Tokens &tokens) {
    int32_t rows = int32_t(tokens.size()), n = length(slot);
    if (rows == 0 ||
        !check(f.tables->append(slot, rows),
               n + rows > maxTokens ? StatusCode::OutOfRange : StatusCode::Ok))
      return;
    ASSERT_OK(f.upload());
    writeRows(slot, tokens, rows, rows);
    if (hasState())
      *f.state(slot, 0) =
          nextStates(n > 0 ? *f.state(slot, 0) : 0, tokens, rows);
    ASSERT_OK(f.tables->commit(slot, rows));
    extend(slot, tokens, rows);
  }

  static int64_t nextStates(int64_t state, const Tokens &tokens, int32_t rows) {
    for (int32_t i = 0; i < rows; ++i)
      state = nextState(state, tokens[i]);
    return state;
  }

  void writeRows(int32_t slot, const Tokens &tokens, int32_t rows,
                 int32_t accepted) {
    int32_t n = length(slot);
    for (int32_t i = 0; i < rows; ++i) {
      *f.row(targetTable, slot, n + i) = tokens[i];
      *f.row(blockTable, slot, n + i) = tokens[i];
      if (i < accepted)
        *f.row(draftTable, slot, n + i) = tokens[i];
    }
  }

  void extend(int32_t slot, const Tokens &tokens, int32_t rows) {
    Tokens &all = model[slot].tokens;
    all.insert(all.end(), tokens.begin(), tokens.begin() + rows);
  }

  /// One step of a random batch.
  void speculate() {
    struct Proposal {
      int32_t slot;
      Tokens tokens;
    };
    std::vector<Proposal> batch;
    for (int32_t slot = 0; slot < slots; ++slot) {
      if (!live(slot) || draw(3) == 0)
        continue;
      Tokens tokens = randomTokens(1 + draw(maxWidth));
      int32_t rows = int32_t(tokens.size());
      if (check(f.tables->propose(slot, rows), length(slot) + rows > maxTokens
                                                   ? StatusCode::OutOfRange
                                                   : StatusCode::Ok))
        batch.push_back({slot, std::move(tokens)});
      else if (draw(2))
        release(slot);
    }
    ASSERT_OK(f.upload());
    for (const Proposal &proposal : batch)
      accept(proposal.slot, proposal.tokens);
  }

  void accept(int32_t slot, const Tokens &tokens) {
    int32_t rows = int32_t(tokens.size());
    int32_t accepted = draw(rows + 1);
    if (accepted > 0) {
      writeRows(slot, tokens, rows, accepted);
      int64_t state = hasState() && length(slot) > 0 ? *f.state(slot, 0) : 0;
      for (int32_t i = 0; hasState() && i < rows; ++i)
        *f.state(slot, i) = state = nextState(state, tokens[i]);
    }
    bool onDevice = draw(2) == 0;
    if (onDevice)
      advanceOnDevice(slot, accepted);
    ASSERT_OK(f.tables->commit(slot, accepted, onDevice));
    extend(slot, tokens, accepted);
  }

  /// What a commit kernel does.
  void advanceOnDevice(int32_t slot, int32_t accepted) {
    const_cast<int32_t *>(f.tables->deviceLengths())[slot] += accepted;
    if (hasState() && accepted > 0) {
      auto *row = const_cast<int32_t *>(f.tables->deviceTable(stateTable)) +
                  slot * f.tables->stride(stateTable);
      std::swap(row[0], row[accepted - 1]);
    }
  }

  /// Preempts or finishes a request, in the middle of a step at times.
  void release(int32_t slot) {
    if (!live(slot)) {
      expectError(f.tables->release(slot), StatusCode::FailedPrecondition, "");
      return;
    }
    if (draw(2))
      check(f.tables->propose(slot, 1 + draw(maxWidth)),
            StatusCode::OutOfRange);
    ASSERT_OK(f.tables->release(slot));
    if (draw(2))
      saved.push_back(std::move(model[slot].tokens));
    model[slot] = ModelRequest();
  }

  void share(int32_t from, int32_t to) {
    int32_t tokens = draw(2) ? length(from) : draw(length(from) + 1);
    Status status = f.tables->share(from, to, to, tokens);
    if (!check(status, StatusCode::FailedPrecondition))
      return;
    model[to] = model[from];
    model[to].tokens.resize(tokens);
  }

  void truncate(int32_t slot) {
    int32_t tokens = draw(2) ? length(slot) - draw(4) : draw(length(slot) + 1);
    StatusCode allowed = live(slot) && tokens < 0
                             ? StatusCode::OutOfRange
                             : StatusCode::FailedPrecondition;
    if (check(f.tables->truncate(slot, tokens), allowed))
      model[slot].tokens.resize(tokens);
  }

  void park(int32_t from, int32_t to) {
    if (!check(f.tables->move(from, to), StatusCode::FailedPrecondition))
      return;
    std::swap(model[from], model[to]);
  }

  void misuse(int32_t slot) {
    int32_t table = draw(f.pool->classes());
    int32_t page = draw(f.pool->pageIds(table));
    if (f.pool->references(table, page) == 0) {
      EXPECT_FALSE(f.pool->release(table, page).ok());
    }
    EXPECT_FALSE(f.tables->commit(slot, 1).ok());
    EXPECT_FALSE(f.tables->propose(slot, maxWidth + 1).ok());
  }

  void step() {
    int32_t slot = draw(slots), other = draw(slots);
    switch (draw(16)) {
    case 0:
    case 1:
    case 2:
      return admit(slot);
    case 3:
      return release(slot);
    case 4:
      return share(slot, other);
    case 5:
      return truncate(slot);
    case 6:
      return park(slot, other);
    case 7:
      return misuse(slot);
    case 8:
    case 9:
      if (live(slot))
        append(slot, randomTokens(1 + draw(20)));
      return;
    default:
      return speculate();
    }
  }

  std::mt19937 random{20};
  PoolFixture f{GetParam() ? 26 : 15, slots, GetParam()};
  std::vector<ModelRequest> model{slots};
  std::vector<Tokens> saved;
  std::map<std::string, int32_t> counts;
};

} // namespace

TEST_P(Transactions, Random) {
  Audit audit{f, model};
  for (int32_t i = 0; i < steps; ++i) {
    step();
    audit.pool();
    ASSERT_OK(f.upload());
    for (int32_t slot = i % 4; slot < slots; slot += 4)
      audit.device(slot);
    ASSERT_FALSE(HasFailure()) << "at step " << i;
  }
  // The test means something only if the pool was often full.
  EXPECT_GT(counts["ok"], steps);
  EXPECT_GT(counts["resource exhausted"], steps / 100);
  EXPECT_GT(counts["failed precondition"], steps / 100);
  for (int32_t slot = 0; slot < slots; ++slot)
    if (live(slot))
      ASSERT_OK(f.tables->release(slot));
  EXPECT_EQ(f.pool->freeChunkCount(), f.pool->chunkCount());
  for (auto [what, count] : counts)
    RecordProperty(what, count);
}

INSTANTIATE_TEST_SUITE_P(PagePool, Transactions, testing::Values(false, true),
                         [](const auto &info) {
                           return info.param ? "WithRecurrentState"
                                             : "WithoutRecurrentState";
                         });
