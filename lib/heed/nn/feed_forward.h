#pragma once

#include <string>
#include <vector>

#include "heed/nn/linear_layer.h"
#include "heed/ops/dropout.h"

namespace heed {

/// The position-wise feed-forward network of a Transformer layer (Vaswani et al. 2017, section 3.3):
/// y = out(dropout(f(in(x)))), where `in` and `out` are linear layers and f is the activation function.
class FeedForward {
 public:
  /// Adds the parameters <name>/in/{weight,bias} and <name>/out/{weight,bias} to `layout`. `width` is the model's
  /// width D, `inner` is the width F of the inner result, and `dropout` is the probability of dropping an element.
  FeedForward(ParameterLayout& layout, const std::string& name, std::int64_t width, std::int64_t inner,
              Activation activation, double dropout)
      : in_(layout, name + "/in", width, inner),
        out_(layout, name + "/out", inner, width),
        activation_(activation),
        dropout_(dropout) {}

  /// Applies the feed-forward network to each of N tokens. Shapes: x [N, D] -> [N, D].
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x) const {
    return out_(graph, dropout(graph, in_(graph, x, activation_, use_of_inner(dropout_)), dropout_));
  }

  /// Returns which ops read the inner result [N, F]: without dropout, the linear layer `out` alone. In a training with
  /// bfloat16 products the inner result is then stored as bfloat16, which halves the memory of a layer's largest
  /// tensor.
  static ResultUse use_of_inner(double dropout) { return dropout > 0 ? ResultUse::any : ResultUse::linear; }

  /// Appends the two matrix products to `products`. `place` says where the layer is: its members side, in_encoder and
  /// layer are those of the products.
  void add_products(const Product& place, std::vector<Product>& products) const {
    Product in = in_.product(place), out = out_.product(place);
    in.activation = activation_;
    in.dropout = dropout_;
    in.result_use = use_of_inner(dropout_);
    out.rounded_input = in.result_use == ResultUse::linear;
    products.push_back(in);
    products.push_back(out);
  }

 private:
  LinearLayer in_, out_;
  Activation activation_;
  double dropout_;
};

}  // namespace heed
