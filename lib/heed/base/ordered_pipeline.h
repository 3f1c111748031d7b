#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "heed/base/threads.h"

namespace heed {

/// The number of bytes that one item of an OrderedPipeline should hold, approximately. An item of this size stays in
/// the cache of one CPU core from the moment when the item is read to the moment when its results are written.
constexpr std::size_t kPipelineItemBytes = std::size_t{1} << 15;

/// The functions that an OrderedPipeline calls for its items. Thread 0 is the thread that calls OrderedPipeline::run().
/// Only thread 0 calls these functions, except work(), which all threads call. The type Item needs `std::size_t bytes()
/// const`, the number of bytes that the item holds, and `void free()`, which returns the memory of these bytes.
template <class Item>
struct PipelineStages {
  /// Fills an item with new input; the item may still hold the input of an earlier call, which read() replaces. Returns
  /// false at the end of the input. If read() throws, the input ends, and the item, perhaps partly filled, is the last
  /// one.
  std::function<bool(Item&)> read;
  /// Returns whether read() would return at once, without waiting for more input. ready() may throw, as read() may.
  std::function<bool()> ready;
  /// Does the work on one item. Any thread may call this function; `thread` is the calling thread's index. If work()
  /// throws, the item is still given to take().
  std::function<void(Item&, int thread)> work;
  /// Takes a finished item, for instance to write the results. Items are taken in the order in which they were read,
  /// while other threads work on later items.
  std::function<void(Item&)> take;
  /// Gets all finished items that are in memory at once, before take() is called for each of them; for work that needs
  /// many items together. While take_round() runs, no thread calls work(), and take_round() can call `run` to use all
  /// threads. May be empty; then items are taken one at a time.
  std::function<void(const std::vector<Item*>& items, const RunOnThreads& run)> take_round = {};
  /// Called when thread 0 has taken all items and must wait for more input, and before run() throws: the moment to
  /// flush the output.
  std::function<void()> idle = [] {};
};

/// Reads items, lets several threads work on the items, and takes the finished items in the order of reading. The
/// number of items in memory and the number of their bytes are limited. Example with three threads and the items A, B,
/// C, D:
///
///     thread 0:  read A B C D | work A | take A | work D | take B C D
///     thread 1:                 work B
///     thread 2:                 work C
///
/// Thread 0 reads and takes; when thread 0 can neither read nor take, it works on an item like the other threads. An
/// exception of work() is thrown to the caller of run() after the item has been taken; an exception of read() or
/// ready() is thrown after all items read before have been taken.
template <class Item>
class OrderedPipeline {
 public:
  static constexpr std::size_t kItemsPerThread = 8;
  /// A limit, in bytes for each thread: no further item is read while the items in memory hold more than this limit
  /// times the number of threads.
  static constexpr std::size_t kBytesPerThread = std::size_t{1} << 20;

  OrderedPipeline(int threads, PipelineStages<Item> job)
      : job_(std::move(job)),
        threads_(threads),
        slots_(threads == 1 ? 1 : kItemsPerThread * static_cast<std::size_t>(threads)) {}

  /// Reads, works on and takes all items, and returns after the end of the input.
  void run() {
    while (!ended_ || taken_ < read_) {
      leaving_ = false;
      if (pool_)
        pool_->run([this](int thread) { thread == 0 ? lead() : follow(thread); });
      else
        lead();
      if (job_.take_round && finished_ == read_) take_round();
      if (wants_threads()) pool_.emplace(threads_);
    }
    if (input_error_) fail(input_error_);
  }

 private:
  // A size in bytes. Items that held more bytes when they were read are rare; after take(), the pipeline calls free()
  // for such an item, so that the memory does not stay allocated.
  static constexpr std::size_t kLargeItem = 8 * kPipelineItemBytes;

  struct alignas(64) Slot {
    Item item;
    // The number of bytes that the item held just after it was read.
    std::size_t bytes = 0;
    // The exception that work() threw for this item; empty when work() threw none.
    std::exception_ptr error;
    bool finished = false;
  };

  Slot& slot(std::size_t number) { return slots_[number % slots_.size()]; }
  bool wants_threads() const { return threads_ > 1 && !pool_ && read_ - started_ > 1; }

  /// Runs thread 0's loop: reads items, works on items and takes finished items. Returns when all items have been
  /// taken; with take_round(), when all items in memory are finished; or when the other threads must be started because
  /// more than one item waits for work.
  void lead() {
    struct Leaving {
      OrderedPipeline& pipeline;
      ~Leaving() {
        const std::lock_guard lock(pipeline.mutex_);
        pipeline.leaving_ = true;
        pipeline.to_work_.notify_all();
      }
    } leaving{*this};
    while (!wants_threads()) {
      if (finish_next()) {
        if (!job_.take_round) take();
      } else if (can_read()) {
        read();
      } else if (finished_ == read_) {
        return;
      } else if (!work(0)) {
        std::unique_lock lock(mutex_);
        to_finish_.wait(lock, [&] { return slot(finished_).finished; });
      }
    }
  }

  /// Runs the loop of the threads 1, 2, ...: works on items until thread 0 leaves lead().
  void follow(int thread) {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        to_work_.wait(lock, [&] { return leaving_ || started_ < read_; });
        if (leaving_) return;
      }
      work(thread);
    }
  }

  /// Looks at the oldest item that is not yet counted in finished_. If a thread has finished the work on this item,
  /// counts the item and returns true; otherwise returns false.
  bool finish_next() {
    const std::lock_guard lock(mutex_);
    if (finished_ == started_ || !slot(finished_).finished) return false;
    ++finished_;
    return true;
  }

  /// Returns whether thread 0 may read an item now: memory for the item is left, and read() would not wait. When all
  /// items have been taken, read() may wait for input, since thread 0 has nothing else to do.
  bool can_read() {
    const bool room = read_ - taken_ < slots_.size() && bytes_ <= kBytesPerThread * static_cast<std::size_t>(threads_);
    return !ended_ && room && (taken_ == read_ || of_input([&] { return job_.ready(); }));
  }

  void read() {
    if (taken_ == read_ && !of_input([&] { return job_.ready(); })) job_.idle();
    Slot& next = slot(read_);
    next.error = nullptr;
    next.finished = false;
    if (ended_ || !of_input([&] { return job_.read(next.item); })) {
      ended_ = true;
      return;
    }
    bytes_ += next.bytes = next.item.bytes();
    const std::lock_guard lock(mutex_);
    ++read_;
    // Thread 0 itself works on one waiting item, so another thread is woken only if a second item waits.
    if (read_ - started_ > 1) to_work_.notify_one();
  }

  /// Calls `function`, which reads or tests the input, and returns its result. If `function` throws, stores the
  /// exception in input_error_, sets ended_ and returns true.
  template <class Function>
  bool of_input(Function function) {
    try {
      return function();
    } catch (...) {
      input_error_ = std::current_exception();
      ended_ = true;
      return true;
    }
  }

  /// Works on the oldest item that no thread has begun to work on. Returns false when all items that were read have
  /// been begun.
  bool work(int thread) {
    std::unique_lock lock(mutex_);
    if (started_ == read_) return false;
    const std::size_t number = started_++;
    lock.unlock();
    Slot& here = slot(number);
    try {
      job_.work(here.item, thread);
    } catch (...) {
      here.error = std::current_exception();
    }
    lock.lock();
    here.finished = true;
    if (number == finished_) to_finish_.notify_one();
    return true;
  }

  void take() {
    Slot& next = slot(taken_++);
    job_.take(next.item);
    bytes_ -= next.bytes;
    if (next.bytes > kLargeItem) next.item.free();
    if (next.error) fail(next.error);
  }

  [[noreturn]] void fail(const std::exception_ptr& error) {
    job_.idle();
    std::rethrow_exception(error);
  }

  void take_round() {
    std::vector<Item*> items;
    for (std::size_t i = taken_; i < read_; ++i) {
      items.push_back(&slot(i).item);
      if (slot(i).error) break;
    }
    job_.take_round(items, [&](const std::function<void(int)>& function) {
      if (pool_)
        pool_->run(function);
      else
        for (int thread = 0; thread < threads_; ++thread) function(thread);
    });
    while (taken_ < read_) take();
  }

  const PipelineStages<Item> job_;
  const int threads_;
  // The threads 1, 2, ...; they are started when more than one item waits for work.
  std::optional<ThreadPool> pool_;
  std::vector<Slot> slots_;
  // How many items have been read; begun by a thread; finished without a gap in the order of reading; and taken. Each
  // count is at most the count before. Only thread 0 changes these counts, except started_, which all threads change.
  std::size_t read_ = 0, started_ = 0, finished_ = 0, taken_ = 0;
  // The number of bytes in memory: the sum of Slot::bytes over all items that have been read and not yet taken.
  std::size_t bytes_ = 0;
  std::exception_ptr input_error_;
  bool ended_ = false, leaving_ = false;
  // Must be locked to read or change started_, leaving_ and Slot::finished. Thread 0 also locks it to change read_ and
  // finished_, which the other threads read.
  std::mutex mutex_;
  std::condition_variable to_work_, to_finish_;
};

}  // namespace heed
