#include "heed/base/thread_team.h"

#include <chrono>
#include <utility>

#include "heed/base/error.h"
#include "heed/base/handler_stack.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace heed {
namespace {

/// How long an idle thread tests for new work in a loop (spins) before it sleeps. Between two matrix products of one
/// sentence less time passes, and a longer time would disturb other programs on the machine.
constexpr auto kSpinTime = std::chrono::microseconds(100);
// A spinning thread reads the clock only after this many tests of its condition, since reading the clock takes longer
// than a test.
constexpr int kSpinsPerClock = 64;

/// Tells the processor that this thread waits for another thread in a loop (spins), so that the loop takes less power.
void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/// Calls done() in a loop (spins) until done() returns true or `time` has passed. Returns whether done() returned true.
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
  start_threads(
      helpers_, size, [this](int) { help(); }, [this] { end_helpers(); });
}

ThreadTeam::~ThreadTeam() {
  end_helpers();
}

void ThreadTeam::end_helpers() {
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
    // Some helper threads sleep or are about to sleep. A helper tests for work while it holds this mutex, so that each
    // helper either sees the new work before it sleeps, or already sleeps and is woken.
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
  use_handler_stack();
  while (wait_for_work()) take();
}

}  // namespace heed
