#include "heed/ops/running_average.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/running_average_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/gates-inl.h"
#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Computes the state of one position of a running mean: after = before + (x - before) * share, with share = 1 / t, and
/// y = after. `y` may be `after`.
template <class T>
void mean_row(const T* x, const T* before, T share, T* after, T* y, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    auto c = load(d, x + i);
    if (before) {
      const auto old = load(d, before + i);
      c = hn::MulAdd(hn::Sub(c, old), hn::Set(d, share), old);
    }
    store(c, d, after + i);
    store(c, d, y + i);
  });
}

/// Computes the state of one position of an SSRU and its result y = max(0, state). `gates` is [2n].
template <class T>
void recurrence_row(const T* gates, const T* before, T* after, T* y, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto x = load(d, gates + i), forget = sigmoid(d, load(d, gates + n + i));
    const auto old = before ? load(d, before + i) : hn::Zero(d);
    const auto c = hn::MulAdd(forget, hn::Sub(old, x), x);
    store(c, d, after + i);
    store(hn::Max(c, hn::Zero(d)), d, y + i);
  });
}

/// Computes one position of the backward pass of a running mean: sum += dy * share and dx += sum.
template <class T>
void mean_backward_row(T* sum, const T* dy, T share, T* dx, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto g = hn::MulAdd(load(d, dy + i), hn::Set(d, share), load(d, sum + i));
    store(g, d, sum + i);
    store(hn::Add(load(d, dx + i), g), d, dx + i);
  });
}

/// Computes one position of the backward pass of an SSRU. `carried` [n] is f_(t+1) g_(t+1) and becomes f_t g_t.
template <class T>
void recurrence_backward_row(T* carried, const T* gates, const T* before, const T* state, const T* dy, T* dgates,
                             std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto x = load(d, gates + i), forget = sigmoid(d, load(d, gates + n + i));
    const auto old = before ? load(d, before + i) : hn::Zero(d);
    const auto passed = hn::IfThenElseZero(hn::Gt(load(d, state + i), hn::Zero(d)), load(d, dy + i));
    const auto g = hn::Add(passed, load(d, carried + i));
    const auto kept = hn::Mul(forget, g), taken = hn::Sub(g, kept);
    store(kept, d, carried + i);
    store(hn::Add(load(d, dgates + i), taken), d, dgates + i);
    const auto dz = hn::Mul(hn::Mul(hn::Sub(old, x), forget), taken);
    store(hn::Add(load(d, dgates + n + i), dz), d, dgates + n + i);
  });
}

HEED_INSTANTIATE_SIMD(mean_row,
                      (const float* x, const float* before, float share, float* after, float* y, std::int64_t n),
                      (const double* x, const double* before, double share, double* after, double* y, std::int64_t n),
                      (x, before, share, after, y, n))
HEED_INSTANTIATE_SIMD(recurrence_row, (const float* gates, const float* before, float* after, float* y, std::int64_t n),
                      (const double* gates, const double* before, double* after, double* y, std::int64_t n),
                      (gates, before, after, y, n))
HEED_INSTANTIATE_SIMD(mean_backward_row, (float* sum, const float* dy, float share, float* dx, std::int64_t n),
                      (double* sum, const double* dy, double share, double* dx, std::int64_t n),
                      (sum, dy, share, dx, n))
HEED_INSTANTIATE_SIMD(recurrence_backward_row,
                      (float* carried, const float* gates, const float* before, const float* state, const float* dy,
                       float* dgates, std::int64_t n),
                      (double* carried, const double* gates, const double* before, const double* state,
                       const double* dy, double* dgates, std::int64_t n),
                      (carried, gates, before, state, dy, dgates, n))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(mean_row)
HEED_EXPORT_SIMD(recurrence_row)
HEED_EXPORT_SIMD(mean_backward_row)
HEED_EXPORT_SIMD(recurrence_backward_row)

template <class T>
void running_mean_step(CpuContext&, Tensor<T> x, std::span<const StateStep<T>> steps, Tensor<T> y) {
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    const StateStep<T>& step = steps[static_cast<std::size_t>(r)];
    simd::mean_row(static_cast<const T*>(x.row(r)), step.before, T(1) / static_cast<T>(step.position), step.after,
                   y.row(r), x.columns());
  }
}

template <class T>
void simple_recurrence_step(CpuContext&, Tensor<T> gates, std::span<const StateStep<T>> steps, Tensor<T> y) {
  for (std::int64_t r = 0; r < gates.rows(); ++r) {
    const StateStep<T>& step = steps[static_cast<std::size_t>(r)];
    simd::recurrence_row(static_cast<const T*>(gates.row(r)), step.before, step.after, y.row(r), y.columns());
  }
}

template <class T>
void running_mean_backward(CpuContext& device, PackedOffsets packed, Tensor<T> dy, Tensor<T> dx) {
  const ArenaScope scope(device.arena);
  const Tensor<T> sum = device.arena.tensor<T>({dy.columns()});
  for (int s = 0; s < packed.sequences(); ++s) {
    std::fill_n(sum.data(), sum.size(), T(0));
    for (std::int64_t t = packed.length(s); t > 0; --t) {
      const std::int64_t row = packed.begin(s) + t - 1;
      simd::mean_backward_row(sum.data(), static_cast<const T*>(dy.row(row)), T(1) / static_cast<T>(t), dx.row(row),
                              dy.columns());
    }
  }
}

template <class T>
void simple_recurrence_backward(CpuContext& device, PackedOffsets packed, Tensor<T> gates, Tensor<T> states,
                                Tensor<T> dy, Tensor<T> dgates) {
  const ArenaScope scope(device.arena);
  const Tensor<T> carried = device.arena.tensor<T>({dy.columns()});
  for (int s = 0; s < packed.sequences(); ++s) {
    std::fill_n(carried.data(), carried.size(), T(0));
    for (std::int64_t t = packed.length(s); t > 0; --t) {
      const std::int64_t row = packed.begin(s) + t - 1;
      const T* const before = t > 1 ? states.row(row - 1) : nullptr;
      simd::recurrence_backward_row(carried.data(), static_cast<const T*>(gates.row(row)), before,
                                    static_cast<const T*>(states.row(row)), static_cast<const T*>(dy.row(row)),
                                    dgates.row(row), dy.columns());
    }
  }
}

#define HEED_INSTANTIATE(T)                                                                               \
  template void running_mean_step(CpuContext&, Tensor<T>, std::span<const StateStep<T>>, Tensor<T>);      \
  template void simple_recurrence_step(CpuContext&, Tensor<T>, std::span<const StateStep<T>>, Tensor<T>); \
  template void running_mean_backward(CpuContext&, PackedOffsets, Tensor<T>, Tensor<T>);                  \
  template void simple_recurrence_backward(CpuContext&, PackedOffsets, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
#endif  // HWY_ONCE
