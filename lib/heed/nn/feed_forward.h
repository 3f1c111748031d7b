#pragma once

#include <string>
#include <vector>

#include "heed/nn/linear_layer.h"
#include "heed/ops/dropout.h"

namespace heed {

/// The activation functions of a feed-forward layer: those of ops/linear.h, and two gated linear units (Shazeer 2020).
enum class FeedForwardActivation { none, relu, gelu, swish, swiglu, geglu };

/// The position-wise feed-forward network of a Transformer layer (Vaswani et al. 2017, section 3.3):
/// y = out(dropout(f(in(x)))), where `in` and `out` are linear layers and f is the activation function.
///
/// With a gated linear unit (Shazeer 2020) the network is y = out(dropout(f(gate(x)) * in(x))), where f is swish for
/// swiglu and gelu for geglu, and `gate` is a linear layer of the shape of `in`. The weights of `gate` and `in` lie
/// side by side in memory, so that one matrix product computes both layers.
class FeedForward {
 public:
  /// Adds the parameters <name>/in/{weight,bias} and <name>/out/{weight,bias} to `layout`, and before them, for a gated
  /// linear unit, <name>/gate/{weight,bias}. `width` is the model's width D, `inner` is the width F of the inner
  /// result, and `dropout` is the probability of dropping an element.
  FeedForward(ParameterLayout& layout, const std::string& name, std::int64_t width, std::int64_t inner,
              FeedForwardActivation activation, double dropout)
      : activation_(function(activation)),
        gated_(activation == FeedForwardActivation::swiglu || activation == FeedForwardActivation::geglu),
        in_(gated_ ? LinearLayer::side_by_side(layout, {name + "/gate", name + "/in"}, width, inner)
                   : LinearLayer(layout, name + "/in", width, inner)),
        out_(layout, name + "/out", inner, width),
        dropout_(dropout) {}

  /// Applies the feed-forward network to each of N tokens. Shapes: x [N, D] -> [N, D]. `use` says which ops will read
  /// the result.
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x, ResultUse use = ResultUse::any) const {
    Product in = inner_product({});
    if (!graph.recording()) in.result_use = ResultUse::linear;
    return out_(graph, dropout(graph, in(graph, x), dropout_), Activation::none, use);
  }

  /// Returns which ops read the inner result [N, F] in training: without dropout, the linear layer `out` alone. In a
  /// training with bfloat16 products the inner result is then stored as bfloat16, which halves the memory of a layer's
  /// largest tensor.
  static ResultUse use_of_inner(double dropout) { return dropout > 0 ? ResultUse::any : ResultUse::linear; }

  /// Appends the two matrix products to `products`. `place` says where the layer is: its members side, in_encoder and
  /// layer are those of the products.
  void add_products(const Product& place, std::vector<Product>& products) const {
    Product in = inner_product(place);
    in.rounded_input = true;
    Product out = out_.product(place);
    out.rounded_input = in.result_use == ResultUse::linear;
    products.push_back(in);
    products.push_back(out);
  }

 private:
  /// Returns the product, with the activation function, that computes the inner result.
  Product inner_product(const Product& place) const {
    Product in = in_.product(place);
    in.activation = activation_;
    in.gated = gated_;
    in.dropout = dropout_;
    in.result_use = use_of_inner(dropout_);
    return in;
  }
  /// Returns the function f of an activation.
  static Activation function(FeedForwardActivation activation) {
    switch (activation) {
      case FeedForwardActivation::none:
        return Activation::none;
      case FeedForwardActivation::relu:
        return Activation::relu;
      case FeedForwardActivation::gelu:
      case FeedForwardActivation::geglu:
        return Activation::gelu;
      case FeedForwardActivation::swish:
      case FeedForwardActivation::swiglu:
        return Activation::swish;
    }
    throw Error("internal: unknown activation of a feed-forward layer");
  }

  Activation activation_;
  bool gated_;
  LinearLayer in_, out_;
  double dropout_;
};

}  // namespace heed
