#include "heed/ops/residual_norm.h"

#include "heed/ops/dropout_cuda-inl.h"
#include "heed/ops/row_norm_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

template <class T>
__global__ void residual_norm_kernel(RowNorm kind, const T* residual, const T* branch, DropoutMask<T> mask,
                                     const T* scale, const T* bias, T epsilon, T* sum, T* normed, Bfloat16* rounded,
                                     T* statistics, std::int64_t columns) {
  T total = 0;
  for_each_of_row(columns, [&](std::int64_t i) {
    const T value = residual[i] + drop(branch[i], mask, i);
    sum[i] = value;
    total += norm_summand(kind, value);
  });
  normalise_row(kind, sum, total, scale, bias, epsilon, normed, rounded, statistics, columns);
}

template <class T>
__global__ void residual_norm_gradient_kernel(RowNorm kind, const T* sum, DropoutMask<T> mask, const T* scale,
                                              const T* statistics, const T* dsum, const T* dnormed, T* dresidual,
                                              bool adds_to_residual, T* dbranch, Bfloat16* dbranch_rounded,
                                              bool adds_to_branch, std::int64_t columns) {
  normalise_row_backward(kind, sum, scale, statistics, dnormed, columns, [&](std::int64_t i, T g) {
    const T t = dsum ? g + dsum[i] : g;
    // The gradients of the residual and of the branch may be the same array, where both are the same variable.
    if (dresidual) dresidual[i] = adds_to_residual ? dresidual[i] + t : t;
    if (dbranch) dbranch[i] = adds_to_branch ? dbranch[i] + drop(t, mask, i) : drop(t, mask, i);
    if (dbranch_rounded) dbranch_rounded[i] = to_bfloat16(static_cast<float>(drop(t, mask, i)));
  });
}

}  // namespace

template <class T>
void residual_norm_forward(CudaContext& device, RowNorm kind, Tensor<T> residual, Tensor<T> branch, DropoutMask<T> mask,
                           Tensor<T> scale, Tensor<T> bias, double epsilon, Tensor<T> sum, MaybeRounded<T> normed,
                           Tensor<T> statistics) {
  launch(device, shape_for_rows<T>(sum.rows(), sum.columns()), residual_norm_kernel<T>, kind, residual.data(),
         branch.data(), mask, scale.data(), bias.data(), static_cast<T>(epsilon), sum.data(), normed.full.data(),
         normed.rounded.data(), statistics.data(), sum.columns());
}

template <class T>
void residual_norm_backward(CudaContext& device, RowNorm kind, Tensor<T> sum, DropoutMask<T> mask, Tensor<T> scale,
                            Tensor<T> statistics, Tensor<T> dsum, Tensor<T> dnormed, Tensor<T> dresidual,
                            bool adds_to_residual, MaybeRounded<T> dbranch, bool adds_to_branch, Tensor<T> dscale,
                            Tensor<T> dbias) {
  if (dresidual || dbranch.full || dbranch.rounded)
    launch(device, shape_for_rows<T>(sum.rows(), sum.columns()), residual_norm_gradient_kernel<T>, kind, sum.data(),
           mask, scale.data(), statistics.data(), dsum.data(), dnormed.data(), dresidual.data(), adds_to_residual,
           dbranch.full.data(), dbranch.rounded.data(), adds_to_branch, sum.columns());
  add_row_norm_gradients(device, sum, statistics, dnormed, dscale, dbias);
}

#define HEED_INSTANTIATE(T)                                                                                     \
  template void residual_norm_forward(CudaContext&, RowNorm, Tensor<T>, Tensor<T>, DropoutMask<T>, Tensor<T>,   \
                                      Tensor<T>, double, Tensor<T>, MaybeRounded<T>, Tensor<T>);                \
  template void residual_norm_backward(CudaContext&, RowNorm, Tensor<T>, DropoutMask<T>, Tensor<T>, Tensor<T>,  \
                                       Tensor<T>, Tensor<T>, Tensor<T>, bool, MaybeRounded<T>, bool, Tensor<T>, \
                                       Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
