#include "heed/ops/gated_unit.h"

#include <type_traits>

#include "heed/ops/gemm/gemm_bfloat16.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/gated_unit_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Computes y = f(g) v for `rows` rows of x, which hold n elements of g and n elements of v.
template <class T>
void multiply_gate(const T* x, Activation activation, T* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T *HWY_RESTRICT gate = x + 2 * r * n, *HWY_RESTRICT value = gate + n;
    T* HWY_RESTRICT to = y + r * n;
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
      store(hn::Mul(activate<T>(d, activation, load(d, gate + i)), load(d, value + i)), d, to + i);
    });
  }
}

/// Computes dg = dy v f'(g) and dv = dy f(g) for `rows` rows. Where `adds`, adds to dx instead of overwriting dx.
template <class T>
void multiply_gate_backward(const T* x, Activation activation, const T* dy, T* dx, bool adds, std::int64_t rows,
                            std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T *HWY_RESTRICT gate = x + 2 * r * n, *HWY_RESTRICT value = gate + n, *HWY_RESTRICT from = dy + r * n;
    T *HWY_RESTRICT to_gate = dx + 2 * r * n, *HWY_RESTRICT to_value = to_gate + n;
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
      const auto g = load(d, from + i);
      auto opened = g;
      const auto slope = smooth_derivative<T>(d, activation, load(d, gate + i), opened);
      auto gate_gradient = hn::Mul(hn::Mul(g, load(d, value + i)), slope), value_gradient = hn::Mul(g, opened);
      if (adds) {
        gate_gradient = hn::Add(load(d, to_gate + i), gate_gradient);
        value_gradient = hn::Add(load(d, to_value + i), value_gradient);
      }
      store(gate_gradient, d, to_gate + i);
      store(value_gradient, d, to_value + i);
    });
  }
}

HEED_INSTANTIATE_SIMD(multiply_gate, (const float* x, Activation f, float* y, std::int64_t r, std::int64_t n),
                      (const double* x, Activation f, double* y, std::int64_t r, std::int64_t n), (x, f, y, r, n))
HEED_INSTANTIATE_SIMD(multiply_gate_backward,
                      (const float* x, Activation f, const float* dy, float* dx, bool a, std::int64_t r,
                       std::int64_t n),
                      (const double* x, Activation f, const double* dy, double* dx, bool a, std::int64_t r,
                       std::int64_t n),
                      (x, f, dy, dx, a, r, n))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(multiply_gate)
HEED_EXPORT_SIMD(multiply_gate_backward)

template <class T>
void gated_unit_forward(CpuContext& device, Tensor<T> x, Activation activation, MaybeRounded<T> y) {
  if constexpr (std::is_same_v<T, float>)
    if (y.rounded) {
      // A row is rounded while it is in the cache.
      const ArenaScope scope(device.arena);
      const Tensor<T> row = device.arena.tensor<T>({y.columns()});
      for (std::int64_t r = 0; r < y.rows(); ++r) {
        simd::multiply_gate(static_cast<const T*>(x.row(r)), activation, row.data(), 1, y.columns());
        convert_to_bfloat16(row.data(), y.columns(), y.rounded.row(r));
      }
      return;
    }
  simd::multiply_gate(static_cast<const T*>(x.data()), activation, y.full.data(), y.rows(), y.columns());
}

template <class T>
void gated_unit_backward(CpuContext&, Tensor<T> x, Activation activation, MaybeRounded<T> dy, Tensor<T> dx, bool adds) {
  simd::multiply_gate_backward(static_cast<const T*>(x.data()), activation, static_cast<const T*>(dy.full.data()),
                               dx.data(), adds, dy.rows(), dy.columns());
}

template void gated_unit_forward(CpuContext&, Tensor<float>, Activation, MaybeRounded<float>);
template void gated_unit_forward(CpuContext&, Tensor<double>, Activation, MaybeRounded<double>);
template void gated_unit_backward(CpuContext&, Tensor<float>, Activation, MaybeRounded<float>, Tensor<float>, bool);
template void gated_unit_backward(CpuContext&, Tensor<double>, Activation, MaybeRounded<double>, Tensor<double>, bool);

}  // namespace heed
#endif  // HWY_ONCE
