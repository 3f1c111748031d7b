#include "heed/ops/embedding.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/embedding_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Computes the embeddings y of all tokens: dropout(scale * row of `weight` + row of `table`), where a row has n
/// elements.
template <class T>
void gather_rows(const T* weight, const T* table, EmbeddingRows rows, T scale, DropoutMask<T> mask, T* y,
                 std::int64_t n) {
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const T* HWY_RESTRICT word = weight + rows.ids[r] * n;
    const T* HWY_RESTRICT place = rows.positions ? table + rows.positions[r] * n : nullptr;
    T* HWY_RESTRICT to = y + r * n;
    const DropoutMask<T> row_mask = mask.from(r * n);
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
      auto v = hn::Mul(load(d, word + i), hn::Set(d, scale));
      if (place) v = hn::Add(v, load(d, place + i));
      store(drop(d, v, row_mask, i), d, to + i);
    });
  }
}

/// Adds the gradient dy of each token's embedding to the rows of dweight and dtable that belong to the token's id and
/// position. dweight and dtable may be null.
template <class T>
void scatter_rows(const T* dy, EmbeddingRows rows, T scale, DropoutMask<T> mask, T* dweight, T* dtable,
                  std::int64_t n) {
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const T* HWY_RESTRICT from = dy + r * n;
    T* HWY_RESTRICT word = dweight ? dweight + rows.ids[r] * n : nullptr;
    T* HWY_RESTRICT place = dtable ? dtable + rows.positions[r] * n : nullptr;
    const DropoutMask<T> row_mask = mask.from(r * n);
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
      const auto g = drop(d, load(d, from + i), row_mask, i);
      if (word) store(hn::MulAdd(g, hn::Set(d, scale), load(d, word + i)), d, word + i);
      if (place) store(hn::Add(g, load(d, place + i)), d, place + i);
    });
  }
}

HEED_INSTANTIATE_SIMD(gather_rows,
                      (const float* w, const float* t, EmbeddingRows r, float s, DropoutMask<float> m, float* y,
                       std::int64_t n),
                      (const double* w, const double* t, EmbeddingRows r, double s, DropoutMask<double> m, double* y,
                       std::int64_t n),
                      (w, t, r, s, m, y, n))
HEED_INSTANTIATE_SIMD(
    scatter_rows, (const float* g, EmbeddingRows r, float s, DropoutMask<float> m, float* w, float* t, std::int64_t n),
    (const double* g, EmbeddingRows r, double s, DropoutMask<double> m, double* w, double* t, std::int64_t n),
    (g, r, s, m, w, t, n))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(gather_rows)
HEED_EXPORT_SIMD(scatter_rows)

template <class T>
void embedding_forward(CpuContext&, EmbeddingRows rows, Tensor<T> weight, Tensor<T> position_table, T scale,
                       DropoutMask<T> mask, Tensor<T> y) {
  simd::gather_rows(weight.data(), position_table.data(), rows, scale, mask, y.data(), weight.columns());
}

template <class T>
void embedding_backward(CpuContext&, EmbeddingRows rows, T scale, DropoutMask<T> mask, Tensor<T> dy, Tensor<T> dweight,
                        Tensor<T> dposition_table) {
  simd::scatter_rows(dy.data(), rows, scale, mask, dweight.data(), dposition_table.data(), dy.columns());
}

template void embedding_forward(CpuContext&, EmbeddingRows, Tensor<float>, Tensor<float>, float, DropoutMask<float>,
                                Tensor<float>);
template void embedding_forward(CpuContext&, EmbeddingRows, Tensor<double>, Tensor<double>, double, DropoutMask<double>,
                                Tensor<double>);
template void embedding_backward(CpuContext&, EmbeddingRows, float, DropoutMask<float>, Tensor<float>, Tensor<float>,
                                 Tensor<float>);
template void embedding_backward(CpuContext&, EmbeddingRows, double, DropoutMask<double>, Tensor<double>,
                                 Tensor<double>, Tensor<double>);

}  // namespace heed
#endif  // HWY_ONCE
