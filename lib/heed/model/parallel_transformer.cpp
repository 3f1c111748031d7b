#include "heed/model/parallel_transformer.h"

#include <algorithm>
#include <numeric>

#include "heed/base/error.h"

namespace heed {
namespace {

/// Targets of which some tokens are masked, in memory of an arena.
struct MaskedTargets {
  std::span<const std::int32_t> ids;  // all tokens, with <s> in the place of masked ones
  PackedOffsets offsets;
  std::span<const std::int32_t> rows, tokens;  // the index of each masked token in `ids`, and which token it is
};

/// Puts `count` different random numbers of 0 ... all.size() - 1 into the first elements of `all`, in ascending order.
void choose(std::span<std::int32_t> all, std::size_t count, const RandomStream& stream) {
  std::iota(all.begin(), all.end(), 0);
  for (std::size_t i = 0; i < count; ++i) std::swap(all[i], all[i + stream.below(all.size() - i, i + 1)]);
  std::sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
}

/// Masks random tokens of the targets of a batch. `fixed` is TransformerConfig::fixed_length.
template <class T>
MaskedTargets mask(Graph<T>& graph, const Batch& batch, int fixed) {
  const PackedOffsets target = batch.target_in.packed();
  const int sequences = target.sequences();
  const auto ints = [&](std::int64_t size) { return graph.host_arena().template tensor<std::int32_t>({size}); };
  const Tensor<std::int32_t> offsets = ints(sequences + 1);
  offsets[0] = 0;
  for (int b = 0; b < sequences; ++b) {
    if (fixed > 0 && target.length(b) > fixed)
      throw Error("a target of " + std::to_string(target.length(b)) + " tokens is longer than --fixed-length " +
                  std::to_string(fixed) + " (cut it with --max-length)");
    offsets[b + 1] = offsets[b] + (fixed > 0 ? fixed : target.length(b));
  }
  const Tensor<std::int32_t> ids = ints(offsets[sequences]), rows = ints(target.tokens()),
                             tokens = ints(target.tokens()), chosen = ints(target.longest());
  std::ranges::fill(ids.span(), kStartId);
  std::size_t masked = 0;
  for (int b = 0; b < sequences; ++b) {
    const std::int32_t* const correct = batch.target_out.data() + target.begin(b);
    std::copy_n(correct, target.length(b), ids.data() + offsets[b]);
    const std::size_t all = static_cast<std::size_t>(target.length(b)) - (fixed > 0 ? 0 : 1);
    if (all == 0) continue;
    const RandomStream stream(graph.dropout_key().seed, RandomUse::masks, graph.dropout_key().update,
                              (graph.first_sequence() + static_cast<std::uint32_t>(b)) & 0xFFFFFF);
    const std::size_t count = 1 + stream.below(all, 0);
    choose(chosen.span().first(all), count, stream);
    for (const std::int32_t place : chosen.span().first(count)) {
      rows.span()[masked] = offsets[b] + place;
      tokens.span()[masked++] = correct[place];
      ids[offsets[b] + place] = kStartId;
    }
  }
  return {ids.span(), {offsets.span()}, rows.span().first(masked), tokens.span().first(masked)};
}

/// A batch whose targets a ParallelTransformer predicts.
template <class T>
class ParallelTransformerState : public ParallelState<T> {
 public:
  ParallelTransformerState(const ParallelTransformer<T>& model, Device device)
      : model_(model), arena_(device.arena().source()) {}

  void start(Graph<T>& graph, const PackedIds& source) override {
    const EncoderOutput<T> encoded = model_.encode(graph, source);
    source_ = source.offsets;
    lengths_ = model_.lengths(graph, encoded, source.packed());
    arena_.reset();
    memory_ = model_.project_memory(graph, encoded, arena_);
  }
  std::vector<std::vector<TargetLength>> lengths() const override { return lengths_; }
  Variable<T> predict(Graph<T>& graph, const PackedIds& targets, std::span<const std::int32_t> sentences) override {
    queries_.assign(source_.size(), 0);
    for (int i = 0; i < targets.sequences(); ++i)
      queries_[static_cast<std::size_t>(sentences[static_cast<std::size_t>(i)]) + 1] += targets.packed().length(i);
    std::partial_sum(queries_.begin(), queries_.end(), queries_.begin());
    return model_.decode(graph, memory_, targets.ids, {targets.packed(), {queries_}, {source_}});
  }

 private:
  const ParallelTransformer<T>& model_;
  std::vector<std::int32_t> source_, queries_;  // offsets
  std::vector<std::vector<TargetLength>> lengths_;
  Arena arena_;                    // in the memory of the device
  std::vector<Tensor<T>> memory_;  // [layers], in the memory of arena_
};

}  // namespace

template <class T>
Variable<T> ParallelTransformer<T>::hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace) const {
  const EncoderOutput<T> encoded = this->encode(graph, batch.source, trace);
  const PackedOffsets target = batch.target_in.packed();
  return this->decode(graph, encoded, batch.target_out, {target, target, batch.source.packed()}, trace);
}

template <class T>
Predictions<T> ParallelTransformer<T>::predictions(Graph<T>& graph, const Batch& batch, double scale, Trace<T>* trace,
                                                   CrossEntropySums* lengths) const {
  const MaskedTargets masked = mask(graph, batch, this->config_.fixed_length);
  const EncoderOutput<T> encoded = this->encode(graph, batch.source, trace);
  const Variable<T> all =
      this->decode(graph, encoded, masked.ids, {masked.offsets, masked.offsets, batch.source.packed()}, trace);
  Predictions<T> out{gather_rows<T>(graph, all, masked.rows), masked.tokens};
  if (!this->lengths_) return out;
  out.loss = this->lengths_->loss(graph, encoded.last, batch.source.packed(), batch.target_in.packed(), scale, lengths);
  return out;
}

template <class T>
std::vector<std::vector<TargetLength>> ParallelTransformer<T>::lengths(Graph<T>& graph, const EncoderOutput<T>& encoded,
                                                                       PackedOffsets source) const {
  std::vector<std::vector<TargetLength>> out(static_cast<std::size_t>(source.sequences()));
  const InferenceScope scope(graph);
  const Tensor<T> known = this->lengths_
                              ? graph.device().download(this->lengths_->log_probabilities(graph, encoded.last, source))
                              : Tensor<T>();
  for (int b = 0; b < source.sequences(); ++b) {
    std::vector<TargetLength>& own = out[static_cast<std::size_t>(b)];
    if (!this->lengths_) own.push_back({this->config_.fixed_length, 0});
    for (std::int64_t i = 0; this->lengths_ && i < known.columns(); ++i)
      if (const int tokens = source.length(b) + static_cast<int>(i) - this->lengths_->range(); tokens > 0)
        own.push_back({tokens, static_cast<float>(known.row(b)[i])});
  }
  return out;
}

template <class T>
std::unique_ptr<DecoderState<T>> ParallelTransformer<T>::make_state(Device) const {
  throw Error("internal: the model predicts all positions at once");
}

template <class T>
std::unique_ptr<ParallelState<T>> ParallelTransformer<T>::make_parallel_state(Device device) const {
  return std::make_unique<ParallelTransformerState<T>>(*this, device);
}

template class ParallelTransformer<float>;
template class ParallelTransformer<double>;

}  // namespace heed
