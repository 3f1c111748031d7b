#pragma once

#include <algorithm>
#include <string>

#include "heed/ops/attention.h"
#include "heed/ops/check.h"

// What the attention ops of packed batches do with their arguments, whatever their scores are: checks, and the pointers
// that the kernels need.
namespace heed {

/// Throws Error unless the columns `input.column` ... `input.column` + `width` - 1 of `tokens` rows exist.
template <class T>
void check_heads_input(const char* op, const char* argument, const HeadsInput<T>& input, std::int64_t tokens,
                       std::int64_t width) {
  const std::int64_t columns = value_of(input.matrix).columns();
  check_shape(op, argument, input.matrix.shape(), {tokens, columns});
  if (input.column < 0 || input.column + width > columns)
    throw Error(std::string("internal: ") + op + ": " + argument + " has shape " + input.matrix.shape().text() +
                ", expected columns " + std::to_string(input.column) + " to " + std::to_string(input.column + width));
}

/// Throws Error unless `heads` divides `width` and the numbers of queries and keys fit together.
inline void check_attention_offsets(const char* op, std::int64_t width, PackedOffsets queries, PackedOffsets keys,
                                    const AttentionOptions& options) {
  if (options.heads < 1 || width % options.heads != 0)
    throw Error(std::string("internal: ") + op + ": " + std::to_string(options.heads) +
                " heads do not divide a width of " + std::to_string(width));
  if (queries.sequences() != keys.sequences())
    throw Error(std::string("internal: ") + op + ": queries of " + std::to_string(queries.sequences()) +
                " sequences, keys of " + std::to_string(keys.sequences()));
  if (!options.causal) return;
  for (int b = 0; b < queries.sequences(); ++b)
    if (queries.length(b) != keys.length(b))
      throw Error(std::string("internal: ") + op + ": causal, but sequence " + std::to_string(b) + " has " +
                  std::to_string(queries.length(b)) + " queries and " + std::to_string(keys.length(b)) + " keys");
}

/// Returns the address of the element in the first row and in column `column` of a matrix, or null where the tensor is
/// empty.
template <class T>
T* slice(const Tensor<T>& matrix, std::int64_t column) {
  return matrix ? matrix.data() + column : nullptr;
}

/// Sets the pointers of `arrays` to the gradients of query, key and value, which may be slices (ranges of columns) of
/// one matrix. Where these slices cover all columns of a matrix whose gradient holds no sum yet, the kernels overwrite
/// every element of that gradient. Such a gradient is marked for this and is not filled with zeros first. If the
/// kernels take `rounded` gradients, it is stored as bfloat16 where the matrix is.
template <class T>
void set_attention_gradients(const HeadsInput<T>& query, const HeadsInput<T>& key, const HeadsInput<T>& value,
                             bool rounded, AttentionArrays<T>& arrays) {
  const auto is_same = [](const Variable<T>& a, const Variable<T>& b) {
    return a.value.data() == b.value.data() && a.rounded.data() == b.rounded.data();
  };
  const auto may_overwrite = [&](const HeadsInput<T>& input) {
    std::int64_t columns = 0;
    for (const HeadsInput<T>* each : {&query, &key, &value})
      if (is_same(each->matrix, input.matrix)) columns += arrays.width;
    return input.matrix.gradient.empty() && columns == value_of(input.matrix).columns();
  };
  arrays.overwrite_query_gradient = may_overwrite(query);
  arrays.overwrite_key_gradient = may_overwrite(key);
  arrays.overwrite_value_gradient = may_overwrite(value);
  const auto set = [&](const HeadsInput<T>& input, bool overwrite, T*& full, Bfloat16*& in_bfloat16) {
    const Gradient<T>& gradient = input.matrix.gradient;
    if (overwrite && rounded && gradient.may_be_rounded())
      in_bfloat16 = slice(gradient.empty() ? gradient.begin_writing_rounded() : gradient.rounded(), input.column);
    else
      full = slice(overwrite ? gradient.begin_writing() : gradient.sum(), input.column);
  };
  set(query, arrays.overwrite_query_gradient, arrays.query_gradient, arrays.rounded.query_gradient);
  set(key, arrays.overwrite_key_gradient, arrays.key_gradient, arrays.rounded.key_gradient);
  set(value, arrays.overwrite_value_gradient, arrays.value_gradient, arrays.rounded.value_gradient);
}

/// Throws Error where a width, a shape or a number of sequences does not fit (see attention()).
template <class T>
void check_attention_arguments(const char* op, const HeadsInput<T>& query, const HeadsInput<T>& key,
                               const HeadsInput<T>& value, std::int64_t width, PackedOffsets queries,
                               PackedOffsets keys, const AttentionOptions& options) {
  check_attention_offsets(op, width, queries, keys, options);
  check_heads_input(op, "query", query, queries.tokens(), width);
  check_heads_input(op, "key", key, keys.tokens(), width);
  check_heads_input(op, "value", value, keys.tokens(), width);
}

/// Draws the dropout mask of the attention weights. The mask has an element for each head, query and key of a sequence,
/// in this order. Each sequence has its own stream of random numbers: sequence b of `queries` has the stream of
/// sequence b of Graph::set_rows(). With `windows`, and after a call of Graph::set_rows(), the sequences of `queries`
/// are windows instead, and the sequences of Graph::set_rows() are images: all windows of an image share the stream of
/// the image, one window after another. Throws Error if the windows and the images have different numbers of tokens.
template <class T>
DropoutMask<T> attention_dropout_mask(Graph<T>& graph, PackedOffsets queries, PackedOffsets keys,
                                      const AttentionOptions& options, bool windows = false) {
  const std::int64_t size = attention_weights_size(queries, keys, options.heads);
  const auto length = [&](int b) { return std::int64_t{options.heads} * queries.length(b) * keys.length(b); };
  const PackedOffsets images = graph.rows();
  if (!windows || images.offsets.empty())
    return draw_dropout_mask(graph, options.dropout, queries.sequences(), size, length, kAttentionSlack);
  if (images.tokens() != queries.tokens())
    throw Error("internal: attention: windows of " + std::to_string(queries.tokens()) +
                " tokens, but the sequences of Graph::set_rows() have " + std::to_string(images.tokens()));
  const auto first_window = [&](int image) {
    const auto& offsets = queries.offsets;
    return static_cast<int>(std::ranges::lower_bound(offsets, images.begin(image)) - offsets.begin());
  };
  const auto length_of_image = [&](int image) {
    std::int64_t all = 0;
    for (int b = first_window(image); b < first_window(image + 1); ++b) all += length(b);
    return all;
  };
  return draw_dropout_mask(graph, options.dropout, images.sequences(), size, length_of_image, kAttentionSlack);
}

/// Returns the memory in which an attention keeps its `size` attention weights for the backward pass: that of
/// `weights`, where present, or, in training, memory of the arena. Null where nobody reads the attention weights.
template <class T>
T* kept_weights(Graph<T>& graph, const Variable<T>& weights, std::int64_t size) {
  if (weights) return weights.value.data();
  return graph.recording() ? graph.arena().template tensor<T>({size + kAttentionSlack}).data() : nullptr;
}

/// Returns the gradient of the attention weights that other ops have computed; null where none has.
template <class T>
const T* weights_gradient(const Variable<T>& weights) {
  return weights.tracked() && !weights.gradient.empty() ? weights.gradient.sum().data() : nullptr;
}

/// Returns the operands of the forward kernel: the arrays without gradients. Operands that are stored as bfloat16 alone
/// are null everywhere but in AttentionArrays::rounded.
template <class T>
AttentionArrays<T> attention_arrays(const HeadsInput<T>& query, const HeadsInput<T>& key, const HeadsInput<T>& value,
                                    std::int64_t width, PackedOffsets queries, PackedOffsets keys,
                                    const AttentionOptions& options, DropoutMask<T> mask) {
  return {.query = slice(query.matrix.value, query.column),
          .key = slice(key.matrix.value, key.column),
          .value = slice(value.matrix.value, value.column),
          .query_gradient = nullptr,
          .key_gradient = nullptr,
          .value_gradient = nullptr,
          .overwrite_query_gradient = false,
          .overwrite_key_gradient = false,
          .overwrite_value_gradient = false,
          .query_stride = value_of(query.matrix).columns(),
          .key_stride = value_of(key.matrix).columns(),
          .value_stride = value_of(value.matrix).columns(),
          .width = width,
          .heads = options.heads,
          .causal = options.causal,
          .queries = queries,
          .keys = keys,
          .mask = mask,
          .rounded = {.query = slice(query.matrix.rounded, query.column),
                      .key = slice(key.matrix.rounded, key.column),
                      .value = slice(value.matrix.rounded, value.column)}};
}

}  // namespace heed
