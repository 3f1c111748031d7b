#include "heed/nn/padded_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/base/error.h"
#include "heed/ops/additive_scores.h"
#include "heed/ops/arithmetic.h"
#include "heed/ops/dropout.h"
#include "heed/ops/heads.h"
#include "heed/ops/linear.h"
#include "heed/ops/masked_softmax.h"
#include "heed/ops/matmul.h"

namespace heed {
namespace {

void check_dropout(const std::string& layer, double dropout) {
  if (!(dropout >= 0 && dropout <= 1))
    throw Error(layer + ": a dropout of " + std::to_string(dropout) + " is not a probability (choose one from 0 to 1)");
}

void check_width(const std::string& layer, const char* what, std::int64_t width) {
  if (width < 1) throw Error(layer + ": " + what + " is " + std::to_string(width) + " (choose a width of 1 or more)");
}

/// Throws Error unless `shape` is [B, length, width]. `like` is the shape of the argument `like_name`, whose dimension
/// 0 is B and, where `same_length` is true, whose dimension 1 is the length. A width of 0 stands for any width.
void check_sequences(const std::string& layer, const char* argument, const Shape& shape, std::int64_t width,
                     const char* like_name = nullptr, const Shape& like = {}, bool same_length = false) {
  const bool fits = shape.rank() == 3 && (width == 0 || shape[2] == width) && (!like_name || shape[0] == like[0]) &&
                    (!same_length || shape[1] == like[1]);
  if (fits) return;
  const auto size = [&](bool known, std::int64_t number, const char* letter) {
    return known ? std::to_string(number) : std::string(letter);
  };
  std::string wanted = "[" + size(like_name, like_name ? like[0] : 0, "B") + ", " +
                       size(same_length, same_length ? like[1] : 0, same_length || like_name ? "S" : "T") + ", " +
                       size(width != 0, width, "width") + "]";
  throw Error(layer + ": the argument `" + argument + "` has shape " + shape.text() + " but must have shape " + wanted +
              (like_name ? std::string(", because `") + like_name + "` has shape " + like.text() : std::string()) +
              " (sequences are the first dimension, positions the second)");
}

/// Throws Error unless there is one valid length, from 0 to S, for each sequence or each query of B sequences with T
/// queries.
void check_lengths(const std::string& layer, std::span<const std::int32_t> lengths, std::int64_t sequences,
                   std::int64_t queries, std::int64_t keys) {
  if (lengths.empty()) return;
  const std::int64_t count = std::ssize(lengths);
  if (count != sequences && count != sequences * queries)
    throw Error(layer + ": the argument `valid_lengths` has " + std::to_string(count) + " numbers for " +
                std::to_string(sequences) + " sequences of " + std::to_string(queries) + " queries (give " +
                std::to_string(sequences) + ", one for each sequence, or " + std::to_string(sequences * queries) +
                ", one for each query)");
  for (const std::int32_t length : lengths)
    if (length < 0 || length > keys)
      throw Error(layer + ": `valid_lengths` has the number " + std::to_string(length) + ", but a sequence has " +
                  std::to_string(keys) + " keys (give numbers from 0 to " + std::to_string(keys) + ")");
}

/// Throws Error unless the mask is absent or has the shape `one` or, where it is given, the shape `other`.
template <class T>
void check_mask(const std::string& layer, const char* argument, const Tensor<T>& mask, const Shape& one,
                const std::string& meaning, const Shape& other = {}, const std::string& other_meaning = {}) {
  if (!mask || mask.shape() == one || (other.rank() > 0 && mask.shape() == other)) return;
  throw Error(layer + ": the mask `" + argument + "` has shape " + mask.shape().text() + " but must have shape " +
              one.text() + " (" + meaning + ")" +
              (other.rank() > 0 ? " or " + other.text() + " (" + other_meaning + ")" : std::string()));
}

/// Computes the part of the attention after the scores [B, T, S]: weights, dropout and output.
template <class T>
AttentionResult<T> attend(Graph<T>& graph, const Variable<T>& scores, const SoftmaxMask<T>& mask, double dropout_rate,
                          const Variable<T>& values) {
  const Variable<T> weights = dropout(graph, masked_softmax(graph, scores, mask), dropout_rate);
  return {matmul(graph, weights, values), weights};
}

/// Computes the linear map x W^T of each position. Shapes: x [B, T, I], weight [O, I], bias [O] or absent ->
/// [B, T, O].
template <class T>
Variable<T> linear_of_positions(Graph<T>& graph, const Variable<T>& x, const Variable<T>& weight,
                                const Variable<T>& bias) {
  const Shape shape{x.shape()[0], x.shape()[1], weight.shape()[0]};
  return reshape(graph, linear(graph, x, weight, bias), shape);
}

/// Returns the sum of all masks as numbers to be added to the scores, [T, S'] or, where a mask differs between
/// sequences or heads, [B H, T, S']; absent where there is no mask. Nothing is added to the appended keys S ... S' - 1.
template <class T>
Tensor<const T> combined_mask(Arena& arena, const PaddedAttentionMasks<T>& masks, std::int64_t sequences,
                              std::int64_t heads, std::int64_t queries, std::int64_t keys, std::int64_t all_keys) {
  const auto of_heads = [](const auto& mask) { return mask && mask.shape().rank() == 3; };
  const bool varies = masks.key_padding || masks.additive_key_padding || of_heads(masks.hidden) ||
                      of_heads(masks.additive) || !masks.valid_lengths.empty();
  if (!varies && !masks.hidden && !masks.additive && !masks.causal) return {};
  const std::int64_t matrices = varies ? sequences * heads : 1;
  const Tensor<T> sum = arena.zeros<T>(varies ? Shape{matrices, queries, all_keys} : Shape{queries, all_keys});
  constexpr T kHidden = -std::numeric_limits<T>::infinity();
  for (std::int64_t m = 0; m < matrices; ++m)
    for (std::int64_t t = 0; t < queries; ++t) {
      const std::int64_t b = m / heads;
      T* const row = sum.data() + (m * queries + t) * all_keys;
      // row_of(mask) is the row of a mask [T, S] or [B H, T, S] for this query.
      const auto row_of = [&](const auto& mask) {
        return mask.data() + ((of_heads(mask) ? m * queries : 0) + t) * keys;
      };
      if (masks.additive) std::copy_n(row_of(masks.additive), keys, row);
      std::int64_t valid = masks.causal ? std::min(keys, t + 1) : keys;
      if (!masks.valid_lengths.empty()) {
        const bool of_queries = std::ssize(masks.valid_lengths) != sequences;
        const std::int64_t at = of_queries ? b * queries + t : b;
        valid = std::min<std::int64_t>(valid, masks.valid_lengths[static_cast<std::size_t>(at)]);
      }
      for (std::int64_t s = 0; s < keys; ++s) {
        if (masks.additive_key_padding) row[s] += masks.additive_key_padding.row(b)[s];
        if (s >= valid || (masks.key_padding && masks.key_padding.row(b)[s]) ||
            (masks.hidden && row_of(masks.hidden)[s]))
          row[s] = kHidden;
      }
    }
  return {sum.data(), sum.shape()};
}

}  // namespace

DotProductAttention::DotProductAttention(double dropout) : dropout_(dropout) {
  check_dropout("DotProductAttention", dropout);
}

template <class T>
AttentionResult<T> DotProductAttention::operator()(Graph<T>& graph, const Variable<T>& queries, const Variable<T>& keys,
                                                   const Variable<T>& values,
                                                   std::span<const std::int32_t> valid_lengths) const {
  const std::string layer = "DotProductAttention";
  const Shape &q = queries.shape(), &k = keys.shape();
  check_sequences(layer, "queries", q, 0);
  check_sequences(layer, "keys", k, q[2], "queries", q);
  check_sequences(layer, "values", values.shape(), 0, "keys", k, true);
  check_lengths(layer, valid_lengths, q[0], q[1], k[1]);
  const Variable<T> scores =
      multiply(graph, matmul(graph, queries, transpose(graph, keys)), 1 / std::sqrt(static_cast<T>(q[2])));
  return attend(graph, scores, {.valid_lengths = valid_lengths}, dropout_, values);
}

AdditiveAttention::AdditiveAttention(ParameterLayout& layout, const std::string& name, std::int64_t query_width,
                                     std::int64_t key_width, std::int64_t hidden, double dropout)
    : query_width_(query_width), key_width_(key_width), hidden_(hidden), dropout_(dropout) {
  check_width(name, "the width of the queries", query_width);
  check_width(name, "the width of the keys", key_width);
  check_width(name, "the width of the hidden layer", hidden);
  check_dropout(name, dropout);
  query_ = layout.add(name + "/query/weight", {hidden, query_width}, Initialiser::xavier());
  key_ = layout.add(name + "/key/weight", {hidden, key_width}, Initialiser::xavier());
  // The Glorot initialisation of a matrix [1, hidden] has this standard deviation.
  scorer_ = layout.add(name + "/scorer/weight", {hidden},
                       Initialiser::normal(std::sqrt(2 / (1 + static_cast<double>(hidden)))));
}

template <class T>
AttentionResult<T> AdditiveAttention::operator()(Graph<T>& graph, const Variable<T>& queries, const Variable<T>& keys,
                                                 const Variable<T>& values,
                                                 std::span<const std::int32_t> valid_lengths) const {
  const std::string layer = "AdditiveAttention";
  const Shape &q = queries.shape(), &k = keys.shape();
  check_sequences(layer, "queries", q, query_width_);
  check_sequences(layer, "keys", k, key_width_, "queries", q);
  check_sequences(layer, "values", values.shape(), 0, "keys", k, true);
  check_lengths(layer, valid_lengths, q[0], q[1], k[1]);
  const Variable<T> scores =
      additive_scores(graph, linear_of_positions(graph, queries, graph.parameter(query_), {}),
                      linear_of_positions(graph, keys, graph.parameter(key_), {}), graph.parameter(scorer_));
  return attend(graph, scores, {.valid_lengths = valid_lengths}, dropout_, values);
}

PaddedMultiHeadAttention::PaddedMultiHeadAttention(ParameterLayout& layout, const std::string& name,
                                                   const PaddedAttentionOptions& options)
    : options_(options) {
  PaddedAttentionOptions& o = options_;
  check_width(name, "the width", o.width);
  if (o.heads < 1 || o.width % o.heads != 0)
    throw Error(name + ": " + std::to_string(o.heads) + " heads do not divide the width of " + std::to_string(o.width) +
                " (choose a width that is a multiple of the number of heads)");
  if (o.key_width == 0) o.key_width = o.width;
  if (o.value_width == 0) o.value_width = o.width;
  check_width(name, "the width of the keys", o.key_width);
  check_width(name, "the width of the values", o.value_width);
  check_dropout(name, o.dropout);
  const Initialiser zeros = Initialiser::zeros();
  // PyTorch initialises the three weights as one matrix [3E, E], unless the keys or values have widths of their own.
  const bool stacked = o.key_width == o.width && o.value_width == o.width;
  const Initialiser inputs = Initialiser::xavier(stacked ? 1 / std::sqrt(2.0) : 1);
  query_.weight = layout.add(name + "/query/weight", {o.width, o.width}, inputs);
  key_.weight = layout.add(name + "/key/weight", {o.width, o.key_width}, inputs);
  value_.weight = layout.add(name + "/value/weight", {o.width, o.value_width}, inputs);
  if (o.bias) {
    query_.bias = layout.add(name + "/query/bias", {o.width}, zeros);
    key_.bias = layout.add(name + "/key/bias", {o.width}, zeros);
    value_.bias = layout.add(name + "/value/bias", {o.width}, zeros);
  }
  output_.weight = layout.add(name + "/output/weight", {o.width, o.width}, Initialiser::xavier());
  if (o.bias) output_.bias = layout.add(name + "/output/bias", {o.width}, zeros);
  if (o.appended_bias) {
    const Initialiser glorot = Initialiser::normal(1 / std::sqrt(static_cast<double>(o.width)));
    appended_key_ = layout.add(name + "/appended/key", {o.width}, glorot);
    appended_value_ = layout.add(name + "/appended/value", {o.width}, glorot);
  }
}

template <class T>
Variable<T> PaddedMultiHeadAttention::project(Graph<T>& graph, const Variable<T>& x,
                                              const Projection& projection) const {
  return linear_of_positions(graph, x, graph.parameter(projection.weight),
                             projection.bias ? graph.parameter(projection.bias) : Variable<T>());
}

template <class T>
Variable<T> PaddedMultiHeadAttention::append_and_split(Graph<T>& graph, Variable<T> x, ParameterId appended) const {
  if (appended) x = append_row(graph, x, graph.parameter(appended));
  if (options_.appended_zeros) x = append_row(graph, x, {});
  return split_heads(graph, x, options_.heads);
}

template <class T>
AttentionResult<T> PaddedMultiHeadAttention::operator()(Graph<T>& graph, const Variable<T>& query,
                                                        const Variable<T>& key, const Variable<T>& value,
                                                        const PaddedAttentionMasks<T>& masks,
                                                        WantedWeights wanted) const {
  const std::string layer = "PaddedMultiHeadAttention";
  const Shape &q = query.shape(), &k = key.shape();
  check_sequences(layer, "query", q, options_.width);
  check_sequences(layer, "key", k, options_.key_width, "query", q);
  check_sequences(layer, "value", value.shape(), options_.value_width, "key", k, true);
  const std::int64_t B = q[0], H = options_.heads, queries = q[1], keys = k[1];
  check_mask(layer, "key_padding", masks.key_padding, {B, keys}, "sequences, keys");
  check_mask(layer, "additive_key_padding", masks.additive_key_padding, {B, keys}, "sequences, keys");
  const Shape one{queries, keys}, each{B * H, queries, keys};
  check_mask(layer, "hidden", masks.hidden, one, "queries, keys", each, "sequences times heads, queries, keys");
  check_mask(layer, "additive", masks.additive, one, "queries, keys", each, "sequences times heads, queries, keys");
  check_lengths(layer, masks.valid_lengths, B, queries, keys);

  const Variable<T> scaled =
      multiply(graph, project(graph, query, query_), 1 / std::sqrt(static_cast<T>(options_.width / H)));
  const Variable<T> q_heads = split_heads(graph, scaled, options_.heads);
  const Variable<T> k_heads = append_and_split(graph, project(graph, key, key_), appended_key_);
  const Variable<T> v_heads = append_and_split(graph, project(graph, value, value_), appended_value_);
  const std::int64_t all_keys = k_heads.shape()[1];
  const SoftmaxMask<T> mask{
      .additive = graph.device().upload(combined_mask(graph.host_arena(), masks, B, H, queries, keys, all_keys))};
  const AttentionResult<T> heads =
      attend(graph, matmul(graph, q_heads, transpose(graph, k_heads)), mask, options_.dropout, v_heads);
  AttentionResult<T> result;
  result.output = project(graph, merge_heads(graph, heads.output, options_.heads), output_);
  if (wanted == WantedWeights::averaged) result.weights = mean_over_heads(graph, heads.weights, options_.heads);
  if (wanted == WantedWeights::per_head) result.weights = reshape(graph, heads.weights, {B, H, queries, all_keys});
  return result;
}

#define HEED_INSTANTIATE(T)                                                                                            \
  template AttentionResult<T> DotProductAttention::operator()(                                                         \
      Graph<T>&, const Variable<T>&, const Variable<T>&, const Variable<T>&, std::span<const std::int32_t>) const;     \
  template AttentionResult<T> AdditiveAttention::operator()(Graph<T>&, const Variable<T>&, const Variable<T>&,         \
                                                            const Variable<T>&, std::span<const std::int32_t>) const;  \
  template AttentionResult<T> PaddedMultiHeadAttention::operator()(Graph<T>&, const Variable<T>&, const Variable<T>&,  \
                                                                   const Variable<T>&, const PaddedAttentionMasks<T>&, \
                                                                   WantedWeights) const;
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
