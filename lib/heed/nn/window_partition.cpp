#include "heed/nn/window_partition.h"

#include <algorithm>
#include <string>

#include "heed/base/error.h"

namespace heed {
namespace {

std::string size_text(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

/// Returns where the windows along one side of a grid begin, and the length of the side as the last element.
std::vector<std::int32_t> cuts_of_side(std::int32_t length, std::int32_t window, std::int32_t shift) {
  std::vector<std::int32_t> cuts{0};
  const bool is_shifted = shift > 0 && window < length;
  for (std::int32_t at = is_shifted ? shift : window; at < length; at += window) cuts.push_back(at);
  cuts.push_back(length);
  return cuts;
}

/// Throws Error where a side of the grid is longer than a window and no multiple of it.
void check_side(GridSize grid, const char* name, std::int32_t length, std::int32_t window) {
  if (length <= window || length % window == 0) return;
  const std::int32_t below = length / window * window;
  throw Error("a grid of " + size_text(grid.rows, grid.columns) + " tokens cannot be divided into windows of " +
              size_text(window, window) + " tokens (" + std::to_string(below) + " and " +
              std::to_string(below + window) + " " + name + " fit, and so do the other multiples of " +
              std::to_string(window) + " and all numbers below " + std::to_string(window) + ")");
}

void check_size(const char* function, const char* argument, std::size_t actual, std::size_t expected) {
  if (actual != expected)
    throw Error(std::string("internal: ") + function + ": " + argument + " has " + std::to_string(actual) +
                " elements, expected " + std::to_string(expected));
}

}  // namespace

WindowPartition window_partition(GridSize grid, int window, int shift) {
  if (grid.rows < 1 || grid.columns < 1 || window < 1 || shift < 0 || shift >= window)
    throw Error("internal: window_partition: a grid of " + size_text(grid.rows, grid.columns) + " tokens, windows of " +
                size_text(window, window) + ", shifted by " + std::to_string(shift));
  check_side(grid, "rows", grid.rows, window);
  check_side(grid, "columns", grid.columns, window);
  const std::vector<std::int32_t> rows = cuts_of_side(grid.rows, window, shift);
  const std::vector<std::int32_t> columns = cuts_of_side(grid.columns, window, shift);
  WindowPartition out;
  out.order.reserve(static_cast<std::size_t>(grid.tokens()));
  for (std::size_t i = 0; i + 1 < rows.size(); ++i)
    for (std::size_t j = 0; j + 1 < columns.size(); ++j) {
      const WindowShape shape{rows[i + 1] - rows[i], columns[j + 1] - columns[j]};
      const auto known = std::find(out.shapes.begin(), out.shapes.end(), shape);
      out.shape_of.push_back(static_cast<std::int32_t>(known - out.shapes.begin()));
      if (known == out.shapes.end()) out.shapes.push_back(shape);
      for (std::int32_t r = rows[i]; r < rows[i + 1]; ++r)
        for (std::int32_t c = columns[j]; c < columns[j + 1]; ++c) out.order.push_back(r * grid.columns + c);
    }
  out.inverse.resize(out.order.size());
  for (std::size_t t = 0; t < out.order.size(); ++t)
    out.inverse[static_cast<std::size_t>(out.order[t])] = static_cast<std::int32_t>(t);
  return out;
}

std::vector<std::int32_t> patch_merging_order(GridSize grid) {
  if (grid.rows < 2 || grid.columns < 2 || grid.rows % 2 != 0 || grid.columns % 2 != 0)
    throw Error("a grid of " + size_text(grid.rows, grid.columns) +
                " tokens cannot be merged in squares of 2 x 2 (choose an image size that gives an even number of rows "
                "and columns)");
  std::vector<std::int32_t> order;
  order.reserve(static_cast<std::size_t>(grid.tokens()));
  for (std::int32_t r = 0; r < grid.rows; r += 2)
    for (std::int32_t c = 0; c < grid.columns; c += 2) {
      const std::int32_t first = r * grid.columns + c;
      order.insert(order.end(), {first, first + grid.columns, first + 1, first + grid.columns + 1});
    }
  return order;
}

void repeat_order(std::span<const std::int32_t> order, int images, std::span<std::int32_t> rows) {
  check_size("repeat_order", "rows", rows.size(), order.size() * static_cast<std::size_t>(images));
  const auto tokens = static_cast<std::int32_t>(order.size());
  auto to = rows.begin();
  for (std::int32_t b = 0; b < images; ++b)
    for (const std::int32_t row : order) *to++ = b * tokens + row;
}

void repeat_windows(const WindowPartition& partition, int images, std::span<std::int32_t> offsets,
                    std::span<std::int32_t> shape_of) {
  const std::size_t windows = partition.shape_of.size() * static_cast<std::size_t>(images);
  check_size("repeat_windows", "offsets", offsets.size(), windows + 1);
  check_size("repeat_windows", "shape_of", shape_of.size(), windows);
  offsets[0] = 0;
  for (std::size_t b = 0; b < windows; ++b) {
    shape_of[b] = partition.shape_of[b % partition.shape_of.size()];
    const WindowShape& shape = partition.shapes[static_cast<std::size_t>(shape_of[b])];
    offsets[b + 1] = offsets[b] + static_cast<std::int32_t>(shape.tokens());
  }
}

}  // namespace heed
