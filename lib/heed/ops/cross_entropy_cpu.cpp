#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <span>
#include <type_traits>

#include "heed/ops/cross_entropy.h"
#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/ops/gemm/gemm_rows.h"
#include "heed/ops/gemm/prepared_weights.h"

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

/// Computes the sum of x q over n elements.
template <class T>
void sum_products(const T* HWY_RESTRICT x, const T* HWY_RESTRICT q, std::int64_t n, T* sum) {
  const hn::ScalableTag<T> d;
  auto lanes = hn::Zero(d);
  T rest = 0;
  for_each_vector<T>(n, [&](auto tag, std::int64_t i, auto load, auto) HWY_ATTR {
    const auto product = hn::Mul(load(tag, x + i), load(tag, q + i));
    if constexpr (std::is_same_v<decltype(tag), hn::ScalableTag<T>>)
      lanes = hn::Add(lanes, product);
    else
      rest += hn::GetLane(product);
  });
  *sum = rest + hn::GetLane(hn::SumOfLanes(d, lanes));
}

/// Adds factor times x to y, n elements, and to `dbias`, if not null.
template <class T>
void add_multiple(const T* HWY_RESTRICT x, std::int64_t n, T factor, T* HWY_RESTRICT y, T* HWY_RESTRICT dbias) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto g = hn::Mul(load(d, x + i), hn::Set(d, factor));
    store(hn::Add(load(d, y + i), g), d, y + i);
    if (dbias) store(hn::Add(load(d, dbias + i), g), d, dbias + i);
  });
}

/// Computes the divergences terms->pq and terms->qp of the softmaxes of two rows of n logits, from the normalisers.
template <class T>
void add_divergences(const T* HWY_RESTRICT x, const T* HWY_RESTRICT y, std::int64_t n, RowPairTerms<T>* terms) {
  const hn::ScalableTag<T> d;
  auto pq = hn::Zero(d), qp = hn::Zero(d);
  T pq_rest = 0, qp_rest = 0;
  for_each_vector<T>(n, [&](auto tag, std::int64_t i, auto load, auto) HWY_ATTR {
    const auto log_p = hn::Sub(load(tag, x + i), hn::Set(tag, terms->normaliser_x)),
               log_q = hn::Sub(load(tag, y + i), hn::Set(tag, terms->normaliser_y));
    const auto ratio = hn::Sub(log_p, log_q);
    const auto of_p = hn::Mul(exp_nonpositive(tag, log_p), ratio), of_q = hn::Mul(exp_nonpositive(tag, log_q), ratio);
    if constexpr (std::is_same_v<decltype(tag), hn::ScalableTag<T>>) {
      pq = hn::Add(pq, of_p);
      qp = hn::Sub(qp, of_q);
    } else {
      pq_rest += hn::GetLane(of_p);
      qp_rest -= hn::GetLane(of_q);
    }
  });
  terms->pq = pq_rest + hn::GetLane(hn::SumOfLanes(d, pq));
  terms->qp = qp_rest + hn::GetLane(hn::SumOfLanes(d, qp));
}

/// Replaces two rows x and y of n logits by their gradients, and adds these to `dbias`, if not null.
template <class T>
void replace_by_gradients(T* HWY_RESTRICT x, T* HWY_RESTRICT y, std::int64_t n, const RowPairTerms<T>* terms,
                          T* HWY_RESTRICT dbias) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto log_p = hn::Sub(load(d, x + i), hn::Set(d, terms->normaliser_x)),
               log_q = hn::Sub(load(d, y + i), hn::Set(d, terms->normaliser_y));
    const auto p = exp_nonpositive(d, log_p), q = exp_nonpositive(d, log_q), ratio = hn::Sub(log_p, log_q);
    const auto factor = hn::Set(d, terms->factor), offset = hn::Set(d, terms->offset),
               agreement = hn::Set(d, terms->agreement);
    const auto of_p = hn::MulSub(p, hn::Add(ratio, hn::Set(d, 1 - terms->pq)), q),
               of_q = hn::MulSub(q, hn::Sub(hn::Set(d, 1 - terms->qp), ratio), p);
    const auto dx = hn::MulAdd(agreement, of_p, hn::MulSub(factor, p, offset)),
               dy = hn::MulAdd(agreement, of_q, hn::MulSub(factor, q, offset));
    store(dx, d, x + i);
    store(dy, d, y + i);
    if (dbias) store(hn::Add(load(d, dbias + i), hn::Add(dx, dy)), d, dbias + i);
  });
}

HEED_INSTANTIATE_SIMD(add_divergences, (const float* x, const float* y, std::int64_t n, RowPairTerms<float>* t),
                      (const double* x, const double* y, std::int64_t n, RowPairTerms<double>* t), (x, y, n, t))
HEED_INSTANTIATE_SIMD(replace_by_gradients,
                      (float* x, float* y, std::int64_t n, const RowPairTerms<float>* t, float* b),
                      (double* x, double* y, std::int64_t n, const RowPairTerms<double>* t, double* b), (x, y, n, t, b))
HEED_INSTANTIATE_SIMD(add_bias_and_scan, (float* x, const float* b, std::int64_t n, float* m, float* s),
                      (double* x, const double* b, std::int64_t n, double* m, double* s), (x, b, n, m, s))
HEED_INSTANTIATE_SIMD(sum_exponentials, (float* e, const float* x, std::int64_t n, float m, float* s),
                      (double* e, const double* x, std::int64_t n, double m, double* s), (e, x, n, m, s))
HEED_INSTANTIATE_SIMD(sum_products, (const float* x, const float* q, std::int64_t n, float* s),
                      (const double* x, const double* q, std::int64_t n, double* s), (x, q, n, s))
HEED_INSTANTIATE_SIMD(add_multiple, (const float* x, std::int64_t n, float f, float* y, float* b),
                      (const double* x, std::int64_t n, double f, double* y, double* b), (x, n, f, y, b))
HEED_INSTANTIATE_SIMD(scale_and_shift, (float* x, std::int64_t n, float f, float o, float* b),
                      (double* x, std::int64_t n, double f, double o, double* b), (x, n, f, o, b))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(add_bias_and_scan)
HEED_EXPORT_SIMD(sum_exponentials)
HEED_EXPORT_SIMD(scale_and_shift)
HEED_EXPORT_SIMD(sum_products)
HEED_EXPORT_SIMD(add_multiple)
HEED_EXPORT_SIMD(add_divergences)
HEED_EXPORT_SIMD(replace_by_gradients)

namespace {

/// The number of rows (tokens) in a chunk, the rows whose logits are computed at a time. The logits of so few rows (5
/// MB in float for a vocabulary of 10,000) stay in the last-level cache. With fewer rows there would be more chunks,
/// and each chunk reads and writes the whole gradient of the weight once.
constexpr std::int64_t kChunk = 128;

/// What add_row_loss() has found out of a row of logits.
template <class T>
struct RowLoss {
  T largest, exponentials;  // the largest logit; the sum of exp(logit - largest)
  T normaliser;             // log(sum of exp(logit))
};

/// The target of a row: one token, or a mixture of two, of which the second has the given share; and what teachers
/// predict, which takes another share of it.
template <class T>
struct RowTarget {
  std::int64_t token = 0, second = 0;
  double share = 0;
  const T* soft = nullptr;
  double soft_share = 0;
};

/// Returns the target of row i. `soft` is what teachers predict of it, or null.
template <class T>
RowTarget<T> target_of(std::span<const std::int32_t> targets, const CrossEntropyOptions& options, std::int64_t i,
                       const T* soft, double soft_share) {
  const auto row = static_cast<std::size_t>(i);
  RowTarget<T> out{.token = targets[row], .soft = soft, .soft_share = soft ? soft_share : 0};
  if (options.second_targets.empty()) return out;
  out.second = options.second_targets[row];
  out.share = static_cast<double>(options.second_shares[row]);
  return out;
}

/// Adds the bias to a row x of logits, and the loss of the row to `sums`. Where `exponentials` is not null, it receives
/// exp(x - the largest logit); it may be x.
template <class T>
RowLoss<T> add_row_loss(T* x, const T* bias, std::int64_t vocabulary, const RowTarget<T>& wanted, double smoothing,
                        CrossEntropySums& sums, T* exponentials = nullptr) {
  const std::int64_t target = wanted.token;
  RowLoss<T> row;
  T total;
  simd::add_bias_and_scan(x, bias, vocabulary, &row.largest, &total);
  const T target_logit = x[target];
  const double mixed_logit = wanted.share == 0 ? static_cast<double>(target_logit)
                                               : (1 - wanted.share) * static_cast<double>(target_logit) +
                                                     wanted.share * static_cast<double>(x[wanted.second]);
  // Where several words have the highest probability, the word with the lowest id counts as the prediction.
  T soft_logit = 0;
  if (wanted.soft) simd::sum_products(static_cast<const T*>(x), wanted.soft, vocabulary, &soft_logit);
  const bool correct = target_logit == row.largest && std::find(x, x + target, row.largest) == x + target;
  simd::sum_exponentials(exponentials, static_cast<const T*>(x), vocabulary, row.largest, &row.exponentials);
  const double normaliser = static_cast<double>(row.largest) + std::log(static_cast<double>(row.exponentials));
  const double likelihood = normaliser - mixed_logit;
  const double of_target = (1 - smoothing) * likelihood +
                           smoothing * (normaliser - static_cast<double>(total) / static_cast<double>(vocabulary));
  sums.loss += (1 - wanted.soft_share) * of_target + wanted.soft_share * (normaliser - static_cast<double>(soft_logit));
  sums.negative_log_likelihood += likelihood;
  sums.correct += correct;
  row.normaliser = static_cast<T>(normaliser);
  return row;
}

/// Adds the loss of one row x of logits to `sums`. Where `gradient` is true, replaces x by the gradient of
/// options.scale * loss with respect to the logits, and adds that gradient to `dbias`, if not null.
template <class T>
void cross_entropy_row(T* x, const T* bias, std::int64_t vocabulary, const RowTarget<T>& target,
                       const CrossEntropyOptions& options, bool gradient, T* dbias, CrossEntropySums& sums) {
  const double smoothing = options.label_smoothing, words = static_cast<double>(vocabulary);
  const double hard = options.scale * (1 - target.soft_share);
  const RowLoss<T> row = add_row_loss(x, bias, vocabulary, target, smoothing, sums, gradient ? x : nullptr);
  if (!gradient) return;
  simd::scale_and_shift(x, vocabulary, static_cast<T>(options.scale / static_cast<double>(row.exponentials)),
                        static_cast<T>(hard * smoothing / words), dbias);
  if (target.soft)
    simd::add_multiple(target.soft, vocabulary, static_cast<T>(-options.scale * target.soft_share), x, dbias);
  const auto subtract = [&](std::int64_t token, double share) {
    const T at_target = static_cast<T>(hard * (1 - smoothing) * share);
    x[token] -= at_target;
    if (dbias) dbias[token] -= at_target;
  };
  subtract(target.token, 1 - target.share);
  if (target.share > 0) subtract(target.second, target.share);
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

/// The matrix products of the output layer before and after a loss, which are computed chunk by chunk.
template <class T>
class OutputProducts {
 public:
  /// `backward` tells whether the gradient of hidden states will be asked for. An empty `dweight` is skipped.
  OutputProducts(CpuContext& device, Tensor<T> weight, Tensor<T> dweight, bool backward)
      : device_(device), dweight_(dweight), vocabulary_(weight.dim(0)), width_(weight.columns()) {
    forward_ = prepare_weight(device, width_, vocabulary_, GemmOperand<T>{weight.data(), width_, true});
    if (backward) backward_ = prepare_weight(device, vocabulary_, width_, GemmOperand<T>{weight.data(), width_});
  }

  /// Returns memory for the logits of a chunk of rows, and then their gradients.
  Tensor<T> make_logits(std::int64_t rows) const {
    return device_.arena.template tensor<T>({std::min(rows, kChunk), vocabulary_});
  }

  /// Computes the logits of a chunk of rows, without the bias.
  void project(Tensor<T> hidden, Tensor<T> logits) const {
    gemm(device_, hidden.rows(), T(1), {hidden.data(), width_}, forward_, T(0), logits.data(), vocabulary_);
  }

  /// Adds the gradients of a chunk of rows to dhidden, which may be empty, and to the gradient of the weight. `logits`
  /// holds the gradients of the logits.
  void propagate(Tensor<T> hidden, Tensor<T> logits, Tensor<T> dhidden) const {
    const ArenaScope scope(device_.arena);
    const std::int64_t count = hidden.rows();
    const GemmOperand<T> rows_of_hidden{hidden.data(), width_};
    if constexpr (std::is_same_v<T, float>)
      if (dhidden && dweight_ && takes_bfloat16(device_)) {
        Bfloat16Gradient rounded(device_.arena, count, vocabulary_, logits.data(), nullptr);
        const Bfloat16LeftOperand rows = rounded.add(device_.arena, 0, count, nullptr);
        gemm_bfloat16(1, rows, {backward_.tiles, vocabulary_, width_}, 1, dhidden.data(), width_);
        const Bfloat16Tiles right = bfloat16_tiles(device_.arena, count, width_, rows_of_hidden);
        return gemm_bfloat16(1, rounded.transposed(), right, 1, dweight_.data(), width_);
      }
    if (dhidden) gemm(device_, count, T(1), {logits.data(), vocabulary_}, backward_, T(1), dhidden.data(), width_);
    if (dweight_)
      gemm(device_, vocabulary_, width_, count, T(1), {logits.data(), vocabulary_, true}, rows_of_hidden, T(1),
           dweight_.data(), width_);
  }

 private:
  CpuContext& device_;
  Tensor<T> dweight_;
  std::int64_t vocabulary_, width_;
  RightOperand<T> forward_, backward_;
};

/// Returns rows begin ... begin + count - 1, or an empty tensor where x is empty.
template <class T>
Tensor<T> rows_of(Tensor<T> x, std::int64_t begin, std::int64_t count) {
  return x ? x.row_block(begin, count) : x;
}

/// Adds the loss of a pair of rows x and y of logits, the two passes over a token, to `sums`. Where `gradient` is true,
/// replaces them by their gradients and adds these to `dbias`, if not null. See consistent_cross_entropy().
template <class T>
void consistent_row(T* x, T* y, const T* bias, std::int64_t vocabulary, std::int64_t target,
                    const CrossEntropyOptions& options, double consistency, bool gradient, T* dbias,
                    CrossEntropySums& sums) {
  // The losses of both passes, without gradients, which leaves the logits with the bias in place.
  CrossEntropySums of_x, of_y;
  RowPairTerms<T> terms;
  terms.normaliser_x = add_row_loss<T>(x, bias, vocabulary, {target}, options.label_smoothing, of_x).normaliser;
  terms.normaliser_y = add_row_loss<T>(y, bias, vocabulary, {target}, options.label_smoothing, of_y).normaliser;
  simd::add_divergences(static_cast<const T*>(x), static_cast<const T*>(y), vocabulary, &terms);
  sums.loss +=
      (of_x.loss + of_y.loss) / 2 + consistency / 4 * (static_cast<double>(terms.pq) + static_cast<double>(terms.qp));
  sums.negative_log_likelihood += (of_x.negative_log_likelihood + of_y.negative_log_likelihood) / 2;
  sums.correct += of_x.correct;
  if (!gradient) return;
  const double half = options.scale / 2, smoothing = options.label_smoothing;
  terms.factor = static_cast<T>(half);
  terms.offset = static_cast<T>(half * smoothing / static_cast<double>(vocabulary));
  terms.agreement = static_cast<T>(options.scale * consistency / 4);
  simd::replace_by_gradients(x, y, vocabulary, static_cast<const RowPairTerms<T>*>(&terms), dbias);
  const T at_target = static_cast<T>(half * (1 - smoothing));
  x[target] -= at_target;
  y[target] -= at_target;
  if (dbias) dbias[target] -= 2 * at_target;
}

/// Computes what teachers predict of the tokens of a batch, chunk by chunk.
template <class T>
class TeacherPredictions {
 public:
  TeacherPredictions(CpuContext& device, const SoftTargets<T>& soft, std::int64_t rows) : soft_(soft) {
    if (soft.teachers.empty()) return;
    const Shape chunk{std::min(rows, kChunk), soft.teachers.front().weight.dim(0)};
    mean_ = device.arena.template tensor<T>(chunk);
    logits_ = device.arena.template tensor<T>(chunk);
    static_assert(std::is_trivially_destructible_v<OutputProducts<T>>);
    const std::size_t count = soft.teachers.size();
    layers_ = {static_cast<OutputProducts<T>*>(device.arena.allocate(count * sizeof(OutputProducts<T>))), count};
    for (std::size_t i = 0; i < count; ++i)
      new (&layers_[i]) OutputProducts<T>(device, soft.teachers[i].weight, Tensor<T>(), false);
  }

  /// Computes the predictions of the rows begin ... begin + count - 1 of the batch.
  void predict(std::int64_t begin, std::int64_t count) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const TeacherStates<T>& teacher = soft_.teachers[i];
      layers_[i].project(teacher.hidden.row_block(begin, count), logits_);
      for (std::int64_t r = 0; r < count; ++r) add_prediction(logits_.row(r), teacher.bias, mean_.row(r), i == 0);
    }
  }
  /// Returns the mean prediction of row r of the chunk; null where there are no teachers.
  const T* row(std::int64_t r) const { return mean_ ? mean_.row(r) : nullptr; }

 private:
  /// Adds the softmax of a row x of logits, divided by the number of teachers, to `mean`, which begins with the first.
  void add_prediction(T* x, Tensor<T> bias, T* mean, bool first) const {
    const std::int64_t vocabulary = mean_.columns();
    T largest, total, exponentials;
    simd::add_bias_and_scan(x, static_cast<const T*>(bias.data()), vocabulary, &largest, &total);
    simd::sum_exponentials(x, static_cast<const T*>(x), vocabulary, largest, &exponentials);
    if (first) std::fill_n(mean, vocabulary, T(0));
    simd::add_multiple(static_cast<const T*>(x), vocabulary, 1 / (exponentials * static_cast<T>(layers_.size())), mean,
                       static_cast<T*>(nullptr));
  }

  const SoftTargets<T>& soft_;
  Tensor<T> mean_;
  Tensor<T> logits_;
  std::span<OutputProducts<T>> layers_;  // of the teachers, in the arena
};

/// Stores the results of a loss.
template <class T>
void store(const CrossEntropySums& sums, const CrossEntropyOptions& options, LossResult<T> result) {
  if (result.loss) *result.loss = static_cast<T>(options.scale * sums.loss);
  if (result.sums) *result.sums = sums;
}

}  // namespace

template <class T>
void cross_entropy_forward(CpuContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                           std::span<const std::int32_t> targets, const CrossEntropyOptions& options,
                           const SoftTargets<T>& soft, Tensor<T> dhidden, Tensor<T> dweight, Tensor<T> dbias,
                           LossResult<T> result) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = hidden.rows(), vocabulary = weight.dim(0);
  const bool gradient = dhidden || dweight || dbias;
  const OutputProducts<T> products(device, weight, dweight, static_cast<bool>(dhidden));
  const Tensor<T> logits = products.make_logits(rows);
  TeacherPredictions<T> predictions(device, soft, rows);
  CrossEntropySums sums;
  sums.tokens = rows;
  for (std::int64_t begin = 0; begin < rows; begin += kChunk) {
    const std::int64_t count = std::min(kChunk, rows - begin);
    const Tensor<T> chunk = hidden.row_block(begin, count);
    products.project(chunk, logits);
    predictions.predict(begin, count);
    for (std::int64_t r = 0; r < count; ++r)
      cross_entropy_row(logits.row(r), static_cast<const T*>(bias.data()), vocabulary,
                        target_of(targets, options, begin + r, predictions.row(r), soft.share), options, gradient,
                        dbias.data(), sums);
    products.propagate(chunk, logits, rows_of(dhidden, begin, count));
  }
  store(sums, options, result);
}

template <class T>
void consistent_cross_entropy_forward(CpuContext& device, const PassStates<T>& first, const PassStates<T>& second,
                                      Tensor<T> weight, Tensor<T> bias, std::span<const std::int32_t> targets,
                                      const CrossEntropyOptions& options, double consistency, Tensor<T> dweight,
                                      Tensor<T> dbias, LossResult<T> result) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = first.hidden.rows(), vocabulary = weight.dim(0);
  const bool backward = first.dhidden || second.dhidden, gradient = backward || dweight || dbias;
  const OutputProducts<T> products(device, weight, dweight, backward);
  const Tensor<T> x = products.make_logits(rows), y = products.make_logits(rows);
  CrossEntropySums sums;
  sums.tokens = rows;
  for (std::int64_t begin = 0; begin < rows; begin += kChunk) {
    const std::int64_t count = std::min(kChunk, rows - begin);
    const Tensor<T> of_first = first.hidden.row_block(begin, count), of_second = second.hidden.row_block(begin, count);
    products.project(of_first, x);
    products.project(of_second, y);
    for (std::int64_t r = 0; r < count; ++r)
      consistent_row(x.row(r), y.row(r), static_cast<const T*>(bias.data()), vocabulary,
                     targets[static_cast<std::size_t>(begin + r)], options, consistency, gradient, dbias.data(), sums);
    products.propagate(of_first, x, rows_of(first.dhidden, begin, count));
    products.propagate(of_second, y, rows_of(second.dhidden, begin, count));
  }
  store(sums, options, result);
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

#define HEED_INSTANTIATE(T)                                                                                            \
  template void cross_entropy_forward(CpuContext&, Tensor<T>, Tensor<T>, Tensor<T>, std::span<const std::int32_t>,     \
                                      const CrossEntropyOptions&, const SoftTargets<T>&, Tensor<T>, Tensor<T>,         \
                                      Tensor<T>, LossResult<T>);                                                       \
  template void consistent_cross_entropy_forward(CpuContext&, const PassStates<T>&, const PassStates<T>&, Tensor<T>,   \
                                                 Tensor<T>, std::span<const std::int32_t>, const CrossEntropyOptions&, \
                                                 double, Tensor<T>, Tensor<T>, LossResult<T>);                         \
  template void projection_log_probabilities(CpuContext&, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>);                 \
  template void token_log_probabilities(CpuContext&, Tensor<T>, Tensor<T>, Tensor<T>, std::span<const std::int32_t>,   \
                                        T*);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
#endif  // HWY_ONCE
