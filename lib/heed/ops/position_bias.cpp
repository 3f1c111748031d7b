#include "heed/ops/position_bias.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "heed/ops/check.h"

namespace heed {

double alibi_slope(int head, int heads) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(heads)));
  if (head < power) return std::exp2(-8.0 * (head + 1) / power);
  return std::exp2(-4.0 * (2 * (head - power) + 1) / power);
}

int t5_bucket(std::int64_t distance, int buckets, bool causal) {
  const int half = causal ? buckets : buckets / 2, exact = half / 2;
  const int first = !causal && distance > 0 ? half : 0;
  const std::int64_t steps = causal ? std::max<std::int64_t>(-distance, 0) : std::abs(distance);
  if (steps < exact) return first + static_cast<int>(steps);
  // Computed in float32, as by Hugging Face, so that both round alike.
  const float ratio = std::log(static_cast<float>(steps) / static_cast<float>(exact)) /
                      static_cast<float>(std::log(static_cast<double>(kT5MostDistance) / exact));
  const int logarithmic = exact + static_cast<int>(ratio * static_cast<float>(half - exact));
  return first + std::min(logarithmic, half - 1);
}

std::int64_t window_matrix_stride(const WindowShape& shape) {
  return (shape.tokens() + kPositionBiasSlack - 1) / kPositionBiasSlack * kPositionBiasSlack;
}

std::int64_t window_bias_columns(std::span<const WindowShape> shapes) {
  std::int64_t columns = kPositionBiasSlack;
  for (const WindowShape& shape : shapes) columns += shape.tokens() * window_matrix_stride(shape);
  return columns;
}

template <class T>
PositionBias<T> alibi_bias(Graph<T>& graph, int heads, std::int64_t longest, bool causal) {
  const Tensor<T> bias = graph.arena().template tensor<T>({heads, position_bias_columns(longest, causal)});
  graph.run([&](auto& device) { alibi_forward(device, longest, causal, bias); });
  return {.bias = graph.input(bias), .longest = longest};
}

template <class T>
PositionBias<T> t5_bias(Graph<T>& graph, const Variable<T>& table, std::int64_t longest, bool causal) {
  check_shape("t5_bias", "table", table.shape(), {table.value.rows(), table.value.columns()});
  const Variable<T> bias = graph.result({table.value.columns(), position_bias_columns(longest, causal)});
  graph.run([&](auto& device) { t5_forward(device, table.value, longest, causal, bias.value); });
  graph.record([table, bias, longest, causal](auto& device) {
    const Tensor<T> dtable = table.gradient.sum();
    if (dtable) t5_backward(device, bias.gradient.sum(), longest, causal, dtable);
  });
  return {.bias = bias, .longest = longest};
}

namespace {

/// Sets the members of `arrays` that belong to the bias (see position_arrays()).
template <class T>
void set_bias(const char* op, const PositionBias<T>& positions, int heads, std::int64_t longest, bool causal,
              PositionArrays<T>& arrays) {
  std::int64_t columns = position_bias_columns(positions.longest, causal);
  if (!positions.matrices.empty()) {
    if (causal) throw Error(std::string("internal: ") + op + ": a bias of windows, but a causal attention");
    columns = window_bias_columns(positions.windows.shapes);
    arrays.matrices = positions.matrices.data();
    arrays.shape_of = positions.windows.shape_of.data();
  } else if (longest > positions.longest) {
    throw Error(std::string("internal: ") + op + ": a sequence of " + std::to_string(longest) +
                " tokens, but a bias for at most " + std::to_string(positions.longest));
  }
  check_shape(op, "bias", positions.bias.shape(), {heads, columns});
  arrays.bias = positions.bias.value.data();
  arrays.bias_stride = columns;
  arrays.longest = positions.longest;
}

}  // namespace

template <class T>
PositionArrays<T> position_arrays(const char* op, const PositionBias<T>& positions, int heads, std::int64_t head_width,
                                  std::int64_t longest, bool causal) {
  PositionArrays<T> arrays;
  if (positions.bias && positions.relative_keys)
    throw Error(std::string("internal: ") + op + ": a bias and relative vectors at the same time");
  if (positions.bias) set_bias(op, positions, heads, longest, causal, arrays);
  if (positions.relative_keys) {
    const std::int64_t vectors = positions.relative_keys.value.rows();
    if (vectors < 3 || vectors % 2 == 0)
      throw Error(std::string("internal: ") + op + ": " + std::to_string(vectors) +
                  " relative vectors, expected an odd number from 3 on");
    check_shape(op, "relative_keys", positions.relative_keys.shape(), {vectors, head_width});
    check_shape(op, "relative_values", positions.relative_values.shape(), {vectors, head_width});
    arrays.relative_keys = positions.relative_keys.value.data();
    arrays.relative_values = positions.relative_values.value.data();
    arrays.distance = vectors / 2;
  }
  return arrays;
}

#define HEED_INSTANTIATE(T)                                                                                        \
  template PositionBias<T> alibi_bias(Graph<T>&, int, std::int64_t, bool);                                         \
  template PositionBias<T> t5_bias(Graph<T>&, const Variable<T>&, std::int64_t, bool);                             \
  template PositionArrays<T> position_arrays(const char*, const PositionBias<T>&, int, std::int64_t, std::int64_t, \
                                             bool);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
