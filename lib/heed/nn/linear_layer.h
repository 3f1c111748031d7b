#pragma once

#include <string>

#include "heed/autograd/graph.h"
#include "heed/ops/linear.h"

namespace heed {

/// y = f(x W^T + b) with parameters <name>/weight [out, in] and <name>/bias [out] (PyTorch's layout).
class LinearLayer {
 public:
  LinearLayer(ParameterLayout& layout, const std::string& name, std::int64_t in, std::int64_t out)
      : weight_(layout.add(name + "/weight", {out, in}, Initialiser::xavier())),
        bias_(layout.add(name + "/bias", {out}, Initialiser::zeros())) {}

  /// x [N, in] -> [N, out].
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x, Activation activation = Activation::none,
                         ResultUse use = ResultUse::any) const {
    return linear(graph, x, graph.parameter(weight_), graph.parameter(bias_), activation, use);
  }

 private:
  ParameterId weight_, bias_;
};

}  // namespace heed
