#include "heed/cost/kernel_timer.h"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace heed {

std::size_t KernelTimer::add(Kernel kernel) {
  kernels_.push_back(std::move(kernel));
  return kernels_.size() - 1;
}

void KernelTimer::run(double seconds) {
  constexpr int kLeastRounds = 2;
  const auto threads = static_cast<std::size_t>(pool_.size());
  // The measured seconds of each call of a kernel: [thread][kernel][round].
  std::vector<std::vector<std::vector<double>>> times(threads);
  std::atomic<int> begun = 0, ended = 0;
  pool_.run([&](int thread) {
    auto& mine = times[static_cast<std::size_t>(thread)];
    mine.resize(kernels_.size());
    const auto round = [&](bool counts) {
      return seconds_of([&] {
        for (std::size_t i = 0; i < kernels_.size(); ++i) {
          const double time = kernels_[i](thread);
          if (counts) mine[i].push_back(time);
        }
      });
    };
    try {
      round(false);
      // Every thread keeps running kernels until all threads have begun, and again until all have finished. Otherwise a
      // thread would be measured while another thread leaves its processor, or its half of a processor core, idle.
      for (++begun; begun < pool_.size();) round(false);
      double all = 0;
      for (int i = 0; i < kLeastRounds || all < seconds; ++i) all += round(true);
      for (++ended; ended < pool_.size();) round(false);
    } catch (...) {  // ends the other threads' loops, which would wait for this thread
      begun += pool_.size();
      ended += pool_.size();
      throw;
    }
  });
  seconds_.assign(kernels_.size(), 0);
  for (auto& thread : times)
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const auto middle = thread[i].begin() + (std::ssize(thread[i]) - 1) / 2;
      std::nth_element(thread[i].begin(), middle, thread[i].end());
      seconds_[i] += *middle / static_cast<double>(threads);
    }
}

double KernelTimer::barrier_seconds() {
  constexpr int kBarriers = 20;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kBarriers; ++i) pool_.run([](int) {});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kBarriers;
}

}  // namespace heed
