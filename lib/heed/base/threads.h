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

/// A range of indices begin .. end-1, such as the part of an array, or of a list of work, that one thread or rank has.
struct Slice {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
/// Returns part number `index` (from 0) of the index range 0 .. size, which is divided into `parts` parts that do not
/// overlap and cover the range. The boundaries are multiples of 16 elements, so that parts of an array of floats start
/// on a cache line. The result depends on the arguments alone.
Slice slice_of(std::int64_t size, int parts, int index);

/// A reference to a function that takes one int. The function is not copied and must outlive the FunctionRef; unlike
/// std::function, a FunctionRef allocates no memory on the heap.
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

/// Threads that call the same function at the same time, each with its own thread index. Idle threads sleep and use no
/// processor time. run() allocates no memory on the heap. A function that the pool runs must not call run() itself.
class ThreadPool {
 public:
  /// Makes a pool of `threads` threads (at least 1). The constructor starts threads - 1 threads; the thread that calls
  /// run() is thread 0.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(errors_.size()); }

  /// Calls function(thread) once on each thread, with thread = 0 .. size()-1, and waits until all calls have ended. If
  /// calls throw, the exception of the thread with the lowest index is thrown again.
  template <class Function>
  void run(Function&& function) {
    run_on_all(FunctionRef(function));
  }

 private:
  /// Ends and joins the threads that have been started.
  void end_threads();
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

/// Starts threads - 1 threads, which call work(1) ... work(threads - 1), and puts them into `started`. Where the system
/// refuses one of them, calls end(), which must join those that have been started, and throws Error.
void start_threads(std::vector<std::thread>& started, int threads, const std::function<void(int thread)>& work,
                   const std::function<void()>& end);

/// The type of a function that runs a given function once on each of several threads, all at the same time, with the
/// thread's index as its argument, and waits until all calls have ended.
using RunOnThreads = std::function<void(const std::function<void(int thread)>&)>;

/// Returns the number of processors that this process may use; at least 1.
int available_threads();
/// Returns the number of threads to use for the value of a tool's option --threads: the value itself, or for 0 the
/// number of available processors.
int thread_count(int threads);

}  // namespace heed
