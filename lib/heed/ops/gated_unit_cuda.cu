#include "heed/ops/gated_unit.h"

#include "heed/ops/activation_cuda-inl.h"
#include "heed/tensor/cuda_language.h"
#include "heed/tensor/cuda_packs.h"

namespace heed {
namespace {

/// Returns the index of element i of [N, columns] in the first half, the gates, of the rows of [N, 2 columns].
__device__ __forceinline__ std::int64_t gate_of(std::int64_t i, std::int64_t columns) {
  return i / columns * 2 * columns + i % columns;
}

/// Computes y [n / columns, columns] in packs of N. The result goes to `rounded` where that is not null, otherwise to
/// y.
template <class T, int N>
__global__ void gated_unit_kernel(const T* x, Activation activation, T* y, Bfloat16* rounded, std::int64_t n,
                                  std::int64_t columns) {
  for_each_element(n / N, [&](std::int64_t pack) {
    const std::int64_t i = N * pack, gate = gate_of(i, columns);
    Pack<T, N> out = load_pack<N>(x + gate);
    const Pack<T, N> values = load_pack<N>(x + gate + columns);
    with_activation(activation, [&](auto constant) {
      HEED_UNROLL
      for (int k = 0; k < N; ++k) out[k] = activate(constant.value, out[k]) * values[k];
    });
    if (rounded)
      store_pack(round_pack(out), rounded + i);
    else
      store_pack(out, y + i);
  });
}

/// Computes dx from dy [n / columns, columns], whose numbers are T or Bfloat16, in packs of N.
template <class T, class Dy, int N>
__global__ void gated_unit_gradient_kernel(const T* x, Activation activation, const Dy* dy, T* dx, bool adds,
                                           std::int64_t n, std::int64_t columns) {
  for_each_element(n / N, [&](std::int64_t pack) {
    const std::int64_t gate = gate_of(N * pack, columns), value = gate + columns;
    const Pack<T, N> arrived = widen_pack<T>(load_pack<N>(dy + N * pack)), gates = load_pack<N>(x + gate),
                     values = load_pack<N>(x + value);
    Pack<T, N> to_gate{}, to_value{};
    if (adds) {
      to_gate = load_pack<N>(dx + gate);
      to_value = load_pack<N>(dx + value);
    }
    with_activation(activation, [&](auto constant) {
      HEED_UNROLL
      for (int k = 0; k < N; ++k) {
        to_gate[k] += arrived[k] * values[k] * activation_derivative(constant.value, gates[k]);
        to_value[k] += arrived[k] * activate(constant.value, gates[k]);
      }
    });
    store_pack(to_gate, dx + gate);
    store_pack(to_value, dx + value);
  });
}

}  // namespace

template <class T>
void gated_unit_forward(CudaContext& device, Tensor<T> x, Activation activation, MaybeRounded<T> y) {
  const std::int64_t columns = y.columns(), n = y.rows() * columns;
  with_packs<8>(takes_packs<8>(columns, x.data(), y.full.data(), y.rounded.data()), [&](auto pack) {
    launch(device, shape_for_elements(n / pack.value), gated_unit_kernel<T, pack.value>, x.data(), activation,
           y.full.data(), y.rounded.data(), n, columns);
  });
}

template <class T>
void gated_unit_backward(CudaContext& device, Tensor<T> x, Activation activation, MaybeRounded<T> dy, Tensor<T> dx,
                         bool adds) {
  const std::int64_t columns = dy.columns(), n = dy.rows() * columns;
  const auto run = [&]<class Dy>(const Dy* from) {
    with_packs<8>(takes_packs<8>(columns, x.data(), from, dx.data()), [&](auto pack) {
      launch(device, shape_for_elements(n / pack.value), gated_unit_gradient_kernel<T, Dy, pack.value>, x.data(),
             activation, from, dx.data(), adds, n, columns);
    });
  };
  if constexpr (std::is_same_v<T, float>)
    if (dy.rounded) return run(static_cast<const Bfloat16*>(dy.rounded.data()));
  run(static_cast<const T*>(dy.full.data()));
}

#define HEED_INSTANTIATE(T)                                                               \
  template void gated_unit_forward(CudaContext&, Tensor<T>, Activation, MaybeRounded<T>); \
  template void gated_unit_backward(CudaContext&, Tensor<T>, Activation, MaybeRounded<T>, Tensor<T>, bool);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
