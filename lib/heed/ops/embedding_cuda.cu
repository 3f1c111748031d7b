#include "heed/ops/embedding.h"

#include "heed/ops/dropout_cuda-inl.h"
#include "heed/ops/scatter_rows_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// The team of row r computes row r of y. `positions` may be null.
template <class T, class Team>
__global__ void embedding_kernel(const T* weight, const T* position_table, const std::int32_t* ids,
                                 const std::int32_t* positions, T scale, DropoutMask<T> mask, std::int64_t rows,
                                 std::int64_t columns, T* y) {
  constexpr int kColumns = Team::kColumns;
  const std::int64_t row = Team::first_row(), begin = row * columns;
  if (row >= rows) return;
  const TeamRow<T, Team> word(weight + ids[row] * columns, columns),
      place(positions ? position_table + positions[row] * columns : nullptr, columns);
  const MaskRow<Team> kept(row_of_mask(mask, begin), columns);
  Team::for_each_pack(columns, [&](int j, int c) {
    Pack<T, kColumns> value = word.at(j, c);
    HEED_UNROLL
    for (int k = 0; k < kColumns; ++k) value[k] *= scale;
    if (positions) value = add_packs(value, place.at(j, c));
    store_pack(drop_pack<T, Team>(value, mask, kept, j, c), y + begin + c);
  });
}

/// Returns the numbers of a list that has one for each token.
std::span<const std::int32_t> list(const std::int32_t* numbers, EmbeddingRows rows) {
  return {numbers, static_cast<std::size_t>(rows.count)};
}

}  // namespace

template <class T>
void embedding_forward(CudaContext& device, EmbeddingRows rows, Tensor<T> weight, Tensor<T> position_table, T scale,
                       DropoutMask<T> mask, Tensor<T> y) {
  const ArenaScope scope(device.arena);
  const std::int32_t* const ids = upload(device, list(rows.ids, rows));
  const std::int32_t* const positions = rows.positions ? upload(device, list(rows.positions, rows)) : nullptr;
  const bool packs = takes_packs<kTeamColumns>(y.columns(), weight.data(), position_table.data(), mask.kept, y.data());
  with_row_team<T>(rows.count, y.columns(), packs, [&](auto team, const LaunchShape& shape) {
    launch(device, shape, embedding_kernel<T, decltype(team)>, weight.data(), position_table.data(), ids, positions,
           scale, mask, rows.count, y.columns(), y.data());
  });
}

template <class T>
void embedding_backward(CudaContext& device, EmbeddingRows rows, T scale, DropoutMask<T> mask, Tensor<T> dy,
                        Tensor<T> dweight, Tensor<T> dposition_table) {
  if (dweight) scatter_rows(device, dy.data(), mask, list(rows.ids, rows), scale, dweight);
  if (dposition_table) scatter_rows(device, dy.data(), mask, list(rows.positions, rows), T(1), dposition_table);
}

#define HEED_INSTANTIATE(T)                                                                                         \
  template void embedding_forward(CudaContext&, EmbeddingRows, Tensor<T>, Tensor<T>, T, DropoutMask<T>, Tensor<T>); \
  template void embedding_backward(CudaContext&, EmbeddingRows, T, DropoutMask<T>, Tensor<T>, Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
