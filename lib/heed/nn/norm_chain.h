#pragma once

#include <string>
#include <vector>

#include "heed/autograd/graph.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/residual_norm.h"

namespace heed {

/// The state of the residual stream (the sum to which each sublayer adds its output) between two sublayers of a stack.
template <class T>
struct ResidualStream {
  Variable<T> residual;  ///< [N, D]: the sum to which the output of the next sublayer is added
  Variable<T> input;     ///< [N, D]: the input of the next sublayer; after the last sublayer, the output of the stack
  /// The number of sublayers whose output has been added to `residual` so far.
  int sublayer = 0;
};

/// The residual connections and layer normalisations around the sublayers f_0, f_1, ... of a stack.
///
/// Post-norm (Vaswani et al. 2017) computes x <- norm_i(x + dropout(f_i(x))).
/// Pre-norm (Xiong et al. 2020) computes x <- x + dropout(f_i(norm_i(x))) and a last norm at the end of the stack.
/// The op residual_norm() computes a sum and the norm that follows that sum together.
class NormChain {
 public:
  /// `width` is the model's width D, `pre` selects pre-norm, `epsilon` is added to a row's variance, and `dropout` is
  /// the probability of dropping an element of a sublayer's output.
  NormChain(std::int64_t width, bool pre, double epsilon, double dropout)
      : width_(width), pre_(pre), epsilon_(epsilon), dropout_(dropout) {}

  /// Adds the layer normalisation of the next sublayer, with the parameters <name>/{scale,bias} [D], to `layout`. With
  /// pre-norm, one more call after the last sublayer adds the normalisation at the end of the stack.
  void add(ParameterLayout& layout, const std::string& name) {
    norms_.push_back({layout.add(name + "/scale", {width_}, Initialiser::ones()),
                      layout.add(name + "/bias", {width_}, Initialiser::zeros())});
  }

  /// Begins the residual stream of a stack of layers with the stack's input x [N, D].
  template <class T>
  ResidualStream<T> start(Graph<T>& graph, const Variable<T>& x) const {
    if (!pre_) return {x, x, 0};
    return {x, layer_norm(graph, x, graph.parameter(norms_[0].scale), graph.parameter(norms_[0].bias), epsilon_), 0};
  }

  /// Adds the output `branch` of a sublayer to the residual stream. In training the sum overwrites the value of
  /// `branch`, so no backward pass may read that value. (The backward pass of a ReLU does read its result, so a ReLU
  /// must not compute `branch`.) In inference the stream is updated in its own memory, so that a whole stack needs the
  /// memory of one sublayer only.
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

  /// The parameters of one layer normalisation.
  struct Norm {
    ParameterId scale, bias;
  };
  /// Returns the parameters of the first layer normalisation.
  const Norm& first() const { return norms_.front(); }

 private:
  std::int64_t width_;
  bool pre_;
  double epsilon_, dropout_;
  std::vector<Norm> norms_;
};

}  // namespace heed
