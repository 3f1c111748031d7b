#include <algorithm>
#include <cmath>

#include "heed/ops/cross_entropy.h"
#include "heed/ops/gemm/gemm.h"

namespace heed {
namespace {

constexpr std::int64_t kChunk = 64;

/// logits = h W^T + b for some rows.
template <class T>
void project(CpuContext& device, const T* hidden, std::int64_t rows, Tensor<T> weight, Tensor<T> bias, T* logits) {
  const std::int64_t vocabulary = weight.dim(0), width = weight.columns();
  gemm(device, rows, vocabulary, width, T(1), {hidden, width}, {weight.data(), width, true}, T(0), logits, vocabulary);
  if (bias)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t v = 0; v < vocabulary; ++v) logits[r * vocabulary + v] += bias[v];
}

/// log of the sum of the exponentials of n numbers.
template <class T>
T log_sum_exp(const T* x, std::int64_t n) {
  const T largest = *std::max_element(x, x + n);
  T sum = 0;
  for (std::int64_t v = 0; v < n; ++v) sum += std::exp(x[v] - largest);
  return largest + std::log(sum);
}

}  // namespace

template <class T>
CrossEntropySums cross_entropy_cpu(CpuContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                                   std::span<const std::int32_t> targets, const CrossEntropyOptions& options,
                                   Tensor<T> dhidden, Tensor<T> dweight, Tensor<T> dbias) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = hidden.rows(), width = hidden.columns(), vocabulary = weight.dim(0);
  T* logits = device.arena.tensor<T>({std::min(rows, kChunk), vocabulary}).data();
  const double smoothing = options.label_smoothing;
  const T spread = static_cast<T>(smoothing / static_cast<double>(vocabulary)), scale = static_cast<T>(options.scale);
  CrossEntropySums sums;
  sums.tokens = rows;
  for (std::int64_t begin = 0; begin < rows; begin += kChunk) {
    const std::int64_t count = std::min(kChunk, rows - begin);
    project(device, hidden.row(begin), count, weight, bias, logits);
    for (std::int64_t r = 0; r < count; ++r) {
      T* x = logits + r * vocabulary;
      const std::int64_t target = targets[static_cast<std::size_t>(begin + r)];
      const T normaliser = log_sum_exp(x, vocabulary);
      double mean = 0;
      for (std::int64_t v = 0; v < vocabulary; ++v) mean += x[v];
      mean = static_cast<double>(normaliser) - mean / static_cast<double>(vocabulary);
      const double likelihood = static_cast<double>(normaliser - x[target]);
      sums.loss += (1 - smoothing) * likelihood + smoothing * mean;
      sums.negative_log_likelihood += likelihood;
      sums.correct += std::max_element(x, x + vocabulary) == x + target;
      for (std::int64_t v = 0; v < vocabulary; ++v) x[v] = scale * (std::exp(x[v] - normaliser) - spread);
      x[target] -= scale * static_cast<T>(1 - smoothing);
      if (dbias)
        for (std::int64_t v = 0; v < vocabulary; ++v) dbias[v] += x[v];
    }
    if (dhidden)
      gemm(device, count, width, vocabulary, T(1), {logits, vocabulary}, {weight.data(), width}, T(1),
           dhidden.row(begin), width);
    if (dweight)
      gemm(device, vocabulary, width, count, T(1), {logits, vocabulary, true}, {hidden.row(begin), width}, T(1),
           dweight.data(), width);
  }
  return sums;
}

template <class T>
void projection_log_probabilities(CpuContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                                  Tensor<T> out) {
  for (std::int64_t r = 0; r < hidden.rows(); ++r) {
    T* x = out.row(r);
    project(device, hidden.row(r), 1, weight, bias, x);
    const T normaliser = log_sum_exp(x, out.columns());
    for (std::int64_t v = 0; v < out.columns(); ++v) x[v] -= normaliser;
  }
}

template <class T>
void token_log_probabilities(CpuContext& device, Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias,
                             std::span<const std::int32_t> targets, T* out) {
  const ArenaScope scope(device.arena);
  const Tensor<T> row = device.arena.tensor<T>({1, weight.dim(0)});
  for (std::int64_t r = 0; r < hidden.rows(); ++r) {
    projection_log_probabilities(device, hidden.row_block(r, 1), weight, bias, row);
    out[r] = row[targets[static_cast<std::size_t>(r)]];
  }
}

template CrossEntropySums cross_entropy_cpu(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>,
                                            std::span<const std::int32_t>, const CrossEntropyOptions&, Tensor<float>,
                                            Tensor<float>, Tensor<float>);
template CrossEntropySums cross_entropy_cpu(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>,
                                            std::span<const std::int32_t>, const CrossEntropyOptions&, Tensor<double>,
                                            Tensor<double>, Tensor<double>);
template void projection_log_probabilities(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>, Tensor<float>);
template void projection_log_probabilities(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>,
                                           Tensor<double>);
template void token_log_probabilities(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>,
                                      std::span<const std::int32_t>, float*);
template void token_log_probabilities(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>,
                                      std::span<const std::int32_t>, double*);

}  // namespace heed
