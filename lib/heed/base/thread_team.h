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

/// Threads that share pieces of work of some microseconds each, such as the matrix products of one translated line. The
/// helpers (all threads but the caller's) spin for a short time while they wait for work, since waking a sleeping
/// thread would take longer than the work; after that time they sleep. The calling thread takes pieces too, so that a
/// helper that the system does not run delays nothing but the piece it has begun.
class ThreadTeam {
 public:
  /// The matrix products of one line have too few pieces for more threads than this.
  static constexpr int kMostUseful = 8;

  /// Starts the helpers. `size` (at least 1) counts the calling thread too.
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Calls piece(0) ... piece(count - 1), each once, on whichever thread is free, and returns when all calls have
  /// ended. If calls throw, one of the exceptions is thrown again. Only one thread at a time may call run(). Takes no
  /// memory from the heap.
  template <class Piece>
  void run(int count, Piece&& piece) {
    run_pieces(count, FunctionRef(piece));
  }

 private:
  /// The number of pieces of a job and the number of the next piece, packed into one atomic 64-bit number. A thread
  /// that has taken a piece knows that the job still exists until the thread has counted that piece in done_.
  struct Pieces {
    std::uint32_t count = 0, next = 0;
    static Pieces of(std::uint64_t bits) {
      return {static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits)};
    }
    std::uint64_t bits() const { return std::uint64_t{count} << 32 | next; }
    bool left() const { return next < count; }
  };

  void run_pieces(int count, const FunctionRef& job);
  /// Takes and runs pieces until no piece is left.
  void take();
  /// Runs a helper thread.
  void help();
  /// Waits until there are pieces to take. Returns false when the team ends.
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
