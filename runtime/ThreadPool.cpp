//===- ThreadPool.cpp - Parallel loops of the host device -----------------===//

#include "runtime/ThreadPool.h"

#include <system_error>

using namespace tokentile;

ThreadPool::ThreadPool(unsigned threads) {
  for (unsigned i = 1; i < threads; ++i) {
    try {
      workers.emplace_back([this] { work(); });
    } catch (const std::system_error &) {
      break;
    }
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  started.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::drain(const std::function<void(int64_t)> &body,
                       int64_t count) {
  for (int64_t i = next++; i < count; i = next++)
    body(i);
}

void ThreadPool::work() {
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    started.wait(lock, [&] { return stopping || generation != seen; });
    if (stopping)
      return;
    seen = generation;
    const std::function<void(int64_t)> &body = *loopBody;
    int64_t count = loopCount;
    lock.unlock();
    drain(body, count);
    lock.lock();
    if (--running == 0)
      finished.notify_one();
  }
}

void ThreadPool::forEach(int64_t count,
                         const std::function<void(int64_t)> &body) {
  // Not worth waking anybody.
  if (count == 1)
    return body(0);
  std::lock_guard<std::mutex> myTurn(turn);
  {
    std::lock_guard<std::mutex> lock(mutex);
    loopBody = &body;
    loopCount = count;
    next = 0;
    running = workers.size();
    ++generation;
  }
  started.notify_all();
  drain(body, count);
  std::unique_lock<std::mutex> lock(mutex);
  finished.wait(lock, [&] { return running == 0; });
}
