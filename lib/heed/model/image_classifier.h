#pragma once

#include <memory>

#include "heed/model/model.h"

namespace heed {

/// A model that reads an image and predicts one of C classes. A batch has one target for each image: in `target_in`,
/// the token `<s>`, which is not read, and in `target_out` the class, counted from 0. The class c is the piece
/// kReservedIds + c of the target vocabulary. The output layer has the parameters output/{weight [C, D], bias [C]}.
///
/// Shapes: B images, D columns of the features, C classes.
template <class T>
class ImageClassifier : public Model<T> {
 public:
  /// Returns the features of the images, [B, D], which the output layer reads. `trace`, if not null, receives the
  /// attention weights.
  virtual Variable<T> features(Graph<T>& graph, const PackedIds& images, Trace<T>* trace = nullptr) const = 0;

  Variable<T> hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace = nullptr) const override {
    return features(graph, batch.source, trace);
  }
  /// Creates a state whose first step returns the features; there is no second step.
  std::unique_ptr<DecoderState<T>> make_state(Device device) const override;
  std::optional<ResidualNorms> residual_norms() const override { return {}; }

 protected:
  using Model<T>::Model;

  /// Adds the output layer, for features of `width` columns and as many classes as the target vocabulary has pieces
  /// that are not reserved.
  void add_output(std::int64_t width);
};

extern template class ImageClassifier<float>;
extern template class ImageClassifier<double>;

}  // namespace heed
