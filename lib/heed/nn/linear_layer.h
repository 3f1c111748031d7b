#pragma once

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

  /// Computes y = f(x W^T + b) for N rows. Shapes: x [N, in] -> y [N, out]. `use` says which ops will read y (see
  /// ResultUse).
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x, Activation activation = Activation::none,
                         ResultUse use = ResultUse::any) const {
    return linear(graph, x, graph.parameter(weight_), graph.parameter(bias_), activation, use);
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
  ParameterId weight_, bias_;
  std::int64_t in_, out_;
};

}  // namespace heed
