#include "heed/ops/arithmetic.h"

#include "heed/ops/check.h"

namespace heed {

template <class T>
Variable<T> add(Graph<T>& graph, const Variable<T>& a, const Variable<T>& b) {
  check_shape("add", "b", b.shape(), a.shape());
  const Variable<T> y = graph.result(a.shape());
  graph.run([&](auto& device) {
    scale_into(device, a.value, T(1), T(0), y.value);
    scale_into(device, b.value, T(1), T(1), y.value);
  });
  graph.record([a, b, y](auto& device) {
    if (a.tracked()) scale_into(device, y.gradient.sum(), T(1), T(1), a.gradient.sum());
    if (b.tracked()) scale_into(device, y.gradient.sum(), T(1), T(1), b.gradient.sum());
  });
  return y;
}

template <class T>
Variable<T> multiply(Graph<T>& graph, const Variable<T>& a, const Variable<T>& b) {
  check_shape("multiply", "b", b.shape(), a.shape());
  const Variable<T> y = graph.result(a.shape());
  graph.run([&](auto& device) { multiply_into(device, a.value, b.value, T(0), y.value); });
  graph.record([a, b, y](auto& device) {
    if (a.tracked()) multiply_into(device, y.gradient.sum(), b.value, T(1), a.gradient.sum());
    if (b.tracked()) multiply_into(device, y.gradient.sum(), a.value, T(1), b.gradient.sum());
  });
  return y;
}

template <class T>
Variable<T> multiply(Graph<T>& graph, const Variable<T>& x, std::type_identity_t<T> factor) {
  const Variable<T> y = graph.result(x.shape());
  graph.run([&](auto& device) { scale_into(device, x.value, factor, T(0), y.value); });
  graph.record([x, factor, y](auto& device) {
    if (x.tracked()) scale_into(device, y.gradient.sum(), factor, T(1), x.gradient.sum());
  });
  return y;
}

template <class T>
Variable<T> scale(Graph<T>& graph, const Variable<T>& x, const Variable<T>& factor) {
  if (factor.value.size() != 1) check_shape("scale", "factor", factor.shape(), {1});
  const Variable<T> y = graph.result(x.shape());
  graph.run([&](auto& device) { scale_by_element<T>(device, x.value, factor.value.data(), 0, y.value); });
  graph.record([x, factor, y](auto& device) {
    if (x.tracked()) scale_by_element<T>(device, y.gradient.sum(), factor.value.data(), 1, x.gradient.sum());
    if (!factor.tracked()) return;
    const ArenaScope scope(device.arena);
    const Tensor<T> products = device.arena.template tensor<T>(x.shape());
    multiply_into(device, y.gradient.sum(), x.value, T(0), products);
    sum_into(device, products, 1, factor.gradient.sum().data());
  });
  return y;
}

template <class T>
Variable<T> sum(Graph<T>& graph, const Variable<T>& x) {
  const Variable<T> y = graph.result({});
  graph.run([&](auto& device) { sum_into(device, x.value, 0, y.value.data()); });
  graph.record([x, y](auto& device) {
    if (x.tracked()) sum_backward<T>(device, y.gradient.sum().data(), x.gradient.sum());
  });
  return y;
}

template <class T>
Variable<T> weighted_sum(Graph<T>& graph, const Variable<T>& weights, std::span<const Variable<T>> x) {
  check_shape("weighted_sum", "weights", weights.shape(), {std::ssize(x)});
  for (const Variable<T>& each : x) check_shape("weighted_sum", "x", each.shape(), x[0].shape());
  const Variable<T> y = graph.result(x[0].shape());
  graph.run([&](auto& device) {
    for (std::int64_t j = 0; j < std::ssize(x); ++j)
      scale_by_element<T>(device, x[static_cast<std::size_t>(j)].value, weights.value.data() + j, j == 0 ? 0 : 1,
                          y.value);
  });
  graph.record([weights, x, y](auto& device) {
    const ArenaScope scope(device.arena);
    const Tensor<T> dy = y.gradient.sum(), products = device.arena.template tensor<T>(dy.shape());
    for (std::int64_t j = 0; j < std::ssize(x); ++j) {
      const Variable<T>& each = x[static_cast<std::size_t>(j)];
      if (each.tracked()) scale_by_element<T>(device, dy, weights.value.data() + j, 1, each.gradient.sum());
      if (!weights.tracked()) continue;
      multiply_into(device, dy, each.value, T(0), products);
      sum_into(device, products, 1, weights.gradient.sum().data() + j);
    }
  });
  return y;
}

template Variable<float> weighted_sum(Graph<float>&, const Variable<float>&, std::span<const Variable<float>>);
template Variable<double> weighted_sum(Graph<double>&, const Variable<double>&, std::span<const Variable<double>>);
template Variable<float> add(Graph<float>&, const Variable<float>&, const Variable<float>&);
template Variable<double> add(Graph<double>&, const Variable<double>&, const Variable<double>&);
template Variable<float> multiply(Graph<float>&, const Variable<float>&, const Variable<float>&);
template Variable<double> multiply(Graph<double>&, const Variable<double>&, const Variable<double>&);
template Variable<float> multiply(Graph<float>&, const Variable<float>&, float);
template Variable<double> multiply(Graph<double>&, const Variable<double>&, double);
template Variable<float> scale(Graph<float>&, const Variable<float>&, const Variable<float>&);
template Variable<double> scale(Graph<double>&, const Variable<double>&, const Variable<double>&);
template Variable<float> sum(Graph<float>&, const Variable<float>&);
template Variable<double> sum(Graph<double>&, const Variable<double>&);

}  // namespace heed
