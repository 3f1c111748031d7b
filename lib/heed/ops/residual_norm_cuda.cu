#include "heed/ops/residual_norm.h"

#include "heed/ops/dropout_cuda-inl.h"
#include "heed/ops/row_norm_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// The branch has numbers B: T, or Bfloat16.
template <class T, class B, class Team>
__global__ __launch_bounds__(kMostTeamThreads) void residual_norm_kernel(
    RowNorm kind, const T* residual, const B* branch, DropoutMask<T> mask, const T* scale, const T* bias, T epsilon,
    T* sum, T* normed, Bfloat16* rounded, T* statistics, std::int64_t rows, std::int64_t columns) {
  const std::int64_t row = Team::first_row(), begin = row * columns;
  if (row >= rows) return;
  const TeamRow<T, Team> of_residual(residual + begin, columns);
  const TeamRow<B, Team> of_branch(branch + begin, columns);
  const MaskRow<Team> kept(row_of_mask(mask, begin), columns);
  TeamRow<T, Team> x(sum + begin);
  Team::for_each_pack(columns, [&](int j, int c) {
    x.set(j, c,
          add_packs(of_residual.at(j, c), drop_pack<T, Team>(widen_pack<T>(of_branch.at(j, c)), mask, kept, j, c)));
  });
  normalise_row(kind, x, scale, bias, epsilon, normed + begin, rounded ? rounded + begin : nullptr,
                statistics ? statistics + 2 * row : nullptr, columns);
}

/// Where residual_norm_backward() reads the gradient of the sum and stores the gradients of residual and branch; each
/// may be null.
template <class T>
struct ResidualGradients {
  const T* dsum;
  T* dresidual;
  bool adds_to_residual;
  T* dbranch;
  Bfloat16* dbranch_rounded;
  bool adds_to_branch;
};

template <class T, class Team>
__global__ __launch_bounds__(kMostTeamThreads) void residual_norm_gradient_kernel(RowNormGradient<T> gradient,
                                                                                  DropoutMask<T> mask,
                                                                                  ResidualGradients<T> to) {
  constexpr int kColumns = Team::kColumns;
  // What is read of a row besides the operands of the normalisation, and requested at the same time.
  struct Begun {
    TeamRow<T, Team> dsum;
    MaskRow<Team> kept;
  };
  const std::int64_t columns = gradient.columns;
  const bool drops = to.dbranch || to.dbranch_rounded;
  normalise_rows_backward<Team>(
      gradient,
      [&](std::int64_t row) {
        const std::int64_t begin = row * columns;
        return Begun{{to.dsum ? to.dsum + begin : nullptr, columns},
                     {drops ? row_of_mask(mask, begin) : nullptr, columns}};
      },
      [&](const Begun& begun, std::int64_t row, int j, int c, Pack<T, kColumns> g) {
        const std::int64_t i = row * columns + c;
        if (to.dsum) g = add_packs(g, begun.dsum.at(j, c));
        // The gradients of the residual and of the branch may be the same array, where both are the same variable.
        if (to.dresidual)
          store_pack(to.adds_to_residual ? add_packs(load_pack<kColumns>(to.dresidual + i), g) : g, to.dresidual + i);
        if (!drops) return;
        const Pack<T, kColumns> dropped = drop_pack<T, Team>(g, mask, begun.kept, j, c);
        if (to.dbranch)
          store_pack(to.adds_to_branch ? add_packs(load_pack<kColumns>(to.dbranch + i), dropped) : dropped,
                     to.dbranch + i);
        if (to.dbranch_rounded) store_pack(round_pack(dropped), to.dbranch_rounded + i);
      });
}

}  // namespace

template <class T>
void residual_norm_forward(CudaContext& device, RowNorm kind, Tensor<T> residual, MaybeRounded<T> branch,
                           DropoutMask<T> mask, Tensor<T> scale, Tensor<T> bias, double epsilon, Tensor<T> sum,
                           MaybeRounded<T> normed, Tensor<T> statistics) {
  const std::int64_t rows = sum.rows(), columns = sum.columns();
  const auto add = [&]<class B>(const B* of_branch) {
    const bool packs = takes_packs<kTeamColumns>(columns, residual.data(), of_branch, mask.kept, scale.data(),
                                                 bias.data(), sum.data(), normed.full.data(), normed.rounded.data());
    with_row_team<T>(rows, columns, packs, [&](auto team, const LaunchShape& shape) {
      launch(device, shape, residual_norm_kernel<T, B, decltype(team)>, kind, residual.data(), of_branch, mask,
             scale.data(), bias.data(), static_cast<T>(epsilon), sum.data(), normed.full.data(), normed.rounded.data(),
             statistics.data(), rows, columns);
    });
  };
  if constexpr (std::is_same_v<T, float>)
    if (branch.rounded) return add(static_cast<const Bfloat16*>(branch.rounded.data()));
  add(static_cast<const T*>(branch.full.data()));
}

template <class T>
void residual_norm_backward(CudaContext& device, RowNorm kind, Tensor<T> sum, DropoutMask<T> mask, Tensor<T> scale,
                            Tensor<T> statistics, Tensor<T> dsum, Tensor<T> dnormed, Tensor<T> dresidual,
                            bool adds_to_residual, MaybeRounded<T> dbranch, bool adds_to_branch, Tensor<T> dscale,
                            Tensor<T> dbias) {
  if (!dresidual && !dbranch.full && !dbranch.rounded && !dscale && !dbias) return;
  const bool packs = takes_packs<kTeamColumns>(sum.columns(), mask.kept, dsum.data(), dresidual.data(),
                                               dbranch.full.data(), dbranch.rounded.data());
  const ResidualGradients<T> to{dsum.data(),         dresidual.data(),       adds_to_residual,
                                dbranch.full.data(), dbranch.rounded.data(), adds_to_branch};
  launch_row_norm_gradient(device, kind, sum, scale, statistics, dnormed, dscale, dbias, packs,
                           [&](auto team, const LaunchShape& shape, const RowNormGradient<T>& gradient) {
                             launch(device, shape, residual_norm_gradient_kernel<T, decltype(team)>, gradient, mask,
                                    to);
                           });
}

#define HEED_INSTANTIATE(T)                                                                                         \
  template void residual_norm_forward(CudaContext&, RowNorm, Tensor<T>, MaybeRounded<T>, DropoutMask<T>, Tensor<T>, \
                                      Tensor<T>, double, Tensor<T>, MaybeRounded<T>, Tensor<T>);                    \
  template void residual_norm_backward(CudaContext&, RowNorm, Tensor<T>, DropoutMask<T>, Tensor<T>, Tensor<T>,      \
                                       Tensor<T>, Tensor<T>, Tensor<T>, bool, MaybeRounded<T>, bool, Tensor<T>,     \
                                       Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
