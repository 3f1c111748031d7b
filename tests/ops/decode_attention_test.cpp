#include "heed/ops/decode_attention.h"

#include <doctest/doctest.h>

#include <cstring>

#include "heed/ops/attention.h"
#include "training.h"

using namespace heed;

namespace {

using Offsets = std::vector<std::int32_t>;

template <class T>
double bound() {
  return sizeof(T) == 4 ? 1e-5 : 1e-12;
}

}  // namespace

TEST_CASE_TEMPLATE("cached_attention: as causal attention over the whole sequence, through any slots", T, float,
                   double) {
  for (const int d : {5, 8, 32, 100}) {
    CAPTURE(d);
    const int heads = 2, length = 19, capacity = 24;
    const std::int64_t width = d * heads;
    Training<T> t;
    const auto q = t.normal({length, 3 * width}), k = t.normal({length, width}), v = t.normal({length, width});
    const Offsets offsets{0, length};
    const Tensor<T> expected =
        attention<T>(t.graph, {q, width}, {k}, {v}, width, {offsets}, {offsets}, {heads, true}).value;
    // The sequence's rows lie scattered in a pool of twice the size; row r has seen r + 1 of them.
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
    const RowView<T> query{q.value.data() + width, 3 * width}, keys{key_pool.data(), 2 * width},
        values{value_pool.data() + width, 2 * width};
    cached_attention<T>(t.device, query, keys, values, slots, capacity, lengths, heads, width, out.data());
    CHECK(largest_difference(out, expected) < bound<T>());
    for (std::int64_t r = 0; r < length; ++r) {
      cached_attention<T>(t.device, {query.data + r * query.stride, query.stride}, keys, values,
                          std::span(slots).subspan(static_cast<std::size_t>(r * capacity)), capacity,
                          std::span(lengths).subspan(static_cast<std::size_t>(r), 1), heads, width, alone.data());
      CHECK(std::memcmp(alone.data(), out.row(r), static_cast<std::size_t>(width) * sizeof(T)) == 0);
    }
  }
}

TEST_CASE_TEMPLATE("memory_attention: as attention, for beams side by side, alone, and over an empty memory", T, float,
                   double) {
  for (const int d : {5, 8, 32, 64}) {
    CAPTURE(d);
    const int heads = 3;
    const std::int64_t width = d * heads;
    const Offsets memory{0, 9, 9, 10, 50}, queries{0, 5, 6, 8, 15},
        sentences{0, 0, 0, 0, 0, 1, 2, 2, 3, 3, 3, 3, 3, 3, 3};
    Training<T> t;
    const auto q = t.normal({15, width}), k = t.normal({50, 2 * width});
    const std::int64_t size = attention_weights_size({queries}, {memory}, heads);
    const Tensor<T> out = t.arena.template tensor<T>({15, width}), alone = t.arena.template tensor<T>({width}),
                    weights = t.arena.template tensor<T>({size}), wanted = t.arena.template tensor<T>({size});
    const Tensor<T> expected =
        attention<T>(t.graph, {q}, {k}, {k, width}, width, {queries}, {memory}, {heads}, wanted.data()).value;
    const RowView<T> keys{k.value.data(), 2 * width}, values{k.value.data() + width, 2 * width};
    memory_attention<T>(t.device, {q.value.data(), width}, keys, values, {memory}, sentences, heads, width, out.data(),
                        weights.data());
    CHECK(largest_difference(out, expected) < bound<T>());
    // weights: rows outside heads here, heads outside rows in a trace of attention.
    const T* row_weights = weights.data();
    for (int r = 0; r < 15; ++r) {
      const int b = sentences[static_cast<std::size_t>(r)], in_sequence = r - PackedOffsets{queries}.begin(b);
      const int length = PackedOffsets{memory}.length(b);
      for (int h = 0; h < heads; ++h, row_weights += length)
        for (int j = 0; j < length; ++j)
          CHECK(std::abs(row_weights[j] - wanted.data()[attention_weights_offset({queries}, {memory}, heads, b, h) +
                                                        in_sequence * length + j]) < bound<T>());
      memory_attention<T>(t.device, {q.value.row(r), width}, keys, values, {memory},
                          std::span(sentences).subspan(static_cast<std::size_t>(r), 1), heads, width, alone.data());
      CHECK(std::memcmp(alone.data(), out.row(r), static_cast<std::size_t>(width) * sizeof(T)) == 0);
    }
  }
}
