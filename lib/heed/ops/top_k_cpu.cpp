#include "heed/ops/top_k.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heed {
namespace {

/// One row; `order` is scratch for n indices.
template <class T>
void row_top_k(const T* x, std::int64_t n, std::int64_t k, std::int32_t* order, T* values, std::int32_t* indices) {
  std::iota(order, order + n, 0);
  const auto rank = [](T v) { return std::isnan(v) ? -std::numeric_limits<T>::infinity() : v; };
  std::partial_sort(order, order + k, order + n, [&](std::int32_t a, std::int32_t b) {
    return rank(x[a]) > rank(x[b]) || (rank(x[a]) == rank(x[b]) && a < b);
  });
  for (std::int64_t i = 0; i < k; ++i) {
    indices[i] = order[i];
    values[i] = x[order[i]];
  }
}

}  // namespace

template <class T>
void top_k(CpuContext& device, Tensor<T> scores, std::int64_t k, T* values, std::int32_t* indices) {
  const ArenaScope scope(device.arena);
  std::int32_t* order = device.arena.tensor<std::int32_t>({scores.columns()}).data();
  for (std::int64_t r = 0; r < scores.rows(); ++r)
    row_top_k(scores.row(r), scores.columns(), k, order, values + r * k, indices + r * k);
}

template <class T>
void log_softmax_top_k(CpuContext& device, Tensor<T> logits, std::int64_t k, T* values, std::int32_t* indices) {
  top_k(device, logits, k, values, indices);
  for (std::int64_t r = 0; r < logits.rows(); ++r) {
    T sum = 0;
    for (std::int64_t v = 0; v < logits.columns(); ++v) sum += std::exp(logits.row(r)[v] - values[r * k]);
    const T normaliser = values[r * k] + std::log(sum);
    for (std::int64_t i = 0; i < k; ++i) values[r * k + i] -= normaliser;
  }
}

template void top_k(CpuContext&, Tensor<float>, std::int64_t, float*, std::int32_t*);
template void top_k(CpuContext&, Tensor<double>, std::int64_t, double*, std::int32_t*);
template void log_softmax_top_k(CpuContext&, Tensor<float>, std::int64_t, float*, std::int32_t*);
template void log_softmax_top_k(CpuContext&, Tensor<double>, std::int64_t, double*, std::int32_t*);

}  // namespace heed
