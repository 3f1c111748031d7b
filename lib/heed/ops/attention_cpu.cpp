#include <cmath>

#include "heed/ops/attention.h"

namespace heed {
namespace {

/// Calls body(b, h, offset of the head's probabilities) for every sequence and head.
template <class T, class Body>
void for_each_head(const AttentionArrays<T>& a, Body body) {
  std::int64_t offset = 0;
  for (int b = 0; b < a.queries.sequences(); ++b)
    for (int h = 0; h < a.heads; ++h) {
      body(b, h, offset);
      offset += std::int64_t{a.queries.length(b)} * a.keys.length(b);
    }
}

}  // namespace

template <class T>
void attention_forward(CpuContext& device, const AttentionArrays<T>& a, T* weights, T* out) {
  const ArenaScope scope(device.arena);
  const std::int64_t d = a.width / a.heads;
  const T scale = 1 / std::sqrt(static_cast<T>(d));
  if (!weights) weights = device.arena.tensor<T>({attention_weights_size(a.queries, a.keys, a.heads)}).data();
  for_each_head(a, [&](int b, int h, std::int64_t offset) {
    const std::int64_t keys = a.keys.length(b);
    for (std::int64_t i = 0; i < a.queries.length(b); ++i) {
      const T* query = a.query + (a.queries.begin(b) + i) * a.query_stride + h * d;
      T* p = weights + offset + i * keys;
      T* o = out + (a.queries.begin(b) + i) * a.width + h * d;
      const std::int64_t seen = a.causal ? i + 1 : keys;
      T largest = -std::numeric_limits<T>::infinity(), sum = 0;
      for (std::int64_t j = 0; j < seen; ++j) {
        const T* key = a.key + (a.keys.begin(b) + j) * a.key_stride + h * d;
        T s = 0;
        for (std::int64_t c = 0; c < d; ++c) s += query[c] * key[c];
        p[j] = s * scale;
        largest = std::max(largest, p[j]);
      }
      for (std::int64_t j = 0; j < seen; ++j) sum += p[j] = std::exp(p[j] - largest);
      for (std::int64_t j = 0; j < seen; ++j) p[j] /= sum;
      for (std::int64_t j = seen; j < keys; ++j) p[j] = 0;
      for (std::int64_t c = 0; c < d; ++c) o[c] = 0;
      for (std::int64_t j = 0; j < seen; ++j) {
        const T* value = a.value + (a.keys.begin(b) + j) * a.value_stride + h * d;
        const T w = a.mask ? p[j] * a.mask.kept[offset + i * keys + j] * a.mask.scale : p[j];
        for (std::int64_t c = 0; c < d; ++c) o[c] += w * value[c];
      }
    }
  });
}

template <class T>
void attention_backward(CpuContext& device, const AttentionArrays<T>& a, const T* weights, const T* out_gradient) {
  const ArenaScope scope(device.arena);
  const std::int64_t d = a.width / a.heads;
  const T scale = 1 / std::sqrt(static_cast<T>(d));
  for_each_head(a, [&](int b, int h, std::int64_t offset) {
    const std::int64_t keys = a.keys.length(b);
    const ArenaScope row_scope(device.arena);
    T* g = device.arena.tensor<T>({keys}).data();
    for (std::int64_t i = 0; i < a.queries.length(b); ++i) {
      const std::int64_t query_at = (a.queries.begin(b) + i) * a.query_stride + h * d;
      const T* p = weights + offset + i * keys;
      const T* go = out_gradient + (a.queries.begin(b) + i) * a.width + h * d;
      T sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        const std::int64_t value_at = (a.keys.begin(b) + j) * a.value_stride + h * d;
        const T factor = a.mask ? a.mask.kept[offset + i * keys + j] * a.mask.scale : T(1);
        g[j] = 0;
        for (std::int64_t c = 0; c < d; ++c) {
          g[j] += go[c] * a.value[value_at + c];
          if (a.value_gradient) a.value_gradient[value_at + c] += factor * p[j] * go[c];
        }
        g[j] *= factor;
        sum += p[j] * g[j];
      }
      for (std::int64_t j = 0; j < keys; ++j) {
        const std::int64_t key_at = (a.keys.begin(b) + j) * a.key_stride + h * d;
        const T ds = p[j] * (g[j] - sum) * scale;
        for (std::int64_t c = 0; c < d; ++c) {
          if (a.query_gradient) a.query_gradient[query_at + c] += ds * a.key[key_at + c];
          if (a.key_gradient) a.key_gradient[key_at + c] += ds * a.query[query_at + c];
        }
      }
    }
  });
}

template void attention_forward(CpuContext&, const AttentionArrays<float>&, float*, float*);
template void attention_forward(CpuContext&, const AttentionArrays<double>&, double*, double*);
template void attention_backward(CpuContext&, const AttentionArrays<float>&, const float*, const float*);
template void attention_backward(CpuContext&, const AttentionArrays<double>&, const double*, const double*);

}  // namespace heed
