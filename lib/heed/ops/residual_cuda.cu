#include "heed/ops/residual.h"

#include "heed/ops/dropout_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

template <class T>
__global__ void residual_kernel(const T* residual, const T* branch, const Bfloat16* rounded, DropoutMask<T> mask, T* y,
                                std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) {
    y[i] = residual[i] + drop(rounded ? static_cast<T>(from_bfloat16(rounded[i])) : branch[i], mask, i);
  });
}

}  // namespace

template <class T>
void residual_forward(CudaContext& device, Tensor<T> residual, MaybeRounded<T> branch, DropoutMask<T> mask,
                      Tensor<T> y) {
  launch(device, shape_for_elements(y.size()), residual_kernel<T>, residual.data(), branch.full.data(),
         branch.rounded.data(), mask, y.data(), y.size());
}

template void residual_forward(CudaContext&, Tensor<float>, MaybeRounded<float>, DropoutMask<float>, Tensor<float>);
template void residual_forward(CudaContext&, Tensor<double>, MaybeRounded<double>, DropoutMask<double>, Tensor<double>);

}  // namespace heed
