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

/// The interface through which a search uses a model. The model keeps rows, one for each hypothesis, and each step
/// feeds one token to every row. Searches work with any class that implements StepModel, such as an ensemble.
class StepModel {
 public:
  virtual ~StepModel() = default;

  /// Returns the size V of the target vocabulary.
  virtual std::int64_t vocabulary() const = 0;
  /// Starts a batch: the rows become one empty hypothesis for each source, in order.
  virtual void start(const PackedIds& source) = 0;
  /// Feeds tokens[i] to row i, one row for each hypothesis. Returns scores [R, V] of R rows and V vocabulary entries;
  /// the softmax of a row is the distribution of the row's next token. The scores are valid until the next call.
  virtual Tensor<float> step(std::span<const std::int32_t> tokens) = 0;
  /// Feeds tokens[i] to row i, like step(tokens), but returns only the k likeliest next tokens of each row: their
  /// log-probabilities and ids, both [R, k], likeliest first. Of equally likely tokens, the one with the lower id comes
  /// first. `device` provides temporary memory.
  virtual void step(std::span<const std::int32_t> tokens, CpuContext& device, std::int64_t k, float* log_probabilities,
                    std::int32_t* ids);
  /// Reorders the rows, one for each hypothesis: new row i becomes a copy of old row parents[i]. Afterwards the number
  /// of rows is parents.size().
  virtual void reorder(std::span<const std::int32_t> parents) = 0;
  /// Lets the threads of `team` share the work of the following batches; with null, one thread does all work. The
  /// results are the same, bit for bit.
  virtual void share_with(ThreadTeam* team) = 0;
};

/// Returns the largest of some scores, of which there is at least one.
float largest_score(std::span<const float> scores);

/// Returns log(sum(exp(score))) of some scores, of which there is at least one.
float log_sum_exp(std::span<const float> scores);

/// Returns log(sum(exp(score))) of each row of scores, [R] for scores [R, V], in the arena of `device`: the score minus
/// this number is the log-probability of a token. It is NaN where the largest score is.
Tensor<float> log_normalizers(CpuContext& device, Tensor<float> scores);

/// Adds `share` times the probabilities that the softmax of each row of scores [R, V] gives to `sum` [R, V].
void add_probabilities(Tensor<float> scores, float share, std::span<float> sum);

/// Computes the k likeliest columns (tokens) of softmax(hidden W^T + b) for each row: their log-probabilities and
/// indices, both [R, k], in the memory of the host, likeliest first. Of equally likely columns, the one with the lower
/// index comes first. `host` provides temporary memory for the rare case in which a CPU must compute all columns at
/// once instead of in blocks. A GPU computes all columns of some rows at once, and the host waits for it only once.
///
/// Shapes: hidden [R, D], weight [V, D], bias [V] or absent.
void output_top_k(Graph<float>& graph, Tensor<float> hidden, Tensor<float> weight, Tensor<float> bias, CpuContext& host,
                  std::int64_t k, float* log_probabilities, std::int32_t* ids);

/// A StepModel of one model, which computes on one thread, or on a team of threads, or on a GPU.
class NetworkStepModel : public StepModel {
 public:
  /// The model and the parameters are only read, may be used by other threads at the same time, and must outlive this
  /// object. `packed` holds the parameters as the device reads them, and may be shared with other objects; null packs
  /// the weights for this object alone, on the CPU. `shortlist` may be shared too; null allows every piece of the
  /// vocabulary.
  NetworkStepModel(const Model<float>& model, ParameterValues<float>& parameters, Precision precision,
                   std::shared_ptr<PackedParameters<float>> packed = nullptr,
                   std::shared_ptr<const Shortlist> shortlist = nullptr);

  std::int64_t vocabulary() const override { return model_.target_vocabulary(); }
  void start(const PackedIds& source) override;
  Tensor<float> step(std::span<const std::int32_t> tokens) override;
  void step(std::span<const std::int32_t> tokens, CpuContext& device, std::int64_t k, float* log_probabilities,
            std::int32_t* ids) override;
  void reorder(std::span<const std::int32_t> parents) override;
  void share_with(ThreadTeam* team) override { device_.share_with(team); }

  /// Feeds a chain of counts[r] tokens to row r: the first counts[0] of the N elements of `tokens` to row 0, and so on.
  /// Afterwards the model has N rows: row i has been fed token i and the tokens of the chain before it, and can be
  /// chosen with reorder(). Returns the k likeliest next tokens of each row like step(tokens, device, k, ...), both
  /// [N, k], with the bits that step() would give if it fed the tokens one after the other. The weights are read only
  /// once for all tokens.
  void step_chains(std::span<const std::int32_t> tokens, std::span<const std::int32_t> counts, CpuContext& device,
                   std::int64_t k, float* log_probabilities, std::int32_t* ids);
  /// Forgets the last tokens of each row: row r keeps the first lengths[r] of the tokens that were fed to it.
  void truncate(std::span<const std::int32_t> lengths) { state_->truncate(lengths); }

 private:
  void best(Tensor<float> hidden, CpuContext& device, std::int64_t k, float* log_probabilities, std::int32_t* ids);

  const Model<float>& model_;
  std::shared_ptr<PackedParameters<float>> packed_;
  OwnedDevice device_;
  Graph<float> graph_;
  std::unique_ptr<DecoderState<float>> state_;
  std::shared_ptr<const Shortlist> shortlist_;
  ShortlistOutput shortlist_output_;
};

/// An ensemble of models with the same target vocabulary. The score of a token is the logarithm of the mean of the
/// models' probabilities.
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
