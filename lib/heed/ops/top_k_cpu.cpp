#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heed/ops/top_k.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/top_k_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/exp-inl.h"
#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// The k largest numbers among those of a row that were scanned so far, the largest first. A later number must be
/// larger than the smallest of these k numbers to be inserted, so that of equal numbers the number with the lower index
/// stays.
template <class T>
struct BestOfRow {
  T* values;
  std::int32_t* indices;
  std::int64_t k, count;

  /// Returns the value that a later number must exceed to be inserted among the k largest numbers.
  T threshold() const { return count < k ? -std::numeric_limits<T>::infinity() : values[k - 1]; }
  /// Inserts the number x, which has the index `index` in its row, among the k largest numbers if x exceeds
  /// threshold().
  void offer(T x, std::int64_t index) {
    if (!(x > threshold())) return;
    std::int64_t at = count < k ? count++ : k - 1;
    for (; at > 0 && values[at - 1] < x; --at) {
      values[at] = values[at - 1];
      indices[at] = indices[at - 1];
    }
    values[at] = x;
    indices[at] = static_cast<std::int32_t>(index);
  }
};

/// Scans n more numbers x of a row and inserts them among the row's k largest numbers (`values` and `indices`) where
/// they are large enough. The first number of x has the index `first` in the row. `found` is how many numbers the k
/// largest hold so far, at most k. Minus infinity and NaN are never inserted.
template <class T>
void scan_for_best(const T* HWY_RESTRICT x, std::int64_t n, std::int64_t first, std::int64_t k, T* values,
                   std::int32_t* indices, std::int64_t* found) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  BestOfRow<T> best{values, indices, k, *found};
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto threshold = hn::Set(d, best.threshold());
    const auto above = [&](std::int64_t at) HWY_ATTR { return hn::Gt(hn::LoadU(d, x + i + at), threshold); };
    if (hn::AllFalse(d, hn::Or(hn::Or(above(0), above(lanes)), hn::Or(above(2 * lanes), above(3 * lanes))))) continue;
    for (std::int64_t j = i; j < i + 4 * lanes; ++j) best.offer(x[j], first + j);
  }
  for (; i < n; ++i) best.offer(x[i], first + i);
  *found = best.count;
}

/// Computes the sum of exp(x - largest) over n numbers, of which none is larger than `largest`.
template <class T>
void sum_shifted_exponentials(const T* HWY_RESTRICT x, std::int64_t n, T largest, T* sum) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, largest);
  auto a = hn::Zero(d), b = a;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Add(a, exp_nonpositive(d, hn::Sub(hn::LoadU(d, x + i), shift)));
    b = hn::Add(b, exp_nonpositive(d, hn::Sub(hn::LoadU(d, x + i + lanes), shift)));
  }
  *sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
  for (; i < n; ++i) *sum += std::exp(x[i] - largest);
}

HEED_INSTANTIATE_SIMD(scan_for_best,
                      (const float* x, std::int64_t n, std::int64_t s, std::int64_t k, float* v, std::int32_t* i,
                       std::int64_t* f),
                      (const double* x, std::int64_t n, std::int64_t s, std::int64_t k, double* v, std::int32_t* i,
                       std::int64_t* f),
                      (x, n, s, k, v, i, f))
HEED_INSTANTIATE_SIMD(sum_shifted_exponentials, (const float* x, std::int64_t n, float m, float* s),
                      (const double* x, std::int64_t n, double m, double* s), (x, n, m, s))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(scan_for_best)
HEED_EXPORT_SIMD(sum_shifted_exponentials)

namespace {

/// The largest k for which top_k() scans a row and inserts the numbers into a sorted list of k numbers. The time of
/// this scan grows with the square of k; for a larger k the row is sorted.
constexpr std::int64_t kLargestScan = LogSoftmaxTopK<float>::kLargest;

/// Finds the k largest numbers of a row by sorting, for any row and any k. NaN comes after all other numbers.
template <class T>
void sort_for_best(CpuContext& device, const T* x, std::int64_t n, std::int64_t k, T* values, std::int32_t* indices) {
  const ArenaScope scope(device.arena);
  std::int32_t* order = device.arena.tensor<std::int32_t>({n}).data();
  std::iota(order, order + n, 0);
  std::partial_sort(order, order + k, order + n, [&](std::int32_t a, std::int32_t b) {
    if (std::isnan(x[a]) != std::isnan(x[b])) return std::isnan(x[b]);
    return x[a] > x[b] || (!(x[a] < x[b]) && a < b);
  });
  for (std::int64_t i = 0; i < k; ++i) {
    indices[i] = order[i];
    values[i] = x[order[i]];
  }
}

}  // namespace

template <class T>
void top_k(CpuContext& device, Tensor<T> scores, std::int64_t k, T* values, std::int32_t* indices) {
  for (std::int64_t r = 0; r < scores.rows(); ++r) {
    std::int64_t found = 0;
    if (k <= kLargestScan)
      simd::scan_for_best(static_cast<const T*>(scores.row(r)), scores.columns(), std::int64_t{0}, k, values + r * k,
                          indices + r * k, &found);
    // The scan leaves out minus infinity and NaN, so it finds fewer than k numbers in a row with few other numbers;
    // such a row is sorted.
    if (found < k) sort_for_best(device, scores.row(r), scores.columns(), k, values + r * k, indices + r * k);
  }
}

template <class T>
void log_softmax_top_k(CpuContext& device, Tensor<T> logits, std::int64_t k, T* values, std::int32_t* indices) {
  top_k(device, logits, k, values, indices);
  for (std::int64_t r = 0; r < logits.rows(); ++r) {
    T sum = 0, *row_values = values + r * k;
    simd::sum_shifted_exponentials(static_cast<const T*>(logits.row(r)), logits.columns(), row_values[0], &sum);
    const T normaliser = row_values[0] + std::log(sum);
    for (std::int64_t i = 0; i < k; ++i) row_values[i] -= normaliser;
  }
}

template <class T>
LogSoftmaxTopK<T>::LogSoftmaxTopK(Arena& arena, std::int64_t rows, std::int64_t k, T* values, std::int32_t* indices)
    : rows_(rows),
      k_(k),
      values_(values),
      indices_(indices),
      found_(arena.zeros<std::int64_t>({rows}).data()),
      largest_(arena.tensor<T>({rows}).data()),
      sum_(arena.zeros<T>({rows}).data()) {}

template <class T>
void LogSoftmaxTopK<T>::add(Tensor<T> logits, std::int64_t first) {
  const std::int64_t all = logits.columns();
  for (std::int64_t begin = 0; begin < all; begin += kColumns)
    add_columns(logits.data() + begin, all, std::min(kColumns, all - begin), first + begin);
}

template <class T>
void LogSoftmaxTopK<T>::add_columns(const T* logits, std::int64_t stride, std::int64_t columns, std::int64_t first) {
  for (std::int64_t r = 0; r < rows_; ++r) {
    const T* row = logits + r * stride;
    simd::scan_for_best(row, columns, first, k_, values_ + r * k_, indices_ + r * k_, &found_[r]);
    // Without a number among the k largest, the row has only minus infinities so far, which add nothing to the sum, or
    // NaN; finish() then returns the row, unless later columns hold enough numbers.
    if (found_[r] == 0) continue;
    const T largest = values_[r * k_];
    if (largest_[r] != largest && sum_[r] != 0) sum_[r] *= std::exp(largest_[r] - largest);
    largest_[r] = largest;
    T sum = 0;
    simd::sum_shifted_exponentials(row, columns, largest, &sum);
    sum_[r] += sum;
  }
}

template <class T>
std::vector<std::int64_t> LogSoftmaxTopK<T>::finish() {
  std::vector<std::int64_t> incomplete;
  for (std::int64_t r = 0; r < rows_; ++r) {
    if (found_[r] < k_) {
      incomplete.push_back(r);
      continue;
    }
    const T normaliser = largest_[r] + std::log(sum_[r]);
    for (std::int64_t i = 0; i < k_; ++i) values_[r * k_ + i] -= normaliser;
  }
  return incomplete;
}

template <class T>
void mask_columns(CpuContext&, Tensor<T> x, const ColumnSets& sets, std::span<const std::int32_t> set_of_row) {
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    const std::uint32_t* const bits = sets.bits + set_of_row[static_cast<std::size_t>(r)] * sets.stride;
    for (std::int64_t c = 0; c < x.columns(); ++c)
      if ((bits[c / 32] >> (c % 32) & 1) == 0) x.row(r)[c] = -std::numeric_limits<T>::infinity();
  }
}

template class LogSoftmaxTopK<float>;
template class LogSoftmaxTopK<double>;
template void top_k(CpuContext&, Tensor<float>, std::int64_t, float*, std::int32_t*);
template void top_k(CpuContext&, Tensor<double>, std::int64_t, double*, std::int32_t*);
template void log_softmax_top_k(CpuContext&, Tensor<float>, std::int64_t, float*, std::int32_t*);
template void log_softmax_top_k(CpuContext&, Tensor<double>, std::int64_t, double*, std::int32_t*);
template void mask_columns(CpuContext&, Tensor<float>, const ColumnSets&, std::span<const std::int32_t>);
template void mask_columns(CpuContext&, Tensor<double>, const ColumnSets&, std::span<const std::int32_t>);

}  // namespace heed
#endif  // HWY_ONCE
