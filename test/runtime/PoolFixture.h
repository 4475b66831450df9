//===- PoolFixture.h - A small pool with every kind of table ----*- C++ -*-===//
//
// Pages of odd sizes in chunks that they do not divide, and a memory in which
// tests write rows through the device's tables, as kernels would.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_TEST_RUNTIME_POOLFIXTURE_H
#define TOKENTILE_TEST_RUNTIME_POOLFIXTURE_H

#include "TestKernel.h"

#include "runtime/BlockTables.h"

#include <cstring>

namespace tokentile::test {

constexpr int32_t targetTable = 0;
/// A ring that takes accepted rows only, and one that holds block rows.
constexpr int32_t draftTable = 1;
constexpr int32_t blockTable = 2;
constexpr int32_t stateTable = 3;
constexpr int32_t pageTokens[] = {4, 3, 2};
constexpr int32_t window = 8;
constexpr int32_t maxWidth = 5;
constexpr int32_t maxTokens = 4 * 24;

struct PoolFixture {
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  Buffer memory;
  std::unique_ptr<PagePool> pool;
  std::unique_ptr<BlockTables> tables;

  PoolFixture(int64_t chunks, int32_t slots, bool withState = true,
              const char *deviceName = "host") {
    std::vector<PageClass> classes = {
        {"target", 256}, {"draft", 768}, {"block", 512}, {"state", 1280}};
    std::vector<TableSpec> specs = {{TableKind::Linear, 4, 24, 0, 0},
                                    {TableKind::Ring, 3, 3, window, 0},
                                    {TableKind::Ring, 2, 6, window, maxWidth},
                                    {TableKind::State, 0, maxWidth, 0, 0}};
    if (!withState) {
      classes.pop_back();
      specs.pop_back();
    }
    device = *openDevice(deviceName);
    stream = *device->createStream();
    pool = std::make_unique<PagePool>(
        *PagePool::create(chunks * 13 * 256, 13 * 256, classes));
    memory = *device->allocate(pool->bytes());
    tables = std::make_unique<BlockTables>(*BlockTables::create(
        *device, *pool, memory.data(), slots, std::move(specs)));
  }

  /// The memory of entry `index` of a slot, as a kernel addresses it.
  char *page(int32_t table, int32_t slot, int64_t index) const {
    int32_t id =
        tables->deviceTable(table)[slot * tables->stride(table) + index];
    return memory.as<char>() + id * pool->pageClass(table).pageBytes;
  }

  /// The row of a position, as a kernel addresses it.
  int64_t *row(int32_t table, int32_t slot, int64_t position) const {
    int64_t tokens = pageTokens[table];
    int64_t bytes = pool->pageClass(table).pageBytes / tokens / 8 * 8;
    return reinterpret_cast<int64_t *>(
        page(table, slot, position / tokens % tables->stride(table)) +
        position % tokens * bytes);
  }

  /// A snapshot, as a kernel addresses it.
  int64_t *state(int32_t slot, int64_t index) const {
    return reinterpret_cast<int64_t *>(page(stateTable, slot, index));
  }

  Status upload() { return tables->upload(*stream); }

  /// Admits a request and gives it `rows` rows.
  Status fill(int32_t slot, int64_t request, int32_t rows) {
    if (Status status = tables->admit(slot, request); !status.ok())
      return status;
    if (Status status = tables->append(slot, rows); !status.ok())
      return status;
    return tables->commit(slot, rows);
  }
};

} // namespace tokentile::test

#endif // TOKENTILE_TEST_RUNTIME_POOLFIXTURE_H
