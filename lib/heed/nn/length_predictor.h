#pragma once

#include <algorithm>
#include <cstdint>

#include "heed/ops/cross_entropy.h"
#include "heed/ops/parts.h"

namespace heed {

/// Predicts how many tokens the target of a source has, for a decoder that computes all positions at once
/// (Ghazvininejad et al. 2019, section 3.3): a softmax over the differences -R ... R of the numbers of target and
/// source tokens. It reads the encoder's output of the source's last token, `</s>`, which takes the place of the
/// paper's token LENGTH. The parameters are length/weight [2R + 1, D] and length/bias [2R + 1].
class LengthPredictor {
 public:
  /// `width` is D, and `range` is R.
  LengthPredictor(ParameterLayout& layout, std::int64_t width, int range)
      : weight_(layout.add("length/weight", {2 * std::int64_t{range} + 1, width}, Initialiser::xavier())),
        bias_(layout.add("length/bias", {2 * std::int64_t{range} + 1}, Initialiser::zeros())),
        range_(range) {}

  int range() const { return range_; }

  /// Returns `scale` times the cross-entropy of the lengths of all targets, a scalar. A greater difference than R
  /// counts as R. `encoded` [S, D] is the encoder's output. `sums`, where not null, receives the sums.
  template <class T>
  Variable<T> loss(Graph<T>& graph, const Variable<T>& encoded, PackedOffsets source, PackedOffsets target,
                   double scale, CrossEntropySums* sums) const {
    const Tensor<std::int32_t> classes = graph.host_arena().template tensor<std::int32_t>({source.sequences()});
    for (int b = 0; b < source.sequences(); ++b)
      classes[b] = std::clamp(target.length(b) - source.length(b), -range_, range_) + range_;
    return projection_cross_entropy(graph, gather_rows<T>(graph, encoded, ends(graph, source)),
                                    graph.parameter(weight_), graph.parameter(bias_), classes.span(), {.scale = scale},
                                    sums);
  }

  /// Returns the log-probabilities of the differences of lengths, [B, 2R + 1] for B sources.
  template <class T>
  Tensor<T> log_probabilities(Graph<T>& graph, const Variable<T>& encoded, PackedOffsets source) const {
    const Tensor<T> out = graph.arena().template tensor<T>({source.sequences(), 2 * std::int64_t{range_} + 1});
    const Variable<T> last = gather_rows<T>(graph, encoded, ends(graph, source));
    graph.run([&](auto& device) {
      projection_log_probabilities(device, last.value, graph.parameter(weight_).value, graph.parameter(bias_).value,
                                   out);
    });
    return out;
  }

 private:
  /// Returns the index of the last token of each sequence.
  template <class T>
  static std::span<const std::int32_t> ends(Graph<T>& graph, PackedOffsets source) {
    const Tensor<std::int32_t> out = graph.host_arena().template tensor<std::int32_t>({source.sequences()});
    for (int b = 0; b < source.sequences(); ++b) out[b] = source.begin(b + 1) - 1;
    return out.span();
  }

  ParameterId weight_, bias_;
  int range_;
};

}  // namespace heed
