#include "heed/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <span>
#include <type_traits>

#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/ops/linear.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// The number of logits in a chunk, the rows whose logits are computed at a time: 256 MB in float32. With smaller
/// chunks, the gradient of the weight would be read and written more often.
constexpr std::int64_t kLogits = std::int64_t{1} << 26;

std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t vocabulary) {
  return std::clamp<std::int64_t>(kLogits / vocabulary, 1, std::max<std::int64_t>(rows, 1));
}

/// The targets of all rows, in the memory of the GPU (see CrossEntropyOptions), and what teachers predict of the rows
/// of a chunk, or null (see SoftTargets).
template <class T>
struct Targets {
  const std::int32_t *first = nullptr, *second = nullptr;
  const float* second_shares = nullptr;
  const T* soft = nullptr;
  double soft_share = 0;
};

template <class T>
Targets<T> upload_targets(CudaContext& device, std::span<const std::int32_t> targets,
                          const CrossEntropyOptions& options) {
  Targets<T> out{upload(device, targets)};
  if (options.second_targets.empty()) return out;
  out.second = upload(device, options.second_targets);
  out.second_shares = upload(device, options.second_shares);
  return out;
}

/// What one row adds to CrossEntropySums.
struct RowSums {
  double loss, likelihood;
  std::int32_t correct;
};

/// What a row of logits has to know for its gradient.
template <class T>
struct RowLoss {
  T largest, exponentials;  // the largest logit; the sum of exp(logit - largest)
  T normaliser;             // log(sum of exp(logit))
};

/// Adds the bias to the row x of logits of this block, and returns what row_gradient() needs to all threads. `sums`
/// receives the loss of the row: that of row i of the batch, whose target may be mixed.
template <class T>
__device__ RowLoss<T> row_loss(T* x, const T* bias, std::int64_t vocabulary, const Targets<T>& targets, std::int64_t i,
                               double smoothing, RowSums& sums) {
  RowLoss<T> row;
  T largest = static_cast<T>(-INFINITY), total = 0;
  for (std::int64_t v = threadIdx.x; v < vocabulary; v += blockDim.x) {
    const T logit = bias ? x[v] + bias[v] : x[v];
    x[v] = logit;
    largest = logit > largest ? logit : largest;
    total += logit;
  }
  row.largest = block_max(largest, shared_memory<T>());
  total = block_sum(total, shared_memory<T>());

  const std::int32_t target = targets.first[i];
  const T target_logit = x[target];
  double mixed_logit = static_cast<double>(target_logit);
  if (targets.second && targets.second_shares[i] > 0) {
    const double share = static_cast<double>(targets.second_shares[i]);
    mixed_logit = (1 - share) * mixed_logit + share * static_cast<double>(x[targets.second[i]]);
  }
  // Where several words have the highest probability, the word with the lowest id counts as the prediction.
  bool is_later = target_logit < row.largest;
  const T* const soft = targets.soft ? targets.soft + blockIdx.x * vocabulary : nullptr;
  T exponentials = 0, soft_logit = 0;
  for (std::int64_t v = threadIdx.x; v < vocabulary; v += blockDim.x) {
    is_later = is_later || (v < target && x[v] == row.largest);
    exponentials += std::exp(x[v] - row.largest);
    if (soft) soft_logit += soft[v] * x[v];
  }
  row.exponentials = block_sum(exponentials, shared_memory<T>());
  if (soft) soft_logit = block_sum(soft_logit, shared_memory<T>());
  const T later = block_max(T(is_later), shared_memory<T>());
  const double normaliser = static_cast<double>(row.largest) + std::log(static_cast<double>(row.exponentials));
  const double likelihood = normaliser - mixed_logit;
  row.normaliser = static_cast<T>(normaliser);
  const double of_target = (1 - smoothing) * likelihood +
                           smoothing * (normaliser - static_cast<double>(total) / static_cast<double>(vocabulary));
  sums.loss =
      (1 - targets.soft_share) * of_target + targets.soft_share * (normaliser - static_cast<double>(soft_logit));
  sums.likelihood = likelihood;
  sums.correct = later == 0;
  return row;
}

/// Stores element v of the gradient of the row x of logits, in place of the logit, or rounded to bfloat16 in the row
/// `rounded`, where that is not null.
template <class T>
__device__ __forceinline__ void store_gradient(T* x, Bfloat16* rounded, std::int64_t v, T gradient) {
  if (rounded)
    rounded[v] = to_bfloat16(static_cast<float>(gradient));
  else
    x[v] = gradient;
}

/// Computes the loss of row first_row + block of the batch from its logits, and their gradient where `gradient` is true
/// (see store_gradient()).
template <class T>
__global__ void cross_entropy_kernel(T* logits, Bfloat16* rounded, const T* bias, std::int64_t vocabulary,
                                     Targets<T> targets, std::int64_t first_row, double smoothing, double scale,
                                     bool gradient, RowSums* sums) {
  const std::int64_t i = first_row + blockIdx.x;
  if (rounded) rounded += blockIdx.x * vocabulary;
  T* const x = logits + blockIdx.x * vocabulary;
  RowSums of_row;
  const RowLoss<T> row = row_loss(x, bias, vocabulary, targets, i, smoothing, of_row);
  if (threadIdx.x == 0) sums[i] = of_row;
  if (!gradient) return;
  const double hard = scale * (1 - targets.soft_share);
  const T factor = static_cast<T>(scale / static_cast<double>(row.exponentials)),
          offset = static_cast<T>(hard * smoothing / static_cast<double>(vocabulary)),
          of_soft = static_cast<T>(scale * targets.soft_share);
  const T* const soft = targets.soft ? targets.soft + blockIdx.x * vocabulary : nullptr;
  const double second_share = targets.second ? static_cast<double>(targets.second_shares[i]) : 0;
  const std::int32_t first = targets.first[i], second = targets.second ? targets.second[i] : -1;
  for (std::int64_t v = threadIdx.x; v < vocabulary; v += blockDim.x) {
    T g = factor * std::exp(x[v] - row.largest) - offset;
    if (soft) g -= of_soft * soft[v];
    if (v == first) g -= static_cast<T>(hard * (1 - smoothing) * (1 - second_share));
    if (v == second) g -= static_cast<T>(hard * (1 - smoothing) * second_share);
    store_gradient(x, rounded, v, g);
  }
}

/// Does for the rows first_row + block of both passes of consistent_cross_entropy() what cross_entropy_kernel() does.
template <class T>
__global__ void consistent_kernel(T* x_logits, T* y_logits, Bfloat16* x_rounded, Bfloat16* y_rounded, const T* bias,
                                  std::int64_t vocabulary, Targets<T> targets, std::int64_t first_row, double smoothing,
                                  double scale, double consistency, bool gradient, RowSums* sums) {
  const std::int64_t i = first_row + blockIdx.x;
  if (x_rounded) x_rounded += blockIdx.x * vocabulary;
  if (y_rounded) y_rounded += blockIdx.x * vocabulary;
  T *const x = x_logits + blockIdx.x * vocabulary, *const y = y_logits + blockIdx.x * vocabulary;
  RowSums of_x, of_y;
  const T normaliser_x = row_loss(x, bias, vocabulary, targets, i, smoothing, of_x).normaliser,
          normaliser_y = row_loss(y, bias, vocabulary, targets, i, smoothing, of_y).normaliser;
  T pq = 0, qp = 0;  // KL(p || q) and KL(q || p)
  for (std::int64_t v = threadIdx.x; v < vocabulary; v += blockDim.x) {
    const T log_p = x[v] - normaliser_x, log_q = y[v] - normaliser_y;
    pq += std::exp(log_p) * (log_p - log_q);
    qp += std::exp(log_q) * (log_q - log_p);
  }
  pq = block_sum(pq, shared_memory<T>());
  qp = block_sum(qp, shared_memory<T>());
  if (threadIdx.x == 0)
    sums[i] = {(of_x.loss + of_y.loss) / 2 + consistency / 4 * (static_cast<double>(pq) + static_cast<double>(qp)),
               (of_x.likelihood + of_y.likelihood) / 2, of_x.correct};
  if (!gradient) return;
  const T factor = static_cast<T>(scale / 2),
          offset = static_cast<T>(scale / 2 * smoothing / static_cast<double>(vocabulary)),
          agreement = static_cast<T>(scale * consistency / 4), at_target = static_cast<T>(scale / 2 * (1 - smoothing));
  const std::int32_t target = targets.first[i];
  for (std::int64_t v = threadIdx.x; v < vocabulary; v += blockDim.x) {
    const T log_p = x[v] - normaliser_x, log_q = y[v] - normaliser_y, ratio = log_p - log_q;
    const T p = std::exp(log_p), q = std::exp(log_q), subtracted = offset + (v == target ? at_target : T(0));
    store_gradient(x, x_rounded, v, factor * p - subtracted + agreement * (p * (ratio + (1 - pq)) - q));
    store_gradient(y, y_rounded, v, factor * q - subtracted + agreement * (q * ((1 - qp) - ratio) - p));
  }
}

/// Sums the rows in a fixed order, by one block. `loss`, where not null, receives scale times the loss.
template <class T>
__global__ void sum_rows_kernel(const RowSums* rows, std::int64_t count, double scale, T* loss,
                                CrossEntropySums* sums) {
  double loss_sum = 0, likelihood = 0, correct = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    loss_sum += rows[i].loss;
    likelihood += rows[i].likelihood;
    correct += rows[i].correct;
  }
  loss_sum = block_sum(loss_sum, shared_memory<double>());
  likelihood = block_sum(likelihood, shared_memory<double>());
  correct = block_sum(correct, shared_memory<double>());
  if (threadIdx.x != 0) return;
  if (loss) *loss = static_cast<T>(scale * loss_sum);
  sums->loss = loss_sum;
  sums->negative_log_likelihood = likelihood;
  sums->tokens = count;
  sums->correct = static_cast<std::int64_t>(correct);
}

template <class T>
void store(CudaContext& device, const RowSums* rows, std::int64_t count, const CrossEntropyOptions& options,
           LossResult<T> result) {
  CrossEntropySums* const sums = static_cast<CrossEntropySums*>(device.arena.allocate(sizeof(CrossEntropySums)));
  constexpr unsigned kThreads = 256;
  launch(device, {1, kThreads, kThreads / 32 * sizeof(double)}, sum_rows_kernel<T>, rows, count, options.scale,
         result.loss, sums);
  if (result.sums) download(device, sums, {result.sums, 1});
}

/// Returns rows begin ... begin + count - 1, or an empty tensor where x is empty.
template <class T>
Tensor<T> rows_of(Tensor<T> x, std::int64_t begin, std::int64_t count) {
  return x ? x.row_block(begin, count) : x;
}

/// The matrix products of the output layer before and after a loss, which are computed chunk by chunk. Where products
/// multiply bfloat16, the weight is rounded once, and the gradients of the logits are stored as bfloat16 at once: they
/// are by far the largest matrix of a training.
template <class T>
class OutputProducts {
 public:
  /// Empty gradients are skipped.
  OutputProducts(CudaContext& device, Tensor<T> weight, Tensor<T> dweight, Tensor<T> dbias)
      : device_(device),
        weight_(operand_of_products(device, MaybeRounded<T>{weight})),
        dweight_(dweight),
        dbias_(dbias) {}

  /// Returns memory for the logits of the rows of a chunk (`full`), and for their gradients in bfloat16 (`rounded`).
  MaybeRounded<T> make_logits(std::int64_t rows, bool gradient) const {
    const Shape chunk{rows, weight_.rows()};
    MaybeRounded<T> logits{device_.arena.template tensor<T>(chunk)};
    if (gradient) logits.rounded = rounded_memory<T>(device_, chunk);
    return logits;
  }

  /// Computes the logits of the `count` rows of `hidden` from `begin` on, without the bias.
  void project(const MaybeRounded<T>& hidden, std::int64_t begin, std::int64_t count, const MaybeRounded<T>& logits) {
    hidden.with_operand(begin, false, [&](auto left) {
      weight_.with_operand(0, true, [&](auto right) {
        gemm(device_, count, weight_.rows(), weight_.columns(), T(1), left, right, T(0), logits.full.data(),
             weight_.rows());
      });
    });
  }

  /// Adds the gradients of a chunk of rows, which are in `logits`, to dhidden and to the gradients of weight and bias.
  void propagate(const MaybeRounded<T>& logits, const MaybeRounded<T>& hidden, std::int64_t begin, std::int64_t count,
                 Tensor<T> dhidden) {
    const std::int64_t vocabulary = weight_.rows(), width = weight_.columns();
    if (dhidden)
      logits.with_operand(0, false, [&](auto left) {
        weight_.with_operand(0, false, [&](auto right) {
          gemm(device_, count, width, vocabulary, T(1), left, right, T(1), dhidden.row(begin), width);
        });
      });
    if (dweight_)
      logits.with_operand(0, true, [&](auto left) {
        hidden.with_operand(begin, false, [&](auto right) {
          gemm(device_, vocabulary, width, count, T(1), left, right, T(1), dweight_.data(), width);
        });
      });
    if (dbias_)
      add_column_sums(device_, MaybeRounded<T>{rows_of(logits.full, 0, count), rows_of(logits.rounded, 0, count)},
                      dbias_);
  }

 private:
  CudaContext& device_;
  MaybeRounded<T> weight_;
  Tensor<T> dweight_, dbias_;
};

/// Returns the logarithm of the sum of exp(logit(v)) over the vocabulary to all threads of this block.
template <class T, class Logit>
__device__ T normaliser_of(std::int64_t vocabulary, const Logit& logit) {
  T largest = static_cast<T>(-INFINITY), sum = 0;
  for (std::int64_t v = threadIdx.x; v < vocabulary; v += blockDim.x) largest = logit(v) > largest ? logit(v) : largest;
  largest = block_max(largest, shared_memory<T>());
  for (std::int64_t v = threadIdx.x; v < vocabulary; v += blockDim.x) sum += std::exp(logit(v) - largest);
  return largest + std::log(block_sum(sum, shared_memory<T>()));
}

/// Adds `factor` times the softmax of the row of logits of this block, with the bias, to the row of `mean`, or begins
/// the row of `mean` with it.
template <class T>
__global__ void add_prediction_kernel(const T* logits, const T* bias, std::int64_t vocabulary, T factor, bool begins,
                                      T* mean) {
  const T* const x = logits + blockIdx.x * vocabulary;
  mean += blockIdx.x * vocabulary;
  const auto logit = [&](std::int64_t v) { return bias ? x[v] + bias[v] : x[v]; };
  const T normaliser = normaliser_of<T>(vocabulary, logit);
  for (std::int64_t v = threadIdx.x; v < vocabulary; v += blockDim.x)
    mean[v] = (begins ? T(0) : mean[v]) + factor * std::exp(logit(v) - normaliser);
}

/// Computes what teachers predict of the tokens of a batch, chunk by chunk.
template <class T>
class TeacherPredictions {
 public:
  TeacherPredictions(CudaContext& device, const SoftTargets<T>& soft, std::int64_t rows) : device_(device) {
    if (soft.teachers.empty()) return;
    const Shape chunk{rows, soft.teachers.front().weight.dim(0)};
    mean_ = device.arena.template tensor<T>(chunk);
    logits_.full = device.arena.template tensor<T>(chunk);
    static_assert(std::is_trivially_destructible_v<Layer>);
    const std::size_t count = soft.teachers.size();
    layers_ = {static_cast<Layer*>(device.host_arena.allocate(count * sizeof(Layer))), count};
    for (std::size_t i = 0; i < count; ++i) {
      const TeacherStates<T>& teacher = soft.teachers[i];
      new (&layers_[i]) Layer{OutputProducts<T>(device, teacher.weight, Tensor<T>(), Tensor<T>()),
                              operand_of_products(device, MaybeRounded<T>{teacher.hidden}), teacher.bias};
    }
  }

  /// Computes the predictions of `count` rows from `begin` on. Returns their means, or null where there are no
  /// teachers.
  const T* predict(std::int64_t begin, std::int64_t count) const {
    for (Layer& layer : layers_) {
      layer.products.project(layer.hidden, begin, count, logits_);
      launch(device_, shape_for_rows<T>(count, mean_.columns()), add_prediction_kernel<T>, logits_.full.data(),
             layer.bias.data(), mean_.columns(), 1 / static_cast<T>(layers_.size()), &layer == &layers_.front(),
             mean_.data());
    }
    return mean_.data();
  }

 private:
  /// The output layer of a teacher, and what it reads, both rounded once for all chunks.
  struct Layer {
    OutputProducts<T> products;
    MaybeRounded<T> hidden;
    Tensor<T> bias;
  };

  CudaContext& device_;
  std::span<Layer> layers_;  // in the host's arena
  Tensor<T> mean_;
  MaybeRounded<T> logits_;
};

/// Subtracts from the row of logits of this block, to which it adds the bias, the logarithm of the sum of their
/// exponentials. Where `targets` is not null, the row stays as it is, and out[block] receives the result for its
/// target.
template <class T>
__global__ void log_probabilities_kernel(T* logits, const T* bias, std::int64_t vocabulary, const std::int32_t* targets,
                                         T* out) {
  T* const x = logits + blockIdx.x * vocabulary;
  const auto logit = [&](std::int64_t v) { return bias ? x[v] + bias[v] : x[v]; };
  const T normaliser = normaliser_of<T>(vocabulary, logit);
  if (targets) {
    if (threadIdx.x == 0) out[blockIdx.x] = logit(targets[blockIdx.x]) - normaliser;
    return;
  }
  for (std::int64_t v = threadIdx.x; v < vocabulary; v += blockDim.x) x[v] = logit(v) - normaliser;
}

}  // namespace

template <class T>
void cross_entropy_forward(CudaContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                           std::span<const std::int32_t> targets, const CrossEntropyOptions& options,
                           const SoftTargets<T>& soft, Tensor<T> dhidden, Tensor<T> dweight, Tensor<T> dbias,
                           LossResult<T> result) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = hidden.rows(), vocabulary = weight.dim(0), most = rows_of_chunk(rows, vocabulary);
  const bool gradient = dhidden || dweight || dbias;
  Targets<T> on_device = upload_targets<T>(device, targets, options);
  const TeacherPredictions<T> predictions(device, soft, most);
  if (!soft.teachers.empty()) on_device.soft_share = soft.share;
  RowSums* const sums = static_cast<RowSums*>(device.arena.allocate(static_cast<std::size_t>(rows) * sizeof(RowSums)));
  OutputProducts<T> products(device, weight, dweight, dbias);
  const MaybeRounded<T> states = operand_of_products(device, MaybeRounded<T>{hidden}),
                        logits = products.make_logits(most, gradient);
  for (std::int64_t begin = 0, count = 0; begin < rows; begin += count) {
    count = std::min(most, rows - begin);
    products.project(states, begin, count, logits);
    on_device.soft = predictions.predict(begin, count);
    launch(device, shape_for_rows<T>(count, vocabulary), cross_entropy_kernel<T>, logits.full.data(),
           logits.rounded.data(), bias.data(), vocabulary, on_device, begin, options.label_smoothing, options.scale,
           gradient, sums);
    products.propagate(logits, states, begin, count, dhidden);
  }
  store(device, sums, rows, options, result);
}

template <class T>
void consistent_cross_entropy_forward(CudaContext& device, const PassStates<T>& first, const PassStates<T>& second,
                                      Tensor<T> weight, Tensor<T> bias, std::span<const std::int32_t> targets,
                                      const CrossEntropyOptions& options, double consistency, Tensor<T> dweight,
                                      Tensor<T> dbias, LossResult<T> result) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = first.hidden.rows(), vocabulary = weight.dim(0), most = rows_of_chunk(rows, vocabulary);
  const bool gradient = first.dhidden || second.dhidden || dweight || dbias;
  const Targets<T> on_device{upload(device, targets)};
  RowSums* const sums = static_cast<RowSums*>(device.arena.allocate(static_cast<std::size_t>(rows) * sizeof(RowSums)));
  OutputProducts<T> products(device, weight, dweight, dbias);
  const MaybeRounded<T> of_first = operand_of_products(device, MaybeRounded<T>{first.hidden}),
                        of_second = operand_of_products(device, MaybeRounded<T>{second.hidden}),
                        x = products.make_logits(most, gradient), y = products.make_logits(most, gradient);
  for (std::int64_t begin = 0, count = 0; begin < rows; begin += count) {
    count = std::min(most, rows - begin);
    products.project(of_first, begin, count, x);
    products.project(of_second, begin, count, y);
    launch(device, shape_for_rows<T>(count, vocabulary), consistent_kernel<T>, x.full.data(), y.full.data(),
           x.rounded.data(), y.rounded.data(), bias.data(), vocabulary, on_device, begin, options.label_smoothing,
           options.scale, consistency, gradient, sums);
    products.propagate(x, of_first, begin, count, first.dhidden);
    products.propagate(y, of_second, begin, count, second.dhidden);
  }
  store(device, sums, rows, options, result);
}

template <class T>
void projection_log_probabilities(CudaContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                                  Tensor<T> out) {
  gemm_rows<T>(device, out.rows(), out.columns(), weight.columns(), hidden.data(), weight.data(), out.data());
  launch(device, shape_for_rows<T>(out.rows(), out.columns()), log_probabilities_kernel<T>, out.data(), bias.data(),
         out.columns(), nullptr, nullptr);
}

template <class T>
void token_log_probabilities(CudaContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                             std::span<const std::int32_t> targets, T* out) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = hidden.rows(), vocabulary = weight.dim(0), most = rows_of_chunk(rows, vocabulary);
  const std::int32_t* const on_device = upload(device, targets);
  T* const logits = device.arena.tensor<T>({most, vocabulary}).data();
  for (std::int64_t begin = 0, count = 0; begin < rows; begin += count) {
    count = std::min(most, rows - begin);
    gemm_rows<T>(device, count, vocabulary, weight.columns(), hidden.row(begin), weight.data(), logits);
    launch(device, shape_for_rows<T>(count, vocabulary), log_probabilities_kernel<T>, logits, bias.data(), vocabulary,
           on_device + begin, out + begin);
  }
}

#define HEED_INSTANTIATE(T)                                                                                            \
  template void cross_entropy_forward(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>, std::span<const std::int32_t>,    \
                                      const CrossEntropyOptions&, const SoftTargets<T>&, Tensor<T>, Tensor<T>,         \
                                      Tensor<T>, LossResult<T>);                                                       \
  template void consistent_cross_entropy_forward(CudaContext&, const PassStates<T>&, const PassStates<T>&, Tensor<T>,  \
                                                 Tensor<T>, std::span<const std::int32_t>, const CrossEntropyOptions&, \
                                                 double, Tensor<T>, Tensor<T>, LossResult<T>);                         \
  template void projection_log_probabilities(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>);                \
  template void token_log_probabilities(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>, std::span<const std::int32_t>,  \
                                        T*);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
