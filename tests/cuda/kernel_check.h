#pragma once

#include <algorithm>
#include <cmath>
#include <new>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "cuda_emulation.h"
#include "heed/base/random.h"
#include "heed/tensor/bfloat16.h"
#include "heed/tensor/context.h"
#include "heed/tensor/cuda_context.h"
#include "heed/tensor/cuda_memory.h"

namespace heed {

/// A tensor of a test: its shape and its elements, in the memory of the host.
template <class T>
struct TestTensor {
  Shape shape;
  std::vector<T> values;

  Tensor<T> view() { return {values.data(), shape}; }
};

/// Returns a tensor of normally distributed numbers; `number` tells the tensors of a test apart.
template <class T>
TestTensor<T> normal(const Shape& shape, std::uint64_t number) {
  TestTensor<T> out{shape, std::vector<T>(static_cast<std::size_t>(shape.size()))};
  const RandomStream stream(number, RandomUse::sampling);
  for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = static_cast<T>(stream.normal(i));
  return out;
}

/// Returns a tensor in bfloat16.
inline TestTensor<Bfloat16> rounded(const TestTensor<float>& x) {
  TestTensor<Bfloat16> out{x.shape, {}};
  for (const float value : x.values) out.values.push_back(to_bfloat16(value));
  return out;
}
/// Returns a tensor whose numbers are bfloat16 numbers, in float32.
inline TestTensor<float> in_full(const TestTensor<Bfloat16>& x) {
  TestTensor<float> out{x.shape, {}};
  for (const Bfloat16 value : x.values) out.values.push_back(from_bfloat16(value));
  return out;
}

/// Memory of the host that is aligned as that of a GPU is.
constexpr MemorySource kAlignedMemory{
    [](std::size_t bytes) { return ::operator new(bytes, std::align_val_t(kGpuAlignment)); },
    [](void* memory, std::size_t) { ::operator delete(memory, std::align_val_t(kGpuAlignment)); }, kGpuAlignment};

/// Runs the kernels of an op on the CPU and on the emulated GPU. run(context, results) calls them on a context;
/// `results` are the tensors that they write, with the elements of `before`. Checks that every element of the GPU's
/// results differs from the CPU's by at most `tolerance` times 1 + its size, and that they have the same bits in every
/// order of the threads.
template <class T, class Run>
void check_kernels(const std::vector<TestTensor<T>>& before, const Run& run,
                   double tolerance = sizeof(T) == sizeof(float) ? 1e-5 : 1e-13) {
  const auto run_on = [&](auto& context) {
    std::vector<TestTensor<T>> results = before;
    std::vector<Tensor<T>> views;
    for (TestTensor<T>& result : results) views.push_back(result.view());
    run(context, std::span<const Tensor<T>>(views));
    return results;
  };
  Arena arena(kAlignedMemory), host_arena;
  CpuContext cpu{arena};
  const std::vector<TestTensor<T>> expected = run_on(cpu);
  CudaContext cuda{arena, host_arena};
  std::vector<TestTensor<T>> first;
  for (const emulation::ThreadOrder order : emulation::kThreadOrders) {
#if defined(__SANITIZE_ADDRESS__)
    if (!first.empty()) break;  // addresses are the same in every order, and its switches between threads are slow
#endif
    CAPTURE(static_cast<int>(order));
    emulation::set_thread_order(order);
    const std::vector<TestTensor<T>> found = run_on(cuda);
    for (std::size_t k = 0; k < found.size(); ++k) {
      CAPTURE(k);
      double worst = 0;
      for (std::size_t i = 0; i < found[k].values.size(); ++i) {
        const double a = static_cast<double>(found[k].values[i]), b = static_cast<double>(expected[k].values[i]);
        const double difference = a == b ? 0 : std::abs(a - b) / (1 + std::abs(b));
        if (!(difference <= worst)) worst = std::isnan(difference) ? INFINITY : difference;
      }
      CHECK(worst <= tolerance);
      if (!first.empty())
        CHECK_MESSAGE(
            std::ranges::equal(std::as_bytes(std::span(found[k].values)), std::as_bytes(std::span(first[k].values))),
            "the result depends on the order of the threads");
    }
    if (first.empty()) first = found;
  }
  emulation::set_thread_order(emulation::ThreadOrder::ascending);
}

}  // namespace heed
