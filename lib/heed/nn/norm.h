#pragma once

#include <cstdint>
#include <string>

#include "heed/autograd/graph.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/residual_norm.h"

namespace heed {

/// The kinds of normalisation around the sublayers of a model. `layer`: layer normalisation (Ba et al. 2016). `rms`:
/// root mean square normalisation (Zhang and Sennrich 2019), without bias.
enum class Normalization { layer, rms };

/// One normalisation of a model: the kind, the parameters, and the number that is added to a row's variance or mean
/// square.
struct Norm {
  Normalization kind = Normalization::layer;
  ParameterId scale, bias;  ///< [D]; the bias is absent for rms
  double epsilon = 0;

  /// Adds the parameters <name>/{scale,bias} [width], or <name>/scale alone for rms, to `layout`.
  static Norm add(ParameterLayout& layout, const std::string& name, std::int64_t width, Normalization kind,
                  double epsilon) {
    Norm norm{kind, layout.add(name + "/scale", {width}, Initialiser::ones()), {}, epsilon};
    if (kind == Normalization::layer) norm.bias = layout.add(name + "/bias", {width}, Initialiser::zeros());
    return norm;
  }

  /// Normalises x [N, D].
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x) const {
    if (kind == Normalization::rms) return rms_norm(graph, x, graph.parameter(scale), epsilon);
    return layer_norm(graph, x, graph.parameter(scale), graph.parameter(bias), epsilon);
  }

  /// Computes the sum residual + dropout(branch) and the normalised sum, where p is the probability of the dropout. All
  /// shapes are [N, D]. `memory`, where not empty, is the memory for the sum, which may be that of `branch` (see
  /// residual_norm()).
  template <class T>
  ResidualNorm<T> add(Graph<T>& graph, const Variable<T>& residual, const Variable<T>& branch, double p,
                      Tensor<T> memory = {}) const {
    return residual_norm(graph, row_norm(), residual, branch, graph.parameter(scale), bias_of(graph), epsilon, p,
                         memory);
  }

  /// Computes the same for inference: adds `branch` to `residual` in place and writes the normalised sum to `normed`,
  /// which may be the memory of `residual`.
  template <class T>
  void add_in_place(Graph<T>& graph, Tensor<T> residual, Tensor<T> branch, Tensor<T> normed) const {
    residual_norm_forward(graph.device(), row_norm(), residual, branch, {}, graph.parameter(scale).value,
                          bias_of(graph).value, epsilon, residual, normed, Tensor<T>());
  }

 private:
  RowNorm row_norm() const { return kind == Normalization::rms ? RowNorm::rms : RowNorm::layer; }
  template <class T>
  Variable<T> bias_of(Graph<T>& graph) const {
    return bias ? graph.parameter(bias) : Variable<T>();
  }
};

}  // namespace heed
