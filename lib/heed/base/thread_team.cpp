#include "heed/base/thread_team.h"

#include <chrono>
#include <utility>

#include "heed/base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace heed {
namespace {

/// How long a thread spins before it sleeps: longer than the steps between two matrix products of a line, and too short
/// to disturb other programs on the machine.
constexpr auto kSpinTime = std::chrono::microseconds(100);
// The number of tests between two looks at the clock.
constexpr int kSpinsPerClock = 64;

/// Tells the processor that this thread spins while it waits for another thread.
void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/// Spins until done() returns true or `time` has passed. Returns whether done() returned true.
template <class Done>
bool spin_until(std::chrono::microseconds time, Done done) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < kSpinsPerClock; ++i) {
      if (done()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

ThreadTeam::ThreadTeam(int size) {
  if (size < 1) throw Error("internal: a team needs at least one thread");
  for (int i = 1; i < size; ++i) helpers_.emplace_back([this] { help(); });
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadTeam::run_pieces(int count, const FunctionRef& job) {
  if (count <= 1 || helpers_.empty()) {
    for (int i = 0; i < count; ++i) job(i);
    return;
  }
  job_ = job;
  done_.store(0, std::memory_order_relaxed);
  pieces_.store(Pieces{static_cast<std::uint32_t>(count), 0}.bits());
  if (sleeping_.load() > 0) {
    // The lock is held so that no helper misses the pieces: a helper sees them before it sleeps, or sleeps and is
    // woken.
    const std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
  take();
  const auto all_done = [&] { return done_.load(std::memory_order_acquire) == static_cast<std::uint32_t>(count); };
  while (!spin_until(kSpinTime, all_done)) std::this_thread::yield();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadTeam::take() {
  while (Pieces::of(pieces_.load(std::memory_order_relaxed)).left()) {
    const Pieces mine = Pieces::of(pieces_.fetch_add(1, std::memory_order_acquire));
    if (!mine.left()) return;
    try {
      job_(static_cast<int>(mine.next));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    done_.fetch_add(1, std::memory_order_release);
  }
}

bool ThreadTeam::wait_for_work() {
  const auto work = [this] { return ending_ || Pieces::of(pieces_.load()).left(); };
  if (spin_until(kSpinTime, work)) return !ending_;
  std::unique_lock lock(mutex_);
  ++sleeping_;
  wake_.wait(lock, work);
  --sleeping_;
  return !ending_;
}

void ThreadTeam::help() {
  while (wait_for_work()) take();
}

}  // namespace heed
