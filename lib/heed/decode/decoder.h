#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "heed/decode/classify.h"
#include "heed/decode/mask_predict.h"
#include "heed/decode/search.h"

namespace heed {

/// Translates batches of sources with one model or an ensemble. (This is not the decoder of an encoder-decoder model,
/// which is a part of the model: see model/transformer_layers.h.) The kind of the models decides how: search() uses
/// step models, mask_predict() uses models that predict all positions at once, and classify() uses models that give
/// labels to their sources. A Decoder computes on one thread, or on a team of threads.
class Decoder {
 public:
  /// `classifies` tells whether the model gives its sources labels (is_classifier()).
  explicit Decoder(std::unique_ptr<StepModel> model, bool classifies = false)
      : model_(std::move(model)), classifies_(classifies) {}
  explicit Decoder(std::unique_ptr<ParallelModel> model) : model_(std::move(model)) {}
  /// Creates a decoder of one model. The arguments are those of NetworkStepModel.
  Decoder(const Model<float>& model, ParameterValues<float>& parameters, Precision precision,
          std::shared_ptr<PackedParameters<float>> packed = nullptr)
      : classifies_(is_classifier(model.config())) {
    if (model.is_parallel())
      model_ = std::make_unique<NetworkParallelModel>(model, parameters, precision, std::move(packed));
    else
      model_ = std::make_unique<NetworkStepModel>(model, parameters, precision, std::move(packed));
  }

  /// Translates a batch of sources, each of which ends with `</s>`. Returns for each source the hypotheses that
  /// search(), mask_predict() or classify() returns, best first. Only search() applies `rule`, which may be null.
  /// Throws the errors of these functions.
  std::vector<std::vector<Hypothesis>> translate(const PackedIds& source, const SearchOptions& options,
                                                 const ScoreRule* rule = nullptr) {
    if (auto* const parallel = std::get_if<std::unique_ptr<ParallelModel>>(&model_))
      return mask_predict(**parallel, source, options);
    StepModel& steps = *std::get<std::unique_ptr<StepModel>>(model_);
    return classifies_ ? classify(steps, source, options) : search(steps, source, options, rule);
  }
  /// Lets the threads of `team` share the work of the following batches; with null, one thread does all work. The
  /// results are the same, bit for bit.
  void share_with(ThreadTeam* team) {
    std::visit([&](const auto& model) { model->share_with(team); }, model_);
  }

 private:
  std::variant<std::unique_ptr<StepModel>, std::unique_ptr<ParallelModel>> model_;
  bool classifies_ = false;
};

}  // namespace heed
