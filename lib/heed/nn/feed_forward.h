#pragma once

#include <string>

#include "heed/nn/linear_layer.h"
#include "heed/ops/dropout.h"

namespace heed {

/// The position-wise feed-forward network, out(dropout(f(in(x)))) (Vaswani et al. 2017, section 3.3).
class FeedForward {
 public:
  FeedForward(ParameterLayout& layout, const std::string& name, std::int64_t width, std::int64_t inner,
              Activation activation, double dropout)
      : in_(layout, name + "/in", width, inner),
        out_(layout, name + "/out", inner, width),
        activation_(activation),
        dropout_(dropout) {}

  /// x [N, D] -> [N, D].
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x) const {
    return out_(graph, dropout(graph, in_(graph, x, activation_, use_of_inner(dropout_)), dropout_));
  }

  /// What the inner result [N, F] is for. It is the largest of a layer's, so half of it matters.
  static ResultUse use_of_inner(double dropout) { return dropout > 0 ? ResultUse::any : ResultUse::linear; }

 private:
  LinearLayer in_, out_;
  Activation activation_;
  double dropout_;
};

}  // namespace heed
