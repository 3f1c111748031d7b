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

/// About how many bytes one item should hold. An item of this size stays in a CPU core's own cache from the
/// moment when thread 0 reads the item to the moment when thread 0 takes it.
constexpr std::size_t kPipelineItemBytes = std::size_t{1} << 15;

/// The functions that an OrderedPipeline calls for its items. Thread 0 is the caller's thread; thread 0 alone calls all
/// of these functions but work(). The type Item needs `std::size_t bytes() const`, the number of bytes that the item
/// holds, and `void free()`, which returns the memory of these bytes.
template <class Item>
struct PipelineStages {
  /// Fills an item with new input, whatever the item held before. Returns false at the end of the input. If read()
  /// throws, the input ends, and the item, perhaps partly filled, is the last one.
  std::function<bool(Item&)> read;
  /// Returns whether read() would return at once, without waiting for the writer of the input. ready() may throw, like
  /// read().
  std::function<bool()> ready;
  /// Does the work on one item; any thread calls this function. If work() throws, the item is still given to take().
  std::function<void(Item&, int thread)> work;
  /// Takes a finished item, for instance to write the results. Items are taken in the order in which they were read,
  /// while other threads work on later items.
  std::function<void(Item&)> take;
  /// Takes many finished items at once, as many as fit into memory, before take() is called for each. `run` shares the
  /// work among all threads; no thread calls work() at that time. May be empty.
  std::function<void(const std::vector<Item*>& items, const RunOnThreads& run)> take_round = {};
  /// Called when the input pauses or fails and all items read before have been taken: the moment to flush the output.
  std::function<void()> idle = [] {};
};

/// Reads items, lets several threads work on the items, and takes the finished items in the order of reading. The
/// number of items in memory, and of their bytes, is bounded. Example with three threads and the items A, B, C, D:
///
///     thread 0:  read A B C D | work A | take A | work D | take B C D
///     thread 1:                 work B
///     thread 2:                 work C
///
/// Thread 0 reads and takes; when thread 0 can neither read nor take, it works on an item like the other threads. An
/// exception of work() is thrown when the item has been taken; an exception of read() or ready() is thrown when all
/// items read before have been taken.
template <class Item>
class OrderedPipeline {
 public:
  static constexpr std::size_t kItemsPerThread = 8;
  /// A limit, in bytes per thread: no item is read while the items in memory hold more.
  static constexpr std::size_t kBytesPerThread = std::size_t{1} << 20;

  OrderedPipeline(int threads, PipelineStages<Item> job)
      : job_(std::move(job)),
        threads_(threads),
        slots_(threads == 1 ? 1 : kItemsPerThread * static_cast<std::size_t>(threads)) {}

  /// Runs the pipeline to the end of the input.
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
  // Bytes. An item this large is rare; after take() its memory is returned with free().
  static constexpr std::size_t kLargeItem = 8 * kPipelineItemBytes;

  struct alignas(64) Slot {
    Item item;
    // The number of bytes that the item held when it was read.
    std::size_t bytes = 0;
    // The exception that work() threw for this item.
    std::exception_ptr error;
    bool finished = false;
  };

  Slot& slot(std::size_t number) { return slots_[number % slots_.size()]; }
  bool wants_threads() const { return threads_ > 1 && !pool_ && read_ - started_ > 1; }

  /// Runs thread 0's part: reads, works and takes. Returns when everything is taken, when all items of a round are
  /// finished, or when the other threads must be started because more than one item waits for work.
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

  /// Runs the part of the threads 1, 2, ...: works on items until thread 0 leaves lead().
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

  /// Counts the next item in order as finished and returns true; returns false when no thread has finished that item
  /// yet.
  bool finish_next() {
    const std::lock_guard lock(mutex_);
    if (finished_ == started_ || !slot(finished_).finished) return false;
    ++finished_;
    return true;
  }

  /// Returns whether thread 0 may read an item: there is room for the item, and the input is ready. When all items are
  /// taken, the input need not be ready: thread 0 has nothing else to do than to wait for the input.
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
    // Another thread is woken for a second waiting item only, since thread 0 itself works on one.
    if (read_ - started_ > 1) to_work_.notify_one();
  }

  /// Returns the result of `function`, which reads or tests the input. If `function` throws, keeps the exception, ends
  /// the input and returns true.
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

  /// Works on the next item that no thread has begun. Returns false when there is no such item.
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
  // Started when more than one item waits for work.
  std::optional<ThreadPool> pool_;
  std::vector<Slot> slots_;
  // The numbers of items that have been read, begun, finished in order, and taken; each number is at most the previous
  // one. Only thread 0 changes these numbers, except started_, which all threads change.
  std::size_t read_ = 0, started_ = 0, finished_ = 0, taken_ = 0;
  // The bytes of all items that are read and not yet taken.
  std::size_t bytes_ = 0;
  std::exception_ptr input_error_;
  bool ended_ = false, leaving_ = false;
  // Guards started_, leaving_ and Slot::finished, and the changes of read_ and finished_, which all threads read.
  std::mutex mutex_;
  std::condition_variable to_work_, to_finish_;
};

}  // namespace heed
