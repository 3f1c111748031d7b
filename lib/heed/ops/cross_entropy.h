#pragma once

#include <cstdint>
#include <span>

#include "heed/autograd/graph.h"

namespace heed {

struct CrossEntropyOptions {
  double label_smoothing = 0;  ///< e: share of the target's probability spread over the whole vocabulary
  double scale = 1;            ///< factor of the result, for example 1 / tokens
};

/// What a batch added up to. Sums, so that shards and batches can be added.
struct CrossEntropySums {
  double loss = 0;                     ///< label-smoothed loss, nats
  double negative_log_likelihood = 0;  ///< plain: what perplexity is computed from, nats
  std::int64_t tokens = 0;
  std::int64_t correct = 0;  ///< tokens whose target has the highest probability

  CrossEntropySums& operator+=(const CrossEntropySums& other) {
    loss += other.loss;
    negative_log_likelihood += other.negative_log_likelihood;
    tokens += other.tokens;
    correct += other.correct;
    return *this;
  }
};

/// The output layer and its loss in one: p = softmax(h W^T + b), result = scale * sum over tokens of
/// (1 - e) (-log p(y)) + e / V sum_v (-log p(v)) (label smoothing of Szegedy et al. 2016 as in PyTorch).
///
/// Shapes: hidden [N, D], weight [V, D], bias [V] or absent, targets [N] in 0 .. V-1 -> scalar. Never holds [N, V]:
/// rows are taken in chunks. Throws Error where a target is outside the vocabulary.
///
/// Recording, the gradients are added to hidden's, weight's and bias' on the way forward, while a chunk's logits are in
/// cache, as if the gradient that arrives at the result were 1: true where the result is what backward() starts from
/// (put factors into `scale`), and then the way back costs nothing. Any other arriving gradient g is right too, at
/// the price of a second computation that adds g - 1 times the gradients. Nothing is kept for the way back.
template <class T>
Variable<T> projection_cross_entropy(Graph<T>& graph, const Variable<T>& hidden, const Variable<T>& weight,
                                     const Variable<T>& bias, std::span<const std::int32_t> targets,
                                     const CrossEntropyOptions& options, CrossEntropySums* sums = nullptr);

/// The sums over one batch; adds the gradients of options.scale * loss to those present.
template <class T>
CrossEntropySums cross_entropy_cpu(CpuContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                                   std::span<const std::int32_t> targets, const CrossEntropyOptions& options,
                                   Tensor<T> dhidden, Tensor<T> dweight, Tensor<T> dbias);

/// out = log softmax(h W^T + b): hidden [R, D], weight [V, D], bias [V] or absent -> out [R, V]. A row's result does
/// not depend on the other rows, bit for bit.
template <class T>
void projection_log_probabilities(CpuContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                                  Tensor<T> out);

/// log p(target) for each row, without the whole matrix (forced decoding): out [N]. A row's result does not depend on
/// the other rows, bit for bit, and is the one in projection_log_probabilities.
template <class T>
void token_log_probabilities(CpuContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                             std::span<const std::int32_t> targets, T* out);

}  // namespace heed
