#include "heed/ops/masked_softmax.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/masked_softmax_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Computes the masked softmax y of one row x of n scores. The keys from `valid` on are hidden. The masks `padding`,
/// `hidden` and `additive` of the row may be null.
template <class T>
void masked_row(const T* HWY_RESTRICT x, std::int64_t valid, const std::uint8_t* padding, const std::uint8_t* hidden,
                const T* additive, T* HWY_RESTRICT y, std::int64_t n) {
  for_each_vector<T>(valid, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
    auto v = load(d, x + i);
    if (additive) v = hn::Add(v, load(d, additive + i));
    if (padding) v = hn::IfThenElse(hn::Gt(load_bytes(d, padding + i), hn::Zero(d)), lowest, v);
    if (hidden) v = hn::IfThenElse(hn::Gt(load_bytes(d, hidden + i), hn::Zero(d)), lowest, v);
    store(v, d, y + i);
  });
  softmax_row(y, valid);
  std::fill_n(y + valid, n - valid, T(0));
}

/// Computes the masked softmax of all queries of all sequences; each query has a row of n scores.
template <class T>
void masked_rows(const T* x, const SoftmaxMask<T>& mask, T* y, std::int64_t sequences, std::int64_t queries,
                 std::int64_t n) {
  const auto lengths = static_cast<std::int64_t>(mask.valid_lengths.size());
  for (std::int64_t b = 0; b < sequences; ++b)
    for (std::int64_t t = 0; t < queries; ++t) {
      const std::int64_t r = b * queries + t;
      // row_of(m) is the row of mask m for this query; a mask [T, S] is the same for every sequence.
      const auto row_of = [&](const auto& m)
                              HWY_ATTR { return m ? m.data() + (m.shape().rank() == 2 ? t : r) * n : nullptr; };
      const std::int64_t valid =
          lengths == 0 ? n : mask.valid_lengths[static_cast<std::size_t>(lengths == sequences ? b : r)];
      masked_row(x + r * n, valid, mask.key_padding ? mask.key_padding.data() + b * n : nullptr, row_of(mask.hidden),
                 row_of(mask.additive), y + r * n, n);
    }
}

HEED_INSTANTIATE_SIMD(masked_rows,
                      (const float* x, const SoftmaxMask<float>& m, float* y, std::int64_t b, std::int64_t t,
                       std::int64_t n),
                      (const double* x, const SoftmaxMask<double>& m, double* y, std::int64_t b, std::int64_t t,
                       std::int64_t n),
                      (x, m, y, b, t, n))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(masked_rows)

template <class T>
void masked_softmax_forward(CpuContext&, Tensor<T> x, const SoftmaxMask<T>& mask, Tensor<T> y) {
  simd::masked_rows(x.data(), mask, y.data(), x.dim(0), x.dim(1), x.dim(2));
}

template void masked_softmax_forward(CpuContext&, Tensor<float>, const SoftmaxMask<float>&, Tensor<float>);
template void masked_softmax_forward(CpuContext&, Tensor<double>, const SoftmaxMask<double>&, Tensor<double>);

}  // namespace heed
#endif  // HWY_ONCE
