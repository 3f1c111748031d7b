#include "heed/ops/rotary.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/rotary_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Rotates the first `width` columns of `rows` rows, which lie `stride` elements apart, in place (see rotary()). Row r
/// takes the angles from row r of `table`, or from row lengths[r] - 1 where `lengths` is not null. A row of the table
/// has `size` columns for the cosines and `size` columns for the sines of a head. `back` selects the negative angles.
template <class T>
void rotate_rows(T* x, std::int64_t stride, std::int64_t rows, std::int64_t width, const T* table, std::int64_t size,
                 const std::int32_t* lengths, bool back) {
  for (std::int64_t r = 0; r < rows; ++r, x += stride) {
    const T *cosines = table + (lengths ? lengths[r] - 1 : r) * 2 * size, *sines = cosines + size;
    std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    // Each vector holds whole pairs. The product of the swapped pairs and the sines has the right signs, because the
    // sines of even columns are negative in the table.
    const auto rotate = [&](auto d) HWY_ATTR {
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
      for (; i + lanes <= size; i += lanes) {
        const auto cosine = hn::LoadU(d, cosines + i), stored = hn::LoadU(d, sines + i);
        const auto sine = back ? hn::Neg(stored) : stored;
        for (T* head = x + i; head < x + width; head += size) {
          const auto v = hn::LoadU(d, head);
          hn::StoreU(hn::MulAdd(v, cosine, hn::Mul(hn::Reverse2(d, v), sine)), d, head);
        }
      }
    };
    constexpr std::int64_t kWhole = kLanes<T>;
    rotate(hn::ScalableTag<T>());
    if constexpr (kWhole > 8) rotate(hn::CappedTag<T, 8>());
#endif
    for (; i < size; i += 2) {
      const T cosine = cosines[i], sine = back ? -sines[i + 1] : sines[i + 1];
      for (T* head = x + i; head < x + width; head += size) {
        const T even = head[0], odd = head[1];
        head[0] = even * cosine - odd * sine;
        head[1] = odd * cosine + even * sine;
      }
    }
  }
}

HEED_INSTANTIATE_SIMD(rotate_rows,
                      (float* x, std::int64_t s, std::int64_t r, std::int64_t w, const float* t, std::int64_t d,
                       const std::int32_t* l, bool b),
                      (double* x, std::int64_t s, std::int64_t r, std::int64_t w, const double* t, std::int64_t d,
                       const std::int32_t* l, bool b),
                      (x, s, r, w, t, d, l, b))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(rotate_rows)

template <class T>
void rotary_forward(CpuContext&, Tensor<T> x, std::int64_t width, PackedOffsets packed, Tensor<T> table, bool back) {
  for (int b = 0; b < packed.sequences(); ++b)
    simd::rotate_rows(x.row(packed.begin(b)), x.columns(), std::int64_t{packed.length(b)}, width,
                      static_cast<const T*>(table.data()), table.columns() / 2,
                      static_cast<const std::int32_t*>(nullptr), back);
}

template <class T>
void rotary_step(CpuContext&, Tensor<T> x, std::int64_t width, std::span<const std::int32_t> lengths, Tensor<T> table) {
  simd::rotate_rows(x.data(), x.columns(), std::ssize(lengths), width, static_cast<const T*>(table.data()),
                    table.columns() / 2, lengths.data(), false);
}

template void rotary_forward(CpuContext&, Tensor<float>, std::int64_t, PackedOffsets, Tensor<float>, bool);
template void rotary_forward(CpuContext&, Tensor<double>, std::int64_t, PackedOffsets, Tensor<double>, bool);
template void rotary_step(CpuContext&, Tensor<float>, std::int64_t, std::span<const std::int32_t>, Tensor<float>);
template void rotary_step(CpuContext&, Tensor<double>, std::int64_t, std::span<const std::int32_t>, Tensor<double>);

}  // namespace heed
#endif  // HWY_ONCE
