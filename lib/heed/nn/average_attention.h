#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heed/nn/feed_forward.h"
#include "heed/nn/linear_layer.h"
#include "heed/ops/gated_sum.h"
#include "heed/ops/running_average.h"

namespace heed {

/// An average attention network (Zhang et al. 2018, section 3), which takes the place of causal self-attention: with
/// the mean m of the inputs up to a position, g = m or g = feed_forward(m), and the result is
/// sigmoid(input_gate(x)) x + sigmoid(average_gate(g)) g. As in Marian, the gate of x is a linear layer of x, and the
/// gate of g is a linear layer of g; in the paper, both gates read x and g.
class AverageAttention {
 public:
  /// Adds the parameters <name>/{input_gate,average_gate}/{weight [D, D], bias [D]} to `layout` and, if `inner` is not
  /// 0, the parameters <name>/feed_forward/... of a feed-forward network of this inner width. `width` is the model's
  /// width D; `activation` and `dropout` are those of the feed-forward network.
  AverageAttention(ParameterLayout& layout, const std::string& name, std::int64_t width, std::int64_t inner,
                   FeedForwardActivation activation, double dropout)
      : input_gate_(layout, name + "/input_gate", width, width),
        average_gate_(layout, name + "/average_gate", width, width) {
    if (inner > 0) feed_forward_.emplace(layout, name + "/feed_forward", width, inner, activation, dropout);
  }

  /// Computes all positions of a packed batch. Shapes: x [N, D] -> [N, D].
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x, PackedOffsets packed) const {
    return gated(graph, x, running_mean(graph, x, packed));
  }
  /// Computes one position of each of R rows from the means of the positions before it, and stores the new means.
  /// Shapes: x [R, D] -> [R, D].
  template <class T>
  Variable<T> step(Graph<T>& graph, const Variable<T>& x, std::span<const StateStep<T>> steps) const {
    const Variable<T> mean = graph.result(x.shape());
    graph.run([&](auto& device) { running_mean_step(device, x.value, steps, mean.value); });
    return gated(graph, x, mean);
  }

  /// Appends the matrix products to `products`; `place` is the place of the layer.
  void add_products(const Product& place, std::vector<Product>& products) const {
    if (feed_forward_) feed_forward_->add_products(place, products);
    products.push_back(input_gate_.product(place));
    products.push_back(average_gate_.product(place));
  }

 private:
  template <class T>
  Variable<T> gated(Graph<T>& graph, const Variable<T>& x, const Variable<T>& mean) const {
    const Variable<T> average = feed_forward_ ? (*feed_forward_)(graph, mean) : mean;
    return gated_sum(graph, input_gate_(graph, x), x, average_gate_(graph, average), average);
  }

  std::optional<FeedForward> feed_forward_;
  LinearLayer input_gate_, average_gate_;
};

}  // namespace heed
