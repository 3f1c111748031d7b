#include "heed/base/threads.h"

#include <sched.h>

#include <algorithm>
#include <system_error>

#include "heed/base/error.h"
#include "heed/base/handler_stack.h"

namespace heed {

Slice slice_of(std::int64_t size, int parts, int index) {
  constexpr std::int64_t kAlign = 16;
  const std::int64_t blocks = (size + kAlign - 1) / kAlign;
  const auto boundary = [&](std::int64_t i) { return std::min(size, blocks * i / parts * kAlign); };
  return {boundary(index), boundary(index + 1)};
}

void start_threads(std::vector<std::thread>& started, int threads, const std::function<void(int thread)>& work,
                   const std::function<void()>& end) {
  try {
    for (int i = 1; i < threads; ++i) started.emplace_back(work, i);
  } catch (const std::system_error& error) {
    end();
    throw Error("cannot start " + std::to_string(threads) + " threads: " + error.code().message() +
                " (lower --threads, or raise the limit that ulimit -u shows)");
  }
}

ThreadPool::ThreadPool(int threads) {
  if (threads < 1) throw Error("internal: a thread pool needs at least one thread");
  errors_.resize(static_cast<std::size_t>(threads));
  start_threads(
      threads_, threads, [this](int thread) { work(thread); }, [this] { end_threads(); });
}

ThreadPool::~ThreadPool() {
  end_threads();
}

void ThreadPool::end_threads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::call(const FunctionRef& job, int thread) {
  try {
    job(thread);
  } catch (...) {
    errors_[static_cast<std::size_t>(thread)] = std::current_exception();
  }
}

void ThreadPool::run_on_all(const FunctionRef& job) {
  {
    const std::lock_guard lock(mutex_);
    job_ = job;
    running_ = static_cast<int>(threads_.size());
    ++round_;
  }
  start_.notify_all();
  call(job, 0);
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
  }
  std::exception_ptr first;
  for (std::exception_ptr& error : errors_) {
    if (error && !first) first = error;
    error = nullptr;
  }
  if (first) std::rethrow_exception(first);
}

void ThreadPool::work(int thread) {
  use_handler_stack();
  std::uint64_t seen = 0;
  for (;;) {
    FunctionRef job;
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return ending_ || round_ != seen; });
      if (ending_) return;
      seen = round_;
      job = job_;
    }
    call(job, thread);
    {
      const std::lock_guard lock(mutex_);
      if (--running_ == 0) done_.notify_one();
    }
  }
}

int available_threads() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int thread_count(int threads) {
  return threads > 0 ? threads : available_threads();
}

}  // namespace heed
