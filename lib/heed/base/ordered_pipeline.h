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

/// Bytes that an item is to hold about: such stay in a near cache from the reading to the taking.
constexpr std::size_t kPipelineItemBytes = std::size_t{1} << 15;

/// What an OrderedPipeline does with its items. Thread 0 is the caller's; it alone calls all but work(). An item has
/// `std::size_t bytes() const`, what it holds, and `void free()`, which gives the memory for that back.
template <class Item>
struct PipelineStages {
  /// Fills an item, whatever it held before; false at the end. Where it throws, what the item holds by then still
  /// counts.
  std::function<bool(Item&)> read;
  /// Whether read() would return at once, without waiting for whoever writes the input. May throw as read().
  std::function<bool()> ready;
  /// Works on an item, on any thread. Where it throws, what the item holds by then is still taken.
  std::function<void(Item&, int thread)> work;
  /// Takes an item that is worked on, in the order of reading, while others are worked on.
  std::function<void(Item&)> take;
  /// Takes the same, as many items at once as fit, where threads can share that work too. Nothing else is at work then.
  std::function<void(const std::vector<Item*>& items, const RunOnThreads& run)> take_round = {};
  /// Called when the input pauses, or fails, and everything before has been taken: the moment to flush.
  std::function<void()> idle = [] {};
};

/// Items that are read, worked on by several threads and taken in order, with a bounded number of them, and of bytes,
/// in memory. Thread 0 reads and takes, and works where neither can be done. What work() throws is thrown when the item
/// has been taken, what read() and ready() throw when all before has been.
template <class Item>
class OrderedPipeline {
 public:
  static constexpr std::size_t kItemsPerThread = 8;
  /// No item is read while those in memory hold more.
  static constexpr std::size_t kBytesPerThread = std::size_t{1} << 20;

  OrderedPipeline(int threads, PipelineStages<Item> job)
      : job_(std::move(job)),
        threads_(threads),
        slots_(threads == 1 ? 1 : kItemsPerThread * static_cast<std::size_t>(threads)) {}

  /// Goes on to the end of the input.
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
  static constexpr std::size_t kLargeItem = 8 * kPipelineItemBytes;  // bytes; such are rare, and their memory goes back

  struct alignas(64) Slot {
    Item item;
    std::size_t bytes = 0;     // that it held when it was read
    std::exception_ptr error;  // of the work on it
    bool finished = false;
  };

  Slot& slot(std::size_t number) { return slots_[number % slots_.size()]; }
  bool wants_threads() const { return threads_ > 1 && !pool_ && read_ - started_ > 1; }

  /// Thread 0's part: until everything is taken, or a round is finished, or there is work for other threads.
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

  /// The part of the other threads.
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

  /// Whether the next item in order is finished.
  bool finish_next() {
    const std::lock_guard lock(mutex_);
    if (finished_ == started_ || !slot(finished_).finished) return false;
    ++finished_;
    return true;
  }

  /// Whether there is room, and an item; where all are taken, one may be waited for.
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
    if (read_ - started_ > 1) to_work_.notify_one();  // one is left to thread 0
  }

  /// What `function` returns; true where the input fails, which ends it.
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

  /// Works on the next item that no thread has; false where there is none.
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
  std::optional<ThreadPool> pool_;  // started when there is work for more than one thread
  std::vector<Slot> slots_;
  // Items so far, each number at most the one before. Only thread 0 changes them, but for started_.
  std::size_t read_ = 0, started_ = 0, finished_ = 0, taken_ = 0;
  std::size_t bytes_ = 0;  // of the items read and not taken
  std::exception_ptr input_error_;
  bool ended_ = false, leaving_ = false;
  std::mutex mutex_;  // for started_, changes of the numbers that others read, and what is finished
  std::condition_variable to_work_, to_finish_;
};

}  // namespace heed
