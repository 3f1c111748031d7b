#include "heed/nn/kernel_pooling.h"

#include <algorithm>
#include <cmath>

#include "heed/base/error.h"

namespace heed {
namespace {

/// Returns K(u) for the kernels that can be 0.
double kernel_value(PoolingKernel kernel, double u) {
  const double size = std::abs(u);
  if (size >= 1) return 0;
  if (kernel == PoolingKernel::triangular) return 1 - size;
  return kernel == PoolingKernel::epanechnikov ? 1 - size * size : 1;
}

void check_sizes(std::size_t keys, std::size_t others) {
  if (keys != others)
    throw Error("internal: kernel pooling: " + std::to_string(others) + " elements for " + std::to_string(keys) +
                " keys");
}

}  // namespace

void gaussian_scores(double query, std::span<const double> keys, std::span<double> scores) {
  check_sizes(keys.size(), scores.size());
  if (keys.empty()) return;
  // d_a^2 - d_b^2 = (a - b) ((a - query) + (b - query)) for two keys a and b: the difference of the keys is exact where
  // the distances of a far query have lost it.
  const auto difference = [&](double a, double b) { return (a - b) * ((a - query) + (b - query)); };
  const double nearest =
      *std::min_element(keys.begin(), keys.end(), [&](double a, double b) { return difference(a, b) < 0; });
  for (std::size_t i = 0; i < keys.size(); ++i) scores[i] = std::min(0.0, -difference(keys[i], nearest) / 2);
}

bool kernel_weights(CpuContext& device, PoolingKernel kernel, double w, double query, std::span<const double> keys,
                    std::span<double> weights) {
  check_sizes(keys.size(), weights.size());
  const auto n = static_cast<std::int64_t>(keys.size());
  if (kernel == PoolingKernel::constant) {
    std::fill(weights.begin(), weights.end(), 1 / static_cast<double>(n));
    return n > 0;
  }
  if (kernel == PoolingKernel::gaussian) {
    const ArenaScope scope(device.arena);
    const Tensor<double> scores = device.arena.tensor<double>({1, n});
    gaussian_scores(query, keys, weights);
    scale_into(device, Tensor<double>(weights.data(), {1, n}), w * w, 0.0, scores);
    softmax_forward(device, scores, Tensor<double>(weights.data(), {1, n}));
    return n > 0;
  }
  double sum = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) sum += weights[i] = kernel_value(kernel, (query - keys[i]) * w);
  if (sum > 0)
    for (double& weight : weights) weight /= sum;
  return sum > 0;
}

double pool(std::span<const double> weights, std::span<const double> values) {
  check_sizes(weights.size(), values.size());
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * values[i];
  return sum;
}

Variable<double> leave_one_out_loss(Graph<double>& graph, const GaussianPooling& pooling, std::span<const double> keys,
                                    std::span<const double> values, std::size_t begin, std::size_t count) {
  check_sizes(keys.size(), values.size());
  if (keys.size() < 2 || begin + count > keys.size())
    throw Error("internal: leave_one_out_loss: pairs " + std::to_string(begin) + " to " +
                std::to_string(begin + count) + " of " + std::to_string(keys.size()));
  const auto b = static_cast<std::int64_t>(count), others = static_cast<std::int64_t>(keys.size()) - 1;
  Arena& arena = graph.arena();
  const Tensor<double> scores = arena.tensor<double>({b, 1, others}), used = arena.tensor<double>({b, others, 1}),
                       other_keys = arena.tensor<double>({others}), minus = arena.tensor<double>({b, 1, 1});
  const auto copy_without = [](std::span<const double> from, std::size_t left_out, std::span<double> to) {
    std::copy_n(from.begin(), left_out, to.begin());
    std::copy(from.begin() + static_cast<std::ptrdiff_t>(left_out) + 1, from.end(),
              to.begin() + static_cast<std::ptrdiff_t>(left_out));
  };
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(others) * i, size = static_cast<std::size_t>(others);
    copy_without(keys, begin + i, other_keys.span());
    copy_without(values, begin + i, used.span().subspan(at, size));
    gaussian_scores(keys[begin + i], other_keys.span(), scores.span().subspan(at, size));
    minus[static_cast<std::int64_t>(i)] = -values[begin + i];
  }
  const Variable<double> predicted = pooling(graph, graph.input(scores), graph.input(used));
  const Variable<double> error = add(graph, predicted, graph.input(minus));
  return multiply(graph, sum(graph, multiply(graph, error, error)), 1 / static_cast<double>(keys.size()));
}

}  // namespace heed
