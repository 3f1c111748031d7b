#include "heed/ops/heads.h"

#include "heed/ops/arithmetic.h"
#include "heed/ops/check.h"

namespace heed {
namespace {

/// Throws Error unless x has three dimensions and `heads` divides the size of dimension `axis`.
void check_heads(const char* op, const Shape& x, int axis, int heads) {
  if (x.rank() != 3)
    throw Error(std::string("internal: ") + op + ": x has shape " + x.text() + ", expected 3 dimensions");
  if (heads < 1 || x[axis] % heads != 0)
    throw Error(std::string("internal: ") + op + ": " + std::to_string(heads) + " heads do not divide dimension " +
                std::to_string(axis) + " of x, whose shape is " + x.text());
}

}  // namespace

template <class T>
Variable<T> reshape(Graph<T>& graph, const Variable<T>& x, const Shape& shape) {
  if (shape.size() != x.value.size())
    throw Error("internal: reshape: x has shape " + x.shape().text() + ", which has another size than " + shape.text());
  const Variable<T> y = graph.result_in({x.value.data(), shape});
  graph.record([x, y](auto& device) {
    if (x.tracked()) scale_into(device, y.gradient.sum(), T(1), T(1), x.gradient.sum());
  });
  return y;
}

template <class T>
Variable<T> split_heads(Graph<T>& graph, const Variable<T>& x, int heads) {
  const Shape& shape = x.shape();
  check_heads("split_heads", shape, 2, heads);
  const Variable<T> y = graph.result({shape[0] * heads, shape[1], shape[2] / heads});
  graph.run([&](auto& device) {
    rearrange_heads(device, static_cast<const T*>(x.value.data()), shape, heads, false, T(0), y.value.data());
  });
  graph.record([x, heads, y](auto& device) {
    if (x.tracked())
      rearrange_heads(device, static_cast<const T*>(y.gradient.sum().data()), x.shape(), heads, true, T(1),
                      x.gradient.sum().data());
  });
  return y;
}

template <class T>
Variable<T> merge_heads(Graph<T>& graph, const Variable<T>& x, int heads) {
  check_heads("merge_heads", x.shape(), 0, heads);
  const Variable<T> y = graph.result({x.value.dim(0) / heads, x.value.dim(1), heads * x.value.dim(2)});
  graph.run([&](auto& device) {
    rearrange_heads(device, static_cast<const T*>(x.value.data()), y.shape(), heads, true, T(0), y.value.data());
  });
  graph.record([x, heads, y](auto& device) {
    if (x.tracked())
      rearrange_heads(device, static_cast<const T*>(y.gradient.sum().data()), y.shape(), heads, false, T(1),
                      x.gradient.sum().data());
  });
  return y;
}

template <class T>
Variable<T> mean_over_heads(Graph<T>& graph, const Variable<T>& x, int heads) {
  check_heads("mean_over_heads", x.shape(), 0, heads);
  const Variable<T> y = graph.result({x.value.dim(0) / heads, x.value.dim(1), x.value.dim(2)});
  graph.run([&](auto& device) { mean_over_heads_forward(device, x.value, heads, y.value); });
  graph.record([x, heads, y](auto& device) {
    if (x.tracked()) mean_over_heads_backward(device, y.gradient.sum(), heads, x.gradient.sum());
  });
  return y;
}

template <class T>
Variable<T> append_row(Graph<T>& graph, const Variable<T>& x, const Variable<T>& row) {
  check_heads("append_row", x.shape(), 2, 1);
  if (row) check_shape("append_row", "row", row.shape(), {x.value.dim(2)});
  const Variable<T> y = graph.result({x.value.dim(0), x.value.dim(1) + 1, x.value.dim(2)});
  graph.run([&](auto& device) { append_row_forward(device, x.value, row.value, y.value); });
  graph.record([x, row, y](auto& device) {
    append_row_backward(device, y.gradient.sum(), x.gradient.sum(), row.gradient.sum());
  });
  return y;
}

#define HEED_INSTANTIATE(T)                                                  \
  template Variable<T> reshape(Graph<T>&, const Variable<T>&, const Shape&); \
  template Variable<T> split_heads(Graph<T>&, const Variable<T>&, int);      \
  template Variable<T> merge_heads(Graph<T>&, const Variable<T>&, int);      \
  template Variable<T> mean_over_heads(Graph<T>&, const Variable<T>&, int);  \
  template Variable<T> append_row(Graph<T>&, const Variable<T>&, const Variable<T>&);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
