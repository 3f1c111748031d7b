#include "heed/ops/masked_softmax.h"

#include "heed/ops/softmax_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// A mask [T, S] or [B, T, S] in the memory of the GPU, seen from the queries of a batch: query r reads the row
/// r % rows. `data` may be null.
template <class T>
struct MaskRows {
  const T* data = nullptr;
  std::int64_t rows = 1;

  explicit MaskRows(Tensor<const T> mask) : data(mask.data()), rows(mask ? mask.rows() : 1) {}
  /// Returns the row for query r, or null.
  __device__ const T* row(std::int64_t r, std::int64_t columns) const {
    return data ? data + r % rows * columns : nullptr;
  }
};

/// Block r computes the softmax of query r of all sequences, of which each has `queries` queries. `valid_lengths` has a
/// number for each group of `sharing` queries; it and `padding` may be null.
template <class T>
__global__ void masked_softmax_kernel(const T* x, const std::int32_t* valid_lengths, std::int64_t sharing,
                                      const std::uint8_t* padding, MaskRows<std::uint8_t> hidden, MaskRows<T> additive,
                                      T* y, std::int64_t queries, std::int64_t columns) {
  const std::int64_t r = blockIdx.x, begin = r * columns;
  const std::int64_t valid = valid_lengths ? valid_lengths[r / sharing] : columns;
  const std::uint8_t* const padding_row = padding ? padding + r / queries * columns : nullptr;
  const std::uint8_t* const hidden_row = hidden.row(r, columns);
  const T* const additive_row = additive.row(r, columns);
  for_each_of_row(columns, [&](std::int64_t i) {
    const std::int64_t j = i - begin;
    const bool seen = j < valid && !(padding_row && padding_row[j]) && !(hidden_row && hidden_row[j]);
    y[i] = !seen ? static_cast<T>(-INFINITY) : additive_row ? x[i] + additive_row[j] : x[i];
  });
  softmax_row(y, y, columns);
}

}  // namespace

template <class T>
void masked_softmax_forward(CudaContext& device, Tensor<T> x, const SoftmaxMask<T>& mask, Tensor<T> y) {
  const ArenaScope scope(device.arena);
  const std::int64_t queries = x.dim(1);
  const auto lengths = std::ssize(mask.valid_lengths);
  launch(device, shape_for_rows<T>(x.rows(), x.columns()), masked_softmax_kernel<T>, x.data(),
         lengths > 0 ? upload(device, mask.valid_lengths) : nullptr, lengths == x.dim(0) ? queries : 1,
         mask.key_padding.data(), MaskRows(mask.hidden), MaskRows(mask.additive), y.data(), queries, x.columns());
}

template void masked_softmax_forward(CudaContext&, Tensor<float>, const SoftmaxMask<float>&, Tensor<float>);
template void masked_softmax_forward(CudaContext&, Tensor<double>, const SoftmaxMask<double>&, Tensor<double>);

}  // namespace heed
