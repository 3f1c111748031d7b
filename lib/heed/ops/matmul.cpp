#include "heed/ops/matmul.h"

#include "heed/ops/check.h"

namespace heed {
namespace {

/// Returns the shape of a result of matmul() or transpose(): [rows, columns] for a single matrix, or [B, rows, columns]
/// for a batch of B matrices. The operand's shape `like` is a batch where it has three dimensions, the first of which
/// is B.
Shape matrices(const Shape& like, std::int64_t rows, std::int64_t columns) {
  return like.rank() == 3 ? Shape{like[0], rows, columns} : Shape{rows, columns};
}

/// Throws Error unless a shape has 2 or 3 dimensions.
void check_rank(const char* op, const char* argument, const Shape& shape) {
  if (shape.rank() != 2 && shape.rank() != 3)
    throw Error(std::string("internal: ") + op + ": " + argument + " has shape " + shape.text() +
                ", expected 2 or 3 dimensions");
}

}  // namespace

template <class T>
Variable<T> matmul(Graph<T>& graph, const Variable<T>& a, const Variable<T>& b) {
  check_rank("matmul", "a", a.shape());
  check_rank("matmul", "b", b.shape());
  check_shape("matmul", "b", b.shape(), matrices(a.shape(), a.value.columns(), b.value.columns()));
  const Variable<T> y = graph.result(matrices(a.shape(), a.value.dim(a.shape().rank() - 2), b.value.columns()));
  graph.run([&](auto& device) { matmul_forward(device, a.value, b.value, y.value); });
  graph.record([a, b, y](auto& device) {
    matmul_backward(device, a.value, b.value, y.gradient.sum(), a.gradient.sum(), b.gradient.sum());
  });
  return y;
}

template <class T>
Variable<T> transpose(Graph<T>& graph, const Variable<T>& x) {
  check_rank("transpose", "x", x.shape());
  const Variable<T> y = graph.result(matrices(x.shape(), x.value.columns(), x.value.dim(x.shape().rank() - 2)));
  graph.run([&](auto& device) { transpose_into(device, x.value, T(0), y.value); });
  graph.record([x, y](auto& device) {
    if (x.tracked()) transpose_into(device, y.gradient.sum(), T(1), x.gradient.sum());
  });
  return y;
}

template Variable<float> matmul(Graph<float>&, const Variable<float>&, const Variable<float>&);
template Variable<double> matmul(Graph<double>&, const Variable<double>&, const Variable<double>&);
template Variable<float> transpose(Graph<float>&, const Variable<float>&);
template Variable<double> transpose(Graph<double>&, const Variable<double>&);

}  // namespace heed
