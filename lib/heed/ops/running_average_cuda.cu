#include "heed/ops/running_average.h"

#include <vector>

#include "heed/ops/activation_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// The rows of a step in chains, in the memory of the GPU: rows begins[k] ... begins[k + 1] - 1 follow each other, that
/// is, the state before each row but the first is the state after the row before it.
template <class T>
struct Chains {
  const StateStep<T>* steps;
  const std::int32_t* begins;
  std::int64_t count;
};

/// Uploads the steps and divides the rows into chains.
template <class T>
Chains<T> make_chains(CudaContext& device, std::span<const StateStep<T>> steps) {
  std::vector<std::int32_t> begins;
  for (std::size_t r = 0; r < steps.size(); ++r)
    if (r == 0 || steps[r].before != steps[r - 1].after) begins.push_back(static_cast<std::int32_t>(r));
  const std::int64_t count = std::ssize(begins);
  begins.push_back(static_cast<std::int32_t>(steps.size()));
  return {upload(device, steps), upload<std::int32_t>(device, begins), count};
}

/// Computes the states of all rows, each thread those of a column of a chain. next(row, column, state) returns the
/// state after a row, where `state` is the state before the row.
template <class T, class Next>
__device__ __forceinline__ void for_each_state(Chains<T> chains, std::int64_t columns, const Next& next) {
  for_each_element(chains.count * columns, [&](std::int64_t i) {
    const std::int64_t k = i / columns, c = i % columns;
    const T* const before = chains.steps[chains.begins[k]].before;
    T state = before ? before[c] : T(0);
    for (std::int64_t r = chains.begins[k]; r < chains.begins[k + 1]; ++r) {
      state = next(r, c, state);
      chains.steps[r].after[c] = state;
    }
  });
}

template <class T>
__global__ void mean_kernel(const T* x, Chains<T> chains, std::int64_t columns, T* y) {
  for_each_state(chains, columns, [&](std::int64_t r, std::int64_t c, T state) {
    const T share = T(1) / static_cast<T>(chains.steps[r].position);
    return y[r * columns + c] = state + (x[r * columns + c] - state) * share;
  });
}

template <class T>
__global__ void recurrence_kernel(const T* gates, Chains<T> chains, std::int64_t columns, T* y) {
  for_each_state(chains, columns, [&](std::int64_t r, std::int64_t c, T state) {
    const T x = gates[2 * r * columns + c], forget = sigmoid(gates[(2 * r + 1) * columns + c]);
    const T after = x + forget * (state - x);
    y[r * columns + c] = after > 0 ? after : T(0);
    return after;
  });
}

/// Each thread goes through a column of a sequence, from the last position to the first.
template <class T>
__global__ void mean_gradient_kernel(const T* dy, const std::int32_t* offsets, std::int64_t sequences,
                                     std::int64_t columns, T* dx) {
  for_each_element(sequences * columns, [&](std::int64_t i) {
    const std::int64_t begin = offsets[i / columns], end = offsets[i / columns + 1], c = i % columns;
    T sum = 0;
    for (std::int64_t row = end - 1; row >= begin; --row) {
      sum += dy[row * columns + c] * (T(1) / static_cast<T>(row - begin + 1));
      dx[row * columns + c] += sum;
    }
  });
}

/// Each thread goes through a column of a sequence, from the last position to the first; `carried` is f g of the
/// position behind.
template <class T>
__global__ void recurrence_gradient_kernel(const T* gates, const T* states, const T* dy, const std::int32_t* offsets,
                                           std::int64_t sequences, std::int64_t columns, T* dgates) {
  for_each_element(sequences * columns, [&](std::int64_t i) {
    const std::int64_t begin = offsets[i / columns], end = offsets[i / columns + 1], c = i % columns;
    T carried = 0;
    for (std::int64_t row = end - 1; row >= begin; --row) {
      const std::int64_t at = row * columns + c, x_at = 2 * row * columns + c, z_at = x_at + columns;
      const T x = gates[x_at], forget = sigmoid(gates[z_at]), before = row > begin ? states[at - columns] : T(0);
      const T g = carried + (states[at] > 0 ? dy[at] : T(0));
      carried = forget * g;
      const T taken = g - carried;
      dgates[x_at] += taken;
      dgates[z_at] += (before - x) * forget * taken;
    }
  });
}

}  // namespace

template <class T>
void running_mean_step(CudaContext& device, Tensor<T> x, std::span<const StateStep<T>> steps, Tensor<T> y) {
  const ArenaScope scope(device.arena);
  const Chains<T> chains = make_chains(device, steps);
  launch(device, shape_for_elements(chains.count * x.columns()), mean_kernel<T>, x.data(), chains, x.columns(),
         y.data());
}

template <class T>
void simple_recurrence_step(CudaContext& device, Tensor<T> gates, std::span<const StateStep<T>> steps, Tensor<T> y) {
  const ArenaScope scope(device.arena);
  const Chains<T> chains = make_chains(device, steps);
  launch(device, shape_for_elements(chains.count * y.columns()), recurrence_kernel<T>, gates.data(), chains,
         y.columns(), y.data());
}

template <class T>
void running_mean_backward(CudaContext& device, PackedOffsets packed, Tensor<T> dy, Tensor<T> dx) {
  const ArenaScope scope(device.arena);
  const std::int64_t sequences = packed.sequences();
  launch(device, shape_for_elements(sequences * dy.columns()), mean_gradient_kernel<T>, dy.data(),
         upload(device, packed.offsets), sequences, dy.columns(), dx.data());
}

template <class T>
void simple_recurrence_backward(CudaContext& device, PackedOffsets packed, Tensor<T> gates, Tensor<T> states,
                                Tensor<T> dy, Tensor<T> dgates) {
  const ArenaScope scope(device.arena);
  const std::int64_t sequences = packed.sequences();
  launch(device, shape_for_elements(sequences * dy.columns()), recurrence_gradient_kernel<T>, gates.data(),
         states.data(), dy.data(), upload(device, packed.offsets), sequences, dy.columns(), dgates.data());
}

#define HEED_INSTANTIATE(T)                                                                                \
  template void running_mean_step(CudaContext&, Tensor<T>, std::span<const StateStep<T>>, Tensor<T>);      \
  template void simple_recurrence_step(CudaContext&, Tensor<T>, std::span<const StateStep<T>>, Tensor<T>); \
  template void running_mean_backward(CudaContext&, PackedOffsets, Tensor<T>, Tensor<T>);                  \
  template void simple_recurrence_backward(CudaContext&, PackedOffsets, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
