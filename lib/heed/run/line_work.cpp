#include "heed/run/line_work.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

#include "heed/base/streams.h"
#include "heed/base/threads.h"

namespace heed {
namespace {

// A chunk of so much stays in a near cache from the reading to the writing.
constexpr std::size_t kChunkBytes = std::size_t{1} << 15, kChunkLines = 512;
constexpr std::size_t kChunksPerThread = 8;

/// Lines that a thread works on in one go, and what they become.
class alignas(64) Chunk {
 public:
  /// Reads the lines that are there, up to the bounds; waits for the first. False at the end of the input, and where it
  /// fails: that error waits for the lines before it.
  bool read(LineReader& reader, std::string& line) {
    text_.clear();
    ends_.clear();
    first_ = reader.line_number() + 1;
    error_ = nullptr;
    finished_ = false;
    try {
      while (ends_.size() < kChunkLines && text_.size() < kChunkBytes && (ends_.empty() || reader.ready())) {
        if (!reader.next(line)) return false;
        ends_.push_back(text_.append(line).size());
      }
      return true;
    } catch (...) {
      error_ = std::current_exception();
      return false;
    }
  }

  void work(const LineWork& job, std::string& line) {
    out_.clear();
    worked_ = 0;
    try {
      for (std::size_t begin = 0; worked_ < ends_.size(); begin = ends_[worked_++]) {
        line.assign(text_, begin, ends_[worked_] - begin);
        job.work(line, first_ + static_cast<std::int64_t>(worked_), out_);
      }
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  /// Hands out what the lines became, then throws the error that they, or the input, ended with.
  void take(const LineWork& job) const {
    job.take(out_, static_cast<std::int64_t>(worked_));
    if (error_) job.idle(), std::rethrow_exception(error_);
  }

  bool empty() const { return ends_.empty() && !error_; }
  bool finished() const { return finished_; }
  void set_finished() { finished_ = true; }
  const std::string& out() const { return out_; }
  bool failed() const { return error_ != nullptr; }

 private:
  std::string text_;  // the lines, one behind the other: a thread may read what another has written
  std::vector<std::size_t> ends_;
  std::size_t worked_ = 0;
  std::int64_t first_ = 1;
  std::string out_;
  std::exception_ptr error_;
  bool finished_ = false;
};

/// A ring of chunks. Thread 0 reads them and hands them out, in order, and works on them where neither can be done; the
/// other threads work on them.
class LineWorker {
 public:
  LineWorker(LineReader& reader, int threads, const LineWork& job)
      : reader_(reader),
        threads_(threads),
        job_(job),
        ring_(threads == 1 ? 1 : kChunksPerThread * static_cast<std::size_t>(threads)) {}

  void run() {
    while (!ended_ || taken_ < read_) {
      leaving_ = false;
      if (pool_)
        pool_->run([this](int thread) { thread == 0 ? lead() : follow(); });
      else
        lead();
      if (job_.take_round && finished_ == read_) take_round();
      if (wants_threads()) pool_.emplace(threads_);
    }
  }

 private:
  Chunk& chunk(std::size_t number) { return ring_[number % ring_.size()]; }
  bool wants_threads() const { return threads_ > 1 && !pool_ && read_ - started_ > 1; }

  /// Thread 0's part: until everything is handed out, or a round is finished, or there is work for other threads.
  void lead() {
    struct Leaving {
      LineWorker& worker;
      ~Leaving() {
        const std::lock_guard lock(worker.mutex_);
        worker.leaving_ = true;
        worker.to_work_.notify_all();
      }
    } leaving{*this};
    std::string line;
    while (!wants_threads()) {
      if (finish_next()) {
        if (!job_.take_round) take();
      } else if (can_read()) {
        read(line);
      } else if (finished_ == read_) {
        return;
      } else if (!work(line)) {
        std::unique_lock lock(mutex_);
        to_finish_.wait(lock, [&] { return chunk(finished_).finished(); });
      }
    }
  }

  /// The part of the other threads.
  void follow() {
    std::string line;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        to_work_.wait(lock, [&] { return leaving_ || started_ < read_; });
        if (leaving_) return;
      }
      work(line);
    }
  }

  /// Whether the next chunk in order is finished.
  bool finish_next() {
    const std::lock_guard lock(mutex_);
    if (finished_ == started_ || !chunk(finished_).finished()) return false;
    ++finished_;
    return true;
  }

  /// Whether there is room, and a line; where all are handed out, a line may be waited for.
  bool can_read() { return !ended_ && read_ - taken_ < ring_.size() && (taken_ == read_ || reader_.ready()); }

  void read(std::string& line) {
    if (taken_ == read_ && !reader_.ready()) job_.idle();
    Chunk& next = chunk(read_);
    ended_ = !next.read(reader_, line);
    if (next.empty()) return;
    const std::lock_guard lock(mutex_);
    ++read_;
    if (read_ - started_ > 1) to_work_.notify_one();  // one is left to thread 0
  }

  /// Works on the next chunk that no thread has; false where there is none.
  bool work(std::string& line) {
    std::unique_lock lock(mutex_);
    if (started_ == read_) return false;
    const std::size_t number = started_++;
    lock.unlock();
    chunk(number).work(job_, line);
    lock.lock();
    chunk(number).set_finished();
    if (number == finished_) to_finish_.notify_one();
    return true;
  }

  void take() { chunk(taken_++).take(job_); }

  void take_round() {
    std::vector<std::string_view> texts;
    for (std::size_t i = taken_; i < read_; ++i) {
      texts.emplace_back(chunk(i).out());
      if (chunk(i).failed()) break;
    }
    job_.take_round(texts, [&](const std::function<void(int)>& function) {
      if (pool_)
        pool_->run(function);
      else
        for (int thread = 0; thread < threads_; ++thread) function(thread);
    });
    while (taken_ < read_) take();
  }

  LineReader& reader_;
  int threads_;
  const LineWork& job_;
  std::optional<ThreadPool> pool_;  // started when there is work for more than one thread
  std::vector<Chunk> ring_;
  // Chunks so far, each number at most the one before. Only thread 0 changes them, but for started_.
  std::size_t read_ = 0, started_ = 0, finished_ = 0, taken_ = 0;
  bool ended_ = false, leaving_ = false;
  std::mutex mutex_;  // for started_, changes of the numbers that others read, and what is finished
  std::condition_variable to_work_, to_finish_;
};

}  // namespace

LineReader open_lines(const std::string& path, std::istream& in, InvalidUtf8 policy) {
  return path.empty() || path == "-" ? LineReader(in, input_name("-"), policy) : LineReader(path, policy);
}

void work_on_lines(LineReader& reader, int threads, const LineWork& job) {
  LineWorker(reader, thread_count(threads), job).run();
}

}  // namespace heed
