// Layer normalisation and RMS normalisation of rows, in kernels of GPUs whose teams of threads share the rows (see
// row_team_cuda-inl.h). RMS normalisation has the same formula with a mean of 0, and its backward pass does not
// subtract the mean of the gradient.
#pragma once

#include <cmath>

#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/ops/row_norm.h"
#include "heed/ops/row_team_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {

/// Normalises a row x: y = (x - mean) / sqrt(variance + epsilon) * scale + bias, or, for RMS normalisation, y = x /
/// sqrt(mean(x^2) + epsilon) * scale. A null bias counts as zeros. Stores the mean (0 for RMS normalisation) and the
/// inverse of the square root in `statistics` [2], and y rounded to bfloat16 in `rounded`, unless these are null. y may
/// be x.
template <class Team, class T>
__device__ void normalise_row(RowNorm kind, const TeamRow<T, Team>& x, const T* scale, const T* bias, T epsilon, T* y,
                              Bfloat16* rounded, T* statistics, std::int64_t columns) {
  constexpr int kColumns = Team::kColumns;
  T mean = 0, squares = 0;
  if (kind == RowNorm::layer) {
    T sum = 0;
    Team::for_each_pack(columns, [&](int j, int c) {
      const Pack<T, kColumns> pack = x.at(j, c);
      HEED_UNROLL
      for (int k = 0; k < kColumns; ++k) sum += pack[k];
    });
    mean = Team::sum(sum) / static_cast<T>(columns);
  }
  Team::for_each_pack(columns, [&](int j, int c) {
    const Pack<T, kColumns> pack = x.at(j, c);
    HEED_UNROLL
    for (int k = 0; k < kColumns; ++k) squares += (pack[k] - mean) * (pack[k] - mean);
  });
  const T inverse = 1 / std::sqrt(Team::sum(squares) / static_cast<T>(columns) + epsilon);
  Team::for_each_pack(columns, [&](int j, int c) {
    const Pack<T, kColumns> pack = x.at(j, c), factors = load_pack<kColumns>(scale + c);
    Pack<T, kColumns> out{}, summands{};
    if (bias) summands = load_pack<kColumns>(bias + c);
    HEED_UNROLL
    for (int k = 0; k < kColumns; ++k) out[k] = (pack[k] - mean) * inverse * factors[k] + summands[k];
    store_pack(out, y + c);
    if (rounded) store_pack(round_pack(out), rounded + c);
  });
  if (!statistics || Team::thread() != 0) return;
  statistics[0] = mean;
  statistics[1] = inverse;
}

/// What normalise_rows_backward() reads and sums. `scale_parts` and `bias_parts`, each null or of a row for each block
/// of the grid, receive the sums of the block's rows for the gradients of scale and bias.
template <class T>
struct RowNormGradient {
  RowNorm kind;
  const T *x, *scale, *statistics, *dy;
  std::int64_t rows, columns;
  T *scale_parts, *bias_parts;
};

/// Adds up the sums of the teams of this block for the gradients of scale or bias, which the threads of a team hold,
/// and stores them in `part`. All threads of the block must call this together. A block of warps has shared memory for
/// a row of sums of each warp.
template <class Team, class T>
__device__ void store_part(const TeamRow<T, Team>& sums, std::int64_t columns, T* part) {
  constexpr int kColumns = Team::kColumns;
  if constexpr (!Team::kIsWarp) {
    Team::for_each_pack(columns, [&](int j, int c) { store_pack(sums.at(j, c), part + c); });
  } else {
    T* const of_teams = shared_memory<T>();
    Team::for_each_pack(columns, [&](int j, int c) {
      const Pack<T, kColumns> of_team = sums.at(j, c);
      HEED_UNROLL
      for (int k = 0; k < kColumns; ++k) of_teams[Team::number() * columns + c + k] = of_team[k];
    });
    __syncthreads();
    for (std::int64_t c = threadIdx.x; c < columns; c += blockDim.x) {
      T sum = 0;
      for (int team = 0; team < Team::count(); ++team) sum += of_teams[team * columns + c];
      part[c] = sum;
    }
    __syncthreads();
  }
}

/// Computes the gradients of all rows, which the teams of the grid share. With z = (x - mean) / deviation and g = dy
/// scale: dx = (g - mean(g) - z mean(g z)) / deviation, without mean(g) for RMS normalisation. Calls begin(row) before
/// a row, whose result is what emit needs: emit(begun, row, j, c, dx) for each pack.
template <class Team, class T, class Begin, class Emit>
__device__ __forceinline__ void normalise_rows_backward(const RowNormGradient<T>& a, const Begin& begin,
                                                        const Emit& emit) {
  constexpr int kColumns = Team::kColumns;
  using Packed = Pack<T, kColumns>;
  // The sums are held with the packs of a row; teams that hold nothing add to the memory of the part.
  const auto part = [&](T* parts) { return parts && Team::kHeld == 0 ? parts + blockIdx.x * a.columns : nullptr; };
  TeamRow<T, Team> scale_sums(part(a.scale_parts)), bias_sums(part(a.bias_parts));
  const bool sums_scale = Team::kHeld > 0 || a.scale_parts, sums_bias = Team::kHeld > 0 || a.bias_parts;
  if constexpr (Team::kHeld == 0)
    Team::for_each_pack(a.columns, [&](int j, int c) {
      scale_sums.set(j, c, {});
      bias_sums.set(j, c, {});
    });
  for (std::int64_t row = Team::first_row(); row < a.rows; row += Team::row_step()) {
    const TeamRow<T, Team> x(a.x + row * a.columns, a.columns), dy(a.dy + row * a.columns, a.columns);
    const auto begun = begin(row);
    const T mean = a.statistics[2 * row], inverse = a.statistics[2 * row + 1];
    T mean_g = 0, mean_gz = 0;
    Team::for_each_pack(a.columns, [&](int j, int c) {
      const Packed of_x = x.at(j, c), of_dy = dy.at(j, c), scale = load_pack<kColumns>(a.scale + c);
      Packed scale_sum{}, bias_sum{};
      if (sums_scale) scale_sum = scale_sums.at(j, c);
      if (sums_bias) bias_sum = bias_sums.at(j, c);
      HEED_UNROLL
      for (int k = 0; k < kColumns; ++k) {
        const T z = (of_x[k] - mean) * inverse, g = of_dy[k] * scale[k];
        mean_g += g;
        mean_gz += g * z;
        scale_sum[k] += of_dy[k] * z;
        bias_sum[k] += of_dy[k];
      }
      if (sums_scale) scale_sums.set(j, c, scale_sum);
      if (sums_bias) bias_sums.set(j, c, bias_sum);
    });
    mean_g = a.kind == RowNorm::layer ? Team::sum(mean_g) / static_cast<T>(a.columns) : T(0);
    mean_gz = Team::sum(mean_gz) / static_cast<T>(a.columns);
    Team::for_each_pack(a.columns, [&](int j, int c) {
      const Packed of_x = x.at(j, c), of_dy = dy.at(j, c), scale = load_pack<kColumns>(a.scale + c);
      Packed dx;
      HEED_UNROLL
      for (int k = 0; k < kColumns; ++k)
        dx[k] = (of_dy[k] * scale[k] - mean_g - (of_x[k] - mean) * inverse * mean_gz) * inverse;
      emit(begun, row, j, c, dx);
    });
  }
  if constexpr (Team::kHeld > 0) {
    if (a.scale_parts) store_part(scale_sums, a.columns, a.scale_parts + blockIdx.x * a.columns);
    if (a.bias_parts) store_part(bias_sums, a.columns, a.bias_parts + blockIdx.x * a.columns);
  }
}

/// Launches a kernel with normalise_rows_backward(), and adds the gradients of scale and bias to dscale and dbias; an
/// empty tensor is skipped. `packs` tells whether the other arrays of the kernel can be read in packs. Calls
/// start(team, shape, gradient) to launch it.
template <class T, class Start>
void launch_row_norm_gradient(CudaContext& device, RowNorm kind, Tensor<T> x, Tensor<T> scale, Tensor<T> statistics,
                              Tensor<T> dy, Tensor<T> dscale, Tensor<T> dbias, bool packs, const Start& start) {
  if (x.rows() == 0) return;
  const ArenaScope scope(device.arena);
  packs = packs && takes_packs<kTeamColumns>(x.columns(), x.data(), scale.data(), dy.data());
  with_row_team<T>(x.rows(), x.columns(), packs, [&](auto team, LaunchShape shape) {
    // The number of blocks depends on the number of rows alone, so that the order of the sums does.
    constexpr unsigned kTeamRows = 4, kMostBlocks = 1024;
    shape.blocks = std::min((shape.blocks + kTeamRows - 1) / kTeamRows, kMostBlocks);
    if constexpr (team.kIsWarp)
      shape.shared_bytes = kWarpTeamThreads / 32 * static_cast<std::size_t>(x.columns()) * sizeof(T);
    const std::array<T*, 2> to{dscale.data(), dbias.data()};
    std::array<T*, 2> parts{};
    for (std::size_t k = 0; k < to.size(); ++k)
      if (to[k]) parts[k] = device.arena.template tensor<T>({shape.blocks, x.columns()}).data();
    start(team, shape,
          RowNormGradient<T>{kind, x.data(), scale.data(), statistics.data(), dy.data(), x.rows(), x.columns(),
                             parts[0], parts[1]});
    if (to[0] || to[1]) sum_parts(device, shape.blocks, x.columns(), parts, 1, 1, to);
  });
}

}  // namespace heed
