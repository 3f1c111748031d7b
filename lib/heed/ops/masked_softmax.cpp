#include "heed/ops/masked_softmax.h"

#include "heed/ops/check.h"
#include "heed/ops/softmax.h"

namespace heed {
namespace {

/// Throws Error unless the mask's shape `actual` is [T, S] or [B, T, S], where `scores` is [B, T, S].
void check_square(const char* argument, const Shape& actual, const Shape& scores) {
  if (actual.rank() == 2)
    check_shape("masked_softmax", argument, actual, {scores[1], scores[2]});
  else
    check_shape("masked_softmax", argument, actual, scores);
}

/// Throws Error unless there is one valid length, from 0 to S, for each sequence or for each query of `scores` [B, T,
/// S].
void check_lengths(std::span<const std::int32_t> lengths, const Shape& scores) {
  const auto count = static_cast<std::int64_t>(lengths.size());
  if (count != scores[0] && count != scores[0] * scores[1])
    throw Error("internal: masked_softmax: " + std::to_string(count) + " valid lengths for scores of shape " +
                scores.text() + " (one for each sequence or for each query)");
  for (const std::int32_t length : lengths)
    if (length < 0 || length > scores[2])
      throw Error("internal: masked_softmax: valid length " + std::to_string(length) + " is not in 0 to " +
                  std::to_string(scores[2]));
}

}  // namespace

template <class T>
Variable<T> masked_softmax(Graph<T>& graph, const Variable<T>& x, const SoftmaxMask<T>& mask) {
  const Shape& scores = x.shape();
  if (scores.rank() != 3)
    throw Error("internal: masked_softmax: x has shape " + scores.text() + ", expected [B, T, S]");
  if (!mask.valid_lengths.empty()) check_lengths(mask.valid_lengths, scores);
  if (mask.key_padding) check_shape("masked_softmax", "key_padding", mask.key_padding.shape(), {scores[0], scores[2]});
  if (mask.hidden) check_square("hidden", mask.hidden.shape(), scores);
  if (mask.additive) check_square("additive", mask.additive.shape(), scores);
  const Variable<T> y = graph.result(scores);
  graph.run([&](auto& device) { masked_softmax_forward(device, x.value, mask, y.value); });
  graph.record([x, y](auto& device) {
    if (x.tracked()) softmax_backward(device, y.value, y.gradient.sum(), x.gradient.sum());
  });
  return y;
}

template Variable<float> masked_softmax(Graph<float>&, const Variable<float>&, const SoftmaxMask<float>&);
template Variable<double> masked_softmax(Graph<double>&, const Variable<double>&, const SoftmaxMask<double>&);

}  // namespace heed
