#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heed/autograd/graph.h"
#include "heed/decode/shortlist_output.h"
#include "heed/model/batch.h"
#include "heed/model/transformer.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// All that a search knows of a model: rows of hypotheses that take one token a step. Models of any kind, and
/// ensembles of them, decode through this.
class StepModel {
 public:
  virtual ~StepModel() = default;

  /// Size V of the target vocabulary.
  virtual std::int64_t vocabulary() const = 0;
  /// Starts a batch of sources: one row each, in order.
  virtual void start(const PackedIds& source) = 0;
  /// Feeds a token to each row; returns scores [R, V] whose softmax is the next token's distribution. They live until
  /// the next call.
  virtual Tensor<float> step(std::span<const std::int32_t> tokens) = 0;
  /// The same, but gives the k likeliest tokens only: their log-probabilities and ids [R, k], likeliest first, of equal
  /// ones the one of lower id. `device` is scratch.
  virtual void step(std::span<const std::int32_t> tokens, CpuContext& device, std::int64_t k, float* log_probabilities,
                    std::int32_t* ids);
  /// Row i becomes what row parents[i] was; the number of rows becomes parents.size().
  virtual void reorder(std::span<const std::int32_t> parents) = 0;
  /// Threads that share the work of the next batches; null: none. The results stay the same, bit for bit.
  virtual void share_with(ThreadTeam* team) = 0;
};

/// The k likeliest of softmax(hidden W^T + b) for each row, likeliest first, of equal ones the one of lower index:
/// log-probabilities and indices [R, k]. `device` is scratch for what is rare.
///
/// Shapes: hidden [R, D], weight [V, D], bias [V] or absent.
void output_top_k(Graph<float>& graph, Tensor<float> hidden, Tensor<float> weight, Tensor<float> bias,
                  CpuContext& device, std::int64_t k, float* log_probabilities, std::int32_t* ids);

/// A Transformer with its weights, decoding on one thread.
class TransformerStepModel : public StepModel {
 public:
  /// Model and parameters must outlive this; they are only read, and may serve other threads at the same time, as may
  /// `packed` (null: it packs for itself) and `shortlist` (null: every piece is allowed).
  TransformerStepModel(const Transformer<float>& model, ParameterValues<float>& parameters, Precision precision,
                       std::shared_ptr<PackedParameters<float>> packed = nullptr,
                       std::shared_ptr<const Shortlist> shortlist = nullptr);

  std::int64_t vocabulary() const override { return model_.config().target_vocabulary; }
  void start(const PackedIds& source) override;
  Tensor<float> step(std::span<const std::int32_t> tokens) override;
  void step(std::span<const std::int32_t> tokens, CpuContext& device, std::int64_t k, float* log_probabilities,
            std::int32_t* ids) override;
  void reorder(std::span<const std::int32_t> parents) override;
  void share_with(ThreadTeam* team) override { device_.team = team; }

 private:
  const Transformer<float>& model_;
  std::shared_ptr<PackedParameters<float>> packed_;
  Arena arena_;
  CpuContext device_;
  Graph<float> graph_;
  DecoderCache<float> cache_;
  std::shared_ptr<const Shortlist> shortlist_;
  ShortlistOutput shortlist_output_;
};

/// Several models of one target vocabulary: the mean of their probabilities. Scores are log-probabilities.
class EnsembleStepModel : public StepModel {
 public:
  explicit EnsembleStepModel(std::vector<std::unique_ptr<StepModel>> models) : models_(std::move(models)) {}
  using StepModel::step;

  std::int64_t vocabulary() const override { return models_.front()->vocabulary(); }
  void start(const PackedIds& source) override;
  Tensor<float> step(std::span<const std::int32_t> tokens) override;
  void reorder(std::span<const std::int32_t> parents) override;
  void share_with(ThreadTeam* team) override;

 private:
  std::vector<std::unique_ptr<StepModel>> models_;
  std::vector<float> mean_;
};

}  // namespace heed
