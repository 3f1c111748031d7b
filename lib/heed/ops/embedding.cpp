#include "heed/ops/embedding.h"

#include "heed/ops/check.h"

namespace heed {
namespace {

/// Throws Error where one of `numbers` (ids or positions) is not the index of a row in a table of `limit` rows. `what`
/// is the name of the numbers in the error's message.
void check_range(const char* what, std::span<const std::int32_t> numbers, std::int64_t limit) {
  for (const std::int32_t number : numbers)
    if (number < 0 || number >= limit)
      throw Error("embedding: " + std::string(what) + " " + std::to_string(number) + " is not in the table of " +
                  std::to_string(limit) + " rows (0 to " + std::to_string(limit - 1) + ")");
}

}  // namespace

template <class T>
Variable<T> embedding(Graph<T>& graph, std::span<const std::int32_t> ids, std::span<const std::int32_t> positions,
                      const Variable<T>& weight, const Variable<T>& position_table, T scale, double p) {
  const auto count = static_cast<std::int64_t>(ids.size());
  const std::int64_t width = weight.value.columns();
  check_range("id", ids, weight.value.dim(0));
  if (position_table) {
    check_shape("embedding", "position_table", position_table.shape(), {position_table.value.dim(0), width});
    check_shape("embedding", "positions", {static_cast<std::int64_t>(positions.size())}, {count});
    check_range("position", positions, position_table.value.dim(0));
  }
  const EmbeddingRows rows{ids.data(), position_table ? positions.data() : nullptr, count};
  const DropoutMask<T> mask = draw_dropout_mask(graph, count, width, p);
  const Variable<T> y = graph.result({count, width});
  graph.run(
      [&](auto& device) { embedding_forward(device, rows, weight.value, position_table.value, scale, mask, y.value); });
  graph.record([rows, weight, position_table, scale, mask, y](auto& device) {
    embedding_backward(device, rows, scale, mask, y.gradient.sum(), weight.gradient.sum(),
                       position_table.gradient.sum());
  });
  return y;
}

template Variable<float> embedding(Graph<float>&, std::span<const std::int32_t>, std::span<const std::int32_t>,
                                   const Variable<float>&, const Variable<float>&, float, double);
template Variable<double> embedding(Graph<double>&, std::span<const std::int32_t>, std::span<const std::int32_t>,
                                    const Variable<double>&, const Variable<double>&, double, double);

}  // namespace heed
