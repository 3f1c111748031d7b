#pragma once

#include <ctime>
#include <functional>
#include <vector>

#include "heed/base/threads.h"

namespace heed {

/// Returns the processor time of the calling thread in seconds.
inline double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Returns the processor time in seconds that `call` takes on the calling thread. Time during which other programs use
/// the processor is not counted.
template <class Call>
double seconds_of(Call call) {
  const double start = processor_seconds();
  call();
  return processor_seconds() - start;
}

/// Measures how long kernels take while a tool runs: all threads run all kernels one after the other, round after
/// round, so that the kernels compete for memory, caches and the processor's clock as in training or translation. A
/// kernel measured alone would be up to twice as fast, because its operands would stay in the cache and because AMX
/// slows the clock for the kernels that follow.
class KernelTimer {
 public:
  /// A function that runs a kernel on thread `thread` and returns the measured seconds, without the time that preparing
  /// the operands takes.
  using Kernel = std::function<double(int thread)>;

  explicit KernelTimer(ThreadPool& pool) : pool_(pool) {}

  /// Adds a kernel to the measurement. Returns the index of the kernel, which the caller passes to seconds().
  std::size_t add(Kernel kernel);
  /// Runs all kernels for about `seconds` seconds: one round as warm-up, then at least two rounds that are measured.
  void run(double seconds = 0.1);
  /// Returns the seconds of one call of a kernel: the median over rounds, averaged over threads.
  double seconds(std::size_t kernel) const { return seconds_.at(kernel); }
  /// Measures the seconds of one barrier of the pool: waking all threads and waiting for all.
  double barrier_seconds();

 private:
  ThreadPool& pool_;
  std::vector<Kernel> kernels_;
  std::vector<double> seconds_;
};

}  // namespace heed
