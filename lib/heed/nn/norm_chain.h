#pragma once

#include <string>
#include <vector>

#include "heed/nn/norm.h"
#include "heed/ops/stochastic_depth.h"

namespace heed {

/// The state of the residual stream (the sum to which each sublayer adds its output) between two sublayers of a stack.
template <class T>
struct ResidualStream {
  Variable<T> residual;  ///< [N, D]: the sum to which the output of the next sublayer is added
  Variable<T> input;     ///< [N, D]: the input of the next sublayer; after the last sublayer, the output of the stack
  /// The number of sublayers whose output has been added to `residual` so far.
  int sublayer = 0;
  /// In inference, memory for the rounded form of `input` (see rounded_memory()). Not used where it is empty.
  Tensor<Bfloat16> rounded = {};
};

/// The residual connections and normalisations around the sublayers f_0, f_1, ... of a stack.
///
/// Post-norm (Vaswani et al. 2017) computes x <- norm_i(x + dropout(f_i(x))).
/// Pre-norm (Xiong et al. 2020) computes x <- x + dropout(f_i(norm_i(x))) and a last norm at the end of the stack,
/// unless the stack has no last norm. Norm::add() computes a sum and the norm that follows that sum together.
class NormChain {
 public:
  /// `width` is the model's width D, `pre` selects pre-norm, `kind` and `epsilon` are those of each Norm, and `dropout`
  /// is the probability of dropping an element of a sublayer's output.
  NormChain(std::int64_t width, bool pre, Normalization kind, double epsilon, double dropout)
      : width_(width), pre_(pre), kind_(kind), epsilon_(epsilon), dropout_(dropout) {}

  /// Adds the normalisation of the next sublayer, with the parameters of Norm::add(), to `layout`. With pre-norm, one
  /// more call after the last sublayer adds the normalisation at the end of the stack; without that call, the output of
  /// the stack is the sum after the last sublayer.
  void add(ParameterLayout& layout, const std::string& name) {
    norms_.push_back(Norm::add(layout, name, width_, kind_, epsilon_));
  }

  /// Lets the next `count` sublayers share the normalisations of earlier sublayers: those number `first`, `first` + 1,
  /// and so on.
  void repeat(std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      const Norm norm = norms_[i];
      norms_.push_back(norm);
    }
  }

  /// Adds the running averages of all normalisations to `layout`, which must already have all other parameters of the
  /// model. Only batch normalisation has running averages.
  void add_running(ParameterLayout& layout) {
    for (Norm& norm : norms_) norm.add_running(layout);
  }

  /// Begins the residual stream of a stack of layers with the stack's input x [N, D].
  template <class T>
  ResidualStream<T> start(Graph<T>& graph, const Variable<T>& x) const {
    ResidualStream<T> stream{x, pre_ ? norms_[0](graph, x) : x};
    if (!graph.recording() && kind_ != Normalization::batch) stream.rounded = rounded_memory(graph, x.shape());
    return stream;
  }

  /// Adds the output `branch` of a sublayer to the residual stream. In training the sum overwrites the value of
  /// `branch`, so no backward pass may read that value. (The backward pass of a ReLU does read its result, so a ReLU
  /// must not compute `branch`.) In inference the stream is updated in its own memory, so that a whole stack needs the
  /// memory of one sublayer only. In training, `left_out` is the probability that a sequence leaves the sublayer out
  /// (stochastic depth).
  template <class T>
  void advance(Graph<T>& graph, ResidualStream<T>& stream, const Variable<T>& branch, double left_out = 0) const {
    const std::size_t next = static_cast<std::size_t>(stream.sublayer++) + (pre_ ? 1 : 0);
    if (next == norms_.size()) return end_without_norm(graph, stream, branch, left_out);
    const Norm& norm = norms_[next];
    if (!graph.recording()) {
      norm.add_in_place(graph, stream.residual.value, branch.value, {stream.input.value, stream.rounded});
      stream.input.rounded = stream.rounded;
      return;
    }
    const Variable<T> kept = stochastic_depth(graph, branch, left_out);
    const ResidualNorm<T> out = norm.add(graph, stream.residual, kept, dropout_, kept.value);
    stream.residual = pre_ ? out.sum : out.normed;
    stream.input = out.normed;
  }

  /// Returns the first normalisation.
  const Norm& first() const { return norms_.front(); }

 private:
  /// Adds the output `branch` of the last sublayer of a stack without a last norm.
  template <class T>
  void end_without_norm(Graph<T>& graph, ResidualStream<T>& stream, const Variable<T>& branch, double left_out) const {
    if (graph.recording())
      stream.residual = residual(graph, stream.residual, stochastic_depth(graph, branch, left_out), dropout_);
    else
      graph.run([&](auto& device) {
        dropout_backward(device, branch.value, {}, stream.residual.value);  // residual += branch
      });
    stream.input = stream.residual;
  }

  std::int64_t width_;
  bool pre_;
  Normalization kind_;
  double epsilon_, dropout_;
  std::vector<Norm> norms_;
};

}  // namespace heed
