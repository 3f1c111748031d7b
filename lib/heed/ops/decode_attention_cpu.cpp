#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "heed/ops/decode_attention.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/decode_attention_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/attention_softmax-inl.h"
#include "heed/ops/dot_rows-inl.h"
#include "heed/ops/position_terms-inl.h"
#include "heed/ops/simd-inl.h"
#include "heed/ops/small_gemm-inl.h"
#include "heed/ops/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Reads rows of a key/value cache. `Stored` is the type of the numbers in the cache: T, or an integer type with
/// scales.
template <class T, class Stored>
struct RowReader {
  CachedRows<T> rows;
  /// Returns the address of row i of the cache.
  const Stored* operator()(std::int64_t i) const {
    return reinterpret_cast<const Stored*>(rows.data + i * rows.stride);
  }
  /// Returns the scales of a row of the cache: one scale for each head (int8), or a single scale (int16).
  const float* scales(const Stored* row) const {
    return reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(row) + rows.scales);
  }
  static constexpr bool kScaled = !std::is_same_v<T, Stored>;
  /// Returns the index of a head's scale in scales(): int8 rows have one scale for each head, int16 rows only one.
  static constexpr std::int64_t scale_of(std::int64_t head) { return std::is_same_v<Stored, std::int8_t> ? head : 0; }
};

/// Adds four rows w, times the factors p, to d elements: out[0 .. d) += p[0] w[0] + ... + p[3] w[3], in this order.
template <class T, class Stored>
HWY_INLINE void add_four(const T* p, const Stored* const w[4], std::int64_t d, T* HWY_RESTRICT out) {
  for_each_vector<T>(d, [&](auto tag, std::int64_t c, auto load, auto store) HWY_ATTR {
    auto sum = load(tag, out + c);
    for (int i = 0; i < 4; ++i) sum = hn::MulAdd(hn::Set(tag, p[i]), load_stored(tag, w[i] + c), sum);
    store(sum, tag, out + c);
  });
}

/// The scores of scaled dot-product attention: of `rows` queries with four keys of one head, the columns `at` ... `at`
/// + d - 1 of their rows. `scales`, for keys that are stored as integers, are the scales of the four keys. The scores
/// of a query's four keys lie side by side; the next query's scores begin `line` elements after them.
template <class T>
struct DotScores {
  RowView<T> query;

  template <class Stored>
  HWY_INLINE void operator()(std::int64_t rows, std::int64_t at, std::int64_t d, const Stored* const keys[4],
                             const T* scales, T* scores, std::int64_t line) const {
    const T factor = 1 / std::sqrt(static_cast<T>(d));
    dot_four_rows(rows, d, query.data + at, query.stride, keys, factor, scores, line);
    for (std::int64_t r = 0; scales && r < rows; ++r)
      for (int i = 0; i < 4; ++i) scores[r * line + i] *= scales[i];
  }
};

/// Returns v tanh(q + key) for four keys, the first `Lanes(d)` elements of each; `scales` are those of DotScores.
template <class D, class V, class Stored, class T>
HWY_INLINE void tanh_terms(D d, V v, V q, const Stored* const keys[4], const T* scales, V (&terms)[4]) {
  V numerators[4], denominators[4], inverse[4];
  for (int i = 0; i < 4; ++i) {
    const V key = load_stored(d, keys[i]);
    const V x = scales ? hn::MulAdd(key, hn::Set(d, scales[i]), q) : hn::Add(key, q);
    denominators[i] = tanh_fraction(d, x, numerators[i]);
  }
  four_reciprocals(d, denominators, inverse);
  for (int i = 0; i < 4; ++i) terms[i] = hn::Mul(v, hn::Mul(numerators[i], inverse[i]));
}

/// The scores of additive attention, with the arguments of DotScores: the sum over the columns of v tanh(q + k). The
/// additions have the same order for any number of rows: those of dot_four().
template <class T>
struct AdditiveScores {
  RowView<T> query;
  const T* scorer;

  template <class Stored>
  HWY_INLINE void operator()(std::int64_t rows, std::int64_t at, std::int64_t d, const Stored* const keys[4],
                             const T* scales, T* scores, std::int64_t line) const {
    const hn::ScalableTag<T> full;
    const hn::CappedTag<T, 1> one;
    using V = hn::Vec<decltype(full)>;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(full));
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* const q = query.data + r * query.stride + at;
      T* const out = scores + r * line;
      V sums[4] = {hn::Zero(full), hn::Zero(full), hn::Zero(full), hn::Zero(full)};
      std::int64_t c = 0;
      for (; c + lanes <= d; c += lanes) {
        const Stored* const from[4] = {keys[0] + c, keys[1] + c, keys[2] + c, keys[3] + c};
        V terms[4];
        tanh_terms(full, hn::LoadU(full, scorer + at + c), hn::LoadU(full, q + c), from, scales, terms);
        for (int i = 0; i < 4; ++i) sums[i] = hn::Add(sums[i], terms[i]);
      }
      sum_four(full, sums[0], sums[1], sums[2], sums[3], T(1), out);
      for (; c < d; ++c) {
        const Stored* const from[4] = {keys[0] + c, keys[1] + c, keys[2] + c, keys[3] + c};
        hn::Vec<decltype(one)> terms[4];
        tanh_terms(one, hn::LoadU(one, scorer + at + c), hn::LoadU(one, q + c), from, scales, terms);
        for (int i = 0; i < 4; ++i) out[i] += hn::GetLane(terms[i]);
      }
    }
  }
};

/// Computes the attention of `rows` queries over the same `length` keys and values, which are the rows index(0),
/// index(1), ... of the cache. Four rows of the cache are taken at a time, for all heads, so that each row is read from
/// beginning to end. `scores` (DotScores or AdditiveScores) has the queries and scores them. `p` is scratch memory of
/// p_stride elements for each query and head, with p_stride >= length + 3. add_to_logits() is called when the scores of
/// all heads are in `p`, and add_to_out() when the results are in `out`, unless `length` is 0.
template <class T, class Scores, class Stored, class Index, class AddToLogits, class AddToOut>
HWY_INLINE void attend_rows(T* p, std::int64_t p_stride, const Scores& scores, std::int64_t rows,
                            RowReader<T, Stored> keys, RowReader<T, Stored> values, Index index, std::int64_t length,
                            int heads, std::int64_t width, T* out, AddToLogits add_to_logits, AddToOut add_to_out) {
  using Reader = RowReader<T, Stored>;
  constexpr bool kScaled = Reader::kScaled;
  const std::int64_t d = width / heads, line = heads * p_stride;
  // take(from, t) sets `four` to the addresses of the four rows t, t + 1, t + 2 and t + 3 of keys or values, and
  // `scales` to the scales of these rows. Where fewer than four rows are left, the last row is repeated.
  const Stored* four[4];
  const float* scales[4];
  const auto take = [&](const Reader& from, std::int64_t t) HWY_ATTR {
    for (std::int64_t i = 0; i < 4; ++i) {
      four[i] = from(index(std::min(t + i, length - 1)));
      if (kScaled) scales[i] = from.scales(four[i]);
    }
  };
  for (std::int64_t t = 0; t < length; t += 4) {
    take(keys, t);
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t at = h * d;
      const Stored* const of_head[4] = {four[0] + at, four[1] + at, four[2] + at, four[3] + at};
      T key_scales[4];
      for (int i = 0; kScaled && i < 4; ++i) key_scales[i] = static_cast<T>(scales[i][Reader::scale_of(h)]);
      scores(rows, at, d, of_head, kScaled ? key_scales : nullptr, p + h * p_stride + t, line);
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) std::fill_n(out + r * width, width, T(0));
  if (length == 0) return;
  add_to_logits();
  for (std::int64_t i = 0; i < rows * heads; ++i) attention_softmax_row(p + i * p_stride, length, (length + 3) / 4 * 4);
  for (std::int64_t t = 0; t < length; t += 4) {
    take(values, t);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t at = h * d;
        const Stored* const of_head[4] = {four[0] + at, four[1] + at, four[2] + at, four[3] + at};
        const T* const weights = p + (r * heads + h) * p_stride + t;
        T scaled[4];
        for (int i = 0; i < 4; ++i)
          scaled[i] = kScaled ? weights[i] * static_cast<T>(scales[i][Reader::scale_of(h)]) : weights[i];
        add_four(scaled, of_head, d, out + r * width + at);
      }
  }
  add_to_out();
}

/// The terms that positions add to the self-attention of one query, which is the last of `length` tokens.
template <class T>
struct QueryPositions {
  const PositionArrays<T>& arrays;
  T* scratch;  ///< relative_scratch() elements, where the arrays have relative vectors
  T *p, *out;  ///< the logits, then the attention weights, of all heads; and the result
  const T* query;
  std::int64_t p_stride, length, width;
  int heads;

  /// The number of relative vectors: distances above 0 do not occur.
  std::int64_t vectors() const { return arrays.distance + 1; }
  /// The position of the first key that has a relative vector of its own; negative where all keys have.
  std::int64_t shift() const { return length - 1 - arrays.distance; }
  /// Sets `four` to the relative vectors c, c + 1, c + 2 and c + 3, of which those after the last vector are the last.
  void take(const T* from, std::int64_t c, const T* four[4]) const {
    const std::int64_t d = width / heads;
    for (std::int64_t i = 0; i < 4; ++i) four[i] = from + std::min(c + i, vectors() - 1) * d;
  }

  /// Adds the bias, or the products of the query with the relative vectors, to the logits.
  HWY_NOINLINE void add_to_logits() const {
    const std::int64_t d = width / heads;
    for (std::int64_t h = 0; arrays.bias && h < heads; ++h)
      add_scaled<true>(arrays.bias + h * arrays.bias_stride + arrays.longest - length, T(1), length, p + h * p_stride);
    if (!arrays.relative_keys) return;
    T* const products = scratch + kPositionBiasSlack;
    const T factor = 1 / std::sqrt(static_cast<T>(d));
    for (std::int64_t h = 0; h < heads; ++h) {
      // No key is at the distances before the first, which are -length and below.
      for (std::int64_t c = std::max<std::int64_t>(-shift(), 0); c < vectors(); c += 4) {
        const T* four[4];
        take(arrays.relative_keys, c, four);
        dot_four_rows(std::int64_t{1}, d, query + h * d, width, four, factor, products + c, std::int64_t{0});
      }
      add_by_distance(static_cast<const T*>(products), vectors(), shift(), p + h * p_stride, length, length);
    }
  }

  /// Adds the relative vectors of the values, times the attention weights, to the result.
  HWY_NOINLINE void add_to_out() const {
    if (!arrays.relative_values) return;
    const std::int64_t d = width / heads;
    T* const sums = scratch + kPositionBiasSlack;
    std::fill_n(sums + vectors(), 3, T(0));
    for (std::int64_t h = 0; h < heads; ++h) {
      sum_by_distance(static_cast<const T*>(p + h * p_stride), length, shift(), vectors(), sums);
      for (std::int64_t c = std::max<std::int64_t>(-shift(), 0); c < vectors(); c += 4) {
        const T* four[4];
        take(arrays.relative_values, c, four);
        add_four(static_cast<const T*>(sums + c), four, d, out + h * d);
      }
    }
  }
};

/// Calls function(key_reader, value_reader) with RowReaders of the type that matches the format in which the cache
/// stores keys and values.
template <class T, class Function>
HWY_INLINE void with_readers(CachedRows<T> keys, CachedRows<T> values, Function function) {
  if constexpr (sizeof(T) == 4) {
    if (keys.format == CacheFormat::int16)
      return function(RowReader<T, std::int16_t>{keys}, RowReader<T, std::int16_t>{values});
    if (keys.format == CacheFormat::int8)
      return function(RowReader<T, std::int8_t>{keys}, RowReader<T, std::int8_t>{values});
  }
  function(RowReader<T, T>{keys}, RowReader<T, T>{values});
}

/// Computes attend_rows() with additive scores, or with dot products where `scorer` is null.
template <class T, class Stored, class Index>
HWY_INLINE void attend_with(T* p, std::int64_t p_stride, RowView<T> query, const T* scorer, std::int64_t rows,
                            RowReader<T, Stored> keys, RowReader<T, Stored> values, Index index, std::int64_t length,
                            int heads, std::int64_t width, T* out) {
  const auto nothing = []() HWY_ATTR {};
  if (scorer)
    attend_rows(p, p_stride, AdditiveScores<T>{query, scorer}, rows, keys, values, index, length, heads, width, out,
                nothing, nothing);
  else
    attend_rows(p, p_stride, DotScores<T>{query}, rows, keys, values, index, length, heads, width, out, nothing,
                nothing);
}

/// Computes the self-attention of one query over the cache rows slots[0 .. length) (see cached_attention() and
/// additive_cached_attention()). Without a scorer (null), the scores are dot products. `positions` may be null, and is
/// for dot products only; `scratch` is for relative vectors.
template <class T>
void attend_cached(T* p, std::int64_t p_stride, const T* query, const T* scorer, CachedRows<T> keys,
                   CachedRows<T> values, const std::int32_t* slots, std::int64_t length, int heads, std::int64_t width,
                   T* out, const PositionArrays<T>* positions, T* scratch) {
  with_readers(keys, values, [&](auto key, auto value) HWY_ATTR {
    const auto index = [slots](std::int64_t t) HWY_ATTR { return std::int64_t{slots[t]}; };
    const RowView<T> row{query, width};
    if (!positions) return attend_with(p, p_stride, row, scorer, 1, key, value, index, length, heads, width, out);
    const QueryPositions<T> terms{*positions, scratch, p, out, query, p_stride, length, width, heads};
    attend_rows(
        p, p_stride, DotScores<T>{row}, 1, key, value, index, length, heads, width, out,
        [&]() HWY_ATTR { terms.add_to_logits(); }, [&]() HWY_ATTR { terms.add_to_out(); });
  });
}

/// Computes the cross-attention of `rows` queries over one sentence, whose keys and values are the `length` rows of the
/// cache from row `first` on (see memory_attention() and additive_memory_attention()). Without a scorer (null), the
/// scores are dot products.
template <class T>
void attend_memory(T* p, std::int64_t p_stride, RowView<T> query, const T* scorer, std::int64_t rows,
                   CachedRows<T> keys, CachedRows<T> values, std::int64_t first, std::int64_t length, int heads,
                   std::int64_t width, T* out) {
  with_readers(keys, values, [&](auto key, auto value) HWY_ATTR {
    attend_with(
        p, p_stride, query, scorer, rows, key, value, [first](std::int64_t t) HWY_ATTR { return first + t; }, length,
        heads, width, out);
  });
}

/// Converts n numbers to integers of type Stored: each number is divided by the scale and rounded, where the scale
/// is max |x| divided by the largest integer of the type. Returns the scale, or NaN where a number is not finite.
template <class Stored>
HWY_INLINE float store_integers(const float* from, std::int64_t n, Stored* to) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  // `most` holds the largest |x|. `zeros` sums x * 0, which is 0 where x is finite and NaN where x is not finite.
  auto most = hn::Zero(d), zeros = hn::Zero(d);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, from + i);
    most = hn::Max(most, hn::Abs(x));
    zeros = hn::MulAdd(x, hn::Zero(d), zeros);
  }
  float largest = hn::GetLane(hn::MaxOfLanes(d, most)), zero = hn::GetLane(hn::SumOfLanes(d, zeros));
  for (; i < n; ++i) {
    const auto x = hn::LoadU(one, from + i);
    largest = std::max(largest, hn::GetLane(hn::Abs(x)));
    zero += from[i] * 0;
  }
  constexpr float kMost = std::numeric_limits<Stored>::max();
  const float inverse = largest > 0 && zero == 0 ? kMost / largest : 0;
  for_each_vector<float>(n, [&](auto tag, std::int64_t at, auto load, auto) HWY_ATTR {
    const hn::Rebind<Stored, decltype(tag)> integers;
    const auto nearest = hn::NearestInt(hn::Mul(load(tag, from + at), hn::Set(tag, inverse)));
    hn::StoreU(hn::DemoteTo(integers, nearest), integers, to + at);
  });
  return largest / kMost + zero;
}

void store_int16(const float* from, std::int64_t columns, std::int16_t* to, float* scale) {
  *scale = store_integers(from, columns, to);
}

void store_int8(const float* from, std::int64_t columns, int heads, std::int8_t* to, float* scales) {
  const std::int64_t d = columns / heads;
  for (int h = 0; h < heads; ++h) scales[h] = store_integers(from + h * d, d, to + h * d);
}

HEED_INSTANTIATE_SIMD(attend_cached,
                      (float* p, std::int64_t ps, const float* q, const float* e, CachedRows<float> k,
                       CachedRows<float> v, const std::int32_t* s, std::int64_t n, int h, std::int64_t w, float* o,
                       const PositionArrays<float>* a, float* b),
                      (double* p, std::int64_t ps, const double* q, const double* e, CachedRows<double> k,
                       CachedRows<double> v, const std::int32_t* s, std::int64_t n, int h, std::int64_t w, double* o,
                       const PositionArrays<double>* a, double* b),
                      (p, ps, q, e, k, v, s, n, h, w, o, a, b))
HEED_INSTANTIATE_SIMD(attend_memory,
                      (float* p, std::int64_t ps, RowView<float> q, const float* e, std::int64_t r, CachedRows<float> k,
                       CachedRows<float> v, std::int64_t f, std::int64_t n, int h, std::int64_t w, float* o),
                      (double* p, std::int64_t ps, RowView<double> q, const double* e, std::int64_t r,
                       CachedRows<double> k, CachedRows<double> v, std::int64_t f, std::int64_t n, int h,
                       std::int64_t w, double* o),
                      (p, ps, q, e, r, k, v, f, n, h, w, o))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(attend_cached)
HEED_EXPORT_SIMD(attend_memory)

template <class T>
void cache_row(const T* from, std::int64_t columns, std::byte* to) {
  std::memcpy(to, from, static_cast<std::size_t>(columns) * sizeof(T));
}

void cache_row(const float* from, std::int64_t columns, std::int16_t* to, float* scale) {
  HEED_DISPATCH(store_int16)(from, columns, to, scale);
}

void cache_row(const float* from, std::int64_t columns, int heads, std::int8_t* to, float* scales) {
  HEED_DISPATCH(store_int8)(from, columns, heads, to, scales);
}

namespace {

/// Writes a key and, after it, a value of `width` columns each to a record.
template <class T>
void store_record(const T* kv, std::int64_t width, const CacheRecords& records, std::byte* record) {
  if constexpr (std::is_same_v<T, float>) {
    auto* const scales = reinterpret_cast<float*>(record + records.scales);
    if (records.format == CacheFormat::int16) {
      auto* const integers = reinterpret_cast<std::int16_t*>(record);
      cache_row(kv, width, integers, scales);
      return cache_row(kv + width, width, integers + width, scales + 1);
    }
    if (records.format == CacheFormat::int8) {
      auto* const integers = reinterpret_cast<std::int8_t*>(record);
      cache_row(kv, width, records.heads, integers, scales);
      return cache_row(kv + width, width, records.heads, integers + width, scales + records.heads);
    }
  }
  cache_row(kv, 2 * width, record);
}

}  // namespace

template <class T>
void store_records(CpuContext&, RowView<T> kv, std::int64_t rows, std::int64_t width, const CacheRecords& records,
                   std::span<const std::int32_t> places) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t place = places.empty() ? r : places[static_cast<std::size_t>(r)];
    store_record(kv.data + r * kv.stride, width, records, records.data + place * records.stride);
  }
}

namespace {

/// Computes cached_attention(), or additive_cached_attention() where `scorer` is not null, without `positions`.
template <class T>
void attend_cached_rows(CpuContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys, CachedRows<T> values,
                        std::span<const std::int32_t> slots, std::int64_t capacity,
                        std::span<const std::int32_t> lengths, int heads, std::int64_t width, T* out,
                        const PositionBias<T>& positions = {}) {
  const ArenaScope scope(device.arena);
  const std::int64_t p_stride = scratch_stride<T>(capacity + 3);
  T* p = device.arena.tensor<T>({heads * p_stride + kPositionBiasSlack}).data();
  PositionArrays<T> arrays;
  T* scratch = nullptr;
  if (positions) {
    const std::int32_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
    arrays = position_arrays("cached_attention", positions, heads, width / heads, longest, true);
    // The products of a query with the relative vectors, four at a time, with room for a vector before and after.
    scratch = device.arena.zeros<T>({arrays.relative_vectors(true) + 3 + 2 * kPositionBiasSlack}).data();
  }
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    const auto row = static_cast<std::int64_t>(r);
    simd::attend_cached(p, p_stride, query.data + row * query.stride, scorer, keys, values,
                        slots.data() + row * capacity, std::int64_t{lengths[r]}, heads, width, out + row * width,
                        static_cast<const PositionArrays<T>*>(positions ? &arrays : nullptr), scratch);
  }
}

/// Computes memory_attention(), or additive_memory_attention() where `scorer` is not null.
template <class T>
void attend_memory_rows(CpuContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys, CachedRows<T> values,
                        PackedOffsets memory, std::span<const std::int32_t> sentence_of_row, int heads,
                        std::int64_t width, T* out) {
  for (std::size_t r = 0; r < sentence_of_row.size();) {
    std::size_t end = r + 1;
    while (end < sentence_of_row.size() && sentence_of_row[end] == sentence_of_row[r]) ++end;
    const auto row = static_cast<std::int64_t>(r), rows = static_cast<std::int64_t>(end - r);
    const std::int64_t begin = memory.begin(sentence_of_row[r]), length = memory.length(sentence_of_row[r]);
    const ArenaScope scope(device.arena);
    const std::int64_t p_stride = scratch_stride<T>(length + 3);
    T* p = device.arena.tensor<T>({rows, heads, p_stride}).data();
    simd::attend_memory(p, p_stride, RowView<T>{query.data + row * query.stride, query.stride}, scorer, rows, keys,
                        values, begin, length, heads, width, out + row * width);
    r = end;
  }
}

}  // namespace

template <class T>
void cached_attention(CpuContext& device, RowView<T> query, CachedRows<T> keys, CachedRows<T> values,
                      std::span<const std::int32_t> slots, std::int64_t capacity, std::span<const std::int32_t> lengths,
                      int heads, std::int64_t width, AttentionRows<T> out, const PositionBias<T>& positions) {
  attend_cached_rows(device, query, static_cast<const T*>(nullptr), keys, values, slots, capacity, lengths, heads,
                     width, out.full, positions);
}

template <class T>
void memory_attention(CpuContext& device, RowView<T> query, CachedRows<T> keys, CachedRows<T> values,
                      PackedOffsets memory, std::span<const std::int32_t> sentence_of_row, int heads,
                      std::int64_t width, AttentionRows<T> out) {
  attend_memory_rows(device, query, static_cast<const T*>(nullptr), keys, values, memory, sentence_of_row, heads, width,
                     out.full);
}

template <class T>
void additive_cached_attention(CpuContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                               CachedRows<T> values, std::span<const std::int32_t> slots, std::int64_t capacity,
                               std::span<const std::int32_t> lengths, int heads, std::int64_t width,
                               AttentionRows<T> out) {
  attend_cached_rows(device, query, scorer, keys, values, slots, capacity, lengths, heads, width, out.full);
}

template <class T>
void additive_memory_attention(CpuContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                               CachedRows<T> values, PackedOffsets memory,
                               std::span<const std::int32_t> sentence_of_row, int heads, std::int64_t width,
                               AttentionRows<T> out) {
  attend_memory_rows(device, query, scorer, keys, values, memory, sentence_of_row, heads, width, out.full);
}

#define HEED_INSTANTIATE(T)                                                                                            \
  template void cache_row(const T*, std::int64_t, std::byte*);                                                         \
  template void store_records(CpuContext&, RowView<T>, std::int64_t, std::int64_t, const CacheRecords&,                \
                              std::span<const std::int32_t>);                                                          \
  template void cached_attention(CpuContext&, RowView<T>, CachedRows<T>, CachedRows<T>, std::span<const std::int32_t>, \
                                 std::int64_t, std::span<const std::int32_t>, int, std::int64_t, AttentionRows<T>,     \
                                 const PositionBias<T>&);                                                              \
  template void memory_attention(CpuContext&, RowView<T>, CachedRows<T>, CachedRows<T>, PackedOffsets,                 \
                                 std::span<const std::int32_t>, int, std::int64_t, AttentionRows<T>);                  \
  template void additive_cached_attention(CpuContext&, RowView<T>, const T*, CachedRows<T>, CachedRows<T>,             \
                                          std::span<const std::int32_t>, std::int64_t, std::span<const std::int32_t>,  \
                                          int, std::int64_t, AttentionRows<T>);                                        \
  template void additive_memory_attention(CpuContext&, RowView<T>, const T*, CachedRows<T>, CachedRows<T>,             \
                                          PackedOffsets, std::span<const std::int32_t>, int, std::int64_t,             \
                                          AttentionRows<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
#endif  // HWY_ONCE
