// Attention layers for users of the library whose batches are padded: tensors [B, T, D] with masks. heed's own programs
// use MultiHeadAttention (nn/multi_head_attention.h), whose batches are packed.
//
// Masks say what a query may NOT attend to, as in PyTorch: a value that is not 0 hides the key. A query whose keys are
// all hidden gets zeros as its weights (PyTorch: not-a-number), and in PaddedMultiHeadAttention the output bias as its
// output.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "heed/autograd/graph.h"

namespace heed {

/// What an attention layer for padded batches returns.
template <class T>
struct AttentionResult {
  Variable<T> output;
  /// The attention weights that the values were multiplied by, thus after the dropout; absent where the caller wanted
  /// no weights. Gradients flow through the weights, too.
  Variable<T> weights;
};

/// Scaled dot-product attention without parameters (Vaswani et al. 2017, section 3.2.1): the weights are
/// softmax(Q K^T / sqrt(d)), with dropout in training, and the output is the weights times V.
class DotProductAttention {
 public:
  /// `dropout` is the probability of dropping an attention weight in training. Throws Error where it is not in [0, 1].
  explicit DotProductAttention(double dropout);

  /// Computes the attention of each sequence. Shapes: queries [B, T, d], keys [B, S, d], values [B, S, V] -> output
  /// [B, T, V], weights [B, T, S]. `valid_lengths` (d2l's valid_lens) has the number of valid keys of each sequence, B
  /// numbers, or of each query, B T numbers; the keys after these are hidden. Without numbers, no key is hidden. Throws
  /// Error where a shape or a length does not fit.
  template <class T>
  AttentionResult<T> operator()(Graph<T>& graph, const Variable<T>& queries, const Variable<T>& keys,
                                const Variable<T>& values, std::span<const std::int32_t> valid_lengths = {}) const;

 private:
  double dropout_;
};

/// Additive attention (Bahdanau et al. 2015): the score of a query q and a key k is v . tanh(W_q q + W_k k), and the
/// weights are the softmax of the scores, with dropout in training. The parameters are <name>/query/weight [hidden,
/// query width], <name>/key/weight [hidden, key width] and <name>/scorer/weight [hidden] (in d2l W_q.weight, W_k.weight
/// and w_v.weight).
class AdditiveAttention {
 public:
  /// Adds the parameters to `layout`. Throws Error where a width is below 1 or `dropout` is not in [0, 1].
  AdditiveAttention(ParameterLayout& layout, const std::string& name, std::int64_t query_width, std::int64_t key_width,
                    std::int64_t hidden, double dropout);

  /// Computes the attention of each sequence. Shapes: queries [B, T, query width], keys [B, S, key width], values
  /// [B, S, V] -> output [B, T, V], weights [B, T, S]. For `valid_lengths` and errors see DotProductAttention.
  template <class T>
  AttentionResult<T> operator()(Graph<T>& graph, const Variable<T>& queries, const Variable<T>& keys,
                                const Variable<T>& values, std::span<const std::int32_t> valid_lengths = {}) const;

 private:
  std::int64_t query_width_, key_width_, hidden_;
  double dropout_;
  ParameterId query_, key_, scorer_;
};

/// The sizes and options of a PaddedMultiHeadAttention; in brackets the names of torch.nn.MultiheadAttention.
struct PaddedAttentionOptions {
  std::int64_t width = 0;        ///< E, the width of queries and outputs (embed_dim); `heads` must divide E
  int heads = 1;                 ///< H (num_heads)
  double dropout = 0;            ///< the probability of dropping an attention weight in training (dropout)
  bool bias = true;              ///< whether the four projections have a bias (bias)
  bool appended_bias = false;    ///< append a learnt key and a learnt value to every sequence (add_bias_kv)
  bool appended_zeros = false;   ///< append a key and a value of zeros to every sequence (add_zero_attn)
  std::int64_t key_width = 0;    ///< the width of the keys; 0: E (kdim)
  std::int64_t value_width = 0;  ///< the width of the values; 0: E (vdim)
};

/// The masks of a PaddedMultiHeadAttention. Each mask may be absent; a key is hidden from a query where any mask hides
/// the key. No mask hides the key that PaddedAttentionOptions appends.
template <class T>
struct PaddedAttentionMasks {
  /// [B, S]: a value that is not 0 hides the key from all queries of the sequence (key_padding_mask, bool).
  Tensor<const std::uint8_t> key_padding = {};
  /// [B, S]: numbers that are added to the scores of all queries and heads (key_padding_mask, float).
  Tensor<const T> additive_key_padding = {};
  /// [T, S], or [B H, T, S] with a mask for each head: not 0 hides the key from the query (attn_mask, bool).
  Tensor<const std::uint8_t> hidden = {};
  /// [T, S] or [B H, T, S]: numbers that are added to the scores; minus infinity hides the key (attn_mask, float).
  Tensor<const T> additive = {};
  /// true: query i attends to the keys 0 ... i only (is_causal, with the mask that PyTorch wants beside it).
  bool causal = false;
  /// [B] or [B T]: the numbers of valid keys, as in DotProductAttention. PyTorch has no such argument.
  std::span<const std::int32_t> valid_lengths = {};
};

/// Which attention weights the caller wants: none, the mean over the heads [B, T, S'], or those of each head
/// [B, H, T, S'] (in PyTorch need_weights and average_attn_weights).
enum class WantedWeights { none, averaged, per_head };

/// Multi-head attention with all options of torch.nn.MultiheadAttention (batch_first=True), for padded batches. The
/// parameters, each with PyTorch's name in brackets, so that weights can be copied:
///   <name>/query/weight [E, E], <name>/key/weight [E, key width], <name>/value/weight [E, value width]
///     (rows 0 ... E - 1, E ... 2E - 1 and 2E ... 3E - 1 of in_proj_weight; with kdim or vdim q_proj_weight,
///     k_proj_weight and v_proj_weight)
///   <name>/query/bias, <name>/key/bias, <name>/value/bias [E] each (the three thirds of in_proj_bias)
///   <name>/output/weight [E, E], <name>/output/bias [E] (out_proj.weight, out_proj.bias)
///   <name>/appended/key, <name>/appended/value [E] each (bias_k, bias_v), where the options append them
class PaddedMultiHeadAttention {
 public:
  /// Adds the parameters to `layout`. Throws Error where a width or the number of heads is below 1, where the heads do
  /// not divide the width, and where the dropout is not in [0, 1].
  PaddedMultiHeadAttention(ParameterLayout& layout, const std::string& name, const PaddedAttentionOptions& options);

  /// Computes the attention of each sequence. Shapes: query [B, T, E], key [B, S, key width], value [B, S, value width]
  /// -> output [B, T, E]; weights as `wanted` says, with S' = S + 1 for each appended key. The dropout works in
  /// training only, that is, where the graph records its ops. Throws Error where a shape does not fit.
  template <class T>
  AttentionResult<T> operator()(Graph<T>& graph, const Variable<T>& query, const Variable<T>& key,
                                const Variable<T>& value, const PaddedAttentionMasks<T>& masks = {},
                                WantedWeights wanted = WantedWeights::averaged) const;

 private:
  /// The weight and the bias of one projection; the bias may be absent.
  struct Projection {
    ParameterId weight, bias;
  };
  template <class T>
  Variable<T> project(Graph<T>& graph, const Variable<T>& x, const Projection& projection) const;
  /// Appends the learnt row `appended`, if the layer has one, and a row of zeros, if the options say so; then splits
  /// the rows into heads.
  template <class T>
  Variable<T> append_and_split(Graph<T>& graph, Variable<T> x, ParameterId appended) const;

  PaddedAttentionOptions options_;
  Projection query_, key_, value_, output_;
  ParameterId appended_key_, appended_value_;
};

}  // namespace heed
