#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heed/autograd/graph.h"
#include "heed/decode/shortlist_output.h"
#include "heed/model/model.h"
#include "heed/tensor/owned_device.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// Targets whose masked tokens, which are `<s>`, a model is to predict.
struct MaskedBatch {
  PackedIds targets;                    ///< the tokens of each target
  std::vector<std::int32_t> sentences;  ///< the index in the batch of each target's source, in ascending order
  std::vector<std::int32_t> rows;       ///< the index in targets.ids of each token to predict, in ascending order

  void clear() {
    targets.clear();
    sentences.clear();
    rows.clear();
  }
};

/// The interface through which mask_predict() uses a model that predicts all positions of a target at once. R is the
/// number of tokens to predict, V the size of the target vocabulary.
class ParallelModel {
 public:
  virtual ~ParallelModel() = default;

  virtual std::int64_t vocabulary() const = 0;
  /// Tells whether a target ends at the first `</s>` that the model predicts, instead of having a predicted length.
  virtual bool predicts_end() const = 0;
  /// Starts a batch of sources.
  virtual void start(const PackedIds& source) = 0;
  /// Returns for each source the lengths that its target may have, in ascending order.
  virtual std::vector<std::vector<TargetLength>> lengths() const = 0;
  /// Returns scores [R, V]; the softmax of a row is the distribution of the row's token. The scores are valid until the
  /// next call.
  virtual Tensor<float> scores(const MaskedBatch& batch) = 0;
  /// Returns only the k likeliest tokens of each row, as StepModel::step() does.
  virtual void predict(const MaskedBatch& batch, CpuContext& device, std::int64_t k, float* log_probabilities,
                       std::int32_t* ids);
  /// Lets the threads of `team` share the work of the following batches; with null, one thread does all work. The
  /// results are the same, bit for bit.
  virtual void share_with(ThreadTeam* team) = 0;
};

/// A ParallelModel of one model. The arguments are those of NetworkStepModel.
class NetworkParallelModel : public ParallelModel {
 public:
  NetworkParallelModel(const Model<float>& model, ParameterValues<float>& parameters, Precision precision,
                       std::shared_ptr<PackedParameters<float>> packed = nullptr,
                       std::shared_ptr<const Shortlist> shortlist = nullptr);

  std::int64_t vocabulary() const override { return model_.target_vocabulary(); }
  bool predicts_end() const override { return model_.predicts_end(); }
  void start(const PackedIds& source) override;
  std::vector<std::vector<TargetLength>> lengths() const override { return state_->lengths(); }
  Tensor<float> scores(const MaskedBatch& batch) override;
  void predict(const MaskedBatch& batch, CpuContext& device, std::int64_t k, float* log_probabilities,
               std::int32_t* ids) override;
  void share_with(ThreadTeam* team) override { device_.share_with(team); }

 private:
  Variable<float> hidden(const MaskedBatch& batch);

  const Model<float>& model_;
  std::shared_ptr<PackedParameters<float>> packed_;
  OwnedDevice device_;
  Graph<float> graph_;
  std::unique_ptr<ParallelState<float>> state_;
  std::shared_ptr<const Shortlist> shortlist_;
  ShortlistOutput shortlist_output_;
};

/// An ensemble of models with the same target vocabulary, of which all or none predict the end of a target. The
/// probability of a token, and of a length, is the mean of the models' probabilities.
class EnsembleParallelModel : public ParallelModel {
 public:
  explicit EnsembleParallelModel(std::vector<std::unique_ptr<ParallelModel>> models) : models_(std::move(models)) {}

  std::int64_t vocabulary() const override { return models_.front()->vocabulary(); }
  bool predicts_end() const override { return models_.front()->predicts_end(); }
  void start(const PackedIds& source) override;
  std::vector<std::vector<TargetLength>> lengths() const override;
  Tensor<float> scores(const MaskedBatch& batch) override;
  void share_with(ThreadTeam* team) override;

 private:
  std::vector<std::unique_ptr<ParallelModel>> models_;
  std::vector<float> mean_;
};

}  // namespace heed
