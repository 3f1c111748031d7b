#include "heed/ops/layer_norm.h"

#include "heed/ops/row_norm_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

template <class T, class Team>
__global__ __launch_bounds__(kMostTeamThreads) void row_norm_kernel(RowNorm kind, const T* x, const T* scale,
                                                                    const T* bias, T epsilon, T* y, Bfloat16* rounded,
                                                                    T* statistics, std::int64_t rows,
                                                                    std::int64_t columns) {
  const std::int64_t row = Team::first_row(), begin = row * columns;
  if (row >= rows) return;
  const TeamRow<T, Team> of_x(x + begin, columns);
  normalise_row(kind, of_x, scale, bias, epsilon, y + begin, rounded ? rounded + begin : nullptr,
                statistics ? statistics + 2 * row : nullptr, columns);
}

/// Adds the gradients of all rows to dx, unless it is null.
template <class T, class Team>
__global__ __launch_bounds__(kMostTeamThreads) void row_norm_gradient_kernel(RowNormGradient<T> gradient, T* dx) {
  // dx is requested with the operands of the normalisation: otherwise each pack waits until the one before is stored.
  using Row = TeamRow<T, Team>;
  normalise_rows_backward<Team>(
      gradient, [&](std::int64_t row) { return Row(dx ? dx + row * gradient.columns : nullptr, gradient.columns); },
      [&](const Row& before, std::int64_t row, int j, int c, const typename Row::Packed& g) {
        if (dx) store_pack(add_packs(before.at(j, c), g), dx + row * gradient.columns + c);
      });
}

}  // namespace

template <class T>
void row_norm_forward(CudaContext& device, RowNorm kind, Tensor<T> x, Tensor<T> scale, Tensor<T> bias, double epsilon,
                      MaybeRounded<T> y, Tensor<T> statistics) {
  const bool packs =
      takes_packs<kTeamColumns>(x.columns(), x.data(), scale.data(), bias.data(), y.full.data(), y.rounded.data());
  with_row_team<T>(x.rows(), x.columns(), packs, [&](auto team, const LaunchShape& shape) {
    launch(device, shape, row_norm_kernel<T, decltype(team)>, kind, x.data(), scale.data(), bias.data(),
           static_cast<T>(epsilon), y.full.data(), y.rounded.data(), statistics.data(), x.rows(), x.columns());
  });
}

template <class T>
void row_norm_backward(CudaContext& device, RowNorm kind, Tensor<T> x, Tensor<T> scale, Tensor<T> statistics,
                       Tensor<T> dy, Tensor<T> dx, Tensor<T> dscale, Tensor<T> dbias) {
  if (!dx && !dscale && !dbias) return;
  launch_row_norm_gradient(device, kind, x, scale, statistics, dy, dscale, dbias,
                           takes_packs<kTeamColumns>(x.columns(), dx.data()),
                           [&](auto team, const LaunchShape& shape, const RowNormGradient<T>& gradient) {
                             launch(device, shape, row_norm_gradient_kernel<T, decltype(team)>, gradient, dx.data());
                           });
}

#define HEED_INSTANTIATE(T)                                                                                       \
  template void row_norm_forward(CudaContext&, RowNorm, Tensor<T>, Tensor<T>, Tensor<T>, double, MaybeRounded<T>, \
                                 Tensor<T>);                                                                      \
  template void row_norm_backward(CudaContext&, RowNorm, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>,   \
                                  Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
