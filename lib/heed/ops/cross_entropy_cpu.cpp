#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/ops/cross_entropy.h"
#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/ops/gemm/gemm_rows.h"
#include "heed/ops/gemm/maybe_rounded.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/cross_entropy_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/exp-inl.h"
#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Adds `bias` (if not null) to a row x of n logits, and writes the largest logit and the sum of the logits.
template <class T>
void add_bias_and_scan(T* HWY_RESTRICT x, const T* HWY_RESTRICT bias, std::int64_t n, T* largest, T* sum) {
  const hn::ScalableTag<T> d;
  auto max_lanes = hn::Set(d, -std::numeric_limits<T>::infinity()), sum_lanes = hn::Zero(d);
  T max_rest = -std::numeric_limits<T>::infinity(), sum_rest = 0;
  for_each_vector<T>(n, [&](auto tag, std::int64_t i, auto load, auto store) HWY_ATTR {
    auto v = load(tag, x + i);
    if (bias) {
      v = hn::Add(v, load(tag, bias + i));
      store(v, tag, x + i);
    }
    if constexpr (std::is_same_v<decltype(tag), hn::ScalableTag<T>>) {
      max_lanes = hn::Max(max_lanes, v);
      sum_lanes = hn::Add(sum_lanes, v);
    } else {
      max_rest = std::max(max_rest, hn::GetLane(v));
      sum_rest += hn::GetLane(v);
    }
  });
  *largest = std::max(max_rest, hn::GetLane(hn::MaxOfLanes(d, max_lanes)));
  *sum = sum_rest + hn::GetLane(hn::SumOfLanes(d, sum_lanes));
}

/// Computes the sum of exp(x - largest) over n logits. Writes the exponentials to `out`, if not null; `out` may be x.
template <class T>
void sum_exponentials(T* out, const T* x, std::int64_t n, T largest, T* sum) {
  const hn::ScalableTag<T> d;
  auto sum_lanes = hn::Zero(d);
  T sum_rest = 0;
  for_each_vector<T>(n, [&](auto tag, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto e = exp_nonpositive(tag, hn::Sub(load(tag, x + i), hn::Set(tag, largest)));
    if (out) store(e, tag, out + i);
    if constexpr (std::is_same_v<decltype(tag), hn::ScalableTag<T>>)
      sum_lanes = hn::Add(sum_lanes, e);
    else
      sum_rest += hn::GetLane(e);
  });
  *sum = sum_rest + hn::GetLane(hn::SumOfLanes(d, sum_lanes));
}

/// Computes x = factor * x - offset for n elements and adds the new x to `dbias`, if not null.
template <class T>
void scale_and_shift(T* HWY_RESTRICT x, std::int64_t n, T factor, T offset, T* HWY_RESTRICT dbias) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto g = hn::MulSub(load(d, x + i), hn::Set(d, factor), hn::Set(d, offset));
    store(g, d, x + i);
    if (dbias) store(hn::Add(load(d, dbias + i), g), d, dbias + i);
  });
}

HEED_INSTANTIATE_SIMD(add_bias_and_scan, (float* x, const float* b, std::int64_t n, float* m, float* s),
                      (double* x, const double* b, std::int64_t n, double* m, double* s), (x, b, n, m, s))
HEED_INSTANTIATE_SIMD(sum_exponentials, (float* e, const float* x, std::int64_t n, float m, float* s),
                      (double* e, const double* x, std::int64_t n, double m, double* s), (e, x, n, m, s))
HEED_INSTANTIATE_SIMD(scale_and_shift, (float* x, std::int64_t n, float f, float o, float* b),
                      (double* x, std::int64_t n, double f, double o, double* b), (x, n, f, o, b))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(add_bias_and_scan)
HEED_EXPORT_SIMD(sum_exponentials)
HEED_EXPORT_SIMD(scale_and_shift)

namespace {

/// The number of rows (tokens) in a chunk, the rows whose logits are computed at a time. The logits of so few rows (5
/// MB in float for a vocabulary of 10,000) stay in the last-level cache. With fewer rows there would be more chunks,
/// and each chunk reads and writes the whole gradient of the weight once.
constexpr std::int64_t kChunk = 128;

/// Adds the loss of one row x of logits to `sums`. Where `gradient` is true, replaces x by the gradient of
/// options.scale * loss with respect to the logits, and adds that gradient to `dbias`, if not null.
template <class T>
void cross_entropy_row(T* x, const T* bias, std::int64_t vocabulary, std::int64_t target,
                       const CrossEntropyOptions& options, bool gradient, T* dbias, CrossEntropySums& sums) {
  const double smoothing = options.label_smoothing, words = static_cast<double>(vocabulary);
  T largest, total, exponentials;
  simd::add_bias_and_scan(x, bias, vocabulary, &largest, &total);
  const T target_logit = x[target];
  // Where several words have the highest probability, the word with the lowest id counts as the prediction.
  const bool correct = target_logit == largest && std::find(x, x + target, largest) == x + target;
  simd::sum_exponentials(gradient ? x : nullptr, static_cast<const T*>(x), vocabulary, largest, &exponentials);
  const double normaliser = static_cast<double>(largest) + std::log(static_cast<double>(exponentials));
  const double likelihood = normaliser - static_cast<double>(target_logit);
  sums.loss += (1 - smoothing) * likelihood + smoothing * (normaliser - static_cast<double>(total) / words);
  sums.negative_log_likelihood += likelihood;
  sums.correct += correct;
  if (!gradient) return;
  simd::scale_and_shift(x, vocabulary, static_cast<T>(options.scale / static_cast<double>(exponentials)),
                        static_cast<T>(options.scale * smoothing / words), dbias);
  const T at_target = static_cast<T>(options.scale * (1 - smoothing));
  x[target] -= at_target;
  if (dbias) dbias[target] -= at_target;
}

/// Computes logits = h W^T. A row of the logits has the same bits whatever the other rows are.
template <class T>
void project_rows(Tensor<T> hidden, Tensor<T> weight, T* logits) {
  const std::int64_t vocabulary = weight.dim(0), width = weight.columns();
  gemm_rows(hidden.rows(), vocabulary, width, hidden.data(), width, weight.data(), width, logits, vocabulary);
}

/// Adds the bias, if not empty, to a row x of logits and returns log(sum of exp(x)), the normaliser of the softmax.
template <class T>
T add_bias_and_normalise(T* x, Tensor<T> bias, std::int64_t vocabulary) {
  T largest, total, exponentials;
  simd::add_bias_and_scan(x, static_cast<const T*>(bias.data()), vocabulary, &largest, &total);
  simd::sum_exponentials(static_cast<T*>(nullptr), static_cast<const T*>(x), vocabulary, largest, &exponentials);
  return largest + std::log(exponentials);
}

}  // namespace

template <class T>
CrossEntropySums cross_entropy_cpu(CpuContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                                   std::span<const std::int32_t> targets, const CrossEntropyOptions& options,
                                   Tensor<T> dhidden, Tensor<T> dweight, Tensor<T> dbias) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = hidden.rows(), width = hidden.columns(), vocabulary = weight.dim(0);
  const bool gradient = dhidden || dweight || dbias;
  const Shape chunk{std::min(rows, kChunk), vocabulary};
  // `logits.full` holds the logits of a chunk of rows and then the gradients of these logits. `logits.rounded` holds
  // the gradients as bfloat16, because only two matrix products read them.
  MaybeRounded<T> logits{device.arena.tensor<T>(chunk)};
  if (gradient && std::is_same_v<T, float> && takes_bfloat16(device))
    logits.rounded = device.arena.tensor<Bfloat16>(chunk);
  const RightOperand<T> forward = prepare_right_operand(device, width, vocabulary, {weight.data(), width, true});
  const RightOperand<T> backward =
      dhidden ? prepare_right_operand(device, vocabulary, width, {weight.data(), width}) : RightOperand<T>();
  CrossEntropySums sums;
  sums.tokens = rows;
  for (std::int64_t begin = 0; begin < rows; begin += kChunk) {
    const std::int64_t count = std::min(kChunk, rows - begin);
    gemm(device, count, T(1), {hidden.row(begin), width}, forward, T(0), logits.full.data(), vocabulary);
    for (std::int64_t r = 0; r < count; ++r) {
      T* const x = logits.full.row(r);
      cross_entropy_row(x, static_cast<const T*>(bias.data()), vocabulary, targets[static_cast<std::size_t>(begin + r)],
                        options, gradient, dbias.data(), sums);
      if constexpr (std::is_same_v<T, float>)
        if (logits.rounded) convert_to_bfloat16(x, vocabulary, logits.rounded.row(r));
    }
    if (dhidden)
      logits.with_operand(0, false, [&](auto gradients) {
        gemm(device, count, T(1), gradients, backward, T(1), dhidden.row(begin), width);
      });
    if (dweight)
      logits.with_operand(0, true, [&](auto gradients) {
        const ArenaScope product(device.arena);
        const RightOperand<T> right =
            prepare_right_operand(device, count, width, GemmOperand<T>{hidden.row(begin), width});
        gemm(device, vocabulary, T(1), gradients, right, T(1), dweight.data(), width);
      });
  }
  return sums;
}

template <class T>
void projection_log_probabilities(CpuContext&, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias, Tensor<T> out) {
  project_rows(hidden, weight, out.data());
  for (std::int64_t r = 0; r < out.rows(); ++r) {
    const T normaliser = add_bias_and_normalise(out.row(r), bias, out.columns());
    simd::scale_and_shift(out.row(r), out.columns(), T(1), normaliser, static_cast<T*>(nullptr));
  }
}

template <class T>
void token_log_probabilities(CpuContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                             std::span<const std::int32_t> targets, T* out) {
  const ArenaScope scope(device.arena);
  const std::int64_t vocabulary = weight.dim(0);
  T* logits = device.arena.tensor<T>({std::min(hidden.rows(), kChunk), vocabulary}).data();
  for (std::int64_t begin = 0; begin < hidden.rows(); begin += kChunk) {
    const std::int64_t count = std::min(kChunk, hidden.rows() - begin);
    project_rows(hidden.row_block(begin, count), weight, logits);
    for (std::int64_t r = 0; r < count; ++r) {
      T* x = logits + r * vocabulary;
      const T normaliser = add_bias_and_normalise(x, bias, vocabulary);
      out[begin + r] = x[targets[static_cast<std::size_t>(begin + r)]] - normaliser;
    }
  }
}

template CrossEntropySums cross_entropy_cpu(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>,
                                            std::span<const std::int32_t>, const CrossEntropyOptions&, Tensor<float>,
                                            Tensor<float>, Tensor<float>);
template CrossEntropySums cross_entropy_cpu(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>,
                                            std::span<const std::int32_t>, const CrossEntropyOptions&, Tensor<double>,
                                            Tensor<double>, Tensor<double>);
template void projection_log_probabilities(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>, Tensor<float>);
template void projection_log_probabilities(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>, Tensor<double>);
template void token_log_probabilities(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>,
                                      std::span<const std::int32_t>, float*);
template void token_log_probabilities(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>,
                                      std::span<const std::int32_t>, double*);

}  // namespace heed
#endif  // HWY_ONCE
