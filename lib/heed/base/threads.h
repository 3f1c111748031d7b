#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace heed {

/// The part of 0 .. size that is the index-th of `parts`; the boundaries are multiples of 16, so that slices of a flat
/// parameter array start on a cache line. Depends on nothing else, and the slices cover everything once.
struct Slice {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
Slice slice_of(std::int64_t size, int parts, int index);

/// A function of a number, borrowed: it must outlive this. Takes no memory from the heap.
class FunctionRef {
 public:
  FunctionRef() = default;
  template <class Function>
  explicit FunctionRef(Function& function)
      : call_([](const void* self, int number) { (*static_cast<Function*>(const_cast<void*>(self)))(number); }),
        self_(&function) {}

  void operator()(int number) const { call_(self_, number); }

 private:
  void (*call_)(const void* self, int number) = nullptr;
  const void* self_ = nullptr;
};

/// Threads that wait (without burning the processor) to run the same function side by side. run() takes no memory from
/// the heap. Not to be used from within the function it runs.
class ThreadPool {
 public:
  /// `threads` at least 1; the caller of run() is thread 0.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(errors_.size()); }

  /// Calls function(thread) once on each thread, thread = 0 .. size()-1, and waits for all. Where calls throw, the
  /// exception of the lowest thread is thrown again after all have ended.
  template <class Function>
  void run(Function&& function) {
    run_on_all(FunctionRef(function));
  }

 private:
  void run_on_all(const FunctionRef& job);
  void call(const FunctionRef& job, int thread);
  void work(int thread);

  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  FunctionRef job_;
  std::uint64_t round_ = 0;
  int running_ = 0;
  bool ending_ = false;
};

/// Calls a function once on each thread, with its number, side by side, and waits.
using RunOnThreads = std::function<void(const std::function<void(int thread)>&)>;

/// Processors that this process may use; at least 1.
int available_threads();
/// How many threads a tool's --threads asks for: 0 is all that are available.
int thread_count(int threads);

}  // namespace heed
