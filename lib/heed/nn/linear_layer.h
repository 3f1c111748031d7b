#pragma once

#include <string>

#include "heed/autograd/graph.h"
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
        bias_(layout.add(name + "/bias", {out}, Initialiser::zeros())) {}

  /// Computes y = f(x W^T + b) for N rows. Shapes: x [N, in] -> y [N, out]. `use` says which ops will read y (see
  /// ResultUse).
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x, Activation activation = Activation::none,
                         ResultUse use = ResultUse::any) const {
    return linear(graph, x, graph.parameter(weight_), graph.parameter(bias_), activation, use);
  }

 private:
  ParameterId weight_, bias_;
};

}  // namespace heed
