#include "heed/ops/decode_attention.h"

#include <cstddef>
#include <limits>

#include "kernel_check.h"

namespace heed {
namespace {

using Integers = std::vector<std::int32_t>;

constexpr CacheFormat kFormats[] = {CacheFormat::exact, CacheFormat::int16, CacheFormat::int8};

/// The records of a cache as bytes: of rows of `width` columns in a format that a cache of numbers T can have. They
/// begin at multiples of 16 bytes, so that vectors can be read where the heads are wide enough.
template <class T>
CacheRecords records_of(std::int64_t width, int heads, CacheFormat format) {
  const std::int64_t size = format == CacheFormat::exact   ? static_cast<std::int64_t>(sizeof(T))
                            : format == CacheFormat::int16 ? 2
                                                           : 1;
  const std::int64_t scales = (2 * width * size + 15) / 16 * 16;
  const CacheRecords records{.format = format, .value = width * size, .scales = scales, .heads = heads};
  CacheRecords out = records;
  out.stride = scales + (2 * records.scales_of_row() * 4 + 15) / 16 * 16;
  return out;
}

/// A key/value cache of random numbers, whose records are written on the CPU.
template <class T>
struct TestCache {
  std::vector<std::byte> bytes;
  CachedRows<T> keys, values;

  TestCache(std::int64_t rows, std::int64_t width, int heads, CacheFormat format) {
    TestTensor<T> numbers = normal<T>({rows, 2 * width}, 1);
    CacheRecords records = records_of<T>(width, heads, format);
    bytes.resize(static_cast<std::size_t>(rows * records.stride));
    records.data = bytes.data();
    Arena arena;
    CpuContext device{arena};
    store_records<T>(device, {numbers.view().data(), 2 * width}, rows, width, records, {});
    keys = records.keys<T>();
    values = records.values<T>();
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
  // Sums of up to 1,040 numbers, which AVX2 adds in another order than AVX-512.
  constexpr double kTolerance = sizeof(T) == sizeof(float) ? 2e-5 : 1e-13;
  const auto count = static_cast<std::int64_t>(kLengths.size());
  constexpr std::int64_t kCapacity = 301, kPool = 97;
  const Integers slots = spread_slots(kLengths, kCapacity, kPool);
  for (const CacheFormat format : formats<T>())
    for (const std::int64_t d : {1, 31, 33, 64, 96, 1040}) {
      CAPTURE(static_cast<int>(format));
      CAPTURE(d);
      const int heads = 3;
      const TestCache<T> cache(kPool, heads * d, heads, format);
      TestQuery<T> query(count, heads * d);
      check_kernels<T>(
          {normal<T>({count, heads * d}, 4), normal<T>({count, heads * d}, 5)},
          [&](auto& device, std::span<const Tensor<T>> to) {
            cached_attention<T>(device, query.from(0), cache.keys, cache.values, slots, kCapacity, kLengths, heads,
                                heads * d, to[0].data());
            additive_cached_attention<T>(device, query.from(0), query.scorer.values.data(), cache.keys, cache.values,
                                         slots, kCapacity, kLengths, heads, heads * d, to[1].data());
          },
          kTolerance);
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

TEST_CASE_TEMPLATE("memory attention on a GPU: any sentences, over an empty memory", T, float, double) {
  const Integers memory{0, 9, 9, 10, 43, 180}, sentences{0, 0, 3, 1, 2, 4, 4, 3};
  const PackedOffsets offsets{memory};
  constexpr int kHeads = 2;
  constexpr std::int64_t kWidth = 66;
  const auto count = static_cast<std::int64_t>(sentences.size());
  for (const CacheFormat format : formats<T>()) {
    CAPTURE(static_cast<int>(format));
    const TestCache<T> cache(offsets.tokens(), kWidth, kHeads, format);
    TestQuery<T> query(count, kWidth);
    check_kernels<T>({normal<T>({count, kWidth}, 4), normal<T>({count, kWidth}, 5)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       memory_attention<T>(device, query.from(0), cache.keys, cache.values, offsets, sentences, kHeads,
                                           kWidth, to[0].data());
                       additive_memory_attention<T>(device, query.from(0), query.scorer.values.data(), cache.keys,
                                                    cache.values, offsets, sentences, kHeads, kWidth, to[1].data());
                     });
  }
}

TEST_CASE_TEMPLATE("records of a cache on a GPU: the bytes of the CPU, in order or in any places", T, float, double) {
  constexpr int kHeads = 3, kRows = 5, kPool = 9;
  const Integers places{7, 0, 3, 8, 4};
  for (const CacheFormat format : formats<T>())
    for (const std::int64_t width : {3, 33, 384})
      for (const bool placed : {false, true}) {
        CAPTURE(static_cast<int>(format));
        CAPTURE(width);
        CAPTURE(placed);
        TestTensor<T> kv = normal<T>({kRows, 3 * width}, 1);
        std::fill_n(kv.view().row(1) + width, width, T(0));                                  // a key of zeros
        kv.view().row(2)[2 * width + 1] = std::numeric_limits<T>::infinity();                // a value
        kv.view().row(3)[width + width / kHeads - 1] = std::numeric_limits<T>::quiet_NaN();  // a key
        const auto store_on = [&](auto& device) {
          CacheRecords records = records_of<T>(width, kHeads, format);
          std::vector<std::byte> bytes(static_cast<std::size_t>(kPool * records.stride), std::byte{0x5A});
          records.data = bytes.data();
          store_records<T>(device, {kv.view().data() + width, 3 * width}, kRows, width, records,
                           placed ? std::span<const std::int32_t>(places) : std::span<const std::int32_t>());
          // The scale of a group with a number that is not finite is a NaN, of which the bits may differ, and its
          // integers say nothing.
          const auto rows = [&](auto cached) {
            for (int r = 0; cached.format != CacheFormat::exact && r < kPool; ++r)
              for (int h = 0; h < records.scales_of_row(); ++h) {
                auto* const row = const_cast<std::byte*>(cached.data) + r * cached.stride;
                float* const scale = reinterpret_cast<float*>(row + cached.scales) + h;
                if (!std::isnan(*scale)) continue;
                *scale = std::numeric_limits<float>::quiet_NaN();
                const std::int64_t group = records.value / records.scales_of_row();
                std::fill_n(row + h * group, group, std::byte{0});
              }
          };
          rows(records.keys<T>());
          rows(records.values<T>());
          return bytes;
        };
        Arena arena, host_arena;
        CpuContext cpu{arena};
        CudaContext gpu{arena, host_arena};
        const std::vector<std::byte> expected = store_on(cpu), found = store_on(gpu);
        CHECK(found == expected);
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

TEST_CASE("decoding attention on a GPU: a result that is rounded to bfloat16") {
  const Integers memory{0, 9, 40}, sentences{0, 1, 1};
  for (const CacheFormat format : kFormats)
    for (const std::int64_t d : {5, 64}) {
      CAPTURE(static_cast<int>(format));
      CAPTURE(d);
      const TestCache<float> cache(40, 2 * d, 2, format);
      TestQuery<float> query(3, 2 * d);
      Arena arena, host_arena;
      CudaContext device{arena, host_arena};
      TestTensor<float> full = normal<float>({3, 2 * d}, 4);
      TestTensor<Bfloat16> result = rounded(full);
      const auto attend = [&](AttentionRows<float> out) {
        memory_attention<float>(device, query.from(0), cache.keys, cache.values, {memory}, sentences, 2, 2 * d, out);
      };
      attend(full.values.data());
      attend(MaybeRounded<float>{{}, result.view()});
      CHECK(result.values == rounded(full).values);
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
