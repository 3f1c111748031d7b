#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "heed/autograd/graph.h"
#include "heed/model/batch.h"
#include "heed/model/model_config.h"
#include "heed/nn/image_grid.h"
#include "heed/nn/norm.h"
#include "heed/nn/position_table.h"
#include "heed/nn/product.h"
#include "heed/nn/trace.h"
#include "heed/ops/cross_entropy.h"

namespace heed {

/// Attention layers of one kind in a model that are alike.
struct AttentionLayers {
  AttentionKind kind = AttentionKind::encoder;
  int layers = 0, heads = 1;
  std::int64_t width = 0;  ///< D, the number of columns of all heads together
  double dropout = 0;      ///< the probability of dropping an attention weight
  /// The mean number of keys of a query, if queries attend within windows; 0 if a query attends to a whole sequence.
  double window = 0;
  /// The number of source tokens for each query: above 1 where a model has merged tokens.
  int tokens_per_query = 1;
};

/// The residual connections with normalisation (nn/norm.h) of a model: one of the normalisations, and how many of them
/// a source token and a target token pass.
struct ResidualNorms {
  Norm norm;
  int source = 0, target = 0;
  double dropout = 0;
};

/// What a training loss is: the cross-entropy with label smoothing and, where the batch has alignments,
/// alignment_weight times the loss of guided alignment (see ops/cross_entropy.h and ops/alignment_loss.h); both are
/// multiplied by `scale`. With `consistency` above 0, a training graph computes R-Drop: two passes with different
/// dropout, which should agree (see consistent_cross_entropy() in ops/cross_entropy.h).
struct LossOptions {
  double label_smoothing = 0;
  double scale = 1;
  double alignment_weight = 0;
  double consistency = 0;
};

/// The sums of a batch from which training and validation report, without LossOptions::scale. `loss` includes
/// alignment_weight times the loss of the alignment. `tokens` counts the tokens that the model had to predict.
struct LossSums : CrossEntropySums {
  std::int64_t target_tokens = 0;  ///< the number of all target tokens of the batch, predicted or not
  AlignmentSums alignment = {};

  LossSums& operator+=(const LossSums& other) {
    CrossEntropySums::operator+=(other);
    target_tokens += other.target_tokens;
    alignment.loss += other.alignment.loss;
    alignment.queries += other.alignment.queries;
    return *this;
  }
};

/// The sums of a batch as the kernels of its losses write them, in the memory of the host. A GPU may not have computed
/// them yet: see Device::wait().
struct PendingSums {
  CrossEntropySums entropy;  ///< of the tokens
  CrossEntropySums lengths;  ///< of the targets' lengths, where the model predicts them
  AlignmentSums alignment;   ///< of the guided alignment
  double alignment_weight = 0;
  std::int64_t target_tokens = 0;

  LossSums total() const {
    LossSums out{entropy, target_tokens, alignment};
    out.loss += lengths.loss + alignment_weight * alignment.loss;
    return out;
  }
};

/// What a model predicts of a batch in training.
template <class T>
struct Predictions {
  Variable<T> hidden;                    ///< [R, D]: a row for each token that is to be predicted
  std::span<const std::int32_t> tokens;  ///< [R]: the correct tokens, one for each row of `hidden`
  Variable<T> loss = {};                 ///< a further loss (of predicted target lengths), a scalar; or absent
};

/// A batch of sequences that a model is decoding step by step. The state has rows, one for each hypothesis, and each
/// step feeds tokens to every row. Shapes: R rows, D columns of the model's hidden states.
template <class T>
class DecoderState {
 public:
  virtual ~DecoderState() = default;

  /// Encodes the sources of a batch. The rows become one empty hypothesis for each sequence of `source`.
  virtual void start(Graph<T>& graph, const PackedIds& source) = 0;
  /// Feeds tokens[r] to row r. Returns the hidden states [R, D], the inputs of the output layer.
  virtual Variable<T> step(Graph<T>& graph, std::span<const std::int32_t> tokens) = 0;
  /// Replaces the rows: the new row i is a copy of the old row parents[i]. An old row may occur in `parents` several
  /// times or never; parents.size() is the new number of rows.
  virtual void select(std::span<const std::int32_t> parents) = 0;

  /// Feeds a chain of counts[r] tokens to each row r: the first counts[0] of the N elements of `tokens` to row 0, and
  /// so on. Afterwards the state has N rows: row i has been fed token i and the tokens of the chain before it. Returns
  /// the hidden states [N, D]: row i has the bits that step() would return for token i after it had read the tokens
  /// before it, one in each step.
  virtual Variable<T> step_chains(Graph<T>& graph, std::span<const std::int32_t> tokens,
                                  std::span<const std::int32_t> counts) = 0;
  /// Forgets the last tokens of each row: row r keeps the first lengths[r] of the tokens that were fed to it.
  virtual void truncate(std::span<const std::int32_t> lengths) = 0;
};

/// A number of target tokens, `</s>` included, and its log-probability.
struct TargetLength {
  int tokens = 0;
  float log_probability = 0;
};

/// A batch of sequences whose targets a model predicts at all positions at once. A position that is to be predicted has
/// the token `<s>`, which no target has.
template <class T>
class ParallelState {
 public:
  virtual ~ParallelState() = default;

  /// Encodes the sources of a batch.
  virtual void start(Graph<T>& graph, const PackedIds& source) = 0;
  /// Returns for each source the lengths that its target may have, in ascending order. A target of any other length has
  /// the probability 0.
  virtual std::vector<std::vector<TargetLength>> lengths() const = 0;
  /// Reads whole targets, target i one of the source sentences[i], in ascending order of the sources. Returns the
  /// hidden states [N, D] of all N target tokens, the inputs of the output layer.
  virtual Variable<T> predict(Graph<T>& graph, const PackedIds& targets, std::span<const std::int32_t> sentences) = 0;
};

/// A model that reads a source and produces a target, token by token or all tokens at once. It holds the names and
/// shapes of parameters; a Graph holds their values. One model object can therefore serve any number of threads, in
/// training, scoring and step-by-step decoding. `T` is float, or double for gradient checks.
///
/// Shapes: N target tokens of a packed batch, D the model's width, V the target vocabulary.
template <class T>
class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const { return config_; }
  const ParameterLayout& layout() const { return layout_; }
  /// Returns D, the number of columns of the hidden states, which the output layer reads.
  std::int64_t width() const { return layout_[output_weight_].shape[1]; }
  /// Returns V, the number of pieces in the target vocabulary.
  std::int64_t target_vocabulary() const { return layout_[output_weight_].shape[0]; }

  /// Returns the weight W [V, D] of the output layer: logits = hidden W^T + b.
  Variable<T> output_weight(Graph<T>& graph) const { return graph.parameter(output_weight_); }
  /// Returns the bias b [V] of the output layer; the variable is absent if the model has no output bias.
  Variable<T> output_bias(Graph<T>& graph) const {
    return output_bias_ ? graph.parameter(output_bias_) : Variable<T>();
  }

  /// Computes the hidden states of all target positions at once from the given target (teacher forcing). Returns
  /// [N, D], one row for each element of batch.target_out. `trace`, if not null, receives the attention weights.
  virtual Variable<T> hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace = nullptr) const = 0;
  /// Returns the training loss of a batch, a scalar. `sums`, where not null, receives the sums over the batch. Throws
  /// Error if an alignment is to be learnt and the model has no cross-attention.
  /// If `soft` has teachers, their predictions take a share of the targets (see SoftTargets in ops/cross_entropy.h).
  /// Throws Error if `soft` has teachers and the graph computes R-Drop (options.consistency above 0).
  Variable<T> loss(Graph<T>& graph, const Batch& batch, const LossOptions& options, PendingSums* sums,
                   const SoftTargets<T>& soft = {}) const;
  /// Returns the model as a teacher of a batch: the hidden states [R, D] of the R tokens that a training would predict,
  /// and the weight and the bias of the output layer. `graph` must be a graph for inference; the result is valid until
  /// the graph is reset.
  TeacherStates<T> teacher_states(Graph<T>& graph, const Batch& batch) const;
  /// Returns whether the model predicts all positions of a target at once.
  bool is_parallel() const { return heed::is_parallel(config_); }
  /// Creates the state of a batch that is to be decoded step by step on a device, by graphs on this device. The model
  /// and the context of the device must outlive the state. The precision of the device may also decide how a state
  /// stores its numbers. Throws Error if is_parallel().
  virtual std::unique_ptr<DecoderState<T>> make_state(Device device) const = 0;
  /// Creates the state of a batch whose targets are to be predicted at all positions at once. The model and the context
  /// of the device must outlive the state. Throws Error unless is_parallel().
  virtual std::unique_ptr<ParallelState<T>> make_parallel_state(Device device) const;
  /// Returns whether the model predicts where a target ends, by `</s>` among its tokens, instead of predicting the
  /// number of tokens beforehand.
  virtual bool predicts_end() const { return true; }

  /// Returns the matrix products of all layers in the order of the forward pass, without the product of the output
  /// layer. Inference reads the weights of these products by linear() alone, so that they may exist in packed form
  /// only; a parameter that is not listed is always in memory.
  virtual std::vector<Product> products() const = 0;
  /// Returns the attention layers: one element for each kind of attention that the model has, or several where the
  /// layers of a kind differ, in the order of the layers.
  virtual std::vector<AttentionLayers> attention_layers() const = 0;
  /// Returns the places in the image of the tokens that attention layer number `layer` (from 0) attends to, for an
  /// image of the model's size; in self-attention, the same tokens are the queries. Returns nothing if these tokens are
  /// not patches of an image. A Trace receives the weights of the layer with the sequences of the grid, once for each
  /// image of the batch.
  virtual std::optional<ImageGrid> image_grid(AttentionKind /*kind*/, int /*layer*/) const { return {}; }
  /// Returns the numbers by which the model encodes positions, for the first `positions` positions or as many as the
  /// model has; nothing for a model that does not encode positions. Memory comes from the arena of the graph.
  virtual std::vector<PositionTable> position_tables(Graph<T>& graph, std::int64_t positions) const;
  /// Returns the residual connections with normalisation of the model. Cost models predict the time of the layers from
  /// the result, products() and attention_layers(). Returns nothing if the layers also have other work; their time can
  /// then only be measured, with whole batches.
  virtual std::optional<ResidualNorms> residual_norms() const = 0;

 protected:
  explicit Model(const ModelConfig& config) : config_(config) {}

  /// Returns the hidden states of the tokens to predict, and these tokens, from which loss() computes the
  /// cross-entropy. `scale` is the factor by which Predictions::loss is multiplied. If not null, `trace` receives the
  /// attention weights, and `lengths` receives the sums of the loss of the predicted lengths.
  virtual Predictions<T> predictions(Graph<T>& graph, const Batch& batch, double scale, Trace<T>* trace,
                                     CrossEntropySums* lengths) const;

  ModelConfig config_;
  ParameterLayout layout_;
  ParameterId output_weight_, output_bias_;
};

/// Returns the index of the last layer with cross-attention, counted from 0, whose weights tell which source tokens a
/// target token comes from. Returns -1 where the model has no cross-attention.
template <class T>
int last_cross_attention(const Model<T>& model) {
  for (const AttentionLayers& each : model.attention_layers())
    if (each.kind == AttentionKind::cross) return each.layers - 1;
  return -1;
}

extern template class Model<float>;
extern template class Model<double>;

}  // namespace heed
