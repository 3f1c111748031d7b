#pragma once

#include <string>
#include <vector>

#include "heed/autograd/graph.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/residual_norm.h"

namespace heed {

/// The residual stream of a stack of sublayers.
template <class T>
struct ResidualStream {
  Variable<T> residual;  ///< [N, D], what the next sublayer's output is added to
  Variable<T> input;     ///< [N, D], what the next sublayer reads; after the last one the stack's output
  int sublayer = 0;
};

/// The residual connections and layer normalisations around a stack's sublayers.
///
/// Post-norm (Vaswani et al. 2017): x <- norm_i(x + dropout(f_i(x))).
/// Pre-norm (Xiong et al. 2020): x <- x + dropout(f_i(norm_i(x))), and a last norm behind the stack; sum and next norm
/// are one op.
class NormChain {
 public:
  NormChain(std::int64_t width, bool pre, double epsilon, double dropout)
      : width_(width), pre_(pre), epsilon_(epsilon), dropout_(dropout) {}

  /// The norm of the next sublayer (or, with pre-norm, the one behind the stack): parameters <name>/{scale,bias} [D].
  void add(ParameterLayout& layout, const std::string& name) {
    norms_.push_back({layout.add(name + "/scale", {width_}, Initialiser::ones()),
                      layout.add(name + "/bias", {width_}, Initialiser::zeros())});
  }

  /// x [N, D], the stack's input.
  template <class T>
  ResidualStream<T> start(Graph<T>& graph, const Variable<T>& x) const {
    if (!pre_) return {x, x, 0};
    return {x, layer_norm(graph, x, graph.parameter(norms_[0].scale), graph.parameter(norms_[0].bias), epsilon_), 0};
  }

  /// Takes a sublayer's output in; its value ends, the sum takes its memory (so it must be no activation's). Inference
  /// writes the stream where it was, so that a stack needs the memory of a sublayer.
  template <class T>
  void advance(Graph<T>& graph, ResidualStream<T>& stream, const Variable<T>& branch) const {
    const Norm& norm = norms_[static_cast<std::size_t>(stream.sublayer++) + (pre_ ? 1 : 0)];
    if (!graph.recording()) {
      residual_norm_forward(graph.device(), stream.residual.value, branch.value, {}, graph.parameter(norm.scale).value,
                            graph.parameter(norm.bias).value, epsilon_, stream.residual.value, stream.input.value,
                            Tensor<T>());
      return;
    }
    const ResidualNorm<T> out = residual_norm(graph, stream.residual, branch, graph.parameter(norm.scale),
                                              graph.parameter(norm.bias), epsilon_, dropout_, branch.value);
    stream.residual = pre_ ? out.sum : out.normed;
    stream.input = out.normed;
  }

 private:
  struct Norm {
    ParameterId scale, bias;
  };

  std::int64_t width_;
  bool pre_;
  double epsilon_, dropout_;
  std::vector<Norm> norms_;
};

}  // namespace heed
