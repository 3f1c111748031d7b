#include "heed/ops/decode_attention.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "heed/ops/additive_attention.h"
#include "training.h"

using namespace heed;

namespace {

using Offsets = std::vector<std::int32_t>;

template <class T>
double bound() {
  return sizeof(T) == 4 ? 1e-5 : 1e-12;
}

/// Returns the columns from `first` on of a matrix as rows of a key/value cache.
template <class T>
CachedRows<T> cached(Tensor<T> rows, std::int64_t first) {
  return {reinterpret_cast<const std::byte*>(rows.data() + first),
          rows.columns() * static_cast<std::int64_t>(sizeof(T))};
}

/// Calls cache_row() for 8-bit integers (`of_heads`: one scale for each head) or for 16-bit integers (one scale).
template <bool of_heads, class Integer>
void store(const float* from, std::int64_t columns, int heads, Integer* to, float* scales) {
  if constexpr (of_heads)
    cache_row(from, columns, heads, to, scales);
  else
    cache_row(from, columns, to, scales);
}

/// The kinds of attention, which have the same arguments but for the scorer of additive attention.
enum class Kind { dot, additive };

/// Calls the ops of one kind of attention. The constructor draws a scorer with which additive scores are about as large
/// as the scores of scaled dot products.
template <class T>
struct AnyAttention {
  Kind kind;
  Variable<T> scorer;

  AnyAttention(Training<T>& t, Kind which, std::int64_t width) : kind(which), scorer(t.normal({width})) {
    for (T& x : scorer.value.span()) x /= std::sqrt(static_cast<T>(width) / 4);
  }

  Tensor<T> whole(Graph<T>& graph, HeadsInput<T> q, HeadsInput<T> k, HeadsInput<T> v, PackedOffsets queries,
                  PackedOffsets keys, const AttentionOptions& options) const {
    const std::int64_t width = scorer.value.size();
    return kind == Kind::dot ? attention<T>(graph, q, k, v, width, queries, keys, options).value
                             : additive_attention<T>(graph, q, k, v, scorer, width, queries, keys, options).value;
  }
  void cached(CpuContext& device, RowView<T> q, CachedRows<T> k, CachedRows<T> v, std::span<const std::int32_t> slots,
              std::int64_t capacity, std::span<const std::int32_t> lengths, int heads, T* out) const {
    const std::int64_t width = scorer.value.size();
    if (kind == Kind::dot)
      cached_attention<T>(device, q, k, v, slots, capacity, lengths, heads, width, out);
    else
      additive_cached_attention<T>(device, q, scorer.value.data(), k, v, slots, capacity, lengths, heads, width, out);
  }
  void memory(CpuContext& device, RowView<T> q, CachedRows<T> k, CachedRows<T> v, PackedOffsets offsets,
              std::span<const std::int32_t> sentences, int heads, T* out) const {
    const std::int64_t width = scorer.value.size();
    if (kind == Kind::dot)
      memory_attention<T>(device, q, k, v, offsets, sentences, heads, width, out);
    else
      additive_memory_attention<T>(device, q, scorer.value.data(), k, v, offsets, sentences, heads, width, out);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("cached_attention: as causal attention over the whole sequence, through any slots", T, float,
                   double) {
  for (const Kind kind : {Kind::dot, Kind::additive})
    for (const int d : {5, 8, 32, 100}) {
      CAPTURE(kind);
      CAPTURE(d);
      const int heads = 2, length = 19, capacity = 24;
      const std::int64_t width = d * heads;
      Training<T> t;
      const auto q = t.normal({length, 3 * width}), k = t.normal({length, width}), v = t.normal({length, width});
      const Offsets offsets{0, length};
      const AnyAttention<T> any(t, kind, width);
      const Tensor<T> expected = any.whole(t.graph, {q, width}, {k}, {v}, {offsets}, {offsets}, {heads, true});
      // The keys and values of the sequence are scattered over a pool of twice the size.
      // Query r attends to the first r + 1 keys.
      const Tensor<T> key_pool = t.normal({2 * length, 2 * width}).value, value_pool = key_pool;
      Offsets slots(static_cast<std::size_t>(length * capacity), -1), lengths;
      for (int r = 0; r < length; ++r) lengths.push_back(r + 1);
      for (int i = 0; i < length; ++i) {
        const int slot = (i * 7 + 3) % (2 * length);
        std::copy(k.value.row(i), k.value.row(i) + width, key_pool.row(slot));
        std::copy(v.value.row(i), v.value.row(i) + width, value_pool.row(slot) + width);
        for (int r = i; r < length; ++r) slots[static_cast<std::size_t>(r * capacity + i)] = slot;
      }
      const Tensor<T> out = t.arena.template tensor<T>({length, width}), alone = t.arena.template tensor<T>({width});
      const RowView<T> query{q.value.data() + width, 3 * width};
      const CachedRows<T> keys = cached(key_pool, 0), values = cached(value_pool, width);
      any.cached(t.device, query, keys, values, slots, capacity, lengths, heads, out.data());
      CHECK(largest_difference(out, expected) < bound<T>());
      for (std::int64_t r = 0; r < length; ++r) {
        any.cached(t.device, {query.data + r * query.stride, query.stride}, keys, values,
                   std::span(slots).subspan(static_cast<std::size_t>(r * capacity)), capacity,
                   std::span(lengths).subspan(static_cast<std::size_t>(r), 1), heads, alone.data());
        CHECK(std::memcmp(alone.data(), out.row(r), static_cast<std::size_t>(width) * sizeof(T)) == 0);
      }
    }
}

TEST_CASE_TEMPLATE("memory_attention: as attention, for beams side by side, alone, and over an empty memory", T, float,
                   double) {
  for (const Kind kind : {Kind::dot, Kind::additive})
    for (const int d : {5, 8, 32, 64}) {
      CAPTURE(kind);
      CAPTURE(d);
      const int heads = 3;
      const std::int64_t width = d * heads;
      const Offsets memory{0, 9, 9, 10, 50}, queries{0, 5, 6, 8, 15},
          sentences{0, 0, 0, 0, 0, 1, 2, 2, 3, 3, 3, 3, 3, 3, 3};
      Training<T> t;
      const auto q = t.normal({15, width}), k = t.normal({50, 2 * width});
      const Tensor<T> out = t.arena.template tensor<T>({15, width}), alone = t.arena.template tensor<T>({width});
      const AnyAttention<T> any(t, kind, width);
      const Tensor<T> expected = any.whole(t.graph, {q}, {k}, {k, width}, {queries}, {memory}, {heads});
      const CachedRows<T> keys = cached(k.value, 0), values = cached(k.value, width);
      any.memory(t.device, {q.value.data(), width}, keys, values, {memory}, sentences, heads, out.data());
      CHECK(largest_difference(out, expected) < bound<T>());
      for (int r = 0; r < 15; ++r) {
        any.memory(t.device, {q.value.row(r), width}, keys, values, {memory},
                   std::span(sentences).subspan(static_cast<std::size_t>(r), 1), heads, alone.data());
        CHECK(std::memcmp(alone.data(), out.row(r), static_cast<std::size_t>(width) * sizeof(T)) == 0);
      }
    }
}

TEST_CASE_TEMPLATE("cached rows of integers: as the rows they stand for, and near those they came from", Integer,
                   std::int16_t, std::int8_t) {
  const CacheFormat format = sizeof(Integer) == 2 ? CacheFormat::int16 : CacheFormat::int8;
  const double near = sizeof(Integer) == 2 ? 3e-4 : 3e-2;
  constexpr bool kOfHeads = sizeof(Integer) == 1;
  for (const Kind kind : {Kind::dot, Kind::additive})
    for (const int d : {5, 8, 32, 100}) {
      CAPTURE(kind);
      CAPTURE(d);
      const int heads = 2, length = 19;
      const std::int64_t width = d * heads;
      Training<float> t;
      const auto q = t.normal({3, width}), kv = t.normal({length, 2 * width});
      const AnyAttention<float> any(t, kind, width);
      const Tensor<float> exact = t.arena.tensor<float>({3, width}), out = t.arena.tensor<float>({3, width}),
                          decoded = t.arena.tensor<float>({length, 2 * width});
      struct Record {
        Integer numbers[400];
        float scales[4];  // two scales of the key, one for each head, then two of the value; int16 uses one of each two
      };
      std::vector<Record> cache(length);
      for (std::size_t i = 0; i < cache.size(); ++i) {
        const float* row = kv.value.row(static_cast<std::int64_t>(i));
        for (const int part : {0, 1}) {
          Integer* const numbers = cache[i].numbers + part * width;
          store<kOfHeads>(row + part * width, width, heads, numbers, cache[i].scales + part * heads);
          for (std::int64_t c = 0; c < width; ++c)
            decoded.row(static_cast<std::int64_t>(i))[part * width + c] =
                static_cast<float>(numbers[c]) * cache[i].scales[part * heads + (kOfHeads ? c / d : 0)];
        }
      }
      const auto* first = reinterpret_cast<const std::byte*>(cache.data());
      constexpr auto bytes = static_cast<std::int64_t>(sizeof(Integer));
      const auto scales = static_cast<std::int64_t>(offsetof(Record, scales));
      const CachedRows<float> keys{first, sizeof(Record), format, scales},
          values{first + bytes * width, sizeof(Record), format, scales + 4 * heads - bytes * width};
      const RowView<float> query{q.value.data(), width};
      const Offsets memory{0, length}, sentences{0, 0, 0}, slots{4, 9, 1, 0, 0, 0, 17, 18, 2, 3, 4, 5},
          lengths{3, 0, 4};
      for (const auto& [from, limit] : {std::pair{decoded, 1e-5}, {kv.value, near}}) {
        any.memory(t.device, query, cached(from, 0), cached(from, width), {memory}, sentences, heads, exact.data());
        any.memory(t.device, query, keys, values, {memory}, sentences, heads, out.data());
        CHECK(largest_difference(out, exact) < limit);
        any.cached(t.device, query, cached(from, 0), cached(from, width), slots, 4, lengths, heads, exact.data());
        any.cached(t.device, query, keys, values, slots, 4, lengths, heads, out.data());
        CHECK(largest_difference(out, exact) < limit);
      }
    }
}

TEST_CASE_TEMPLATE("cache_row: each number to the nearest, and a scale that is none where one of its numbers is not",
                   Integer, std::int16_t, std::int8_t) {
  constexpr bool kOfHeads = sizeof(Integer) == 1;
  constexpr int kHeads = 2, kColumns = 37;
  const double most = kOfHeads ? 127 : 32767;
  std::vector<float> values;
  for (int i = 0; i < kHeads * kColumns; ++i)
    values.push_back(static_cast<float>((i * 29) % kColumns - 18) * (i < kColumns ? 0.1234567F : 2));
  std::vector<Integer> numbers(values.size());
  float scales[kHeads] = {};
  const auto scale_of = [&](std::size_t i) { return scales[kOfHeads ? i / kColumns : 0]; };
  store<kOfHeads>(values.data(), std::ssize(values), kHeads, numbers.data(), scales);
  CHECK(scale_of(0) == doctest::Approx((kOfHeads ? 18 * 0.1234567 : 18 * 2) / most));
  CHECK(scale_of(kColumns) == doctest::Approx(18 * 2 / most));
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(static_cast<double>(numbers[i]) - static_cast<double>(values[i] / scale_of(i))) < 0.51);
  }
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (const std::size_t at : {std::size_t{3}, std::size_t{36}}) {
      std::vector<float> damaged = values;
      damaged[at] = bad;
      store<kOfHeads>(damaged.data(), std::ssize(damaged), kHeads, numbers.data(), scales);
      CHECK(std::isnan(scale_of(0)));
      if (kOfHeads) CHECK(scale_of(kColumns) == doctest::Approx(18 * 2 / most));
    }
  std::fill(values.begin(), values.end(), 0.0F);
  store<kOfHeads>(values.data(), std::ssize(values), kHeads, numbers.data(), scales);
  CHECK(scale_of(0) == 0);
  CHECK(std::all_of(numbers.begin(), numbers.end(), [](Integer x) { return x == 0; }));
}
