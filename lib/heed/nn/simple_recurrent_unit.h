#pragma once

#include <string>
#include <vector>

#include "heed/nn/linear_layer.h"
#include "heed/ops/running_average.h"

namespace heed {

/// The simpler simple recurrent unit (SSRU, Kim et al. 2019, section 3.2), which takes the place of causal
/// self-attention: c_t = f_t c_(t-1) + (1 - f_t) candidate(x_t) with f_t = sigmoid(forget(x_t)); the result is
/// max(0, c_t). The paper's candidate has no bias.
class SimpleRecurrentUnit {
 public:
  /// Adds the parameters <name>/{candidate,forget}/{weight [D, D], bias [D]} to `layout`. The weights lie side by side
  /// in memory, so that one matrix product computes both.
  SimpleRecurrentUnit(ParameterLayout& layout, const std::string& name, std::int64_t width)
      : gates_(LinearLayer::side_by_side(layout, {name + "/candidate", name + "/forget"}, width, width)) {}

  /// Computes all positions of a packed batch. Shapes: x [N, D] -> [N, D].
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x, PackedOffsets packed) const {
    return simple_recurrence(graph, gates_(graph, x), packed);
  }
  /// Computes one position of each of R rows from the states c of the positions before it, and stores the new states.
  /// Shapes: x [R, D] -> [R, D].
  template <class T>
  Variable<T> step(Graph<T>& graph, const Variable<T>& x, std::span<const StateStep<T>> steps) const {
    const Variable<T> product = gates_(graph, x), y = graph.result(x.shape());
    graph.run([&](auto& device) { simple_recurrence_step(device, product.value, steps, y.value); });
    return y;
  }

  /// Appends the matrix product to `products`; `place` is the place of the layer.
  void add_products(const Product& place, std::vector<Product>& products) const {
    products.push_back(gates_.product(place));
  }

 private:
  LinearLayer gates_;
};

}  // namespace heed
