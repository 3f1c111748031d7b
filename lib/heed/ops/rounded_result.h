// Results of ops that are stored as bfloat16, in trainings and in inference on a GPU. A training stores a result as
// bfloat16 if only matrix products read the result, because the products would round it to bfloat16 anyway. On a GPU,
// the gradients of such results are stored as bfloat16, too, and so is the output of a sublayer before it is added to
// the residual stream in float32: products are so fast on a GPU that reading and writing their operands and results
// takes more time.
#pragma once

#include <type_traits>

#include "heed/autograd/graph.h"
#include "heed/ops/gemm/maybe_rounded.h"

namespace heed {

/// Which ops will read a result. `any`: any number of ops. The other values say that only one op reads the result:
/// `linear` as the input of linear(), `attention` as the query, key or value of attention(), and `residual` as the
/// branch that is added to a residual stream. In training, a result is stored as bfloat16 (Variable::rounded) if the
/// products of the only reader would round it anyway; a GPU stores branches so, too. In inference on a GPU, only the
/// results for `linear` are stored so.
enum class ResultUse { any, linear, attention, residual };

/// Tells whether a result that is used in this way is stored as bfloat16 in a training on this device. A CPU computes
/// attention in full precision.
inline bool stores_rounded(const CpuContext& device, ResultUse use) {
  return use == ResultUse::linear && takes_bfloat16(device);
}
inline bool stores_rounded(const CudaContext& device, ResultUse use) {
  return use != ResultUse::any && takes_bfloat16(device);
}
/// Tells whether linear() can read the gradient of a result as bfloat16, if its only reader has stored it so.
inline bool takes_rounded_gradient(const CpuContext&, ResultUse) {
  return false;
}
inline bool takes_rounded_gradient(const CudaContext& device, ResultUse use) {
  return use != ResultUse::any && takes_bfloat16(device);
}
/// Tells whether inference on this device stores the inputs of linear() as bfloat16. The products of inference on a CPU
/// round their operands while they lay them out.
inline bool rounds_in_inference(const CpuContext&) {
  return false;
}
inline bool rounds_in_inference(const CudaContext& device) {
  return takes_bfloat16(device);
}
template <class T>
bool stores_rounded(Graph<T>& graph, ResultUse use) {
  if (!std::is_same_v<T, float>) return false;
  return graph.run([&](const auto& device) {
    return graph.recording() ? stores_rounded(device, use) : use == ResultUse::linear && rounds_in_inference(device);
  });
}
template <class T>
bool takes_rounded_gradient(Graph<T>& graph, ResultUse use) {
  return graph.recording() && std::is_same_v<T, float> &&
         graph.run([use](const auto& device) { return takes_rounded_gradient(device, use); });
}

/// Returns memory for Variable::rounded of a result that linear() and other ops will read, if linear() would round the
/// result anyway, once for each product that reads it: in training, and in inference on a GPU. Elsewhere the tensor is
/// empty.
template <class T>
Tensor<Bfloat16> rounded_memory(Graph<T>& graph, const Shape& shape) {
  return graph.run([&](auto& device) {
    return graph.recording() || rounds_in_inference(device) ? rounded_memory<T>(device, shape) : Tensor<Bfloat16>();
  });
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
/// Returns the memory for the gradient that the only reader of a variable computes: as bfloat16 where
/// Gradient::may_be_rounded() says so, on a GPU; the caller then overwrites it. Otherwise the memory is that of
/// Gradient::begin_writing().
template <class T>
MaybeRounded<T> new_gradient(const CpuContext&, const Variable<T>& x) {
  return {x.gradient.begin_writing()};
}
template <class T>
MaybeRounded<T> new_gradient(const CudaContext&, const Variable<T>& x) {
  if (x.gradient.may_be_rounded()) return {{}, x.gradient.begin_writing_rounded()};
  return {x.gradient.begin_writing()};
}

}  // namespace heed
