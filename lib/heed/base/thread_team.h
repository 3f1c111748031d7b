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

/// A team of threads for work that takes only some microseconds, such as one matrix product of one sentence. The work
/// is divided into pieces, and each thread takes the next piece when it is free. The helpers (all threads but the
/// caller's) spin for a short time while they wait for work, since waking a sleeping thread would take longer than the
/// work; after that time they sleep. The calling thread takes pieces too, so that a helper that the system does not run
/// delays nothing but the piece it has begun.
class ThreadTeam {
 public:
  /// The largest number of threads that makes a team faster: the matrix products of one sentence are divided into too
  /// few pieces for more threads.
  static constexpr int kMostUseful = 8;

  /// Starts the helper threads. `size` (at least 1) is the number of all threads: the helpers and the calling thread.
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Calls piece(0) ... piece(count - 1), each once, on any thread of the team that is free, and returns when all calls
  /// have ended. If calls throw, one of the exceptions is thrown again. Only one thread at a time may call run().
  /// Allocates no memory on the heap.
  template <class Piece>
  void run(int count, Piece&& piece) {
    run_pieces(count, FunctionRef(piece));
  }

 private:
  /// How many pieces the present job has, and the index of the next piece that a thread will take. Both are packed into
  /// one 64-bit number, so that a thread takes a piece with one atomic addition. run() does not return, and the job's
  /// function stays valid, before done_ counts every piece that a thread has taken.
  struct Pieces {
    std::uint32_t count = 0, next = 0;
    static Pieces of(std::uint64_t bits) {
      return {static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits)};
    }
    std::uint64_t bits() const { return std::uint64_t{count} << 32 | next; }
    bool left() const { return next < count; }
  };

  /// Ends and joins the helper threads that have been started.
  void end_helpers();
  void run_pieces(int count, const FunctionRef& job);
  /// Takes pieces of the present job and calls the job's function for them, until all pieces are taken.
  void take();
  /// The main function of a helper thread: waits for work and takes pieces of the work until the team is destroyed.
  void help();
  /// Spins, and then sleeps, until the present job has pieces to take. Returns false when the team is being destroyed.
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
