#include "heed/ops/additive_scores.h"

#include "heed/ops/additive_scores_cuda-inl.h"
#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// Each warp computes the score of a query and a key.
template <class T>
__global__ void score_kernel(const T* query, const T* key, const T* scorer, ScoreSizes n, T* y) {
  for_each_element(n.sequences * n.queries * n.keys * 32, [&](std::int64_t i) {
    const std::int64_t pair = i / 32, row = pair / n.keys, of_key = row / n.queries * n.keys + pair % n.keys;
    const T score = additive_score(query + row * n.width, key + of_key * n.width, scorer, n.width);
    if (i % 32 == 0) y[pair] = score;
  });
}

/// Computes the gradients of the rows x of one side of the pairs, queries or keys; `others` are the rows of the other
/// side. Each thread has a column of one of the `rows` rows of a sequence. The gradients of the scores of neighbouring
/// rows lie `row_step` elements apart, and those of one row `other_step`. Adds to `dx`, and writes each row's part of
/// the gradient of the scorer to `parts`; each may be null.
template <class T>
__global__ void gradient_kernel(std::int64_t sequences, std::int64_t width, std::int64_t rows, const T* x,
                                std::int64_t other_rows, const T* others, const T* scorer, const T* dy,
                                std::int64_t row_step, std::int64_t other_step, T* dx, T* parts) {
  for_each_element(sequences * rows * width, [&](std::int64_t i) {
    const std::int64_t b = i / width / rows, row = i / width % rows, c = i % width;
    const TangentSums<T> sums = tangent_sums(x[i], other_rows, others + b * other_rows * width + c, width,
                                             dy + b * rows * other_rows + row * row_step, other_step);
    if (dx) dx[i] += scorer[c] * sums.slope;
    if (parts) parts[i] = sums.tangent;
  });
}

}  // namespace

template <class T>
void additive_scores_forward(CudaContext& device, Tensor<T> query, Tensor<T> key, Tensor<T> scorer, Tensor<T> y) {
  launch(device, shape_for_elements(y.size() * 32), score_kernel<T>, query.data(), key.data(), scorer.data(),
         ScoreSizes{y.dim(0), y.dim(1), y.dim(2), key.dim(2)}, y.data());
}

template <class T>
void additive_scores_backward(CudaContext& device, Tensor<T> query, Tensor<T> key, Tensor<T> scorer, Tensor<T> dy,
                              Tensor<T> dquery, Tensor<T> dkey, Tensor<T> dscorer) {
  const ArenaScope scope(device.arena);
  const std::int64_t sequences = dy.dim(0), queries = dy.dim(1), keys = dy.dim(2), width = key.dim(2);
  T* const parts = dscorer ? device.arena.template tensor<T>(query.shape()).data() : nullptr;
  if (dquery || dscorer)
    launch(device, shape_for_elements(query.size()), gradient_kernel<T>, sequences, width, queries, query.data(), keys,
           key.data(), scorer.data(), dy.data(), keys, std::int64_t{1}, dquery.data(), parts);
  if (dkey)
    launch(device, shape_for_elements(key.size()), gradient_kernel<T>, sequences, width, keys, key.data(), queries,
           query.data(), scorer.data(), dy.data(), std::int64_t{1}, keys, dkey.data(), nullptr);
  if (dscorer) add_column_sums<T>(device, parts, sequences * queries, width, width, dscorer.data());
}

#define HEED_INSTANTIATE(T)                                                                                   \
  template void additive_scores_forward(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>);            \
  template void additive_scores_backward(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, \
                                         Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
