#include "heed/ops/position_bias.h"

#include <vector>

#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// Computes the bias of ALiBi: `slopes` has the slope of each head, `used` is the number of columns with a distance.
template <class T>
__global__ void alibi_kernel(const double* slopes, std::int64_t longest, std::int64_t used, std::int64_t heads,
                             std::int64_t columns, T* bias) {
  for_each_element(heads * columns, [&](std::int64_t i) {
    const std::int64_t column = i % columns, distance = column - (longest - 1);
    const double steps = static_cast<double>(distance < 0 ? -distance : distance);
    bias[i] = column < used ? static_cast<T>(-slopes[i / columns] * steps) : T(0);
  });
}

/// Computes the bias of T5: `buckets` [used] has the row of the table for each column with a distance.
template <class T>
__global__ void t5_kernel(const T* table, const std::int32_t* buckets, std::int64_t used, std::int64_t heads,
                          std::int64_t columns, T* bias) {
  for_each_element(heads * columns, [&](std::int64_t i) {
    const std::int64_t column = i % columns;
    bias[i] = column < used ? table[buckets[column] * heads + i / columns] : T(0);
  });
}

/// Computes the gradient of an element of the table, which has a block: the threads read the whole row of the head, and
/// add the columns of the bucket.
template <class T>
__global__ void t5_gradient_kernel(const T* dbias, const std::int32_t* buckets, std::int64_t used, std::int64_t heads,
                                   std::int64_t columns, T* dtable) {
  const std::int64_t bucket = blockIdx.x / heads;
  const T* const row = dbias + blockIdx.x % heads * columns;
  T sum = 0;
  for (std::int64_t column = threadIdx.x; column < used; column += blockDim.x)
    if (buckets[column] == bucket) sum += row[column];
  sum = block_sum(sum, shared_memory<T>());
  if (threadIdx.x == 0) dtable[blockIdx.x] += sum;
}

/// Returns the bucket of each column with a distance, for sequences of up to `longest` tokens.
std::vector<std::int32_t> buckets_of_columns(std::int64_t longest, bool causal, std::int64_t buckets) {
  std::vector<std::int32_t> out;
  for (std::int64_t column = 0; column < position_bias_columns(longest, causal) - kPositionBiasSlack; ++column)
    out.push_back(t5_bucket(column - (longest - 1), static_cast<int>(buckets), causal));
  return out;
}

}  // namespace

template <class T>
void alibi_forward(CudaContext& device, std::int64_t longest, bool causal, Tensor<T> bias) {
  const ArenaScope scope(device.arena);
  const int heads = static_cast<int>(bias.rows());
  std::vector<double> slopes;
  for (int h = 0; h < heads; ++h) slopes.push_back(alibi_slope(h, heads));
  launch(device, shape_for_elements(bias.size()), alibi_kernel<T>, upload<double>(device, slopes), longest,
         position_bias_columns(longest, causal) - kPositionBiasSlack, heads, bias.columns(), bias.data());
}

template <class T>
void t5_forward(CudaContext& device, Tensor<T> table, std::int64_t longest, bool causal, Tensor<T> bias) {
  const ArenaScope scope(device.arena);
  const std::vector<std::int32_t> buckets = buckets_of_columns(longest, causal, table.rows());
  launch(device, shape_for_elements(bias.size()), t5_kernel<T>, table.data(), upload<std::int32_t>(device, buckets),
         std::ssize(buckets), bias.rows(), bias.columns(), bias.data());
}

template <class T>
void t5_backward(CudaContext& device, Tensor<T> dbias, std::int64_t longest, bool causal, Tensor<T> dtable) {
  const ArenaScope scope(device.arena);
  const std::vector<std::int32_t> buckets = buckets_of_columns(longest, causal, dtable.rows());
  launch(device, shape_for_rows<T>(dtable.size(), dbias.columns()), t5_gradient_kernel<T>, dbias.data(),
         upload<std::int32_t>(device, buckets), std::ssize(buckets), dbias.rows(), dbias.columns(), dtable.data());
}

#define HEED_INSTANTIATE(T)                                                         \
  template void alibi_forward(CudaContext&, std::int64_t, bool, Tensor<T>);         \
  template void t5_forward(CudaContext&, Tensor<T>, std::int64_t, bool, Tensor<T>); \
  template void t5_backward(CudaContext&, Tensor<T>, std::int64_t, bool, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
