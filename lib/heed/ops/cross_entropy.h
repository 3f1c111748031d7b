#pragma once

#include <cstdint>
#include <span>

#include "heed/autograd/graph.h"

namespace heed {

struct CrossEntropyOptions {
  /// The probability e that label smoothing takes from the target token and spreads evenly over the whole vocabulary.
  double label_smoothing = 0;
  /// The factor by which the loss and the gradients are multiplied, for example 1 / number of tokens.
  double scale = 1;
  /// Mixed targets (mixup, Zhang et al. 2018): the second target of each row, and its share m in 0 ... 1 of the
  /// target's probability; the first target keeps 1 - m. Both are empty where each row has one target. They must stay
  /// in memory until the backward pass has ended.
  std::span<const std::int32_t> second_targets = {};
  std::span<const float> second_shares = {};
};

/// The data from which the prediction of a teacher, a trained model, is computed for the N tokens of a batch: the
/// hidden states h [N, D'], the weight W [V, D'] and the bias b [V] (or absent) of the teacher's output layer. The
/// prediction is softmax(h W^T + b).
template <class T>
struct TeacherStates {
  Tensor<T> hidden, weight, bias;
};

/// Soft targets (knowledge distillation, Hinton et al. 2015). q is the mean of the teachers' predictions, and w is
/// `share`. If L is the loss of a token without soft targets, the loss with soft targets is
/// (1 - w) L + w sum_v q_v (-log p_v).
template <class T>
struct SoftTargets {
  /// Must stay in memory until the backward pass has ended.
  std::span<const TeacherStates<T>> teachers = {};
  double share = 0;
};

/// The loss of a batch and related counts, as sums over the batch's tokens and not as means, so that the results of
/// several batches, or of several parts of one batch, can be added up.
struct CrossEntropySums {
  double loss = 0;                     ///< the sum of the label-smoothed losses, in nats
  double negative_log_likelihood = 0;  ///< the sum of -log p(target), in nats, from which perplexity is computed
  std::int64_t tokens = 0;             ///< the number of tokens whose target was to be predicted
  std::int64_t correct = 0;            ///< the number of tokens whose target has the highest probability

  CrossEntropySums& operator+=(const CrossEntropySums& other) {
    loss += other.loss;
    negative_log_likelihood += other.negative_log_likelihood;
    tokens += other.tokens;
    correct += other.correct;
    return *this;
  }
};

/// Computes the output layer and the loss as one op: p = softmax(h W^T + b) for each row h of `hidden`, and the result
/// is scale times the sum over all tokens of (1 - e) (-log p(y)) + e / V sum_v (-log p(v)), where y is the token's
/// target and e is label_smoothing (label smoothing of Szegedy et al. 2016, as in PyTorch). With mixed targets, -log
/// p(y) is (1 - m) (-log p(y)) + m (-log p(y')), where y' is the second target and m its share. `soft` has soft
/// targets.
///
/// Shapes: hidden [N, D], weight [V, D], bias [V] or absent, targets [N] in 0 .. V-1 -> scalar. The op takes the rows
/// in chunks, so that the logits [N, V] of a whole batch never exist. Throws Error where a target is outside the
/// vocabulary.
///
/// Where the graph is recording, the forward pass already adds the gradients of hidden, weight and bias, while a
/// chunk's logits are in the cache. The forward pass assumes that the gradient of the result will be 1. That is true
/// where backward() starts from the result (put all factors into `scale`), and the backward pass then has nothing to
/// do. Where the result gets another gradient g, the backward pass computes everything again and adds g - 1 times the
/// gradients. Nothing but the inputs is needed for that, so nothing is saved for the backward pass.
template <class T>
Variable<T> projection_cross_entropy(Graph<T>& graph, const Variable<T>& hidden, const Variable<T>& weight,
                                     const Variable<T>& bias, std::span<const std::int32_t> targets,
                                     const CrossEntropyOptions& options, CrossEntropySums* sums = nullptr,
                                     const SoftTargets<T>& soft = {});

/// Computes the output layer and the loss of R-Drop (Liang et al. 2021): two passes of a model over the same tokens,
/// whose dropout masks differ, should predict the targets and agree with each other. With the losses L1 and L2 of
/// projection_cross_entropy() and the predicted distributions p and q of each token, the result is (L1 + L2) / 2 plus
/// scale consistency / 4 times the sum over all tokens of KL(p || q) + KL(q || p), which is half of the paper's loss
/// with consistency = alpha. The shapes, the gradients and the options are those of projection_cross_entropy(). `sums`
/// receives the means of both passes; `correct` is that of the first.
template <class T>
Variable<T> consistent_cross_entropy(Graph<T>& graph, const Variable<T>& first, const Variable<T>& second,
                                     const Variable<T>& weight, const Variable<T>& bias,
                                     std::span<const std::int32_t> targets, const CrossEntropyOptions& options,
                                     double consistency, CrossEntropySums* sums = nullptr);

/// The results of the kernel of a loss.
template <class T>
struct LossResult {
  T* loss = nullptr;  ///< receives the loss times options.scale, in the memory of the device, or null
  /// Receives the sums, in the memory of the host, which may read them after Device::wait(); null where nobody wants
  /// them.
  CrossEntropySums* sums = nullptr;
};

/// Computes the output layer and the loss of one batch (see projection_cross_entropy()). Adds the gradients of
/// options.scale * loss to dhidden, dweight and dbias; an empty gradient tensor is skipped.
template <class T>
void cross_entropy_forward(CpuContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                           std::span<const std::int32_t> targets, const CrossEntropyOptions& options,
                           const SoftTargets<T>& soft, Tensor<T> dhidden, Tensor<T> dweight, Tensor<T> dbias,
                           LossResult<T> result);
template <class T>
void cross_entropy_forward(CudaContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                           std::span<const std::int32_t> targets, const CrossEntropyOptions& options,
                           const SoftTargets<T>& soft, Tensor<T> dhidden, Tensor<T> dweight, Tensor<T> dbias,
                           LossResult<T> result);

/// Numbers of two rows of logits, the passes of consistent_cross_entropy() over a token, with the softmaxes p and q.
template <class T>
struct RowPairTerms {
  T normaliser_x = 0, normaliser_y = 0;  ///< log(sum of exp(logit)) of each row
  T pq = 0, qp = 0;                      ///< KL(p || q) and KL(q || p)
  /// The gradients of the two rows are factor p - offset and factor q - offset, plus the gradients of agreement
  /// (KL(p || q) + KL(q || p)). The caller subtracts the term of the target token afterwards.
  T factor = 0, offset = 0, agreement = 0;
};

/// The hidden states [N, D] of one of the passes of consistent_cross_entropy(), and their gradient, which may be empty.
template <class T>
struct PassStates {
  Tensor<T> hidden, dhidden;
};

/// Does for consistent_cross_entropy() what cross_entropy_forward() does for projection_cross_entropy().
template <class T>
void consistent_cross_entropy_forward(CpuContext& device, const PassStates<T>& first, const PassStates<T>& second,
                                      Tensor<T> weight, Tensor<T> bias, std::span<const std::int32_t> targets,
                                      const CrossEntropyOptions& options, double consistency, Tensor<T> dweight,
                                      Tensor<T> dbias, LossResult<T> result);
template <class T>
void consistent_cross_entropy_forward(CudaContext& device, const PassStates<T>& first, const PassStates<T>& second,
                                      Tensor<T> weight, Tensor<T> bias, std::span<const std::int32_t> targets,
                                      const CrossEntropyOptions& options, double consistency, Tensor<T> dweight,
                                      Tensor<T> dbias, LossResult<T> result);

/// Computes the log-probabilities of all tokens of the vocabulary: out = log softmax(h W^T + b).
/// Shapes: hidden [R, D], weight [V, D], bias [V] or absent -> out [R, V]. A row's result does not depend on the other
/// rows, bit for bit.
template <class T>
void projection_log_probabilities(CpuContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                                  Tensor<T> out);
template <class T>
void projection_log_probabilities(CudaContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                                  Tensor<T> out);

/// Computes log p(target) for each row of `hidden`, for forced decoding, without the log-probabilities of the other
/// tokens: out [N]. A row's result does not depend on the other rows, bit for bit, and has the same bits as the
/// matching element of projection_log_probabilities().
template <class T>
void token_log_probabilities(CpuContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                             std::span<const std::int32_t> targets, T* out);
template <class T>
void token_log_probabilities(CudaContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                             std::span<const std::int32_t> targets, T* out);

}  // namespace heed
