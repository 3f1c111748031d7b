#pragma once

#include "heed/model/transformer.h"

namespace heed {

/// The conditional masked language model of Ghazvininejad et al. 2019 ("Mask-Predict"), a Transformer that decodes
/// non-autoregressively: its decoder reads a target of which some tokens are masked, that is, replaced by `<s>`, and
/// predicts all of them at once. Self-attention in the decoder is not causal.
///
/// In training, the number of masked tokens of a target is drawn uniformly from 1 ... all, then the tokens; the loss is
/// the cross-entropy of the masked tokens. Which tokens are masked depends on the seed, the update and the sequence's
/// number within the update only. If TransformerConfig::fixed_length is 0, the model predicts the number of target
/// tokens from the encoder's output; this prediction counts in the loss like one more token, and the `</s>` at the end
/// is always given. If fixed_length is above 0, every target has fixed_length positions; the model also predicts
/// `</s>`, and the positions after `</s>` are masked and do not count in the loss.
template <class T>
class ParallelTransformer : public Transformer<T> {
 public:
  using Transformer<T>::Transformer;

  /// Computes the hidden states when the decoder reads the whole target, of which nothing is masked.
  Variable<T> hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace = nullptr) const override;
  std::unique_ptr<DecoderState<T>> make_state(Device device) const override;
  std::unique_ptr<ParallelState<T>> make_parallel_state(Device device) const override;
  bool predicts_end() const override { return this->config_.fixed_length > 0; }

  /// Returns for each source the lengths that its target may have, in ascending order. `encoded` is the output of
  /// encode() for the sources.
  std::vector<std::vector<TargetLength>> lengths(Graph<T>& graph, const EncoderOutput<T>& encoded,
                                                 PackedOffsets source) const;

 protected:
  Predictions<T> predictions(Graph<T>& graph, const Batch& batch, double scale, Trace<T>* trace,
                             CrossEntropySums* lengths) const override;
};

extern template class ParallelTransformer<float>;
extern template class ParallelTransformer<double>;

}  // namespace heed
