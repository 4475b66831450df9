//===- PagePoolTest.cpp - Chunks, pages and references --------------------===//

#include "TestKernel.h"

#include "runtime/PagePool.h"

#include <random>
#include <set>

using namespace tokentile;
using namespace tokentile::test;

namespace {

/// Chunks of 13 units of 256 bytes; pages of 1, 3 and 5 units.
PagePool makePool(int64_t chunks = 4) {
  StatusOr<PagePool> pool =
      PagePool::create(chunks * 13 * 256, 13 * 256,
                       {{"target", 256}, {"draft", 768}, {"state", 1280}});
  EXPECT_TRUE(pool.ok()) << pool.status().toString();
  return *std::move(pool);
}

int32_t take(PagePool &pool, int32_t pageClass) {
  StatusOr<int32_t> page = pool.allocate(pageClass);
  EXPECT_TRUE(page.ok()) << page.status().toString();
  return page.ok() ? *page : -1;
}

} // namespace

TEST(PagePool, PagesOfAllClassesAreDisjointAndWithinOneChunk) {
  PagePool pool = makePool(64);
  std::set<int64_t> units;
  std::vector<int64_t> chunkOwner(pool.chunkCount(), -1);
  int64_t pages[3] = {};
  for (bool any = true; any;) {
    any = false;
    for (int32_t c = 0; c < 3; ++c) {
      StatusOr<int32_t> page = pool.allocate(c);
      if (!page.ok())
        continue;
      any = true;
      ++pages[c];
      int64_t size = pool.pageClass(c).pageBytes;
      int64_t first = *page * size, last = first + size - 1;
      ASSERT_LT(last, pool.bytes());
      ASSERT_LT(*page, pool.pageIds(c));
      int64_t chunk = first / pool.bytesPerChunk();
      ASSERT_EQ(chunk, last / pool.bytesPerChunk());
      ASSERT_TRUE(chunkOwner[chunk] == -1 || chunkOwner[chunk] == c);
      chunkOwner[chunk] = c;
      for (int64_t unit = first / 256; unit <= last / 256; ++unit)
        ASSERT_TRUE(units.insert(unit).second);
    }
  }
  for (int32_t c = 0; c < 3; ++c) {
    EXPECT_EQ(pool.use(c).pages, pages[c]);
    EXPECT_EQ(pool.use(c).freePages, 0);
    int64_t size = pool.pageClass(c).pageBytes;
    EXPECT_GE(pages[c],
              pool.use(c).chunks * PagePool::pagesPerChunk(13 * 256, size));
    // Less than two pages of a chunk are lost, none if the size divides it.
    int64_t lost = pool.use(c).chunks * 13 * 256 - pages[c] * size;
    EXPECT_LT(lost, pool.use(c).chunks * 2 * size);
    if (c == 0) {
      EXPECT_EQ(lost, 0);
    }
  }
  EXPECT_EQ(pool.freeChunkCount(), 0);
}

TEST(PagePool, AFreeChunkServesAnotherClass) {
  PagePool pool = makePool(1);
  int32_t page = take(pool, 0);
  expectError(pool.allocate(2).status(), StatusCode::ResourceExhausted,
              "out of pages: class 'state' uses all 0 of its pages in 0 of 1 "
              "chunks, and no chunk is free; release a request or preempt one");
  ASSERT_OK(pool.release(0, page));
  take(pool, 2);
}

TEST(PagePool, AClassFillsItsChunksBeforeItTakesAnother) {
  PagePool pool = makePool(4);
  std::vector<int32_t> pages;
  for (int i = 0; i < 3 * 13; ++i)
    pages.push_back(take(pool, 0));
  EXPECT_EQ(pool.freeChunkCount(), 1);
  for (int i = 0; i < 39; i += 2)
    ASSERT_OK(pool.release(0, pages[i]));
  for (int i = 0; i < 39; i += 2)
    take(pool, 0);
  EXPECT_EQ(pool.freeChunkCount(), 1);
}

// Whatever the order, a class holds no more chunks than its peak fills, so a
// sum of such bounds that fits the pool never fails.
TEST(PagePool, FragmentationDoesNotBreakAPlan) {
  PagePool pool = makePool(5 + 4 + 6);
  const size_t peaks[] = {5 * 13, 4 * 3, 6 * 1};
  std::vector<int32_t> held[3];
  std::mt19937 random(1);
  for (int step = 0; step < 100'000; ++step) {
    int32_t c = int32_t(random() % 3);
    std::vector<int32_t> &pages = held[c];
    // Phases of growth and of decline.
    bool grow = (step / 500 + c) % 2 ? random() % 4 : !(random() % 4);
    if (grow && pages.size() < peaks[c]) {
      pages.push_back(take(pool, c));
      ASSERT_GE(pages.back(), 0);
    } else if (!pages.empty()) {
      std::swap(pages[random() % pages.size()], pages.back());
      ASSERT_OK(pool.release(c, pages.back()));
      pages.pop_back();
    }
  }
}

TEST(PagePool, APageIsFreeWhenItsLastReferenceGoes) {
  PagePool pool = makePool();
  int32_t page = take(pool, 1);
  ASSERT_OK(pool.retain(1, page));
  EXPECT_EQ(pool.references(1, page), 2);
  EXPECT_EQ(pool.use(1).references, 2);
  EXPECT_EQ(pool.use(1).pages, 1);
  ASSERT_OK(pool.release(1, page));
  EXPECT_EQ(pool.use(1).pages, 1);
  ASSERT_OK(pool.release(1, page));
  EXPECT_EQ(pool.use(1).pages, 0);
  EXPECT_EQ(pool.references(1, page), 0);
  EXPECT_EQ(pool.freeChunkCount(), pool.chunkCount());
}

TEST(PagePool, UseReportsFragmentation) {
  PagePool pool = makePool();
  EXPECT_EQ(pool.use(1).fragmentation, 0);
  take(pool, 1);
  EXPECT_EQ(pool.use(1).chunks, 1);
  EXPECT_EQ(pool.use(1).freePages, 3);
  EXPECT_DOUBLE_EQ(pool.use(1).fragmentation, 1 - 3.0 / 13);
}

TEST(PagePool, DoubleFree) {
  PagePool pool = makePool();
  int32_t page = take(pool, 0);
  ASSERT_OK(pool.release(0, page));
  expectError(pool.release(0, page), StatusCode::FailedPrecondition,
              "page 0 of class 'target' is free already");
  expectError(pool.retain(0, page), StatusCode::FailedPrecondition,
              "page 0 of class 'target' is free already");
}

TEST(PagePool, WrongClass) {
  PagePool pool = makePool();
  for (int32_t c : {-1, 3})
    expectError(pool.allocate(c).status(), StatusCode::InvalidArgument,
                "page class " + std::to_string(c) +
                    " does not exist; the pool has classes 0 .. 2");
  int32_t page = take(pool, 0);
  expectError(pool.release(1, page), StatusCode::InvalidArgument,
              "page 0 of class 'draft' is foreign: its memory belongs to class "
              "'target'");
  EXPECT_EQ(pool.references(0, page), 1);
}

TEST(PagePool, ForeignPage) {
  PagePool pool = makePool();
  expectError(pool.release(0, 52), StatusCode::InvalidArgument,
              "page 52 of class 'target' is foreign: the pool has 0 .. 51");
  expectError(pool.release(0, -1), StatusCode::InvalidArgument,
              "page -1 of class 'target' is foreign");
  // Units 12 .. 14 lie in the first chunk and in the second.
  expectError(pool.release(1, 4), StatusCode::InvalidArgument,
              "page 4 of class 'draft' is foreign: it lies across two chunks");
  EXPECT_EQ(pool.references(0, 52), 0);
  EXPECT_EQ(pool.references(7, 0), 0);
}

TEST(PagePool, SizesThatCannotWork) {
  auto create = [](int64_t bytes, int64_t chunk, int64_t page) {
    return PagePool::create(bytes, chunk, {{"kv", page}}).status();
  };
  expectError(create(4096, 100, 256), StatusCode::InvalidArgument,
              "chunkBytes is 100, not a positive multiple of 256");
  expectError(create(4096, 1024, 0), StatusCode::InvalidArgument,
              "pageBytes of class 'kv' is 0, not a positive multiple");
  expectError(create(512, 1024, 256), StatusCode::InvalidArgument,
              "page pool of 512 bytes has no number of chunks");
  expectError(create(4096, 1024, 768), StatusCode::InvalidArgument,
              "class 'kv' has pages of 768 bytes, which do not fit every chunk "
              "of 1024; use a multiple or at least twice as much");
  expectError(create(int64_t(1) << 40, 1 << 20, 256), StatusCode::OutOfRange,
              "class 'kv' would have more than 2^31 - 1 pages");
  expectError(PagePool::create(4096, 1024, {}).status(),
              StatusCode::InvalidArgument, "page pool has no page class");
}

TEST(PagePool, ChosenChunks) {
  int64_t mib = 1 << 20;
  EXPECT_EQ(PagePool::chooseChunkBytes({{"kv", 4 * mib}}), 64 * mib);
  EXPECT_EQ(PagePool::chooseChunkBytes({{"a", 4 * mib}, {"b", 4 * mib}}),
            64 * mib);
  EXPECT_EQ(PagePool::chooseChunkBytes(
                {{"kv", 4 * mib}, {"draft", mib}, {"state", 144 * mib}}),
            144 * mib);
  EXPECT_EQ(PagePool::chooseChunkBytes({{"kv", 10 * mib}, {"s", 144 * mib}}),
            288 * mib);
}
