#pragma once

#include <ctime>
#include <functional>
#include <vector>

#include "heed/base/threads.h"

namespace heed {

/// Seconds that the calling thread has had a processor.
inline double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Processor seconds of a call: what other programs take is not counted.
template <class Call>
double seconds_of(Call call) {
  const double start = processor_seconds();
  call();
  return processor_seconds() - start;
}

/// What kernels cost as they run in a tool: on all threads at once and one after the other, round after round, so that
/// they share memory, caches and the processor's clock with each other as in a step. A kernel that runs alone is up to
/// twice as fast: it finds its operands in the cache, and AMX slows the clock of what comes after it.
class KernelTimer {
 public:
  /// Does a kernel's work on this thread and returns the seconds that count.
  using Kernel = std::function<double(int thread)>;

  explicit KernelTimer(ThreadPool& pool) : pool_(pool) {}

  /// Returns the kernel's number, from 0.
  std::size_t add(Kernel kernel);
  /// Runs all kernels for about so many seconds, at least two rounds after one that does not count.
  void run(double seconds);
  /// Of one call: the median over rounds, and the mean over threads.
  double seconds(std::size_t kernel) const { return seconds_.at(kernel); }
  /// Of a barrier: all threads are woken, and waited for.
  double barrier_seconds();

 private:
  ThreadPool& pool_;
  std::vector<Kernel> kernels_;
  std::vector<double> seconds_;
};

}  // namespace heed
