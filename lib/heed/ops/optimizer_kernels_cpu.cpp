#include <algorithm>

#include "heed/ops/optimizer_arguments.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/optimizer_kernels_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/simd-inl.h"

#ifndef HEED_OPTIMIZER_KERNELS_ONCE
#define HEED_OPTIMIZER_KERNELS_ONCE
namespace heed {

// The number of partial sums that squared_norm() keeps. Every vector's number of lanes divides it.
inline constexpr std::int64_t kPartialSums = 32;

}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Updates n parameters with Adam (see adam_update()).
template <class T>
void adam_array(T* HWY_RESTRICT value, const T* HWY_RESTRICT gradient, T* HWY_RESTRICT first, T* HWY_RESTRICT second,
                const AdamNumbers<T>& a, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto set = [&](T x) HWY_ATTR { return hn::Set(d, x); };
    auto w = load(d, value + i);
    const auto g = hn::MulAdd(set(a.coupled_decay), w, hn::Mul(set(a.gradient_scale), load(d, gradient + i)));
    const auto m = hn::MulAdd(set(a.beta1), load(d, first + i), hn::Mul(set(a.rest1), g));
    const auto v = hn::MulAdd(set(a.beta2), load(d, second + i), hn::Mul(hn::Mul(set(a.rest2), g), g));
    const auto deviation = hn::MulAdd(hn::Sqrt(v), set(a.second_correction), set(a.epsilon));
    w = hn::NegMulAdd(set(a.step_size), hn::Div(m, deviation), hn::Mul(w, set(a.keep)));
    store(m, d, first + i);
    store(v, d, second + i);
    store(w, d, value + i);
  });
}

/// Updates n parameters with stochastic gradient descent (see sgd_update()). `velocity` may be null.
template <class T>
void sgd_array(T* HWY_RESTRICT value, const T* HWY_RESTRICT gradient, T* HWY_RESTRICT velocity, T rate, T momentum,
               T decay, T gradient_scale, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto w = load(d, value + i);
    auto u = hn::MulAdd(hn::Set(d, decay), w, hn::Mul(hn::Set(d, gradient_scale), load(d, gradient + i)));
    if (velocity) {
      u = hn::MulAdd(hn::Set(d, momentum), load(d, velocity + i), u);
      store(u, d, velocity + i);
    }
    store(hn::NegMulAdd(hn::Set(d, rate), u, w), d, value + i);
  });
}

/// Loads a vector of numbers from p and converts them to double.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_double(D d, const T* p) {
  if constexpr (std::is_same_v<T, double>)
    return hn::LoadU(d, p);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), p));
}

/// Adds the squares of x[0 .. n) to 32 partial sums: the square of x[i] is added to sum i % 32. n is a multiple of 32.
template <class T>
void add_squares(const T* HWY_RESTRICT x, double* HWY_RESTRICT sums, std::int64_t n) {
  const hn::CappedTag<double, 8> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // Each pass over x updates four vectors of partial sums, so that an addition need not wait for the addition before.
  // Short vectors need several passes over x; the caller therefore passes so few elements that they stay in the
  // first-level cache.
  for (std::int64_t at = 0; at < kPartialSums; at += 4 * lanes) {
    double* s = sums + at;
    auto s0 = hn::LoadU(d, s), s1 = hn::LoadU(d, s + lanes);
    auto s2 = hn::LoadU(d, s + 2 * lanes), s3 = hn::LoadU(d, s + 3 * lanes);
    for (std::int64_t i = at; i < n; i += kPartialSums) {
      const auto x0 = load_double(d, x + i), x1 = load_double(d, x + i + lanes);
      const auto x2 = load_double(d, x + i + 2 * lanes), x3 = load_double(d, x + i + 3 * lanes);
      s0 = hn::MulAdd(x0, x0, s0);
      s1 = hn::MulAdd(x1, x1, s1);
      s2 = hn::MulAdd(x2, x2, s2);
      s3 = hn::MulAdd(x3, x3, s3);
    }
    hn::StoreU(s0, d, s);
    hn::StoreU(s1, d, s + lanes);
    hn::StoreU(s2, d, s + 2 * lanes);
    hn::StoreU(s3, d, s + 3 * lanes);
  }
}

/// Computes the sum of squares of n elements through 32 partial sums (see squared_norm()).
template <class T>
void sum_of_squares(const T* HWY_RESTRICT x, std::int64_t n, double* result) {
  double sums[kPartialSums] = {};
  constexpr std::int64_t kBlock = 64 * kPartialSums;
  const std::int64_t whole = n / kPartialSums * kPartialSums;
  for (std::int64_t i = 0; i < whole; i += kBlock) add_squares(x + i, sums, std::min(kBlock, whole - i));
  for (std::int64_t i = whole; i < n; ++i) sums[i - whole] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  *result = 0;
  for (const double sum : sums) *result += sum;
}

template <class T>
void add_array(T* HWY_RESTRICT y, const T* HWY_RESTRICT x, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store)
                            HWY_ATTR { store(hn::Add(load(d, y + i), load(d, x + i)), d, y + i); });
}

template <class T>
void scale_array(T* HWY_RESTRICT x, T factor, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store)
                            HWY_ATTR { store(hn::Mul(load(d, x + i), hn::Set(d, factor)), d, x + i); });
}

template <class T>
void average_array(T* HWY_RESTRICT average, const T* HWY_RESTRICT x, T decay, T rest, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto kept = hn::Mul(hn::Set(d, decay), load(d, average + i));
    store(hn::MulAdd(hn::Set(d, rest), load(d, x + i), kept), d, average + i);
  });
}

/// Computes the sum of x[i] * 0 over n elements: 0 where all elements are finite, otherwise NaN, since x * 0 is NaN for
/// an infinite x and NaN stays in a sum. This takes one multiply-add for each element and no branch.
template <class T>
void sum_of_zeros(const T* HWY_RESTRICT x, std::int64_t n, T* result) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) sum = hn::MulAdd(hn::LoadU(d, x + i), hn::Zero(d), sum);
  *result = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < n; ++i) *result += x[i] * 0;
}

HEED_INSTANTIATE_SIMD(adam_array,
                      (float* w, const float* g, float* m, float* v, const AdamNumbers<float>& a, std::int64_t n),
                      (double* w, const double* g, double* m, double* v, const AdamNumbers<double>& a, std::int64_t n),
                      (w, g, m, v, a, n))
HEED_INSTANTIATE_SIMD(sgd_array,
                      (float* w, const float* g, float* u, float l, float m, float d, float s, std::int64_t n),
                      (double* w, const double* g, double* u, double l, double m, double d, double s, std::int64_t n),
                      (w, g, u, l, m, d, s, n))
HEED_INSTANTIATE_SIMD(sum_of_squares, (const float* x, std::int64_t n, double* r),
                      (const double* x, std::int64_t n, double* r), (x, n, r))
HEED_INSTANTIATE_SIMD(add_array, (float* y, const float* x, std::int64_t n),
                      (double* y, const double* x, std::int64_t n), (y, x, n))
HEED_INSTANTIATE_SIMD(scale_array, (float* x, float f, std::int64_t n), (double* x, double f, std::int64_t n),
                      (x, f, n))
HEED_INSTANTIATE_SIMD(average_array, (float* a, const float* x, float d, float r, std::int64_t n),
                      (double* a, const double* x, double d, double r, std::int64_t n), (a, x, d, r, n))
HEED_INSTANTIATE_SIMD(sum_of_zeros, (const float* x, std::int64_t n, float* r),
                      (const double* x, std::int64_t n, double* r), (x, n, r))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(adam_array)
HEED_EXPORT_SIMD(sgd_array)
HEED_EXPORT_SIMD(sum_of_squares)
HEED_EXPORT_SIMD(add_array)
HEED_EXPORT_SIMD(scale_array)
HEED_EXPORT_SIMD(average_array)
HEED_EXPORT_SIMD(sum_of_zeros)

template <class T>
void adam_update(std::span<T> value, std::span<const std::type_identity_t<T>> gradient,
                 std::span<std::type_identity_t<T>> first_moment, std::span<std::type_identity_t<T>> second_moment,
                 const AdamUpdate& update) {
  const std::int64_t n =
      common_size("adam_update", value.size(), {gradient.size(), first_moment.size(), second_moment.size()});
  simd::adam_array(value.data(), gradient.data(), first_moment.data(), second_moment.data(), AdamNumbers<T>(update), n);
}

template <class T>
void sgd_update(std::span<T> value, std::span<const std::type_identity_t<T>> gradient,
                std::span<std::type_identity_t<T>> velocity, const SgdUpdate& update) {
  const std::int64_t n = common_size("sgd_update", value.size(), {gradient.size()});
  const bool moves = update.momentum != 0;
  if (moves) common_size("sgd_update", value.size(), {velocity.size()});
  simd::sgd_array(value.data(), gradient.data(), moves ? velocity.data() : nullptr,
                  static_cast<T>(update.learning_rate), static_cast<T>(update.momentum),
                  static_cast<T>(update.weight_decay), static_cast<T>(update.gradient_scale), n);
}

template <class T>
double squared_norm(std::span<const T> x) {
  double result = 0;
  simd::sum_of_squares(x.data(), static_cast<std::int64_t>(x.size()), &result);
  return result;
}

template <class T>
void add_to(std::span<T> y, std::span<const std::type_identity_t<T>> x) {
  simd::add_array(y.data(), x.data(), common_size("add_to", y.size(), {x.size()}));
}

template <class T>
void scale_by(std::span<T> x, double factor) {
  simd::scale_array(x.data(), static_cast<T>(factor), static_cast<std::int64_t>(x.size()));
}

template <class T>
void move_average(std::span<T> average, std::span<const std::type_identity_t<T>> x, double decay) {
  simd::average_array(average.data(), x.data(), static_cast<T>(decay), static_cast<T>(1 - decay),
                      common_size("move_average", average.size(), {x.size()}));
}

template <class T>
void move_to_means(std::span<T> average, std::span<const std::type_identity_t<T>> sums, double share) {
  common_size("move_to_means", average.size() + 1, {sums.size()});
  const auto count = static_cast<double>(sums.back());
  if (count <= 0) return;
  for (std::size_t i = 0; i < average.size(); ++i)
    average[i] =
        static_cast<T>((1 - share) * static_cast<double>(average[i]) + share * (static_cast<double>(sums[i]) / count));
}

template <class T>
bool all_finite(std::span<const T> x) {
  T result = 0;
  simd::sum_of_zeros(x.data(), static_cast<std::int64_t>(x.size()), &result);
  return result == 0;
}

template void adam_update(std::span<float>, std::span<const float>, std::span<float>, std::span<float>,
                          const AdamUpdate&);
template void adam_update(std::span<double>, std::span<const double>, std::span<double>, std::span<double>,
                          const AdamUpdate&);
template void sgd_update(std::span<float>, std::span<const float>, std::span<float>, const SgdUpdate&);
template void sgd_update(std::span<double>, std::span<const double>, std::span<double>, const SgdUpdate&);
template double squared_norm(std::span<const float>);
template double squared_norm(std::span<const double>);
template void add_to(std::span<float>, std::span<const float>);
template void add_to(std::span<double>, std::span<const double>);
template void scale_by(std::span<float>, double);
template void scale_by(std::span<double>, double);
template void move_average(std::span<float>, std::span<const float>, double);
template void move_average(std::span<double>, std::span<const double>, double);
template void move_to_means(std::span<float>, std::span<const float>, double);
template void move_to_means(std::span<double>, std::span<const double>, double);
template bool all_finite(std::span<const float>);
template bool all_finite(std::span<const double>);

}  // namespace heed
#endif  // HWY_ONCE
