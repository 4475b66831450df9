//===- PagePool.h - One pool of pages for every cache -----------*- C++ -*-===//
//
// Pages for target KV, draft KV and recurrent state out of one allocation.
// Each *page class* has its own page size, and no size is rounded to a multiple
// of another's: the pool is cut into equal *chunks*, a class takes whole chunks
// as it needs them, cuts each into its pages, and gives a chunk back when its
// last page is free.
//
// Addressing. Page `id` of a class lies at byte id * pageBytes of the pool. The
// ids of a class thus need no translation: the pool's first byte (plus the
// offset of a layer within a page) is the base pointer of a kernel, and
// pageBytes its 64-bit page stride. To make this hold in a chunk that starts
// between two multiples of pageBytes, the class uses the whole multiples that
// lie within the chunk. The rest is lost: nothing if pageBytes divides
// chunkBytes, else less than two pages a chunk.
//
// Capacity. A class takes a chunk only when every page of its own chunks is in
// use. It so never holds more than ceil(peak / pagesPerChunk) chunks, where
// `peak` is the most pages it ever had in use, in whatever order pages come and
// go: fragmentation cannot break a plan that adds up these bounds.
//
// This is bookkeeping on the host: it neither owns nor touches the memory, and
// allocate, retain and release take constant time. One thread at a time.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_PAGEPOOL_H
#define TOKENTILE_RUNTIME_PAGEPOOL_H

#include "runtime/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tokentile {

/// Pages of one size. pageBytes is a positive multiple of 256.
struct PageClass {
  std::string name;
  int64_t pageBytes = 0;
};

/// How much of the pool a class holds, and how much of that is in use.
struct PageClassUse {
  /// Pages in use; shared ones count once.
  int64_t pages = 0;
  /// References to them.
  int64_t references = 0;
  /// Chunks held.
  int64_t chunks = 0;
  /// Pages of these chunks that are free; no other class can have them.
  int64_t freePages = 0;
  /// 1 - bytes of pages in use / bytes of chunks held; 0 without chunks.
  double fragmentation = 0;
};

class PagePool {
public:
  /// A pool of floor(bytes / chunkBytes) chunks, all free. chunkBytes is a
  /// multiple of 256. InvalidArgument for sizes that are not such multiples or
  /// for a class whose pages do not fit every chunk; OutOfRange if a class
  /// would have more than 2^31 - 1 page ids.
  static StatusOr<PagePool> create(int64_t bytes, int64_t chunkBytes,
                                   std::vector<PageClass> classes);

  /// The chunk size used when none is asked for: a multiple of the largest
  /// page that holds 16 of the second largest, so that the largest pages waste
  /// nothing and the others at most two in sixteen.
  static int64_t chooseChunkBytes(const std::vector<PageClass> &classes);

  /// Pages of a class that every chunk holds, wherever it starts.
  static int64_t pagesPerChunk(int64_t chunkBytes, int64_t pageBytes) {
    return chunkBytes / pageBytes - (chunkBytes % pageBytes != 0);
  }

  /// Takes a free page, with one reference. ResourceExhausted names the class,
  /// its use and that of the pool.
  StatusOr<int32_t> allocate(int32_t pageClass);
  /// Adds a reference to a page in use.
  Status retain(int32_t pageClass, int32_t page);
  /// Drops a reference; the page is free when none is left. FailedPrecondition
  /// if it is free already; InvalidArgument for a class that does not exist or
  /// a page of another class.
  Status release(int32_t pageClass, int32_t page);

  /// References to a page; 0 for one that is not in use by this class.
  int32_t references(int32_t pageClass, int32_t page) const;

  int32_t classes() const { return int32_t(groups.size()); }
  const PageClass &pageClass(int32_t index) const { return groups[index].info; }
  /// REQUIRES: 0 <= pageClass < classes().
  PageClassUse use(int32_t pageClass) const;
  /// Exclusive bound of the page ids of a class: LaunchArgs::poolPages.
  int32_t pageIds(int32_t pageClass) const {
    return int32_t(groups[pageClass].pages.size());
  }

  /// Bytes that the pool's buffer must have.
  int64_t bytes() const { return int64_t(chunks.size()) * chunkBytes; }
  int64_t bytesPerChunk() const { return chunkBytes; }
  int64_t chunkCount() const { return int64_t(chunks.size()); }
  int64_t freeChunkCount() const { return int64_t(freeChunks.size()); }

private:
  struct Page {
    int32_t references = 0;
    /// The next free page of the chunk, or none.
    int32_t next = none;
  };
  struct Group {
    PageClass info;
    /// By page id.
    std::vector<Page> pages;
    /// Head of the list of chunks with a free page, or none.
    int32_t partial = none;
    int64_t used = 0;
    int64_t references = 0;
    int64_t chunks = 0;
    int64_t capacity = 0;
  };
  struct Chunk {
    /// The class that holds it, or none.
    int32_t owner = none;
    int32_t used = 0;
    /// The first page never handed out, and the end of the chunk's pages.
    int32_t fresh = 0;
    int32_t end = 0;
    int32_t freeHead = none;
    /// Neighbours in the owner's list of partial chunks.
    int32_t previous = none;
    int32_t next = none;
    bool full() const { return freeHead == none && fresh == end; }
  };
  static constexpr int32_t none = -1;

  PagePool(int64_t chunkBytes, int64_t chunkCount,
           std::vector<PageClass> classes);
  int64_t chunkOf(const Group &group, int32_t page) const {
    return int64_t(page) * group.info.pageBytes / chunkBytes;
  }
  int32_t firstPage(const Group &group, int64_t chunk) const;
  int32_t endPage(const Group &group, int64_t chunk) const;
  Status checkClass(int32_t pageClass) const;
  Status checkUsed(int32_t pageClass, int32_t page) const;
  void link(Group &group, int32_t chunk);
  void unlink(Group &group, int32_t chunk);
  void takeChunk(int32_t pageClass);

  int64_t chunkBytes;
  std::vector<Group> groups;
  std::vector<Chunk> chunks;
  /// A stack; the lowest chunk is taken first at the start.
  std::vector<int32_t> freeChunks;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_PAGEPOOL_H
