#include "heed/model/model.h"

#include "heed/base/error.h"
#include "heed/ops/arithmetic.h"

namespace heed {

namespace {

/// Keeps the weights of the last cross-attention, and the sequences of its queries.
template <class T>
class CrossAttentionWeights : public Trace<T> {
 public:
  explicit CrossAttentionWeights(int layer) : layer_(layer) {}

  bool wants(AttentionKind kind, int layer) const override { return kind == AttentionKind::cross && layer == layer_; }
  void attention(AttentionKind, int, int heads, PackedOffsets queries, PackedOffsets,
                 const Variable<T>& weights) override {
    heads_ = heads;
    queries_ = queries;
    weights_ = weights;
  }

  int heads() const { return heads_; }
  PackedOffsets queries() const { return queries_; }
  const Variable<T>& weights() const { return weights_; }

 private:
  int layer_, heads_ = 1;
  PackedOffsets queries_;
  Variable<T> weights_;
};

}  // namespace

template <class T>
Predictions<T> Model<T>::predictions(Graph<T>& graph, const Batch& batch, double, Trace<T>* trace,
                                     CrossEntropySums*) const {
  return {hidden(graph, batch, trace), batch.target_out};
}

template <class T>
TeacherStates<T> Model<T>::teacher_states(Graph<T>& graph, const Batch& batch) const {
  const Predictions<T> found = predictions(graph, batch, 1, nullptr, nullptr);
  return {found.hidden.value, output_weight(graph).value, output_bias(graph).value};
}

template <class T>
Variable<T> Model<T>::loss(Graph<T>& graph, const Batch& batch, const LossOptions& options, PendingSums* sums,
                           const SoftTargets<T>& soft) const {
  const bool guided = options.alignment_weight > 0 && !batch.alignment.empty();
  const bool twice = options.consistency > 0 && graph.recording();
  CrossAttentionWeights<T> trace(guided ? last_cross_attention(*this) : -1);
  const CrossEntropyOptions entropy_options{.label_smoothing = options.label_smoothing,
                                            .scale = options.scale,
                                            .second_targets = batch.second_targets,
                                            .second_shares = batch.second_shares};
  const double scale = twice ? options.scale / 2 : options.scale;
  const Predictions<T> first =
      predictions(graph, batch, scale, guided ? &trace : nullptr, sums ? &sums->lengths : nullptr);
  const Variable<T> weight = output_weight(graph), bias = output_bias(graph);
  Variable<T> entropy;
  if (twice) {
    if (!soft.teachers.empty()) throw Error("internal: R-Drop has no soft targets");
    // The ops of the second pass have other numbers, and thus other dropout masks.
    const Predictions<T> second = predictions(graph, batch, scale, nullptr, nullptr);
    entropy = consistent_cross_entropy(graph, first.hidden, second.hidden, weight, bias, first.tokens, entropy_options,
                                       options.consistency, sums ? &sums->entropy : nullptr);
    if (second.loss) entropy = add(graph, entropy, second.loss);
  } else {
    entropy = projection_cross_entropy(graph, first.hidden, weight, bias, first.tokens, entropy_options,
                                       sums ? &sums->entropy : nullptr, soft);
  }
  if (first.loss) entropy = add(graph, entropy, first.loss);
  if (sums) {
    sums->target_tokens = std::ssize(batch.target_out);
    sums->alignment_weight = options.alignment_weight;
  }
  if (!guided) return entropy;
  if (!trace.weights()) throw Error("internal: guided alignment, but the model has no cross-attention");
  const Variable<T> guidance =
      alignment_loss(graph, trace.weights(), trace.heads(), trace.queries(), batch.source.packed(), batch.alignment,
                     options.scale * options.alignment_weight, sums ? &sums->alignment : nullptr);
  return add(graph, entropy, guidance);
}

template <class T>
std::unique_ptr<ParallelState<T>> Model<T>::make_parallel_state(Device) const {
  throw Error("internal: the model predicts one position after the other");
}

template <class T>
std::vector<PositionTable> Model<T>::position_tables(Graph<T>&, std::int64_t) const {
  return {};
}

template class Model<float>;
template class Model<double>;

}  // namespace heed
