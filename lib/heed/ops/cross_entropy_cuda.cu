#include "heed/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <span>
#include <type_traits>

#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/ops/linear.h"
#include "heed/tensor/cuda_language.h"
#include "heed/tensor/cuda_packs.h"

namespace heed {
namespace {

/// The number of logits in a chunk, the rows whose logits are computed at a time: 256 MB in float32. With smaller
/// chunks, the gradient of the weight would be read and written more often.
constexpr std::int64_t kLogits = std::int64_t{1} << 26;

/// Returns the distance between rows of logits: every row begins at an aligned address, for packs and for products of
/// matrices. Nothing reads what is between the end of a row and the next row, but a pack may write it.
std::int64_t stride_of_logits(std::int64_t vocabulary) {
  constexpr std::int64_t kAlignment = 8;  // 16 bytes in bfloat16
  return (vocabulary + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t vocabulary) {
  return std::clamp<std::int64_t>(kLogits / stride_of_logits(vocabulary), 1, std::max<std::int64_t>(rows, 1));
}

/// The targets of all rows, in the memory of the GPU (see CrossEntropyOptions), and what teachers predict of the rows
/// of a chunk, or null (see SoftTargets).
template <class T>
struct Targets {
  const std::int32_t *first = nullptr, *second = nullptr;
  const float* second_shares = nullptr;
  const T* soft = nullptr;
  std::int64_t soft_stride = 0;  // the distance between rows of `soft`
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

/// The logits that a thread reads at once, the packs of logits that a thread can hold in registers, and the largest
/// number of threads of a block.
constexpr int kLogitsOfPack = 4, kHeldPacks = 8;
constexpr unsigned kMostThreads = 1024;
template <class T>
using LogitPack = Pack<T, kLogitsOfPack>;

/// The row of logits of this block, which its threads visit pack by pack. The places of the last pack that are behind
/// the row have the logit minus infinity. With `Held` the row is read once, into registers, and what a visitor stores
/// in a pack is there at the next visit; otherwise every visit reads the logits again.
template <class T, bool Held>
class LogitRow {
 public:
  /// Reads the row of matrices `logits` and `rounded`, whose rows begin `stride` elements apart. `rounded` and the bias
  /// may be null.
  __device__ LogitRow(T* logits, Bfloat16* rounded, std::int64_t stride, const T* bias, std::int64_t vocabulary)
      : x_(logits + blockIdx.x * stride),
        rounded_(rounded ? rounded + blockIdx.x * stride : nullptr),
        bias_(bias),
        vocabulary_(static_cast<int>(vocabulary)) {
    if constexpr (Held) {
      // All packs are requested before the first of them is needed.
      HEED_UNROLL
      for (int j = 0; j < kHeldPacks; ++j)
        if (place(j) < vocabulary_) held_[j] = load_pack<kLogitsOfPack>(x_ + place(j));
      HEED_UNROLL
      for (int j = 0; j < kHeldPacks; ++j)
        if (place(j) < vocabulary_) complete(place(j), held_[j]);
    }
  }

  /// Returns the logit of a word.
  __device__ T logit(std::int64_t v) const { return bias_ ? x_[v] + bias_[v] : x_[v]; }
  __device__ bool contains(int v) const { return v < vocabulary_; }

  /// Calls visit(v, pack) for each pack of this thread: the logits v, v + 1, ....
  template <class Visit>
  __device__ __forceinline__ void for_each(const Visit& visit) {
    if constexpr (Held) {
      HEED_UNROLL
      for (int j = 0; j < kHeldPacks; ++j)
        if (place(j) < vocabulary_) visit(place(j), held_[j]);
    } else {
      for (int v = place(0); v < vocabulary_; v += kLogitsOfPack * static_cast<int>(blockDim.x)) {
        LogitPack<T> pack = read(v);
        visit(v, pack);
      }
    }
  }
  /// Returns the pack at v.
  __device__ __forceinline__ LogitPack<T> read(int v) const {
    LogitPack<T> pack = load_pack<kLogitsOfPack>(x_ + v);
    complete(v, pack);
    return pack;
  }

  /// Stores the gradient of the pack at v in place of the logits, or rounded to bfloat16 where there is memory for
  /// that.
  __device__ __forceinline__ void store_gradient(int v, const LogitPack<T>& gradient) const {
    if (rounded_)
      store_pack(round_pack(gradient), rounded_ + v);
    else
      store_pack(gradient, x_ + v);
  }

 private:
  /// Returns the first place of pack j of this thread.
  __device__ int place(int j) const {
    return kLogitsOfPack * (static_cast<int>(threadIdx.x) + j * static_cast<int>(blockDim.x));
  }
  /// Adds the bias to the pack at v, and marks the places behind the row.
  __device__ __forceinline__ void complete(int v, LogitPack<T>& pack) const {
    if (!bias_ && contains(v + kLogitsOfPack - 1)) return;
    HEED_UNROLL
    for (int k = 0; k < kLogitsOfPack; ++k) {
      if (!contains(v + k))
        pack[k] = static_cast<T>(-INFINITY);
      else if (bias_)
        pack[k] += bias_[v + k];
    }
  }

  T* x_;
  Bfloat16* rounded_;
  const T* bias_;
  int vocabulary_;
  LogitPack<T> held_[Held ? kHeldPacks : 1]{};
};

/// Tells whether the threads of a block can hold a row of logits in registers.
template <class T>
bool holds_row(std::int64_t vocabulary) {
  return sizeof(T) <= sizeof(float) && vocabulary <= kMostThreads * kHeldPacks * kLogitsOfPack;
}

/// Returns the shape of a launch with a block for each of `rows` rows of logits. The blocks that run at the same time
/// should read no more logits than the cache holds if they read them again: rows of a large vocabulary get large
/// blocks.
template <class T>
LaunchShape shape_for_logits(std::int64_t rows, std::int64_t vocabulary, bool held) {
  LaunchShape shape = shape_for_rows<T>(rows, vocabulary);
  constexpr std::int64_t kWarpLogits = 32 * kHeldPacks * kLogitsOfPack;
  if (held)
    shape.threads = static_cast<unsigned>((vocabulary + kWarpLogits - 1) / kWarpLogits * 32);
  else if (vocabulary > kMostThreads * kLogitsOfPack)
    shape.threads = kMostThreads;
  shape.shared_bytes = shape.threads / 32 * sizeof(T);
  return shape;
}

/// What the loss of a row and its gradient need of the logits.
template <class T>
struct RowLoss {
  T largest, exponentials, total;  // the largest logit; the sums of exp(logit - largest) and of the logits
  T target_logit, second_logit;    // the logits of the targets
  T soft_logit;                    // the sum of the logits times what teachers predict
  bool correct;

  /// Returns log(sum of exp(logit)).
  __device__ double normaliser() const {
    return static_cast<double>(largest) + std::log(static_cast<double>(exponentials));
  }
};

/// Returns what a row of logits tells to all threads: that of row i of the batch, whose target may be mixed. Replaces
/// the logits of a row that is held by exp(logit - largest).
template <class T, bool Held>
__device__ RowLoss<T> row_loss(LogitRow<T, Held>& row, const Targets<T>& targets, std::int64_t i) {
  RowLoss<T> out{};
  const std::int32_t target = targets.first[i];
  out.target_logit = row.logit(target);
  out.second_logit = targets.second && targets.second_shares[i] > 0 ? row.logit(targets.second[i]) : T(0);
  T largest = static_cast<T>(-INFINITY), total = 0;
  row.for_each([&](int v, const LogitPack<T>& logits) {
    HEED_UNROLL
    for (int k = 0; k < kLogitsOfPack; ++k) {
      largest = std::fmax(largest, logits[k]);
      if (row.contains(v + k)) total += logits[k];
    }
  });
  out.largest = block_max(largest, shared_memory<T>());
  out.total = block_sum(total, shared_memory<T>());

  // Where several words have the highest probability, the word with the lowest id counts as the prediction.
  bool is_later = out.target_logit < out.largest;
  const bool may_be_correct = !is_later;
  const T* const soft = !Held && targets.soft ? targets.soft + blockIdx.x * targets.soft_stride : nullptr;
  T exponentials = 0, soft_logit = 0;
  row.for_each([&](int v, LogitPack<T>& logits) {
    if (may_be_correct && v < target) {
      HEED_UNROLL
      for (int k = 0; k < kLogitsOfPack; ++k) is_later = is_later || (v + k < target && logits[k] == out.largest);
    }
    if (soft) {
      HEED_UNROLL
      for (int k = 0; k < kLogitsOfPack; ++k)
        if (row.contains(v + k)) soft_logit += soft[v + k] * logits[k];
    }
    HEED_UNROLL
    for (int k = 0; k < kLogitsOfPack; ++k) exponentials += logits[k] = std::exp(logits[k] - out.largest);
  });
  out.exponentials = block_sum(exponentials, shared_memory<T>());
  if (soft) out.soft_logit = block_sum(soft_logit, shared_memory<T>());
  out.correct = may_be_correct && block_max(T(is_later), shared_memory<T>()) == 0;
  return out;
}

/// Returns what row i of the batch adds to the sums.
template <class T>
__device__ RowSums sums_of(const RowLoss<T>& row, std::int64_t vocabulary, const Targets<T>& targets, std::int64_t i,
                           double smoothing) {
  double mixed_logit = static_cast<double>(row.target_logit);
  if (targets.second && targets.second_shares[i] > 0) {
    const double share = static_cast<double>(targets.second_shares[i]);
    mixed_logit = (1 - share) * mixed_logit + share * static_cast<double>(row.second_logit);
  }
  const double normaliser = row.normaliser(), likelihood = normaliser - mixed_logit;
  const double of_target = (1 - smoothing) * likelihood +
                           smoothing * (normaliser - static_cast<double>(row.total) / static_cast<double>(vocabulary));
  const double of_soft = normaliser - static_cast<double>(row.soft_logit);
  return {(1 - targets.soft_share) * of_target + targets.soft_share * of_soft, likelihood, row.correct};
}

/// The factors of the gradients of the logits, which are the same for all rows.
template <class T>
struct GradientFactors {
  T scale, offset, of_soft;  // of the predicted probabilities, of all words alike, and of the teachers' predictions
  double of_target;

  GradientFactors(const CrossEntropyOptions& options, double soft_share, std::int64_t vocabulary)
      : scale(static_cast<T>(options.scale)),
        offset(static_cast<T>(options.scale * (1 - soft_share) * options.label_smoothing /
                              static_cast<double>(vocabulary))),
        of_soft(static_cast<T>(options.scale * soft_share)),
        of_target(options.scale * (1 - soft_share) * (1 - options.label_smoothing)) {}
};

/// Stores the gradient of a row of logits, which is row i of the batch, after row_loss().
template <class T, bool Held>
__device__ __forceinline__ void store_gradients(LogitRow<T, Held>& row, const RowLoss<T>& loss,
                                                const Targets<T>& targets, std::int64_t i,
                                                const GradientFactors<T>& factors) {
  const T factor = factors.scale / loss.exponentials;
  const T* const soft = !Held && targets.soft ? targets.soft + blockIdx.x * targets.soft_stride : nullptr;
  const std::int32_t first = targets.first[i], second = targets.second ? targets.second[i] : first;
  const double second_share = targets.second ? static_cast<double>(targets.second_shares[i]) : 0;
  const T at_first = static_cast<T>(factors.of_target * (1 - second_share)),
          at_second = static_cast<T>(factors.of_target * second_share);
  const auto is_in_pack = [](int word, int v) { return word >= v && word < v + kLogitsOfPack; };
  row.for_each([&](int v, const LogitPack<T>& visited) {
    LogitPack<T> g;
    HEED_UNROLL
    for (int k = 0; k < kLogitsOfPack; ++k)
      g[k] = factor * (Held ? visited[k] : std::exp(visited[k] - loss.largest)) - factors.offset;
    if (soft) {
      HEED_UNROLL
      for (int k = 0; k < kLogitsOfPack; ++k)
        if (row.contains(v + k)) g[k] -= factors.of_soft * soft[v + k];
    }
    if (is_in_pack(first, v) || is_in_pack(second, v)) {
      HEED_UNROLL
      for (int k = 0; k < kLogitsOfPack; ++k) {
        if (v + k == first) g[k] -= at_first;
        if (v + k == second) g[k] -= at_second;
      }
    }
    row.store_gradient(v, g);
  });
}

/// Computes the loss of row first_row + block of the batch from its logits, and their gradient where `gradient` is true
/// (see LogitRow::store_gradient()). Only rows that are not held can have soft targets.
template <class T, bool Held>
__global__ __launch_bounds__(kMostThreads) void cross_entropy_kernel(T* logits, Bfloat16* rounded, std::int64_t stride,
                                                                     const T* bias, std::int64_t vocabulary,
                                                                     Targets<T> targets, std::int64_t first_row,
                                                                     double smoothing, GradientFactors<T> factors,
                                                                     bool gradient, RowSums* sums) {
  const std::int64_t i = first_row + blockIdx.x;
  LogitRow<T, Held> row(logits, rounded, stride, bias, vocabulary);
  const RowLoss<T> loss = row_loss(row, targets, i);
  if (gradient) store_gradients(row, loss, targets, i, factors);
  // Only now, because the registers hold the row until then.
  if (threadIdx.x == 0) sums[i] = sums_of(loss, vocabulary, targets, i, smoothing);
}

/// Does for the rows first_row + block of both passes of consistent_cross_entropy() what cross_entropy_kernel() does.
template <class T>
__global__ __launch_bounds__(kMostThreads) void consistent_kernel(T* x_logits, T* y_logits, Bfloat16* x_rounded,
                                                                  Bfloat16* y_rounded, std::int64_t stride,
                                                                  const T* bias, std::int64_t vocabulary,
                                                                  Targets<T> targets, std::int64_t first_row,
                                                                  double smoothing, double scale, double consistency,
                                                                  bool gradient, RowSums* sums) {
  const std::int64_t i = first_row + blockIdx.x;
  LogitRow<T, false> x(x_logits, x_rounded, stride, bias, vocabulary), y(y_logits, y_rounded, stride, bias, vocabulary);
  const RowLoss<T> loss_x = row_loss(x, targets, i), loss_y = row_loss(y, targets, i);
  const T normaliser_x = static_cast<T>(loss_x.normaliser()), normaliser_y = static_cast<T>(loss_y.normaliser());
  T pq = 0, qp = 0;  // KL(p || q) and KL(q || p)
  x.for_each([&](int v, const LogitPack<T>& x_pack) {
    const LogitPack<T> y_pack = y.read(v);
    HEED_UNROLL
    for (int k = 0; k < kLogitsOfPack; ++k) {
      if (!x.contains(v + k)) continue;
      const T log_p = x_pack[k] - normaliser_x, log_q = y_pack[k] - normaliser_y;
      pq += std::exp(log_p) * (log_p - log_q);
      qp += std::exp(log_q) * (log_q - log_p);
    }
  });
  pq = block_sum(pq, shared_memory<T>());
  qp = block_sum(qp, shared_memory<T>());
  if (threadIdx.x == 0) {
    const RowSums of_x = sums_of(loss_x, vocabulary, targets, i, smoothing),
                  of_y = sums_of(loss_y, vocabulary, targets, i, smoothing);
    sums[i] = {(of_x.loss + of_y.loss) / 2 + consistency / 4 * (static_cast<double>(pq) + static_cast<double>(qp)),
               (of_x.likelihood + of_y.likelihood) / 2, of_x.correct};
  }
  if (!gradient) return;
  const T factor = static_cast<T>(scale / 2),
          offset = static_cast<T>(scale / 2 * smoothing / static_cast<double>(vocabulary)),
          agreement = static_cast<T>(scale * consistency / 4), at_target = static_cast<T>(scale / 2 * (1 - smoothing));
  const std::int32_t target = targets.first[i];
  x.for_each([&](int v, const LogitPack<T>& x_pack) {
    const LogitPack<T> y_pack = y.read(v);
    LogitPack<T> dx, dy;
    HEED_UNROLL
    for (int k = 0; k < kLogitsOfPack; ++k) {
      const T log_p = x_pack[k] - normaliser_x, log_q = y_pack[k] - normaliser_y, ratio = log_p - log_q;
      const T p = std::exp(log_p), q = std::exp(log_q), subtracted = offset + (v + k == target ? at_target : T(0));
      dx[k] = factor * p - subtracted + agreement * (p * (ratio + (1 - pq)) - q);
      dy[k] = factor * q - subtracted + agreement * (q * ((1 - qp) - ratio) - p);
    }
    x.store_gradient(v, dx);
    y.store_gradient(v, dy);
  });
}

/// Sums the rows in a fixed order, by one block. `loss`, where not null, receives scale times the loss.
template <class T>
__global__ __launch_bounds__(kMostThreads) void sum_rows_kernel(const RowSums* rows, std::int64_t count, double scale,
                                                                T* loss, CrossEntropySums* sums) {
  constexpr int kAtOnce = 4;  // the rows that a thread requests before it needs the first of them
  double loss_sum = 0, likelihood = 0, correct = 0;
  for (std::int64_t begin = threadIdx.x; begin < count; begin += kAtOnce * blockDim.x) {
    RowSums read[kAtOnce]{};
    HEED_UNROLL
    for (int k = 0; k < kAtOnce; ++k)
      if (begin + k * blockDim.x < count) read[k] = rows[begin + k * blockDim.x];
    HEED_UNROLL
    for (const RowSums& row : read) {
      loss_sum += row.loss;
      likelihood += row.likelihood;
      correct += row.correct;
    }
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
  launch(device, {1, kMostThreads, kMostThreads / 32 * sizeof(double)}, sum_rows_kernel<T>, rows, count, options.scale,
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
    const Shape chunk{rows, stride_of_logits(weight_.rows())};
    MaybeRounded<T> logits{device_.arena.template tensor<T>(chunk)};
    if (gradient) logits.rounded = rounded_memory<T>(device_, chunk);
    return logits;
  }

  /// Computes the logits of the `count` rows of `hidden` from `begin` on, without the bias.
  void project(const MaybeRounded<T>& hidden, std::int64_t begin, std::int64_t count, const MaybeRounded<T>& logits) {
    hidden.with_operand(begin, false, [&](auto left) {
      weight_.with_operand(0, true, [&](auto right) {
        gemm(device_, count, weight_.rows(), weight_.columns(), T(1), left, right, T(0), logits.full.data(),
             logits.full.columns());
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
/// the row of `mean` with it. The rows of both matrices begin `stride` elements apart.
template <class T>
__global__ void add_prediction_kernel(const T* logits, std::int64_t stride, const T* bias, std::int64_t vocabulary,
                                      T factor, bool begins, T* mean) {
  const T* const x = logits + blockIdx.x * stride;
  mean += blockIdx.x * stride;
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
    vocabulary_ = soft.teachers.front().weight.dim(0);
    const Shape chunk{rows, stride_of_logits(vocabulary_)};
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
      launch(device_, shape_for_rows<T>(count, vocabulary_), add_prediction_kernel<T>, logits_.full.data(),
             mean_.columns(), layer.bias.data(), vocabulary_, 1 / static_cast<T>(layers_.size()),
             &layer == &layers_.front(), mean_.data());
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
  std::int64_t vocabulary_ = 0;
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
  const GradientFactors<T> factors(options, on_device.soft_share, vocabulary);
  bool held = false;
  auto* kernel = cross_entropy_kernel<T, false>;
  if constexpr (sizeof(T) <= sizeof(float)) {
    held = holds_row<T>(vocabulary) && soft.teachers.empty();
    if (held) kernel = cross_entropy_kernel<T, true>;
  }
  const MaybeRounded<T> states = operand_of_products(device, MaybeRounded<T>{hidden}),
                        logits = products.make_logits(most, gradient);
  for (std::int64_t begin = 0, count = 0; begin < rows; begin += count) {
    count = std::min(most, rows - begin);
    products.project(states, begin, count, logits);
    on_device.soft = predictions.predict(begin, count);
    on_device.soft_stride = logits.full.columns();
    launch(device, shape_for_logits<T>(count, vocabulary, held), kernel, logits.full.data(), logits.rounded.data(),
           logits.full.columns(), bias.data(), vocabulary, on_device, begin, options.label_smoothing, factors, gradient,
           sums);
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
    launch(device, shape_for_logits<T>(count, vocabulary, false), consistent_kernel<T>, x.full.data(), y.full.data(),
           x.rounded.data(), y.rounded.data(), x.full.columns(), bias.data(), vocabulary, on_device, begin,
           options.label_smoothing, options.scale, consistency, gradient, sums);
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
