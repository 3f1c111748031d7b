// Results of ops that are stored as bfloat16, because matrix products, which would round them anyway, are all that
// reads them. On a GPU, where the products of a training are so fast that reading and writing their operands takes more
// time, the gradients of such results are stored as bfloat16, too.
#pragma once

#include <type_traits>

#include "heed/autograd/graph.h"
#include "heed/ops/gemm/maybe_rounded.h"

namespace heed {

/// Which ops will read a result: `any` ops, or one op alone, a linear(), or an attention() that has the result for its
/// query, key or value. In training, a result that a single op reads is stored as bfloat16 (Variable::rounded) where
/// the products of this op would round it anyway.
enum class ResultUse { any, linear, attention };

/// Tells whether a result that is used in this way is stored as bfloat16 in a training on this device. A CPU computes
/// attention in full precision.
inline bool stores_rounded(const CpuContext& device, ResultUse use) {
  return use == ResultUse::linear && takes_bfloat16(device);
}
inline bool stores_rounded(const CudaContext& device, ResultUse use) {
  return use != ResultUse::any && takes_bfloat16(device);
}
template <class T>
bool stores_rounded(Graph<T>& graph, ResultUse use) {
  return graph.recording() && std::is_same_v<T, float> &&
         graph.run([use](const auto& device) { return stores_rounded(device, use); });
}

/// Returns memory for Variable::rounded of a result that linear() and other ops will read: in training, where linear()
/// would round the result anyway, once for each product that reads it. Elsewhere the tensor is empty.
template <class T>
Tensor<Bfloat16> rounded_memory(Graph<T>& graph, const Shape& shape) {
  if (!graph.recording()) return {};
  return graph.run([&](auto& device) { return rounded_memory<T>(device, shape); });
}

/// Returns the value of a variable as it is stored.
template <class T>
MaybeRounded<T> value_of(const Variable<T>& x) {
  return {x.value, x.rounded};
}
/// Returns the gradient that has arrived at a result, as it is stored. A gradient to which no op has added is filled
/// with zeros.
template <class T>
MaybeRounded<T> arrived_gradient(const Variable<T>& y) {
  if (const Tensor<Bfloat16> rounded = y.gradient.rounded()) return {{}, rounded};
  return {y.gradient.sum()};
}
/// Returns the memory for the gradient that an op computes by matrix products, of a variable that it reads: as bfloat16
/// where the device is a GPU and the value is stored as bfloat16 alone, which no other op reads; the caller then
/// overwrites it. Otherwise the memory is that of Gradient::fill().
template <class T>
MaybeRounded<T> new_gradient(const CpuContext&, const Variable<T>& x) {
  return {x.gradient.fill()};
}
template <class T>
MaybeRounded<T> new_gradient(const CudaContext&, const Variable<T>& x) {
  if (x.is_rounded()) return {{}, x.gradient.fill_rounded()};
  return {x.gradient.fill()};
}

}  // namespace heed
