#include <cmath>
#include <limits>

#include "heed/ops/decode_attention.h"

namespace heed {
namespace {

/// One row and head: out = softmax(query K^T / sqrt(d)) V over `length` keys; key(t) and value(t) are their rows.
template <class T, class Key, class Value>
void attend(const T* query, Key key, Value value, std::int64_t length, std::int64_t d, T* p, T* out) {
  const T scale = 1 / std::sqrt(static_cast<T>(d));
  T largest = -std::numeric_limits<T>::infinity(), sum = 0;
  for (std::int64_t t = 0; t < length; ++t) {
    T s = 0;
    for (std::int64_t c = 0; c < d; ++c) s += query[c] * key(t)[c];
    p[t] = s * scale;
    largest = std::max(largest, p[t]);
  }
  for (std::int64_t t = 0; t < length; ++t) sum += p[t] = std::exp(p[t] - largest);
  for (std::int64_t c = 0; c < d; ++c) out[c] = 0;
  for (std::int64_t t = 0; t < length; ++t) {
    p[t] /= sum;
    for (std::int64_t c = 0; c < d; ++c) out[c] += p[t] * value(t)[c];
  }
}

}  // namespace

template <class T>
void cached_attention(CpuContext& device, RowView<T> query, RowView<T> keys, RowView<T> values,
                      std::span<const std::int32_t> slots, std::int64_t capacity, std::span<const std::int32_t> lengths,
                      int heads, std::int64_t width, T* out) {
  const ArenaScope scope(device.arena);
  T* p = device.arena.tensor<T>({capacity}).data();
  const std::int64_t d = width / heads;
  for (std::size_t r = 0; r < lengths.size(); ++r)
    for (int h = 0; h < heads; ++h) {
      const std::int32_t* row_slots = slots.data() + static_cast<std::int64_t>(r) * capacity;
      attend(
          query.data + static_cast<std::int64_t>(r) * query.stride + h * d,
          [&](std::int64_t t) { return keys.data + row_slots[t] * keys.stride + h * d; },
          [&](std::int64_t t) { return values.data + row_slots[t] * values.stride + h * d; }, lengths[r], d, p,
          out + static_cast<std::int64_t>(r) * width + h * d);
    }
}

template <class T>
void memory_attention(CpuContext& device, RowView<T> query, RowView<T> keys, RowView<T> values, PackedOffsets memory,
                      std::span<const std::int32_t> sentence_of_row, int heads, std::int64_t width, T* out,
                      T* weights_out) {
  const ArenaScope scope(device.arena);
  T* scratch = device.arena.tensor<T>({memory.tokens()}).data();
  const std::int64_t d = width / heads;
  for (std::size_t r = 0; r < sentence_of_row.size(); ++r)
    for (int h = 0; h < heads; ++h) {
      const std::int64_t begin = memory.begin(sentence_of_row[r]), length = memory.length(sentence_of_row[r]);
      attend(
          query.data + static_cast<std::int64_t>(r) * query.stride + h * d,
          [&](std::int64_t t) { return keys.data + (begin + t) * keys.stride + h * d; },
          [&](std::int64_t t) { return values.data + (begin + t) * values.stride + h * d; }, length, d,
          weights_out ? weights_out : scratch, out + static_cast<std::int64_t>(r) * width + h * d);
      if (weights_out) weights_out += length;
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
