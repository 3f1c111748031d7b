#pragma once

#include <memory>
#include <vector>

#include "heed/decode/search.h"

namespace heed {

/// Translates batches of sources with one model, or with an ensemble, by the search that suits the models. An object
/// computes on one thread, or on a team of threads.
class Decoder {
 public:
  explicit Decoder(std::unique_ptr<StepModel> model) : model_(std::move(model)) {}
  /// Creates a decoder of one model. The model and the parameters must outlive this object.
  Decoder(const Model<float>& model, ParameterValues<float>& parameters, Precision precision)
      : Decoder(std::make_unique<NetworkStepModel>(model, parameters, precision)) {}

  /// Translates a batch of sources that end with `</s>`, as search() says.
  std::vector<std::vector<Hypothesis>> translate(const PackedIds& source, const SearchOptions& options) {
    return search(*model_, source, options);
  }
  /// Lets the threads of `team` share the work of the following batches; with null, one thread does all work. The
  /// results are the same, bit for bit.
  void share_with(ThreadTeam* team) { model_->share_with(team); }

 private:
  std::unique_ptr<StepModel> model_;
};

}  // namespace heed
