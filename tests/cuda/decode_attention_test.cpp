#include "heed/ops/decode_attention.h"

#include <cstddef>
#include <limits>

#include "kernel_check.h"

namespace heed {
namespace {

using Integers = std::vector<std::int32_t>;

constexpr CacheFormat kFormats[] = {CacheFormat::exact, CacheFormat::int16, CacheFormat::int8};

/// A key/value cache of random numbers. A row holds the key, the value, and the scales of both.
template <class T>
struct TestCache {
  std::vector<std::byte> bytes;
  CachedRows<T> keys, values;

  TestCache(std::int64_t rows, std::int64_t width, int heads, CacheFormat format) {
    TestTensor<T> numbers = normal<T>({rows, 2 * width}, 1);
    const std::int64_t size = format == CacheFormat::exact   ? static_cast<std::int64_t>(sizeof(T))
                              : format == CacheFormat::int16 ? 2
                                                             : 1;
    const std::int64_t scales = (2 * width * size + 7) / 8 * 8, of_row = format == CacheFormat::int8 ? heads : 1,
                       stride = scales + (2 * of_row * 4 + 7) / 8 * 8;
    bytes.resize(static_cast<std::size_t>(rows * stride));
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t part = 0; part < 2; ++part) {
        const T* const from = numbers.view().row(row) + part * width;
        std::byte* const to = bytes.data() + row * stride;
        auto* const to_scales = reinterpret_cast<float*>(to + scales) + part * of_row;
        if constexpr (sizeof(T) == sizeof(float)) {
          if (format == CacheFormat::int16)
            cache_row(from, width, reinterpret_cast<std::int16_t*>(to) + part * width, to_scales);
          if (format == CacheFormat::int8)
            cache_row(from, width, heads, reinterpret_cast<std::int8_t*>(to) + part * width, to_scales);
        }
        if (format == CacheFormat::exact) cache_row(from, width, to + part * width * size);
      }
    keys = {bytes.data(), stride, format, scales};
    values = {bytes.data() + width * size, stride, format, scales + of_row * 4 - width * size};
  }
};

/// The query of a test, whose rows lie in a wider matrix as in a projection to query, key and value, and the scorer of
/// additive attention.
template <class T>
struct TestQuery {
  TestTensor<T> rows, scorer;
  std::int64_t width;

  TestQuery(std::int64_t count, std::int64_t columns)
      : rows(normal<T>({count, 3 * columns}, 2)), scorer(normal<T>({columns}, 3)), width(columns) {}
  RowView<T> from(std::int64_t r) { return {rows.view().row(r) + width, 3 * width}; }
};

/// Slots of rows with `lengths` keys, spread over a pool of `pool` rows. The slots that no row uses are not valid.
Integers spread_slots(const Integers& lengths, std::int64_t capacity, std::int64_t pool) {
  Integers slots(lengths.size() * static_cast<std::size_t>(capacity), 1 << 30);
  for (std::size_t r = 0; r < lengths.size(); ++r)
    for (std::int64_t t = 0; t < lengths[r]; ++t)
      slots[r * static_cast<std::size_t>(capacity) + static_cast<std::size_t>(t)] =
          static_cast<std::int32_t>((t * 7 + static_cast<std::int64_t>(r) * 3) % pool);
  return slots;
}

/// The lengths of rows around the sizes of what a warp and a block take at once.
const Integers kLengths{1, 0, 3, 4, 5, 31, 33, 127, 128, 129, 300};

/// Formats that a cache of numbers T can have.
template <class T>
std::span<const CacheFormat> formats() {
  return std::span(kFormats).first(sizeof(T) == sizeof(float) ? 3 : 1);
}

TEST_CASE_TEMPLATE("cached attention on a GPU: any lengths, widths and formats", T, float, double) {
  const auto count = static_cast<std::int64_t>(kLengths.size());
  constexpr std::int64_t kCapacity = 301, kPool = 97;
  const Integers slots = spread_slots(kLengths, kCapacity, kPool);
  for (const CacheFormat format : formats<T>())
    for (const std::int64_t d : {1, 31, 33, 64}) {
      CAPTURE(static_cast<int>(format));
      CAPTURE(d);
      const int heads = 3;
      const TestCache<T> cache(kPool, heads * d, heads, format);
      TestQuery<T> query(count, heads * d);
      check_kernels<T>({normal<T>({count, heads * d}, 4), normal<T>({count, heads * d}, 5)},
                       [&](auto& device, std::span<const Tensor<T>> to) {
                         cached_attention<T>(device, query.from(0), cache.keys, cache.values, slots, kCapacity,
                                             kLengths, heads, heads * d, to[0].data());
                         additive_cached_attention<T>(device, query.from(0), query.scorer.values.data(), cache.keys,
                                                      cache.values, slots, kCapacity, kLengths, heads, heads * d,
                                                      to[1].data());
                       });
    }
}

TEST_CASE_TEMPLATE("cached attention on a GPU: terms of positions", T, float, double) {
  const auto count = static_cast<std::int64_t>(kLengths.size());
  constexpr std::int64_t kCapacity = 300, kPool = 97, kWidth = 15, kHead = 5, kDistance = 7, kLongest = 310;
  constexpr int kHeads = 3;
  const Integers slots = spread_slots(kLengths, kCapacity, kPool);
  TestTensor<T> bias = normal<T>({kHeads, position_bias_columns(kLongest, true)}, 6),
                relative_keys = normal<T>({2 * kDistance + 1, kHead}, 7),
                relative_values = normal<T>({2 * kDistance + 1, kHead}, 8);
  PositionBias<T> of_distances, of_vectors;
  of_distances.bias.value = bias.view();
  of_distances.longest = kLongest;
  of_vectors.relative_keys.value = relative_keys.view();
  of_vectors.relative_values.value = relative_values.view();
  for (const CacheFormat format : formats<T>()) {
    CAPTURE(static_cast<int>(format));
    const TestCache<T> cache(kPool, kWidth, kHeads, format);
    TestQuery<T> query(count, kWidth);
    check_kernels<T>({normal<T>({count, kWidth}, 4), normal<T>({count, kWidth}, 5)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       cached_attention<T>(device, query.from(0), cache.keys, cache.values, slots, kCapacity, kLengths,
                                           kHeads, kWidth, to[0].data(), of_distances);
                       cached_attention<T>(device, query.from(0), cache.keys, cache.values, slots, kCapacity, kLengths,
                                           kHeads, kWidth, to[1].data(), of_vectors);
                     });
  }
}

TEST_CASE_TEMPLATE("memory attention on a GPU: with and without the weights, over an empty memory", T, float, double) {
  const Integers memory{0, 9, 9, 10, 43, 180}, sentences{0, 0, 3, 1, 2, 4, 4, 3};
  const PackedOffsets offsets{memory};
  constexpr int kHeads = 2;
  constexpr std::int64_t kWidth = 66;
  const auto count = static_cast<std::int64_t>(sentences.size());
  std::int64_t weights = 0;
  for (const std::int32_t sentence : sentences) weights += std::int64_t{kHeads} * offsets.length(sentence);
  for (const CacheFormat format : formats<T>()) {
    CAPTURE(static_cast<int>(format));
    const TestCache<T> cache(offsets.tokens(), kWidth, kHeads, format);
    TestQuery<T> query(count, kWidth);
    // The element after the last weight stays as it is.
    check_kernels<T>({normal<T>({count, kWidth}, 4), normal<T>({weights + 1}, 5), normal<T>({count, kWidth}, 6),
                      normal<T>({count, kWidth}, 7), normal<T>({weights + 1}, 8)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       memory_attention<T>(device, query.from(0), cache.keys, cache.values, offsets, sentences, kHeads,
                                           kWidth, to[0].data(), to[1].data());
                       memory_attention<T>(device, query.from(0), cache.keys, cache.values, offsets, sentences, kHeads,
                                           kWidth, to[2].data());
                       additive_memory_attention<T>(device, query.from(0), query.scorer.values.data(), cache.keys,
                                                    cache.values, offsets, sentences, kHeads, kWidth, to[3].data(),
                                                    to[4].data());
                     });
  }
}

TEST_CASE("decoding attention on a GPU: large logits do not overflow, and no rows are no work") {
  const Integers lengths{200}, none;
  const Integers slots = spread_slots(lengths, 200, 150);
  const TestCache<float> cache(150, 64, 2, CacheFormat::exact);
  TestQuery<float> query(1, 64);
  for (float& x : query.rows.values) x *= 100;
  check_kernels<float>(
      {normal<float>({1, 64}, 4)},
      [&](auto& device, std::span<const Tensor<float>> to) {
        cached_attention<float>(device, query.from(0), cache.keys, cache.values, slots, 200, lengths, 2, 64,
                                to[0].data());
        cached_attention<float>(device, query.from(0), cache.keys, cache.values, none, 200, none, 2, 64, nullptr);
        memory_attention<float>(device, query.from(0), cache.keys, cache.values, {}, none, 2, 64, nullptr);
      },
      1e-3);
}

TEST_CASE("decoding attention on a GPU: a number that is not finite spoils its head, or its row, alone") {
  constexpr std::int64_t kWidth = 8;
  constexpr int kHeads = 2;
  Arena arena, host_arena;
  CudaContext device{arena, host_arena};
  for (const CacheFormat format : {CacheFormat::int16, CacheFormat::int8})
    for (const bool of_values : {false, true}) {
      CAPTURE(static_cast<int>(format));
      CAPTURE(of_values);
      TestCache<float> cache(140, kWidth, kHeads, format);
      const CachedRows<float>& rows = of_values ? cache.values : cache.keys;
      // The scale of the first head, or of the whole row, of row 135.
      const std::byte* const scale = rows.data + 135 * rows.stride + rows.scales;
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(cache.bytes.data() + (scale - cache.bytes.data()), &nan, sizeof(nan));
      TestQuery<float> query(2, kWidth);
      TestTensor<float> out = normal<float>({2, kWidth}, 4);
      const Integers memory{0, 130, 140}, sentences{0, 1};
      memory_attention<float>(device, query.from(0), cache.keys, cache.values, {memory}, sentences, kHeads, kWidth,
                              out.values.data());
      for (std::size_t i = 0; i < out.values.size(); ++i) {
        const std::size_t column = i % kWidth;
        const bool spoilt = i >= kWidth && (format == CacheFormat::int16 || column < kWidth / kHeads);
        CHECK(std::isnan(out.values[i]) == spoilt);
      }
    }
}

TEST_CASE_TEMPLATE("decoding attention on a GPU: a row has the same bits alone as among other rows", T, float, double) {
  constexpr int kHeads = 2;
  constexpr std::int64_t kWidth = 70, kCapacity = 301, kPool = 97;
  const auto count = static_cast<std::int64_t>(kLengths.size());
  const Integers slots = spread_slots(kLengths, kCapacity, kPool), memory{0, 9, 9, 10, 43, 97},
                 sentences{0, 0, 3, 1, 2, 4, 4, 3, 3, 3, 0};
  const TestCache<T> cache(kPool, kWidth, kHeads, CacheFormat::exact);
  TestQuery<T> query(count, kWidth);
  Arena arena, host_arena;
  CudaContext device{arena, host_arena};
  const T* const scorer = query.scorer.values.data();
  // Computes attention number `kind` of the rows from `first` on.
  const auto attend = [&](int kind, std::int64_t first, std::int64_t rows, T* out) {
    const auto begin = static_cast<std::size_t>(first), size = static_cast<std::size_t>(rows);
    const std::span<const std::int32_t> of_rows = std::span(slots).subspan(begin * static_cast<std::size_t>(kCapacity),
                                                                           size * static_cast<std::size_t>(kCapacity)),
                                        lengths = std::span(kLengths).subspan(begin, size),
                                        sources = std::span(sentences).subspan(begin, size);
    const RowView<T> from = query.from(first);
    if (kind == 0)
      cached_attention<T>(device, from, cache.keys, cache.values, of_rows, kCapacity, lengths, kHeads, kWidth, out);
    if (kind == 1)
      additive_cached_attention<T>(device, from, scorer, cache.keys, cache.values, of_rows, kCapacity, lengths, kHeads,
                                   kWidth, out);
    if (kind == 2) memory_attention<T>(device, from, cache.keys, cache.values, {memory}, sources, kHeads, kWidth, out);
    if (kind == 3)
      additive_memory_attention<T>(device, from, scorer, cache.keys, cache.values, {memory}, sources, kHeads, kWidth,
                                   out);
  };
  for (const int kind : {0, 1, 2, 3}) {
    CAPTURE(kind);
    TestTensor<T> out = normal<T>({count, kWidth}, 4), alone = normal<T>({kWidth}, 5);
    attend(kind, 0, count, out.values.data());
    for (std::int64_t r = 0; r < count; ++r) {
      CAPTURE(r);
      attend(kind, r, 1, alone.values.data());
      CHECK(std::memcmp(alone.values.data(), out.view().row(r), kWidth * sizeof(T)) == 0);
    }
  }
}

}  // namespace
}  // namespace heed
