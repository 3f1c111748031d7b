#pragma once

#include <cstdint>
#include <string>

#include "heed/autograd/graph.h"
#include "heed/ops/batch_norm.h"
#include "heed/ops/dropout.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/residual.h"
#include "heed/ops/residual_norm.h"

namespace heed {

/// The kinds of normalisation around the sublayers of a model. `layer`: layer normalisation (Ba et al. 2016). `rms`:
/// root mean square normalisation (Zhang and Sennrich 2019), without bias. `batch`: batch normalisation (Ioffe and
/// Szegedy 2015) over all tokens of a packed batch. Training cuts the batch of an update into shards, each of which
/// normalises with its own statistics.
enum class Normalization { layer, rms, batch };

/// One normalisation of a model: the kind, the parameters, and the number that is added to a row's variance or mean
/// square.
struct Norm {
  Normalization kind = Normalization::layer;
  ParameterId scale, bias;  ///< [D]; the bias is absent for rms
  double epsilon = 0;
  /// The running averages of batch normalisation, [D]; absent for layer and rms.
  ParameterId running_mean = {}, running_variance = {};

  /// Adds the parameters <name>/{scale,bias} [width], or <name>/scale alone for rms, to `layout`.
  static Norm add(ParameterLayout& layout, const std::string& name, std::int64_t width, Normalization kind,
                  double epsilon) {
    Norm norm{kind, layout.add(name + "/scale", {width}, Initialiser::ones()), {}, epsilon};
    if (kind != Normalization::rms) norm.bias = layout.add(name + "/bias", {width}, Initialiser::zeros());
    return norm;
  }
  /// Adds the running averages <name>/{running_mean,running_variance} [width] of batch normalisation to `layout`, which
  /// must already have all other parameters of the model. Adds nothing for layer and rms.
  void add_running(ParameterLayout& layout) {
    if (kind != Normalization::batch) return;
    const Shape shape = layout[scale].shape;
    const std::string of_scale = layout[scale].name, name = of_scale.substr(0, of_scale.rfind('/'));
    running_mean = layout.add_running(name + "/running_mean", shape, Initialiser::zeros());
    running_variance = layout.add_running(name + "/running_variance", shape, Initialiser::ones());
  }

  /// Normalises x [N, D].
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x) const {
    if (kind == Normalization::rms) return rms_norm(graph, x, graph.parameter(scale), epsilon);
    if (kind == Normalization::batch)
      return batch_norm(graph, x, graph.parameter(scale), graph.parameter(bias), running(graph), epsilon);
    return layer_norm(graph, x, graph.parameter(scale), graph.parameter(bias), epsilon);
  }

  /// Computes the sum residual + dropout(branch) and the normalised sum, where p is the probability of the dropout. All
  /// shapes are [N, D]. `memory`, where not empty, is memory in which the sum may be stored, and may be that of
  /// `branch` (see residual_norm()); batch normalisation does not use it.
  template <class T>
  ResidualNorm<T> add(Graph<T>& graph, const Variable<T>& residual, const Variable<T>& branch, double p,
                      Tensor<T> memory = {}) const {
    if (kind == Normalization::batch) {
      const Variable<T> sum = heed::residual(graph, residual, branch, p);
      return {sum, (*this)(graph, sum)};
    }
    return residual_norm(graph, row_norm(), residual, branch, graph.parameter(scale), bias_of(graph), epsilon, p,
                         memory);
  }

  /// Computes the same for inference: adds `branch` to `residual` in place and writes the normalised sum to `normed`,
  /// which may be the memory of `residual`; and rounded, where normed.rounded is given. Batch normalisation does not
  /// round.
  template <class T>
  void add_in_place(Graph<T>& graph, Tensor<T> residual, Tensor<T> branch, MaybeRounded<T> normed) const {
    if (kind == Normalization::batch) {
      const RunningStatistics<T> found = running(graph);
      return graph.run([&](auto& device) {
        const ArenaScope scope(device.arena);
        dropout_backward(device, branch, {}, residual);  // without a mask: residual += branch
        batch_norm_forward(device, residual, found.mean, inverse_deviation(device, found.variance, epsilon),
                           graph.parameter(scale).value, graph.parameter(bias).value, normed.full);
      });
    }
    graph.run([&](auto& device) {
      residual_norm_forward(device, row_norm(), residual, MaybeRounded<T>{branch}, {}, graph.parameter(scale).value,
                            bias_of(graph).value, epsilon, residual, normed, Tensor<T>());
    });
  }

 private:
  template <class T>
  RunningStatistics<T> running(Graph<T>& graph) const {
    RunningStatistics<T> out{graph.parameter(running_mean).value, graph.parameter(running_variance).value, {}, {}};
    if (!graph.recording()) return out;
    // In the array of the gradients, the number of tokens follows the elements of a running average.
    const Shape with_count{out.mean.size() + 1};
    out.mean_sum = graph.parameter(running_mean, with_count).gradient.sum();
    out.variance_sum = graph.parameter(running_variance, with_count).gradient.sum();
    return out;
  }
  RowNorm row_norm() const { return kind == Normalization::rms ? RowNorm::rms : RowNorm::layer; }
  template <class T>
  Variable<T> bias_of(Graph<T>& graph) const {
    return bias ? graph.parameter(bias) : Variable<T>();
  }
};

}  // namespace heed
