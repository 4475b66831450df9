//===- ThreadPool.h - Parallel loops of the host device ---------*- C++ -*-===//

#ifndef TOKENTILE_RUNTIME_THREADPOOL_H
#define TOKENTILE_RUNTIME_THREADPOOL_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tokentile {

/// A fixed set of threads that run one loop at a time. Callers on several
/// threads take turns.
class ThreadPool {
public:
  /// `threads` counts the calling thread; fewer are used if the system refuses
  /// to start that many.
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();

  /// Calls body(i) for each i in [0, count), in any order and in parallel, and
  /// returns when all are done. `body` must not call forEach of this pool.
  void forEach(int64_t count, const std::function<void(int64_t)> &body);

private:
  void work();
  void drain(const std::function<void(int64_t)> &body, int64_t count);

  std::mutex turn;
  std::mutex mutex;
  std::condition_variable started;
  std::condition_variable finished;
  /// Guarded by `mutex`: the current loop, and the workers still in it.
  const std::function<void(int64_t)> *loopBody = nullptr;
  int64_t loopCount = 0;
  uint64_t generation = 0;
  size_t running = 0;
  bool stopping = false;
  std::atomic<int64_t> next{0};
  std::vector<std::thread> workers;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_THREADPOOL_H
