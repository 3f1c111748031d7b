#include "heed/run/line_work.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <vector>

#include "heed/base/threads.h"

namespace heed {
namespace {

constexpr std::size_t kRoundBytes = std::size_t{1} << 20, kRoundLines = 8192;
constexpr std::size_t kChunkLines = 64;  // what a thread takes at a time

struct Chunk {
  std::string out;
  std::int64_t lines = 0;
  std::exception_ptr error;
};

/// The lines read at once: up to the bounds, or to a pause of the input.
class Round {
 public:
  /// An error of the input waits for the lines before it: see error().
  bool read(LineReader& reader) {
    count_ = 0;
    first_ = reader.line_number() + 1;
    std::size_t bytes = 0;
    try {
      while (count_ < kRoundLines && bytes < kRoundBytes && (count_ == 0 || reader.ready())) {
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
  std::vector<std::string> lines_;  // the first count_ are in use; the others keep their memory
  std::size_t count_ = 0;
  std::int64_t first_ = 1;
  std::exception_ptr error_;
};

}  // namespace

int thread_count(int threads) {
  return threads > 0 ? threads : available_threads();
}

void work_on_lines(LineReader& reader, int threads, const LineWork& job) {
  threads = thread_count(threads);
  std::optional<ThreadPool> pool;  // started when there is work for more than one thread
  Round round;
  std::vector<Chunk> chunks;
  while (round.read(reader)) {
    chunks.resize(std::max(chunks.size(), round.chunks()));
    std::atomic<std::size_t> next = 0;
    const auto run = [&](int) {
      for (std::size_t i = next++; i < round.chunks(); i = next++) round.run(i, job, chunks[i]);
    };
    if (threads > 1 && round.chunks() > 1) {
      if (!pool) pool.emplace(threads);
      pool->run(run);
    } else {
      run(0);
    }
    if (job.take_round) {
      std::vector<std::string_view> texts;
      for (std::size_t i = 0; i < round.chunks(); ++i) {
        texts.emplace_back(chunks[i].out);
        if (chunks[i].error) break;
      }
      job.take_round(texts, [&](const std::function<void(int)>& function) {
        if (pool)
          pool->run(function);
        else
          for (int thread = 0; thread < threads; ++thread) function(thread);
      });
    }
    for (std::size_t i = 0; i < round.chunks(); ++i) {
      job.take(chunks[i].out, chunks[i].lines);
      if (chunks[i].error) job.idle(), std::rethrow_exception(chunks[i].error);
    }
    if (round.error()) job.idle(), std::rethrow_exception(round.error());
    if (!reader.ready()) job.idle();
  }
}

}  // namespace heed
