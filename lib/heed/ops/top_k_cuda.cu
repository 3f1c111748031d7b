#include "heed/ops/top_k.h"

#include <cmath>
#include <limits>

#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// The largest number of threads that a block may have. nvcc must know it, because so many threads have only 64
/// registers each.
constexpr unsigned kMostThreads = 1024;

/// Returns whether the number a is above b. NaN is below all other numbers.
template <class T>
__device__ bool above(T a, T b) {
  return a > b || (b != b && a == a);
}

/// A number of a row, and its index.
template <class T>
struct Candidate {
  T value;
  std::int32_t index;
};

/// The index of a candidate that does not exist: above that of every number.
constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

/// Returns the first of this thread's numbers of a row that comes after `last` in the order of top_k(); a NaN with the
/// index kNone where no number is left.
template <class T>
__device__ Candidate<T> next_candidate(const T* row, std::int64_t columns, Candidate<T> last) {
  Candidate<T> next{static_cast<T>(NAN), kNone};
  for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    const T value = row[i];
    const bool later = above(last.value, value) || (!above(value, last.value) && i > last.index);
    if (later && (next.index == kNone || above(value, next.value))) next = {value, static_cast<std::int32_t>(i)};
  }
  return next;
}

/// Finds the k largest numbers of the row of this block. Each thread has the best of its numbers as a candidate; the
/// best of all candidates is the next of the k numbers, and its thread looks for another candidate. With
/// `log_softmax`, the logarithm of the sum of the row's exponentials is subtracted from the values.
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    top_k_kernel(const T* x, std::int64_t columns, std::int64_t k, bool log_softmax, T* values, std::int32_t* indices) {
  const T* const row = x + blockIdx.x * columns;
  values += blockIdx.x * k;
  indices += blockIdx.x * k;
  Candidate<T> mine = next_candidate(row, columns, {static_cast<T>(INFINITY), -1});
  T largest = 0;
  for (std::int64_t i = 0; i < k; ++i) {
    const T best =
        combine_block(mine.value, mine.value, shared_memory<T>(), [](T a, T b) { return above(b, a) ? b : a; });
    const std::int32_t place =
        combine_block(above(best, mine.value) ? kNone : mine.index, kNone, shared_memory<std::int32_t>(),
                      [](std::int32_t a, std::int32_t b) { return a < b ? a : b; });
    if (i == 0) largest = row[place];
    if (threadIdx.x == 0) {
      values[i] = row[place];
      indices[i] = place;
    }
    if (mine.index == place) mine = next_candidate(row, columns, mine);
  }
  if (!log_softmax) return;
  T sum = 0;
  for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x) sum += std::exp(row[i] - largest);
  const T normaliser = largest + std::log(block_sum(sum, shared_memory<T>()));
  for (std::int64_t i = threadIdx.x; i < k; i += blockDim.x) values[i] -= normaliser;
}

template <class T>
__global__ void mask_columns_kernel(T* x, std::int64_t columns, ColumnSets sets, const std::int32_t* set_of_row) {
  const std::uint32_t* const bits = sets.bits + set_of_row[blockIdx.x] * sets.stride;
  T* const row = x + blockIdx.x * columns;
  for (std::int64_t c = threadIdx.x; c < columns; c += blockDim.x)
    if ((bits[c / 32] >> (c % 32) & 1) == 0) row[c] = static_cast<T>(-INFINITY);
}

template <class T>
void find_largest(CudaContext& device, Tensor<T> x, std::int64_t k, bool log_softmax, T* values,
                  std::int32_t* indices) {
  // With many threads, each looks through few numbers when it needs another candidate.
  const unsigned threads = x.columns() <= 256 ? 32 : x.columns() <= 4096 ? 256 : kMostThreads;
  launch(device, {static_cast<unsigned>(x.rows()), threads, threads / 32 * sizeof(T)}, top_k_kernel<T>, x.data(),
         x.columns(), k, log_softmax, values, indices);
}

}  // namespace

template <class T>
void top_k(CudaContext& device, Tensor<T> scores, std::int64_t k, T* values, std::int32_t* indices) {
  find_largest(device, scores, k, false, values, indices);
}

template <class T>
void log_softmax_top_k(CudaContext& device, Tensor<T> logits, std::int64_t k, T* values, std::int32_t* indices) {
  find_largest(device, logits, k, true, values, indices);
}

template <class T>
void mask_columns(CudaContext& device, Tensor<T> x, const ColumnSets& sets, std::span<const std::int32_t> set_of_row) {
  launch(device, shape_for_rows<T>(x.rows(), x.columns()), mask_columns_kernel<T>, x.data(), x.columns(), sets,
         set_of_row.data());
}

#define HEED_INSTANTIATE(T)                                                                              \
  template void mask_columns(CudaContext&, Tensor<T>, const ColumnSets&, std::span<const std::int32_t>); \
  template void top_k(CudaContext&, Tensor<T>, std::int64_t, T*, std::int32_t*);                         \
  template void log_softmax_top_k(CudaContext&, Tensor<T>, std::int64_t, T*, std::int32_t*);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
