#pragma once

#include <initializer_list>
#include <string>

#include "heed/autograd/graph.h"
#include "heed/nn/product.h"
#include "heed/ops/linear.h"

namespace heed {

/// A linear layer with an activation function f: y = f(x W^T + b). The parameters are the weight W, <name>/weight
/// [out, in], and the bias b, <name>/bias [out] (PyTorch's layout).
class LinearLayer {
 public:
  /// Adds the weight and the bias of the layer y = f(x W^T + b) to `layout`. `in` and `out` are the widths of a row of
  /// x and of a row of y.
  LinearLayer(ParameterLayout& layout, const std::string& name, std::int64_t in, std::int64_t out)
      : weight_(layout.add(name + "/weight", {out, in}, Initialiser::xavier())),
        bias_(layout.add(name + "/bias", {out}, Initialiser::zeros())),
        in_(in),
        out_(out) {}

  /// Adds several linear layers from the same x, with the given names and `out` columns each, whose weights and biases
  /// lie side by side in memory. Returns them as one layer: a row of its result holds the results of all of them, one
  /// after another.
  static LinearLayer side_by_side(ParameterLayout& layout, std::initializer_list<std::string> names, std::int64_t in,
                                  std::int64_t out) {
    LinearLayer all;
    for (const std::string& name : names) {
      const ParameterId weight =
          layout.add(name + "/weight", {out, in}, Initialiser::xavier(), static_cast<bool>(all.weight_));
      if (!all.weight_) all.weight_ = weight;
    }
    for (const std::string& name : names) {
      const ParameterId bias = layout.add(name + "/bias", {out}, Initialiser::zeros(), static_cast<bool>(all.bias_));
      if (!all.bias_) all.bias_ = bias;
    }
    all.in_ = in;
    all.out_ = out * static_cast<std::int64_t>(names.size());
    return all;
  }

  /// Computes y = f(x W^T + b) for N rows. Shapes: x [N, in] -> y [N, out]. `use` says which ops will read y (see
  /// ResultUse).
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x, Activation activation = Activation::none,
                         ResultUse use = ResultUse::any) const {
    return linear(graph, x, graph.parameter(weight_, {out_, in_}), graph.parameter(bias_, {out_}), activation, use);
  }

  /// Returns the matrix product of the layer, with the members of `place` that say where the layer is.
  Product product(Product place) const {
    place.weight = weight_;
    place.bias = bias_;
    place.outputs = out_;
    place.inputs = in_;
    return place;
  }

 private:
  LinearLayer() = default;

  ParameterId weight_, bias_;
  std::int64_t in_ = 0, out_ = 0;
};

}  // namespace heed
