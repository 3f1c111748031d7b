#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "heed/autograd/graph.h"
#include "heed/ops/arithmetic.h"
#include "heed/ops/matmul.h"
#include "heed/ops/softmax.h"

namespace heed {

// Kernel regression as attention pooling (Nadaraya 1964, Watson 1964; Zhang et al., Dive into Deep Learning, chapter
// "Attention Pooling"). A query x and N pairs of a key x_i and a value y_i give the prediction
//
//     f(x) = sum_i a_i(x) y_i,   a_i(x) = K((x - x_i) w) / sum_j K((x - x_j) w)
//
// with a kernel K. The weights a_i are the attention weights of the query; they are not negative and sum to 1. The
// factor w, above 0, is the inverse of the kernel's bandwidth: keys at a distance of 1/w are at u = 1.

/// The kernels K(u). The Gaussian kernel is exp(-u^2 / 2), so that a_i is the softmax of -((x - x_i) w)^2 / 2; the
/// other kernels are 1 (constant), 1 for |u| < 1 (boxcar), max(0, 1 - |u|) (triangular) and max(0, 1 - u^2)
/// (epanechnikov).
enum class PoolingKernel { constant, gaussian, boxcar, triangular, epanechnikov };

/// The largest absolute value that a query or a key may have: squares of differences of such numbers are finite.
inline constexpr double kLargestKey = 1e150;

/// Fills scores [N] with the logarithm of the Gaussian kernel for w = 1, relative to the nearest key: scores[i] =
/// -(d_i^2 - min_j d_j^2) / 2 with d_i = query - keys[i]. The common term min_j d_j^2 / 2 changes no softmax, and
/// without it, the scores of a query far from all keys would lose their digits, or all be minus infinity.
void gaussian_scores(double query, std::span<const double> keys, std::span<double> scores);

/// Fills weights [N] with the attention weights a_i of the query for the keys [N] and the factor w. Returns false, with
/// all weights 0, if the kernel is 0 for every key, which can happen for boxcar, triangular and epanechnikov. Throws
/// Error if `weights` has another size than `keys`.
bool kernel_weights(CpuContext& device, PoolingKernel kernel, double w, double query, std::span<const double> keys,
                    std::span<double> weights);

/// Returns the weighted sum of the values, sum_i a_i y_i. Both arrays have N elements.
double pool(std::span<const double> weights, std::span<const double> values);

/// Attention pooling with a Gaussian kernel whose factor w is a parameter, <name>/w [1].
class GaussianPooling {
 public:
  GaussianPooling(ParameterLayout& layout, const std::string& name)
      : w_(layout.add(name + "/w", {1}, Initialiser::ones())) {}

  ParameterId w() const { return w_; }

  /// Computes the predictions y = softmax(w^2 scores) values, for B groups of M queries. Shapes: scores [B, M, N] for
  /// w = 1, as gaussian_scores() computes them, values [B, N, 1] -> y [B, M, 1].
  template <class T>
  Variable<T> operator()(Graph<T>& graph, const Variable<T>& scores, const Variable<T>& values) const {
    const Variable<T> w = graph.parameter(w_);
    return matmul(graph, softmax(graph, scale(graph, scores, multiply(graph, w, w))), values);
  }

 private:
  ParameterId w_;
};

/// Computes, for the pairs `begin` to `begin + count - 1`, the part of the leave-one-out loss
///
///     L(w) = 1/N sum_i (f_-i(x_i) - y_i)^2,
///
/// where f_-i is the prediction from all pairs except pair i. The sum over all parts is L(w). keys and values have N
/// elements; N must be at least 2. The memory that the part needs grows with count N.
Variable<double> leave_one_out_loss(Graph<double>& graph, const GaussianPooling& pooling, std::span<const double> keys,
                                    std::span<const double> values, std::size_t begin, std::size_t count);

}  // namespace heed
