//===- PagePool.cpp - One pool of pages for every cache -------------------===//

#include "runtime/PagePool.h"

#include <algorithm>
#include <limits>

using namespace tokentile;

namespace {

constexpr int64_t alignment = 256;

Status invalid(std::string message) {
  return Status(StatusCode::InvalidArgument, std::move(message));
}

Status checkSize(const std::string &what, int64_t bytes) {
  if (bytes > 0 && bytes % alignment == 0)
    return Status();
  return invalid(what + " is " + std::to_string(bytes) +
                 ", not a positive multiple of 256");
}

std::string nameOf(const PageClass &info, int32_t page) {
  return "page " + std::to_string(page) + " of class '" + info.name + "'";
}

} // namespace

StatusOr<PagePool> PagePool::create(int64_t bytes, int64_t chunkBytes,
                                    std::vector<PageClass> classes) {
  if (Status status = checkSize("chunkBytes", chunkBytes); !status.ok())
    return status;
  if (classes.empty())
    return invalid("page pool has no page class; give it at least one");
  int64_t chunkCount = bytes / chunkBytes;
  if (chunkCount < 1 || chunkCount > std::numeric_limits<int32_t>::max())
    return invalid("page pool of " + std::to_string(bytes) +
                   " bytes has no number of chunks within 1 .. 2^31 - 1 at " +
                   std::to_string(chunkBytes) + " bytes each");
  for (const PageClass &info : classes) {
    if (Status status =
            checkSize("pageBytes of class '" + info.name + "'", info.pageBytes);
        !status.ok())
      return status;
    if (pagesPerChunk(chunkBytes, info.pageBytes) < 1)
      return invalid("class '" + info.name + "' has pages of " +
                     std::to_string(info.pageBytes) +
                     " bytes, which do not fit every chunk of " +
                     std::to_string(chunkBytes) +
                     "; use a multiple or at least twice as much");
    if (chunkCount * chunkBytes / info.pageBytes >
        std::numeric_limits<int32_t>::max())
      return Status(StatusCode::OutOfRange,
                    "class '" + info.name + "' would have more than 2^31 - 1 " +
                        "pages; use larger ones");
  }
  return PagePool(chunkBytes, chunkCount, std::move(classes));
}

PagePool::PagePool(int64_t chunkBytes, int64_t chunkCount,
                   std::vector<PageClass> classes)
    : chunkBytes(chunkBytes), chunks(chunkCount), freeChunks(chunkCount) {
  for (PageClass &info : classes) {
    Group &group = groups.emplace_back();
    group.pages.resize(chunkCount * chunkBytes / info.pageBytes);
    group.info = std::move(info);
  }
  for (int64_t i = 0; i < chunkCount; ++i)
    freeChunks[i] = int32_t(chunkCount - 1 - i);
}

int64_t PagePool::chooseChunkBytes(const std::vector<PageClass> &classes) {
  constexpr int64_t pages = 16;
  int64_t largest = 0, second = 0;
  for (const PageClass &info : classes) {
    second = std::max(second, std::min(largest, info.pageBytes));
    largest = std::max(largest, info.pageBytes);
  }
  if (classes.size() < 2)
    return pages * largest;
  return (pages * second + largest - 1) / largest * largest;
}

int32_t PagePool::firstPage(const Group &group, int64_t chunk) const {
  int64_t size = group.info.pageBytes;
  return int32_t((chunk * chunkBytes + size - 1) / size);
}

int32_t PagePool::endPage(const Group &group, int64_t chunk) const {
  return int32_t((chunk + 1) * chunkBytes / group.info.pageBytes);
}

Status PagePool::checkClass(int32_t pageClass) const {
  if (pageClass >= 0 && pageClass < classes())
    return Status();
  return invalid("page class " + std::to_string(pageClass) +
                 " does not exist; the pool has classes 0 .. " +
                 std::to_string(classes() - 1));
}

Status PagePool::checkUsed(int32_t pageClass, int32_t page) const {
  if (Status status = checkClass(pageClass); !status.ok())
    return status;
  const Group &group = groups[pageClass];
  if (page < 0 || page >= pageIds(pageClass))
    return invalid(nameOf(group.info, page) +
                   " is foreign: the pool has 0 .. " +
                   std::to_string(pageIds(pageClass) - 1));
  if (group.pages[page].references > 0)
    return Status();
  int64_t index = chunkOf(group, page);
  const Chunk &chunk = chunks[index];
  if (chunk.owner != none && chunk.owner != pageClass)
    return invalid(nameOf(group.info, page) +
                   " is foreign: its memory belongs to class '" +
                   groups[chunk.owner].info.name + "'");
  if (page < firstPage(group, index) || page >= endPage(group, index))
    return invalid(nameOf(group.info, page) +
                   " is foreign: it lies across two chunks");
  return Status(StatusCode::FailedPrecondition,
                nameOf(group.info, page) + " is free already");
}

void PagePool::link(Group &group, int32_t index) {
  chunks[index].previous = none;
  chunks[index].next = group.partial;
  if (group.partial != none)
    chunks[group.partial].previous = index;
  group.partial = index;
}

void PagePool::unlink(Group &group, int32_t index) {
  Chunk &chunk = chunks[index];
  if (chunk.previous != none)
    chunks[chunk.previous].next = chunk.next;
  else
    group.partial = chunk.next;
  if (chunk.next != none)
    chunks[chunk.next].previous = chunk.previous;
}

void PagePool::takeChunk(int32_t pageClass) {
  Group &group = groups[pageClass];
  int32_t index = freeChunks.back();
  freeChunks.pop_back();
  Chunk &chunk = chunks[index];
  chunk.owner = pageClass;
  chunk.fresh = firstPage(group, index);
  chunk.end = endPage(group, index);
  chunk.freeHead = none;
  group.chunks += 1;
  group.capacity += chunk.end - chunk.fresh;
  link(group, index);
}

StatusOr<int32_t> PagePool::allocate(int32_t pageClass) {
  if (Status status = checkClass(pageClass); !status.ok())
    return status;
  Group &group = groups[pageClass];
  if (group.partial == none) {
    if (freeChunks.empty())
      return Status(StatusCode::ResourceExhausted,
                    "out of pages: class '" + group.info.name + "' uses all " +
                        std::to_string(group.capacity) + " of its pages in " +
                        std::to_string(group.chunks) + " of " +
                        std::to_string(chunks.size()) +
                        " chunks, and no chunk is free; release a request or "
                        "preempt one");
    takeChunk(pageClass);
  }
  int32_t index = group.partial;
  Chunk &chunk = chunks[index];
  int32_t page = chunk.freeHead;
  if (page == none)
    page = chunk.fresh++;
  else
    chunk.freeHead = group.pages[page].next;
  group.pages[page].references = 1;
  chunk.used += 1;
  group.used += 1;
  group.references += 1;
  if (chunk.full())
    unlink(group, index);
  return page;
}

Status PagePool::retain(int32_t pageClass, int32_t page) {
  if (Status status = checkUsed(pageClass, page); !status.ok())
    return status;
  groups[pageClass].pages[page].references += 1;
  groups[pageClass].references += 1;
  return Status();
}

Status PagePool::release(int32_t pageClass, int32_t page) {
  if (Status status = checkUsed(pageClass, page); !status.ok())
    return status;
  Group &group = groups[pageClass];
  group.references -= 1;
  if (--group.pages[page].references > 0)
    return Status();
  int32_t index = int32_t(chunkOf(group, page));
  Chunk &chunk = chunks[index];
  if (chunk.full())
    link(group, index);
  group.pages[page].next = chunk.freeHead;
  chunk.freeHead = page;
  chunk.used -= 1;
  group.used -= 1;
  if (chunk.used > 0)
    return Status();
  unlink(group, index);
  group.chunks -= 1;
  group.capacity -= chunk.end - firstPage(group, index);
  chunk.owner = none;
  freeChunks.push_back(index);
  return Status();
}

int32_t PagePool::references(int32_t pageClass, int32_t page) const {
  if (pageClass < 0 || pageClass >= classes() || page < 0 ||
      page >= pageIds(pageClass))
    return 0;
  return groups[pageClass].pages[page].references;
}

PageClassUse PagePool::use(int32_t pageClass) const {
  const Group &group = groups[pageClass];
  PageClassUse use;
  use.pages = group.used;
  use.references = group.references;
  use.chunks = group.chunks;
  use.freePages = group.capacity - group.used;
  if (group.chunks > 0)
    use.fragmentation = 1 - double(group.used) * double(group.info.pageBytes) /
                                (double(group.chunks) * double(chunkBytes));
  return use;
}
