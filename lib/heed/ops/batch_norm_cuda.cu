#include "heed/ops/batch_norm.h"

#include <cmath>

#include "heed/ops/arithmetic.h"
#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// The summands of the variance of a column: (x - mean)^2.
template <class T>
struct SquaredDistances {
  const T *x, *mean;
  std::int64_t columns;

  __device__ std::array<T, 1> operator()(std::int64_t row, std::int64_t column) const {
    const T centred = x[row * columns + column] - mean[column];
    return {centred * centred};
  }
};

/// Normalised columns: z = (x - mean) * inverse.
template <class T>
struct NormalisedColumns {
  const T *x, *mean, *inverse;
  std::int64_t columns;

  /// Returns z of element i, which is in this column.
  __device__ T z(std::int64_t i, std::int64_t column) const { return (x[i] - mean[column]) * inverse[column]; }
};

/// The summands of the gradients of scale and bias: dy z and dy.
template <class T>
struct BatchNormSummands {
  NormalisedColumns<T> normal;
  const T* dy;

  __device__ std::array<T, 2> operator()(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * normal.columns + column;
    return {dy[i] * normal.z(i, column), dy[i]};
  }
};

template <class T>
__global__ void normalise_columns_kernel(NormalisedColumns<T> normal, const T* scale, const T* bias, T* y,
                                         std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) {
    const std::int64_t column = i % normal.columns;
    y[i] = normal.z(i, column) * scale[column] + bias[column];
  });
}

/// Adds the gradient of x to dx, from the sums of dy z and dy over the rows.
template <class T>
__global__ void input_gradient_kernel(NormalisedColumns<T> normal, const T* scale, const T* dy, const T* sum_gz,
                                      const T* sum_g, T share, T* dx, std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) {
    const std::int64_t column = i % normal.columns;
    const T means = (sum_g[column] + normal.z(i, column) * sum_gz[column]) * share;
    dx[i] += scale[column] * normal.inverse[column] * (dy[i] - means);
  });
}

template <class T>
__global__ void add_statistic_kernel(const T* values, T factor, T count, T* sum, std::int64_t n) {
  for_each_element(n + 1, [&](std::int64_t i) { sum[i] += i < n ? count * factor * values[i] : count; });
}

template <class T>
__global__ void inverse_deviation_kernel(const T* variance, T epsilon, T* inverse, std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) { inverse[i] = 1 / std::sqrt(variance[i] + epsilon); });
}

}  // namespace

template <class T>
void column_statistics(CudaContext& device, Tensor<T> x, Tensor<T> mean, Tensor<T> variance) {
  const std::int64_t rows = x.rows(), n = x.columns();
  const T share = 1 / static_cast<T>(rows);
  column_sums(device, rows, n, MatrixElements<T, 1>{{x.data()}, n}, share, 0, std::array<T*, 1>{mean.data()});
  column_sums(device, rows, n, SquaredDistances<T>{x.data(), mean.data(), n}, share, 0,
              std::array<T*, 1>{variance.data()});
}

template <class T>
void batch_norm_forward(CudaContext& device, Tensor<T> x, Tensor<T> mean, Tensor<T> inverse, Tensor<T> scale,
                        Tensor<T> bias, Tensor<T> y) {
  const NormalisedColumns<T> normal{x.data(), mean.data(), inverse.data(), x.columns()};
  launch(device, shape_for_elements(x.size()), normalise_columns_kernel<T>, normal, scale.data(), bias.data(), y.data(),
         x.size());
}

template <class T>
void batch_norm_backward(CudaContext& device, Tensor<T> x, Tensor<T> mean, Tensor<T> inverse, Tensor<T> scale,
                         Tensor<T> dy, Tensor<T> dx, Tensor<T> dscale, Tensor<T> dbias) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = x.rows(), n = x.columns();
  const NormalisedColumns<T> normal{x.data(), mean.data(), inverse.data(), n};
  const Tensor<T> sum_gz = device.arena.tensor<T>({n}), sum_g = device.arena.template tensor<T>({n});
  column_sums(device, rows, n, BatchNormSummands<T>{normal, dy.data()}, 1, 0,
              std::array<T*, 2>{sum_gz.data(), sum_g.data()});
  if (dx)
    launch(device, shape_for_elements(x.size()), input_gradient_kernel<T>, normal, scale.data(), dy.data(),
           sum_gz.data(), sum_g.data(), 1 / static_cast<T>(rows), dx.data(), x.size());
  if (dscale) scale_into(device, sum_gz, T(1), T(1), dscale);
  if (dbias) scale_into(device, sum_g, T(1), T(1), dbias);
}

template <class T>
void add_statistic(CudaContext& device, Tensor<T> values, T factor, std::int64_t rows, Tensor<T> sum) {
  launch(device, shape_for_elements(values.size() + 1), add_statistic_kernel<T>, values.data(), factor,
         static_cast<T>(rows), sum.data(), values.size());
}

template <class T>
Tensor<T> inverse_deviation(CudaContext& device, Tensor<T> variance, double epsilon) {
  const Tensor<T> inverse = device.arena.tensor<T>(variance.shape());
  launch(device, shape_for_elements(variance.size()), inverse_deviation_kernel<T>, variance.data(),
         static_cast<T>(epsilon), inverse.data(), variance.size());
  return inverse;
}

#define HEED_INSTANTIATE(T)                                                                                         \
  template void column_statistics(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>);                                   \
  template void batch_norm_forward(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>); \
  template void batch_norm_backward(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, \
                                    Tensor<T>, Tensor<T>);                                                          \
  template void add_statistic(CudaContext&, Tensor<T>, T, std::int64_t, Tensor<T>);                                 \
  template Tensor<T> inverse_deviation(CudaContext&, Tensor<T>, double);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
