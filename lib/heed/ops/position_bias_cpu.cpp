#include <algorithm>

#include "heed/ops/position_bias.h"

namespace heed {
namespace {

/// Calls body(column, distance) for each column of a bias for sequences of up to `longest` tokens, except for the
/// unused columns at the end.
template <class Body>
void for_each_distance(std::int64_t longest, bool causal, Body body) {
  const std::int64_t columns = position_bias_columns(longest, causal) - kPositionBiasSlack;
  for (std::int64_t column = 0; column < columns; ++column) body(column, column - (longest - 1));
}

}  // namespace

template <class T>
void alibi_forward(CpuContext&, std::int64_t longest, bool causal, Tensor<T> bias) {
  const int heads = static_cast<int>(bias.rows());
  std::fill_n(bias.data(), bias.size(), T(0));
  for (int h = 0; h < heads; ++h) {
    const double slope = alibi_slope(h, heads);
    T* row = bias.row(h);
    for_each_distance(longest, causal, [&](std::int64_t column, std::int64_t distance) {
      row[column] = static_cast<T>(-slope * static_cast<double>(distance < 0 ? -distance : distance));
    });
  }
}

template <class T>
void t5_forward(CpuContext&, Tensor<T> table, std::int64_t longest, bool causal, Tensor<T> bias) {
  const int buckets = static_cast<int>(table.rows());
  std::fill_n(bias.data(), bias.size(), T(0));
  for_each_distance(longest, causal, [&](std::int64_t column, std::int64_t distance) {
    const T* from = table.row(t5_bucket(distance, buckets, causal));
    for (std::int64_t h = 0; h < bias.rows(); ++h) bias.row(h)[column] = from[h];
  });
}

template <class T>
void t5_backward(CpuContext&, Tensor<T> dbias, std::int64_t longest, bool causal, Tensor<T> dtable) {
  const int buckets = static_cast<int>(dtable.rows());
  for_each_distance(longest, causal, [&](std::int64_t column, std::int64_t distance) {
    T* to = dtable.row(t5_bucket(distance, buckets, causal));
    for (std::int64_t h = 0; h < dbias.rows(); ++h) to[h] += dbias.row(h)[column];
  });
}

#define HEED_INSTANTIATE(T)                                                        \
  template void alibi_forward(CpuContext&, std::int64_t, bool, Tensor<T>);         \
  template void t5_forward(CpuContext&, Tensor<T>, std::int64_t, bool, Tensor<T>); \
  template void t5_backward(CpuContext&, Tensor<T>, std::int64_t, bool, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
