#include "heed/run/line_work.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <vector>

#include "heed/base/streams.h"
#include "heed/base/threads.h"

namespace heed {
namespace {

// A round of so much for each thread stays in its cache from the reading to the writing.
constexpr std::size_t kRoundBytes = std::size_t{1} << 18, kRoundLines = 4096;
constexpr std::size_t kChunkLines = 64;  // what a thread takes at a time

struct Chunk {
  std::string out;
  std::int64_t lines = 0;
  std::exception_ptr error;
};

/// The lines read at once: up to the bounds, or to a pause of the input.
class Round {
 public:
  explicit Round(int threads) : threads_(static_cast<std::size_t>(threads)) {}

  /// With `wait`, waits for the first line; without, takes those only that are there. False where there is none. An
  /// error of the input waits for the lines before it: see error().
  bool read(LineReader& reader, bool wait) {
    count_ = 0;
    first_ = reader.line_number() + 1;
    std::size_t bytes = 0;
    try {
      while (count_ < threads_ * kRoundLines && bytes < threads_ * kRoundBytes &&
             ((wait && count_ == 0) || reader.ready())) {
        if (count_ == lines_.size()) lines_.emplace_back();
        if (!reader.next(lines_[count_])) break;
        bytes += lines_[count_++].size() + 1;
      }
    } catch (...) {
      error_ = std::current_exception();
    }
    return count_ > 0 || error_;
  }

  const std::exception_ptr& error() const { return error_; }

  std::size_t chunks() const { return (count_ + kChunkLines - 1) / kChunkLines; }

  void run(std::size_t index, const LineWork& job, Chunk& chunk) const {
    chunk.out.clear();
    chunk.lines = 0;
    chunk.error = nullptr;
    try {
      for (std::size_t i = index * kChunkLines; i < std::min(count_, (index + 1) * kChunkLines); ++i, ++chunk.lines)
        job.work(lines_[i], first_ + static_cast<std::int64_t>(i), chunk.out);
    } catch (...) {
      chunk.error = std::current_exception();
    }
  }

 private:
  std::size_t threads_;
  std::vector<std::string> lines_;  // the first count_ are in use; the others keep their memory
  std::size_t count_ = 0;
  std::int64_t first_ = 1;
  std::exception_ptr error_;
};

/// Two rounds in turn: while threads work on the lines of one, thread 0 first hands out what the other became, and
/// reads the lines that are there already in its place.
class LineWorker {
 public:
  LineWorker(LineReader& reader, int threads, const LineWork& job)
      : reader_(reader), threads_(threads), job_(job), turns_{Turn(threads), Turn(threads)} {}

  void run() {
    Turn *now = &turns_[0], *other = &turns_[1];
    for (bool more = now->round.read(reader_, true); more;) {
      work(*now, *other);
      if (now->failed()) take(*now);  // throws
      if (!ahead_) {
        take(*now);
        if (!reader_.ready()) job_.idle();
        more = other->round.read(reader_, true);
      }
      std::swap(now, other);
    }
  }

 private:
  /// The lines of a round and what they become, as long as `waiting`.
  struct Turn {
    explicit Turn(int threads) : round(threads) {}

    Round round;
    std::vector<Chunk> chunks;
    bool waiting = false;

    bool failed() const {
      const auto end = chunks.begin() + static_cast<std::ptrdiff_t>(round.chunks());
      return round.error() || std::any_of(chunks.begin(), end, [](const Chunk& c) { return c.error != nullptr; });
    }
  };

  void work(Turn& now, Turn& other) {
    const std::size_t count = now.round.chunks();
    now.chunks.resize(std::max(now.chunks.size(), count));
    std::atomic<std::size_t> next = 0;
    const auto share = [&](int thread) {
      if (thread == 0) {
        if (other.waiting) take(other);
        ahead_ = other.round.read(reader_, false);
      }
      for (std::size_t i = next++; i < count; i = next++) now.round.run(i, job_, now.chunks[i]);
    };
    if (threads_ > 1 && count > 1) {
      if (!pool_) pool_.emplace(threads_);
      pool_->run(share);
    } else {
      share(0);
    }
    now.waiting = true;
    if (job_.take_round) take_round(now);
  }

  void take_round(const Turn& turn) {
    std::vector<std::string_view> texts;
    for (std::size_t i = 0; i < turn.round.chunks(); ++i) {
      texts.emplace_back(turn.chunks[i].out);
      if (turn.chunks[i].error) break;
    }
    job_.take_round(texts, [&](const std::function<void(int)>& function) {
      if (pool_)
        pool_->run(function);
      else
        for (int thread = 0; thread < threads_; ++thread) function(thread);
    });
  }

  /// Hands out what the lines of a round became, in order; throws the first error among them.
  void take(Turn& turn) {
    turn.waiting = false;
    for (std::size_t i = 0; i < turn.round.chunks(); ++i) {
      const Chunk& chunk = turn.chunks[i];
      job_.take(chunk.out, chunk.lines);
      if (chunk.error) job_.idle(), std::rethrow_exception(chunk.error);
    }
    if (turn.round.error()) job_.idle(), std::rethrow_exception(turn.round.error());
  }

  LineReader& reader_;
  int threads_;
  const LineWork& job_;
  std::optional<ThreadPool> pool_;  // started when there is work for more than one thread
  Turn turns_[2];
  bool ahead_ = false;  // lines of the next round are read
};

}  // namespace

LineReader open_lines(const std::string& path, std::istream& in, InvalidUtf8 policy) {
  return path.empty() || path == "-" ? LineReader(in, input_name("-"), policy) : LineReader(path, policy);
}

void work_on_lines(LineReader& reader, int threads, const LineWork& job) {
  LineWorker(reader, thread_count(threads), job).run();
}

}  // namespace heed
