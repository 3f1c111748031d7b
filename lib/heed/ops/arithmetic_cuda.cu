#include "heed/ops/arithmetic.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// The number of blocks that sum an array: fixed, so that a sum has the same bits on every GPU.
constexpr unsigned kSumBlocks = 128, kSumThreads = 256;
/// The largest array that one block sums alone.
constexpr std::int64_t kAlone = 4 * kSumThreads;

template <class T>
__global__ void multiply_kernel(const T* a, const T* b, T beta, T* to, std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) { to[i] = beta != 0 ? a[i] * b[i] + to[i] : a[i] * b[i]; });
}

/// Computes to = beta * to + factor * x; where `element` is not null, the factor is *element.
template <class T>
__global__ void scale_kernel(const T* x, T factor, const T* element, T beta, T* to, std::int64_t n) {
  if (element) factor = *element;
  for_each_element(n, [&](std::int64_t i) { to[i] = beta != 0 ? factor * x[i] + to[i] : factor * x[i]; });
}

/// Each block sums its elements of x: sums[block] = beta * sums[block] + sum. An element belongs to the same block and
/// thread every time.
template <class T>
__global__ void sum_kernel(const T* x, std::int64_t n, T beta, T* sums) {
  T sum = 0;
  for_each_element(n, [&](std::int64_t i) { sum += x[i]; });
  sum = block_sum(sum, shared_memory<T>());
  if (threadIdx.x == 0) sums[blockIdx.x] = beta != 0 ? sums[blockIdx.x] + sum : sum;
}

template <class T>
__global__ void add_number_kernel(T* x, const T* number, std::int64_t n) {
  const T value = *number;
  for_each_element(n, [&](std::int64_t i) { x[i] += value; });
}

}  // namespace

template <class T>
void multiply_into(CudaContext& device, Tensor<T> a, Tensor<T> b, T beta, Tensor<T> to) {
  launch(device, shape_for_elements(a.size()), multiply_kernel<T>, a.data(), b.data(), beta, to.data(), a.size());
}

template <class T>
void scale_into(CudaContext& device, Tensor<T> x, T factor, T beta, Tensor<T> to) {
  launch(device, shape_for_elements(x.size()), scale_kernel<T>, x.data(), factor, nullptr, beta, to.data(), x.size());
}

template <class T>
void scale_by_element(CudaContext& device, Tensor<T> x, const T* factor, std::type_identity_t<T> beta, Tensor<T> to) {
  launch(device, shape_for_elements(x.size()), scale_kernel<T>, x.data(), T(0), factor, beta, to.data(), x.size());
}

template <class T>
void sum_into(CudaContext& device, Tensor<T> x, std::type_identity_t<T> beta, T* to) {
  const LaunchShape alone{1, kSumThreads, kSumThreads / 32 * sizeof(T)};
  if (x.size() <= kAlone) return launch(device, alone, sum_kernel<T>, x.data(), x.size(), beta, to);
  const ArenaScope scope(device.arena);
  T* const parts = device.arena.template tensor<T>({kSumBlocks}).data();
  launch(device, {kSumBlocks, kSumThreads, alone.shared_bytes}, sum_kernel<T>, x.data(), x.size(), T(0), parts);
  launch(device, alone, sum_kernel<T>, parts, std::int64_t{kSumBlocks}, beta, to);
}

template <class T>
void sum_backward(CudaContext& device, const T* dy, Tensor<T> dx) {
  launch(device, shape_for_elements(dx.size()), add_number_kernel<T>, dx.data(), dy, dx.size());
}

#define HEED_INSTANTIATE(T)                                                        \
  template void multiply_into(CudaContext&, Tensor<T>, Tensor<T>, T, Tensor<T>);   \
  template void scale_into(CudaContext&, Tensor<T>, T, T, Tensor<T>);              \
  template void scale_by_element(CudaContext&, Tensor<T>, const T*, T, Tensor<T>); \
  template void sum_into(CudaContext&, Tensor<T>, T, T*);                          \
  template void sum_backward(CudaContext&, const T*, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
