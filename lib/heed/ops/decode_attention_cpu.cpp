#include <algorithm>
#include <cmath>

#include "heed/ops/decode_attention.h"

// Compiled once for each instruction set; the best one the CPU has is called (Highway's dynamic dispatch).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/decode_attention_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/attention_softmax-inl.h"
#include "heed/ops/dot_rows-inl.h"
#include "heed/ops/simd-inl.h"
#include "heed/ops/small_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// out[0 .. d) = sum over t < length of p[t] value(t), up to four vectors of columns at a time.
template <class T, class Value>
HWY_INLINE void weighted_sum(const T* HWY_RESTRICT p, Value value, std::int64_t length, std::int64_t d,
                             T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  std::int64_t c = 0;
  for (; c + 4 * lanes <= d; c += 4 * lanes) {
    auto a = hn::Zero(tag), b = a, e = a, f = a;
    for (std::int64_t t = 0; t < length; ++t) {
      const auto weight = hn::Set(tag, p[t]);
      const T* row = value(t) + c;
      a = hn::MulAdd(weight, hn::LoadU(tag, row), a);
      b = hn::MulAdd(weight, hn::LoadU(tag, row + lanes), b);
      e = hn::MulAdd(weight, hn::LoadU(tag, row + 2 * lanes), e);
      f = hn::MulAdd(weight, hn::LoadU(tag, row + 3 * lanes), f);
    }
    hn::StoreU(a, tag, out + c);
    hn::StoreU(b, tag, out + c + lanes);
    hn::StoreU(e, tag, out + c + 2 * lanes);
    hn::StoreU(f, tag, out + c + 3 * lanes);
  }
  for_each_vector<T>(d - c, [&](auto one, std::int64_t i, auto load, auto store) HWY_ATTR {
    auto sum = hn::Zero(one);
    for (std::int64_t t = 0; t < length; ++t) sum = hn::MulAdd(hn::Set(one, p[t]), load(one, value(t) + c + i), sum);
    store(sum, one, out + c + i);
  });
}

/// One row of cached_attention; p is scratch.
template <class T>
void attend_cached(T* p, const T* query, RowView<T> keys, RowView<T> values, const std::int32_t* slots,
                   std::int64_t length, int heads, std::int64_t width, T* out) {
  const std::int64_t d = width / heads;
  const T scale = 1 / std::sqrt(static_cast<T>(d));
  for (std::int64_t at = 0; at < width; at += d) {
    dot_products(
        1, length, d, query + at, width,
        [&](std::int64_t t) HWY_ATTR { return keys.data + slots[t] * keys.stride + at; }, scale, p, length);
    if (length > 0) attention_softmax_row(p, length, length);
    weighted_sum(
        static_cast<const T*>(p), [&](std::int64_t t) HWY_ATTR { return values.data + slots[t] * values.stride + at; },
        length, d, out + at);
  }
}

/// `rows` rows of memory_attention over the same `length` rows of memory; p is scratch, weights_out may be null.
template <class T>
void attend_memory(T* p, RowView<T> query, std::int64_t rows, RowView<T> keys, RowView<T> values, std::int64_t length,
                   int heads, std::int64_t width, T* out, T* weights_out) {
  const std::int64_t d = width / heads, stride = scratch_stride<T>(length);
  const T scale = 1 / std::sqrt(static_cast<T>(d));
  for (std::int64_t h = 0; h < heads; ++h) {
    const std::int64_t at = h * d;
    dot_products(
        rows, length, d, query.data + at, query.stride,
        [&](std::int64_t t) HWY_ATTR { return keys.data + t * keys.stride + at; }, scale, p, stride);
    for (std::int64_t r = 0; r < rows && length > 0; ++r) {
      attention_softmax_row(p + r * stride, length, length);
      if (weights_out) std::copy(p + r * stride, p + r * stride + length, weights_out + (r * heads + h) * length);
    }
    small_gemm(rows, d, length, LeftMatrix<T>{p, stride, 1}, values.data + at, values.stride, out + at, width, false);
  }
}

HEED_INSTANTIATE_SIMD(attend_cached,
                      (float* p, const float* q, RowView<float> k, RowView<float> v, const std::int32_t* s,
                       std::int64_t n, int h, std::int64_t w, float* o),
                      (double* p, const double* q, RowView<double> k, RowView<double> v, const std::int32_t* s,
                       std::int64_t n, int h, std::int64_t w, double* o),
                      (p, q, k, v, s, n, h, w, o))
HEED_INSTANTIATE_SIMD(attend_memory,
                      (float* p, RowView<float> q, std::int64_t r, RowView<float> k, RowView<float> v, std::int64_t n,
                       int h, std::int64_t w, float* o, float* a),
                      (double* p, RowView<double> q, std::int64_t r, RowView<double> k, RowView<double> v,
                       std::int64_t n, int h, std::int64_t w, double* o, double* a),
                      (p, q, r, k, v, n, h, w, o, a))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(attend_cached)
HEED_EXPORT_SIMD(attend_memory)

template <class T>
void cached_attention(CpuContext& device, RowView<T> query, RowView<T> keys, RowView<T> values,
                      std::span<const std::int32_t> slots, std::int64_t capacity, std::span<const std::int32_t> lengths,
                      int heads, std::int64_t width, T* out) {
  const ArenaScope scope(device.arena);
  T* p = device.arena.tensor<T>({scratch_stride<T>(capacity)}).data();
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    const auto row = static_cast<std::int64_t>(r);
    simd::attend_cached(p, query.data + row * query.stride, keys, values, slots.data() + row * capacity,
                        std::int64_t{lengths[r]}, heads, width, out + row * width);
  }
}

template <class T>
void memory_attention(CpuContext& device, RowView<T> query, RowView<T> keys, RowView<T> values, PackedOffsets memory,
                      std::span<const std::int32_t> sentence_of_row, int heads, std::int64_t width, T* out,
                      T* weights_out) {
  for (std::size_t r = 0; r < sentence_of_row.size();) {
    std::size_t end = r + 1;
    while (end < sentence_of_row.size() && sentence_of_row[end] == sentence_of_row[r]) ++end;
    const auto row = static_cast<std::int64_t>(r), rows = static_cast<std::int64_t>(end - r);
    const std::int64_t begin = memory.begin(sentence_of_row[r]), length = memory.length(sentence_of_row[r]);
    const ArenaScope scope(device.arena);
    T* p = device.arena.tensor<T>({rows, scratch_stride<T>(length)}).data();
    simd::attend_memory(p, RowView<T>{query.data + row * query.stride, query.stride}, rows,
                        RowView<T>{keys.data + begin * keys.stride, keys.stride},
                        RowView<T>{values.data + begin * values.stride, values.stride}, length, heads, width,
                        out + row * width, weights_out);
    if (weights_out) weights_out += rows * heads * length;
    r = end;
  }
}

template void cached_attention(CpuContext&, RowView<float>, RowView<float>, RowView<float>,
                               std::span<const std::int32_t>, std::int64_t, std::span<const std::int32_t>, int,
                               std::int64_t, float*);
template void cached_attention(CpuContext&, RowView<double>, RowView<double>, RowView<double>,
                               std::span<const std::int32_t>, std::int64_t, std::span<const std::int32_t>, int,
                               std::int64_t, double*);
template void memory_attention(CpuContext&, RowView<float>, RowView<float>, RowView<float>, PackedOffsets,
                               std::span<const std::int32_t>, int, std::int64_t, float*, float*);
template void memory_attention(CpuContext&, RowView<double>, RowView<double>, RowView<double>, PackedOffsets,
                               std::span<const std::int32_t>, int, std::int64_t, double*, double*);

}  // namespace heed
#endif  // HWY_ONCE
