#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "heed/base/threads.h"

namespace heed {

/// Threads that share pieces of work of some microseconds each, as in the products of one translated line. Helpers look
/// out for work without sleeping, for a short time; then they sleep until there is more. The calling thread takes
/// pieces too, so a helper that the system does not run costs nothing but the piece it has begun.
class ThreadTeam {
 public:
  /// More threads find no pieces in a line's products.
  static constexpr int kMostUseful = 8;

  /// `size` at least 1, the calling thread included.
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Calls piece(0) ... piece(count - 1), each once, on the threads that come first, and returns when all have ended.
  /// Where some throw, one of the exceptions is thrown again. To be called by one thread at a time. Takes no memory
  /// from the heap.
  template <class Piece>
  void run(int count, Piece&& piece) {
    run_pieces(count, FunctionRef(piece));
  }

 private:
  /// How many pieces a job has, and the next one: a thread that has taken a piece knows that the job stays until it has
  /// reported that piece.
  struct Pieces {
    std::uint32_t count = 0, next = 0;
    static Pieces of(std::uint64_t bits) {
      return {static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits)};
    }
    std::uint64_t bits() const { return std::uint64_t{count} << 32 | next; }
    bool left() const { return next < count; }
  };

  void run_pieces(int count, const FunctionRef& job);
  /// Takes pieces as long as there are any.
  void take();
  void help();
  /// False when the team is to end.
  bool wait_for_work();

  std::vector<std::thread> helpers_;
  FunctionRef job_;
  alignas(64) std::atomic<std::uint64_t> pieces_ = 0;
  alignas(64) std::atomic<std::uint32_t> done_ = 0;
  alignas(64) std::atomic<int> sleeping_ = 0;
  std::atomic<bool> ending_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::exception_ptr error_;
};

}  // namespace heed
