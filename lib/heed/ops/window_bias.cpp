#include "heed/ops/window_bias.h"

#include "heed/ops/check.h"

namespace heed {
namespace {

/// Throws Error unless there are shapes, each of at least one token and of at most `window` rows and columns.
void check_shapes(std::span<const WindowShape> shapes, std::int64_t window) {
  if (shapes.empty()) throw Error("internal: window_bias: no shapes of windows");
  for (const WindowShape& shape : shapes)
    if (shape.rows < 1 || shape.columns < 1 || shape.rows > window || shape.columns > window)
      throw Error("internal: window_bias: a window of " + std::to_string(shape.rows) + " x " +
                  std::to_string(shape.columns) + " tokens, expected 1 to " + std::to_string(window) +
                  " rows and columns");
}

/// Returns the places of the matrices of `shapes`, one matrix after the other, in memory of an arena of the host.
WindowMatrix* place_matrices(Arena& arena, std::span<const WindowShape> shapes) {
  auto* const matrices = static_cast<WindowMatrix*>(arena.allocate(shapes.size() * sizeof(WindowMatrix)));
  std::int64_t column = 0;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    new (matrices + k) WindowMatrix{column, window_matrix_stride(shapes[k])};
    column += shapes[k].tokens() * matrices[k].stride;
  }
  return matrices;
}

}  // namespace

template <class T>
PositionBias<T> window_bias(Graph<T>& graph, const Variable<T>& table, std::int64_t window, PackedWindows windows) {
  check_shape("window_bias", "table", table.shape(), {(2 * window - 1) * (2 * window - 1), table.value.columns()});
  check_shapes(windows.shapes, window);
  const WindowMatrix* const matrices = place_matrices(graph.host_arena(), windows.shapes);
  const Variable<T> bias = graph.result({table.value.columns(), window_bias_columns(windows.shapes)});
  graph.run(
      [&](auto& device) { window_bias_forward(device, table.value, window, windows.shapes, matrices, bias.value); });
  graph.record([table, bias, window, shapes = windows.shapes, matrices](auto& device) {
    const Tensor<T> dtable = table.gradient.sum();
    if (dtable) window_bias_backward(device, bias.gradient.sum(), window, shapes, matrices, dtable);
  });
  return {.bias = bias, .windows = windows, .matrices = {matrices, windows.shapes.size()}};
}

template PositionBias<float> window_bias(Graph<float>&, const Variable<float>&, std::int64_t, PackedWindows);
template PositionBias<double> window_bias(Graph<double>&, const Variable<double>&, std::int64_t, PackedWindows);

}  // namespace heed
