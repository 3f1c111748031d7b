#include "heed/ops/rotary.h"

#include "heed/ops/check.h"

namespace heed {

template <class T>
Variable<T> rotary(Graph<T>& graph, const Variable<T>& x, std::int64_t width, PackedOffsets packed, Tensor<T> table) {
  const std::int64_t d = table.columns() / 2;
  check_shape("rotary", "x", x.shape(), {packed.tokens(), x.value.columns()});
  if (d == 0 || table.columns() % 4 != 0 || width % d != 0 || width > x.value.columns())
    throw Error("internal: rotary: a table of " + std::to_string(table.columns()) + " columns does not fit " +
                std::to_string(width) + " of " + std::to_string(x.value.columns()) + " columns");
  for (int b = 0; b < packed.sequences(); ++b)
    if (packed.length(b) > table.rows())
      throw Error("internal: rotary: sequence " + std::to_string(b) + " has " + std::to_string(packed.length(b)) +
                  " tokens, but the table has " + std::to_string(table.rows()) + " positions");
  graph.run([&](auto& device) { rotary_forward(device, x.value, width, packed, table); });
  graph.record([x, width, packed, table](auto& device) {
    // Where no op has added to the gradient, all elements are zero, and a rotation would not change them.
    const Tensor<T> dx = x.gradient.empty() ? Tensor<T>() : x.gradient.begin_writing();
    if (dx) rotary_forward(device, dx, width, packed, table, true);
  });
  return x;
}

template Variable<float> rotary(Graph<float>&, const Variable<float>&, std::int64_t, PackedOffsets, Tensor<float>);
template Variable<double> rotary(Graph<double>&, const Variable<double>&, std::int64_t, PackedOffsets, Tensor<double>);

}  // namespace heed
