#include "heed/ops/attention.h"

#include <algorithm>

#include "heed/ops/check.h"

namespace heed {
namespace {

template <class T>
void check_heads_input(const char* argument, const HeadsInput<T>& input, std::int64_t tokens, std::int64_t width) {
  check_shape("attention", argument, input.matrix.shape(), {tokens, input.matrix.value.columns()});
  if (input.column < 0 || input.column + width > input.matrix.value.columns())
    throw Error(std::string("internal: attention: ") + argument + " has shape " + input.matrix.shape().text() +
                ", expected columns " + std::to_string(input.column) + " to " + std::to_string(input.column + width));
}

/// Checks heads and offsets. `has_positions` tells whether positions add terms to the attention.
void check_offsets(std::int64_t width, PackedOffsets queries, PackedOffsets keys, const AttentionOptions& options,
                   bool has_positions) {
  if (options.heads < 1 || width % options.heads != 0)
    throw Error("internal: attention: " + std::to_string(options.heads) + " heads do not divide a width of " +
                std::to_string(width));
  if (queries.sequences() != keys.sequences())
    throw Error("internal: attention: queries of " + std::to_string(queries.sequences()) + " sequences, keys of " +
                std::to_string(keys.sequences()));
  if (!options.causal && !has_positions) return;
  for (int b = 0; b < queries.sequences(); ++b)
    if (queries.length(b) != keys.length(b))
      throw Error(std::string("internal: attention: ") + (options.causal ? "causal" : "positions") + ", but sequence " +
                  std::to_string(b) + " has " + std::to_string(queries.length(b)) + " queries and " +
                  std::to_string(keys.length(b)) + " keys");
}

/// Returns the address of the element in the first row and in column `column` of a matrix, or null where the tensor is
/// empty.
template <class T>
T* slice(const Tensor<T>& matrix, std::int64_t column) {
  return matrix ? matrix.data() + column : nullptr;
}

/// Sets the pointers of `arrays` to the gradients of query, key and value, which may be slices (ranges of columns) of
/// one matrix. Where these slices cover all columns of a matrix whose gradient holds no sum yet, the kernels overwrite
/// every element of that gradient. Such a gradient is marked as empty and is not filled with zeros first.
template <class T>
void set_gradients(const HeadsInput<T>& query, const HeadsInput<T>& key, const HeadsInput<T>& value,
                   AttentionArrays<T>& arrays) {
  const auto is_filled = [&](const HeadsInput<T>& input) {
    std::int64_t columns = 0;
    for (const HeadsInput<T>* each : {&query, &key, &value})
      if (each->matrix.value.data() == input.matrix.value.data()) columns += arrays.width;
    return input.matrix.gradient.empty() && columns == input.matrix.value.columns();
  };
  arrays.query_gradient_empty = is_filled(query);
  arrays.key_gradient_empty = is_filled(key);
  arrays.value_gradient_empty = is_filled(value);
  const auto gradient = [](const HeadsInput<T>& input, bool is_empty) {
    return slice(is_empty ? input.matrix.gradient.fill() : input.matrix.gradient.sum(), input.column);
  };
  arrays.query_gradient = gradient(query, arrays.query_gradient_empty);
  arrays.key_gradient = gradient(key, arrays.key_gradient_empty);
  arrays.value_gradient = gradient(value, arrays.value_gradient_empty);
}

/// Sets the pointers of `arrays` to the gradients of a bias and of relative vectors.
template <class T>
void set_position_gradients(const PositionBias<T>& positions, PositionArrays<T>& arrays) {
  if (positions.bias) arrays.bias_gradient = positions.bias.gradient.sum().data();
  if (!positions.relative_keys) return;
  arrays.relative_keys_gradient = positions.relative_keys.gradient.sum().data();
  arrays.relative_values_gradient = positions.relative_values.gradient.sum().data();
}

/// Returns the length of the longest sequence.
std::int64_t longest(PackedOffsets sequences) {
  int most = 0;
  for (int b = 0; b < sequences.sequences(); ++b) most = std::max(most, sequences.length(b));
  return most;
}

}  // namespace

std::int64_t attention_weights_size(PackedOffsets queries, PackedOffsets keys, int heads) {
  return attention_weights_offset(queries, keys, heads, queries.sequences(), 0);
}

std::int64_t attention_weights_offset(PackedOffsets queries, PackedOffsets keys, int heads, int sequence, int head) {
  std::int64_t pairs = 0;
  for (int b = 0; b < sequence; ++b) pairs += std::int64_t{queries.length(b)} * keys.length(b);
  pairs *= heads;
  return head == 0 ? pairs : pairs + std::int64_t{head} * queries.length(sequence) * keys.length(sequence);
}

template <class T>
Variable<T> attention(Graph<T>& graph, HeadsInput<T> query, HeadsInput<T> key, HeadsInput<T> value, std::int64_t width,
                      PackedOffsets queries, PackedOffsets keys, const AttentionOptions& options, T* weights_out,
                      const PositionBias<T>& positions) {
  check_offsets(width, queries, keys, options, static_cast<bool>(positions));
  check_heads_input("query", query, queries.tokens(), width);
  check_heads_input("key", key, keys.tokens(), width);
  check_heads_input("value", value, keys.tokens(), width);
  const std::int64_t size = attention_weights_size(queries, keys, options.heads);
  const AttentionArrays<T> arrays{.query = slice(query.matrix.value, query.column),
                                  .key = slice(key.matrix.value, key.column),
                                  .value = slice(value.matrix.value, value.column),
                                  .query_gradient = nullptr,
                                  .key_gradient = nullptr,
                                  .value_gradient = nullptr,
                                  .query_gradient_empty = false,
                                  .key_gradient_empty = false,
                                  .value_gradient_empty = false,
                                  .query_stride = query.matrix.value.columns(),
                                  .key_stride = key.matrix.value.columns(),
                                  .value_stride = value.matrix.value.columns(),
                                  .width = width,
                                  .heads = options.heads,
                                  .causal = options.causal,
                                  .queries = queries,
                                  .keys = keys,
                                  .mask = draw_dropout_mask(graph, size + kAttentionSlack, options.dropout),
                                  .positions = position_arrays("attention", positions, options.heads,
                                                               width / options.heads, longest(keys), options.causal)};
  const Variable<T> out = graph.result({queries.tokens(), width});
  T* weights = nullptr;
  if (graph.recording() || weights_out) weights = graph.arena().template tensor<T>({size + kAttentionSlack}).data();
  attention_forward(graph.device(), arrays, weights, out.value.data());
  if (weights_out) std::copy(weights, weights + size, weights_out);
  graph.record([&device = graph.device(), query, key, value, positions, arrays, weights, out] {
    AttentionArrays<T> back = arrays;
    set_gradients(query, key, value, back);
    set_position_gradients(positions, back.positions);
    attention_backward(device, back, weights, static_cast<const T*>(out.gradient.sum().data()));
  });
  return out;
}

template Variable<float> attention(Graph<float>&, HeadsInput<float>, HeadsInput<float>, HeadsInput<float>, std::int64_t,
                                   PackedOffsets, PackedOffsets, const AttentionOptions&, float*,
                                   const PositionBias<float>&);
template Variable<double> attention(Graph<double>&, HeadsInput<double>, HeadsInput<double>, HeadsInput<double>,
                                    std::int64_t, PackedOffsets, PackedOffsets, const AttentionOptions&, double*,
                                    const PositionBias<double>&);

}  // namespace heed
