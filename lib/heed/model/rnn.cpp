#include "heed/model/rnn.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/base/error.h"
#include "heed/ops/additive_attention.h"
#include "heed/ops/arithmetic.h"
#include "heed/ops/decode_attention.h"
#include "heed/ops/dropout.h"
#include "heed/ops/embedding.h"
#include "heed/ops/parts.h"
#include "heed/tensor/device_memory.h"

namespace heed {
namespace {

/// Returns an array of `size` indices in host_arena() of the graph.
template <class T>
std::span<std::int32_t> index_array(Graph<T>& graph, std::int64_t size) {
  return graph.host_arena().template tensor<std::int32_t>({size}).span();
}

/// Returns, for each token of a packed batch, the number of its sequence.
template <class T>
std::span<const std::int32_t> sequence_of_token(Graph<T>& graph, PackedOffsets packed) {
  const std::span<std::int32_t> out = index_array(graph, packed.tokens());
  for (int b = 0; b < packed.sequences(); ++b)
    std::fill_n(out.begin() + packed.begin(b), packed.length(b), static_cast<std::int32_t>(b));
  return out;
}

}  // namespace

template <class T>
RecurrentModel<T>::RecurrentModel(const ModelConfig& config, const RnnFields& fields, std::int64_t context,
                                  std::int64_t readout)
    : Model<T>(config), fields_(fields) {
  validate(config);
  ParameterLayout& layout = this->layout_;
  const RnnFields& f = fields_;
  const Initialiser normal = Initialiser::normal(1 / std::sqrt(static_cast<double>(f.dim_emb)));
  const auto add_embedding = [&](const char* name, std::int64_t size) {
    return layout.add(std::string("embeddings/") + name + "/weight", {size, f.dim_emb}, normal);
  };
  const bool all = f.tied_embeddings == TiedEmbeddings::all;
  source_embedding_ = add_embedding(all ? "shared" : "source", f.source_vocabulary);
  target_embedding_ = all ? source_embedding_ : add_embedding("target", f.target_vocabulary);

  const bool both = f.encoder == RnnEncoder::bidirectional;
  encoder_.emplace(layout, "encoder",
                   RecurrentLayerOptions{.cell = f.cell,
                                         .direction = both ? Direction::both : Direction::forward,
                                         .input = f.dim_emb,
                                         .width = both ? f.dim_rnn / 2 : f.dim_rnn},
                   f.enc_depth, f.dropout);
  decoder_.emplace(layout, "decoder",
                   RecurrentLayerOptions{.cell = f.cell, .input = f.dim_emb, .width = f.dim_rnn, .context = context},
                   f.dec_depth, f.dropout);
  for (int i = 0; i < f.dec_depth; ++i) {
    const std::string name = "decoder/first_state/" + std::to_string(i);
    first_hidden_.emplace_back(layout, name + "/hidden", f.dim_rnn, f.dim_rnn);
    if (f.cell == RecurrentCell::lstm) first_cell_.emplace_back(layout, name + "/cell", f.dim_rnn, f.dim_rnn);
  }
  readout_.emplace(layout, "decoder/readout", readout, f.dim_emb);
  this->output_weight_ = f.tied_embeddings == TiedEmbeddings::none
                             ? layout.add("output/weight", {f.target_vocabulary, f.dim_emb}, Initialiser::xavier())
                             : target_embedding_;
  if (f.output_bias) this->output_bias_ = layout.add("output/bias", {f.target_vocabulary}, Initialiser::zeros());
}

template <class T>
Variable<T> RecurrentModel<T>::embed(Graph<T>& graph, ParameterId weight, std::span<const std::int32_t> ids) const {
  return embedding(graph, ids, {}, graph.parameter(weight), Variable<T>(),
                   static_cast<T>(std::sqrt(static_cast<double>(fields_.dim_emb))), fields_.dropout);
}

template <class T>
typename RecurrentModel<T>::Encoded RecurrentModel<T>::encode(Graph<T>& graph, const PackedIds& source) const {
  graph.set_rows(source.packed());
  std::vector<RecurrentState<T>> last(static_cast<std::size_t>(fields_.enc_depth));
  const Variable<T> memory = (*encoder_)(graph, embed(graph, source_embedding_, source.ids), source.packed(), {}, last);
  return {memory, last.back()};
}

template <class T>
std::vector<RecurrentState<T>> RecurrentModel<T>::first_states(Graph<T>& graph, const RecurrentState<T>& last) const {
  std::vector<RecurrentState<T>> states(first_hidden_.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    states[i].hidden = first_hidden_[i](graph, last.hidden, Activation::tanh);
    if (!first_cell_.empty()) states[i].cell = first_cell_[i](graph, last.cell);
  }
  return states;
}

template <class T>
Variable<T> RecurrentModel<T>::read_out(Graph<T>& graph, std::initializer_list<Variable<T>> parts) const {
  const Variable<T> beside = concatenate<T>(graph, std::span(parts.begin(), parts.size()));
  return dropout(graph, (*readout_)(graph, beside, Activation::tanh), fields_.dropout);
}

/// Lists the products whose number of rows is that of the tokens. The few products with a row for each sequence are not
/// listed.
template <class T>
std::vector<Product> RecurrentModel<T>::products() const {
  std::vector<Product> out;
  for (int i = 0; i < encoder_->depth(); ++i)
    (*encoder_)[i].add_products({.side = TokenSide::source, .in_encoder = true, .layer = i}, out);
  for (int i = 0; i < decoder_->depth(); ++i)
    (*decoder_)[i].add_products({.side = TokenSide::target, .in_encoder = false, .layer = i}, out);
  Product readout = readout_->product({.side = TokenSide::target, .layer = decoder_->depth() - 1});
  readout.activation = Activation::tanh;
  readout.dropout = fields_.dropout;
  out.push_back(readout);
  return out;
}

namespace {

/// The state of a batch that a recurrent model decodes step by step.
///
/// The states of the decoder's layers after each token are nodes, which lie one after the other in memory. A row is the
/// number of its last node, so that select() copies numbers and not states. While the batch has one sequence, the
/// nodes of earlier tokens are kept, and a row can go back to them (truncate()).
template <class T>
class RnnState : public DecoderState<T> {
 public:
  RnnState(const RecurrentModel<T>& model, Device device) : model_(model), device_(device), memory_(device) {}

  void start(Graph<T>& graph, const PackedIds& source) override {
    const auto encoded = model_.encode(graph, source);
    memory_.arena.reset();
    model_.remember(graph, encoded, source.packed(), memory_);
    keeps_history_ = source.sequences() == 1;
    const std::vector<RecurrentState<T>> states = model_.first_states(graph, encoded.last);
    while (nodes_.size() < states.size() * (has_cell() ? 2 : 1)) nodes_.emplace_back(device_);
    before_.clear();
    lengths_.assign(static_cast<std::size_t>(source.sequences()), 0);
    sentences_.resize(lengths_.size());
    std::iota(sentences_.begin(), sentences_.end(), 0);
    rows_ = add_nodes(states, std::vector<std::int32_t>(lengths_.size(), -1));
  }

  Variable<T> step(Graph<T>& graph, std::span<const std::int32_t> tokens) override {
    std::vector<RecurrentState<T>> states = states_of(graph, rows_);
    const Variable<T> hidden = model_.step(graph, tokens, sentences_, memory_, states);
    if (!keeps_history_) before_.clear();
    rows_ = add_nodes(states, keeps_history_ ? rows_ : std::vector<std::int32_t>(rows_.size(), -1));
    for (std::int32_t& length : lengths_) ++length;
    return hidden;
  }

  void select(std::span<const std::int32_t> parents) override {
    const auto choose = [&](std::vector<std::int32_t>& of_rows) {
      std::vector<std::int32_t> chosen;
      for (const std::int32_t parent : parents) chosen.push_back(of_rows[static_cast<std::size_t>(parent)]);
      of_rows = std::move(chosen);
    };
    choose(rows_);
    choose(sentences_);
    choose(lengths_);
  }

  /// Takes the steps of the chains one after the other: each needs the state after the step before.
  Variable<T> step_chains(Graph<T>& graph, std::span<const std::int32_t> tokens,
                          std::span<const std::int32_t> counts) override {
    const Variable<T> hidden = graph.result({std::ssize(tokens), model_.width()});
    std::vector<std::int32_t> rows(tokens.size()), sentences(tokens.size()), lengths(tokens.size());
    const std::int32_t longest = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
    for (std::int32_t i = 0; i < longest; ++i) {
      // The rows whose chain has a token i: their places in `tokens`, and their tokens, sentences and nodes.
      std::vector<std::int32_t> places, ids, of_sentences, nodes;
      std::int32_t first = 0;
      for (std::size_t r = 0; r < counts.size(); first += counts[r++]) {
        if (counts[r] <= i) continue;
        places.push_back(first + i);
        ids.push_back(tokens[static_cast<std::size_t>(first + i)]);
        of_sentences.push_back(sentences_[r]);
        nodes.push_back(i == 0 ? rows_[r] : rows[static_cast<std::size_t>(first + i - 1)]);
        lengths[static_cast<std::size_t>(first + i)] = lengths_[r] + i + 1;
      }
      std::vector<RecurrentState<T>> states = states_of(graph, nodes);
      const Variable<T> out = model_.step(graph, ids, of_sentences, memory_, states);
      const std::vector<std::int32_t> added = add_nodes(states, nodes);
      for (std::size_t k = 0; k < places.size(); ++k) {
        const auto place = static_cast<std::size_t>(places[k]);
        graph.device().copy(out.value.row_block(static_cast<std::int64_t>(k), 1), hidden.value.row_block(places[k], 1));
        rows[place] = added[k];
        sentences[place] = of_sentences[k];
      }
    }
    rows_ = std::move(rows);
    sentences_ = std::move(sentences);
    lengths_ = std::move(lengths);
    return hidden;
  }

  void truncate(std::span<const std::int32_t> lengths) override {
    if (!keeps_history_) throw Error("internal: a recurrent model goes back only while it decodes one sentence");
    for (std::size_t r = 0; r < rows_.size(); ++r)
      for (; lengths_[r] > lengths[r]; --lengths_[r]) rows_[r] = before_[static_cast<std::size_t>(rows_[r])];
  }

 private:
  bool has_cell() const { return model_.cell() == RecurrentCell::lstm; }
  /// Calls function(state, part) for each part of the states of the layers: the hidden state and, for an LSTM, the cell
  /// state of each layer. `part` is its part of nodes_.
  template <class State, class Function>
  void for_parts(std::span<State> states, Function function) {
    auto part = nodes_.begin();
    for (State& state : states) {
      function(state.hidden, *part++);
      if (has_cell()) function(state.cell, *part++);
    }
  }
  /// Appends the states of some rows as nodes; before[i] is the node before the i-th new node, or -1. Returns the
  /// numbers of the new nodes.
  std::vector<std::int32_t> add_nodes(const std::vector<RecurrentState<T>>& states,
                                      const std::vector<std::int32_t>& before) {
    const std::int64_t width = model_.state_width(), first = std::ssize(before_), count = std::ssize(before);
    const std::size_t bytes = static_cast<std::size_t>((first + count) * width) * sizeof(T);
    for_parts(std::span(states), [&](const Variable<T>& state, DeviceMemory& part) {
      part.grow_ahead(bytes);
      device_.copy(state.value, Tensor<T>(reinterpret_cast<T*>(part.data()) + first * width, {count, width}));
    });
    before_.insert(before_.end(), before.begin(), before.end());
    std::vector<std::int32_t> added(before.size());
    std::iota(added.begin(), added.end(), static_cast<std::int32_t>(first));
    return added;
  }

  /// Returns the states of some nodes as inputs of the graph.
  std::vector<RecurrentState<T>> states_of(Graph<T>& graph, std::span<const std::int32_t> nodes) {
    std::vector<RecurrentState<T>> states(nodes_.size() / (has_cell() ? 2 : 1));
    for_parts(std::span(states), [&](Variable<T>& state, DeviceMemory& part) {
      const Tensor<T> all(reinterpret_cast<T*>(part.data()), {std::ssize(before_), model_.state_width()});
      state = gather_rows(graph, graph.input(all), nodes);
    });
    return states;
  }

  const RecurrentModel<T>& model_;
  Device device_;
  RnnMemory<T> memory_;
  bool keeps_history_ = false;
  std::vector<DeviceMemory> nodes_;   // for each part of the states, [nodes, D]
  std::vector<std::int32_t> before_;  // for each node, the node of the token before
  std::vector<std::int32_t> rows_, sentences_, lengths_;
};

}  // namespace

template <class T>
std::unique_ptr<DecoderState<T>> RecurrentModel<T>::make_state(Device device) const {
  return std::make_unique<RnnState<T>>(*this, device);
}

template <class T>
Rnn<T>::Rnn(const RnnConfig& config)
    : RecurrentModel<T>(config, config, config.context == RnnContext::every_step ? config.dim_rnn : 0,
                        config.dim_emb + config.dim_rnn * (config.context == RnnContext::every_step ? 2 : 1)),
      every_step_(config.context == RnnContext::every_step) {}

template <class T>
std::vector<Product> Rnn<T>::products() const {
  std::vector<Product> out = RecurrentModel<T>::products();
  if (every_step_) out.push_back((*this->decoder_)[0].context_product({.side = TokenSide::target}));
  return out;
}

template <class T>
Variable<T> Rnn<T>::hidden(Graph<T>& graph, const Batch& batch, Trace<T>*) const {
  const auto encoded = this->encode(graph, batch.source);
  const PackedOffsets target = batch.target_in.packed();
  graph.set_rows(target);
  const std::vector<RecurrentState<T>> states = this->first_states(graph, encoded.last);
  const Variable<T> e = this->embed_target(graph, batch.target_in.ids);
  const Variable<T> context = every_step_ ? encoded.last.hidden : Variable<T>();
  const Variable<T> s = (*this->decoder_)(graph, e, target, states, {}, context);
  if (!every_step_) return this->read_out(graph, {s, e});
  return this->read_out(graph, {s, e, gather_rows(graph, context, sequence_of_token(graph, target))});
}

template <class T>
void Rnn<T>::remember(Graph<T>& graph, const typename RecurrentModel<T>::Encoded& encoded, PackedOffsets,
                      RnnMemory<T>& memory) const {
  if (!every_step_) return;
  const Variable<T> gates = (*this->decoder_)[0].project_context(graph, encoded.last.hidden);
  memory.context = copy_in(memory.arena, graph.device(), encoded.last.hidden.value);
  memory.context_gates = copy_in(memory.arena, graph.device(), gates.value);
}

template <class T>
Variable<T> Rnn<T>::step(Graph<T>& graph, std::span<const std::int32_t> tokens, std::span<const std::int32_t> sentences,
                         const RnnMemory<T>& memory, std::span<RecurrentState<T>> states) const {
  const Variable<T> e = this->embed_target(graph, tokens);
  if (!every_step_) return this->read_out(graph, {this->decoder_->step(graph, e, states), e});
  const auto rows = [&](Tensor<T> of) { return gather_rows(graph, graph.input(of), sentences); };
  const Variable<T> s = this->decoder_->step(graph, e, states, rows(memory.context_gates));
  return this->read_out(graph, {s, e, rows(memory.context)});
}

template <class T>
RnnAttention<T>::RnnAttention(const RnnAttentionConfig& config)
    : RecurrentModel<T>(config, config, config.attention == AttentionScoring::additive ? config.dim_rnn : 0,
                        2 * config.dim_rnn + (config.attention == AttentionScoring::additive ? config.dim_emb : 0)),
      attention_dropout_(config.attention_dropout) {
  if (config.attention != AttentionScoring::additive) return;
  const std::int64_t width = config.dim_rnn;
  query_weight_ = this->layout_.add("decoder/attention/query/weight", {width, width}, Initialiser::xavier());
  key_.emplace(this->layout_, "decoder/attention/key", width, width);
  // The standard deviation of a Glorot-initialised matrix [1, D].
  scorer_ = this->layout_.add("decoder/attention/scorer/weight", {width},
                              Initialiser::normal(std::sqrt(2 / (1 + static_cast<double>(width)))));
}

template <class T>
std::vector<Product> RnnAttention<T>::products() const {
  std::vector<Product> out = RecurrentModel<T>::products();
  if (!additive()) return out;
  Product query{.side = TokenSide::target};
  query.weight = query_weight_;
  query.outputs = query.inputs = this->state_width();
  out.push_back(query);
  out.push_back(key_->product({.side = TokenSide::source}));
  out.push_back((*this->decoder_)[0].context_product({.side = TokenSide::target}));
  return out;
}

template <class T>
std::vector<AttentionLayers> RnnAttention<T>::attention_layers() const {
  return {{AttentionKind::cross, 1, 1, this->state_width(), attention_dropout_}};
}

/// Returns the queries [N, D] of states [N, D] of the highest layer: for additive scores the projection, for dot
/// products sqrt(D) times the state, because attention() divides the scores by sqrt(D) and Luong's scores are not
/// divided.
template <class T>
Variable<T> RnnAttention<T>::project_query(Graph<T>& graph, const Variable<T>& state) const {
  if (additive()) return linear(graph, state, graph.parameter(query_weight_), Variable<T>());
  return multiply(graph, state, static_cast<T>(std::sqrt(static_cast<double>(this->state_width()))));
}

template <class T>
Variable<T> RnnAttention<T>::hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace) const {
  return additive() ? additive_hidden(graph, batch, trace) : dot_hidden(graph, batch, trace);
}

/// Computes hidden() for dot products: no step needs the attention of another, so that the attention of all positions
/// is computed at once.
template <class T>
Variable<T> RnnAttention<T>::dot_hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace) const {
  const auto encoded = this->encode(graph, batch.source);
  const PackedOffsets source = batch.source.packed(), target = batch.target_in.packed();
  graph.set_rows(target);
  const std::vector<RecurrentState<T>> states = this->first_states(graph, encoded.last);
  const Variable<T> s = (*this->decoder_)(graph, this->embed_target(graph, batch.target_in.ids), target, states);
  const Variable<T> query = project_query(graph, s);
  const bool wanted = trace && trace->wants(AttentionKind::cross, 0);
  const Variable<T> weights = wanted ? attention_weights(graph, target, source, 1) : Variable<T>();
  const Variable<T> a = attention<T>(graph, {query, 0}, {encoded.memory, 0}, {encoded.memory, 0}, this->state_width(),
                                     target, source, {.dropout = attention_dropout_}, weights);
  if (wanted) trace->attention(AttentionKind::cross, 0, 1, target, source, weights);
  return this->read_out(graph, {s, a});
}

/// Collects the attention weights of all steps of a batch in one variable, in the order of attention_weights_offset(),
/// for one head. steps[t] holds the weights of step t: one row for each sequence that still runs, in the order of
/// `order.sorted`. `source_offsets` are the offsets of the keys of the sequences in the same order. All arrays must
/// stay in memory until the backward pass has ended.
template <class T>
Variable<T> collect_weights(Graph<T>& graph, std::span<const Variable<T>> steps, const TimeOrder& order,
                            std::span<const std::int32_t> source_offsets, PackedOffsets target, PackedOffsets source) {
  const Variable<T> all = attention_weights(graph, target, source, 1);
  // Calls body(t, from, to, length) for each query: the `length` weights of the query begin at element `from` of the
  // weights of step t, and belong at element `to` of `all`.
  const auto for_each_query = [steps, order, source_offsets, target, source](const auto& body) {
    for (std::int64_t t = 0; t < std::ssize(steps); ++t)
      for (std::int64_t r = 0; r < order.rows(t); ++r) {
        const int sequence = order.sorted[r], length = source.length(sequence);
        body(t, source_offsets[static_cast<std::size_t>(r)],
             attention_weights_offset(target, source, 1, sequence, 0) + t * length, length);
      }
  };
  graph.run([&](auto& device) {
    for_each_query([&](std::int64_t t, std::int64_t from, std::int64_t to, int length) {
      const T* const step = steps[static_cast<std::size_t>(t)].value.data() + from;
      copy_block(device, step, length, all.value.data() + to, length, 1, length);
    });
  });
  graph.record([for_each_query, steps, all](auto& device) {
    if (all.gradient.empty()) return;
    const Tensor<T> gradient = all.gradient.sum();
    for_each_query([&](std::int64_t t, std::int64_t from, std::int64_t to, int length) {
      T* const step = steps[static_cast<std::size_t>(t)].gradient.sum().data() + from;
      add_block<T>(device, gradient.data() + to, length, step, length, 1, length);
    });
  });
  return all;
}

/// Computes hidden() for additive scores, one step of all sequences after another. The sequences are sorted by the
/// length of their target, longest first, so that the sequences of a step are the first of the step before (see
/// ops/recurrence.h).
template <class T>
Variable<T> RnnAttention<T>::additive_hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace) const {
  auto encoded = this->encode(graph, batch.source);
  const PackedOffsets source = batch.source.packed(), target = batch.target_in.packed();
  const std::int64_t sequences = source.sequences(), width = this->state_width();
  const TimeOrder order = time_order(graph.host_arena(), target, false);
  const std::span<const std::int32_t> sorted(order.sorted, static_cast<std::size_t>(sequences));

  // The memory in the sorted order of the sequences, with its offsets.
  const std::span<std::int32_t> source_rows = index_array(graph, source.tokens());
  const std::span<std::int32_t> source_offsets = index_array(graph, sequences + 1);
  auto row = source_rows.begin();
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    source_offsets[i] = static_cast<std::int32_t>(row - source_rows.begin());
    const auto end = row + source.length(sorted[i]);
    std::iota(row, end, source.begin(sorted[i]));
    row = end;
  }
  source_offsets.back() = static_cast<std::int32_t>(source_rows.size());
  Variable<T> memory = gather_rows(graph, encoded.memory, source_rows), keys = (*key_)(graph, memory);
  encoded.last.hidden = gather_rows(graph, encoded.last.hidden, sorted);
  if (encoded.last.cell) encoded.last.cell = gather_rows(graph, encoded.last.cell, sorted);
  std::vector<RecurrentState<T>> states = this->first_states(graph, encoded.last);

  // The embeddings in the order of the steps, and the place of each token of the batch in this order.
  const std::span<const std::int32_t> tokens(order.tokens, static_cast<std::size_t>(target.tokens()));
  const std::span<std::int32_t> places = index_array(graph, target.tokens());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    places[static_cast<std::size_t>(tokens[i])] = static_cast<std::int32_t>(i);
  graph.set_rows(target);
  const Variable<T> e = this->embed_target(graph, batch.target_in.ids), of_steps = gather_rows(graph, e, tokens);
  // Each sequence has one query in each step.
  const std::span<std::int32_t> query_offsets = index_array(graph, sequences + 1);
  std::iota(query_offsets.begin(), query_offsets.end(), 0);
  const bool wanted = trace && trace->wants(AttentionKind::cross, 0);
  const Tensor<Variable<T>> step_weights = graph.host_arena().template tensor<Variable<T>>({wanted ? order.steps : 0});

  std::vector<Variable<T>> all_states, all_attention;
  const std::uint32_t dropout_op = graph.dropout_op();
  for (std::int64_t t = 0; t < order.steps; ++t) {
    const std::int64_t rows = order.rows(t);
    const PackedOffsets queries{query_offsets.first(static_cast<std::size_t>(rows) + 1)};
    graph.set_rows(queries, sorted);
    graph.set_dropout_step(dropout_op, t);
    const PackedOffsets of_keys{source_offsets.first(static_cast<std::size_t>(rows) + 1)};
    if (t > 0 && rows < order.rows(t - 1)) {  // some sequences have ended: leaves out their rows
      const auto keep = [&](Variable<T>& x, std::int64_t count) { x = row_block(graph, x, 0, count); };
      for (RecurrentState<T>& state : states) {
        keep(state.hidden, rows);
        if (state.cell) keep(state.cell, rows);
      }
      keep(keys, of_keys.tokens());
      keep(memory, of_keys.tokens());
    }
    const Variable<T> query = project_query(graph, states.back().hidden);
    const Variable<T> weights = wanted ? attention_weights(graph, queries, of_keys, 1) : Variable<T>();
    const Variable<T> a = additive_attention<T>(graph, {query, 0}, {keys, 0}, {memory, 0}, graph.parameter(scorer_),
                                                width, queries, of_keys, {.dropout = attention_dropout_}, weights);
    if (wanted) step_weights[t] = weights;
    all_states.push_back(this->decoder_->step(graph, row_block(graph, of_steps, order.begins[t], rows), states,
                                              (*this->decoder_)[0].project_context(graph, a)));
    all_attention.push_back(a);
  }
  if (wanted)
    trace->attention(AttentionKind::cross, 0, 1, target, source,
                     collect_weights<T>(graph, step_weights.span(), order, source_offsets, target, source));
  graph.set_rows(target);
  graph.set_dropout_step(graph.dropout_op(), 0);
  const auto in_batch = [&](std::span<const Variable<T>> steps) {
    return gather_rows(graph, stack_rows<T>(graph, steps), std::span<const std::int32_t>(places));
  };
  return this->read_out(graph, {in_batch(all_states), e, in_batch(all_attention)});
}

template <class T>
void RnnAttention<T>::remember(Graph<T>& graph, const typename RecurrentModel<T>::Encoded& encoded,
                               PackedOffsets source, RnnMemory<T>& memory) const {
  memory.values = copy_in(memory.arena, graph.device(), encoded.memory.value);
  if (additive()) memory.keys = copy_in(memory.arena, graph.device(), (*key_)(graph, encoded.memory).value);
  memory.offsets = {put_in(memory.arena, graph.device(), source.offsets)};
}

/// Computes the attention [R, D] of one step for queries [R, D].
template <class T>
Variable<T> RnnAttention<T>::attend(Graph<T>& graph, const Variable<T>& query, std::span<const std::int32_t> sentences,
                                    const RnnMemory<T>& memory) const {
  const std::int64_t width = this->state_width(), bytes = width * static_cast<std::int64_t>(sizeof(T));
  const auto rows = [&](Tensor<T> of) { return CachedRows<T>{reinterpret_cast<const std::byte*>(of.data()), bytes}; };
  const std::span<const std::int32_t> of_rows =
      graph.device().upload(Tensor<const std::int32_t>(sentences.data(), {std::ssize(sentences)})).span();
  const Variable<T> a = graph.result({std::ssize(sentences), width});
  const RowView<T> queries{query.value.data(), width};
  if (additive())
    graph.run([&](auto& device) {
      additive_memory_attention<T>(device, queries, graph.parameter(scorer_).value.data(), rows(memory.keys),
                                   rows(memory.values), memory.offsets, of_rows, 1, width, a.value.data());
    });
  else
    graph.run([&](auto& device) {
      memory_attention<T>(device, queries, rows(memory.values), rows(memory.values), memory.offsets, of_rows, 1, width,
                          a.value.data());
    });
  return a;
}

template <class T>
Variable<T> RnnAttention<T>::step(Graph<T>& graph, std::span<const std::int32_t> tokens,
                                  std::span<const std::int32_t> sentences, const RnnMemory<T>& memory,
                                  std::span<RecurrentState<T>> states) const {
  const Variable<T> e = this->embed_target(graph, tokens);
  if (!additive()) {
    const Variable<T> s = this->decoder_->step(graph, e, states);
    return this->read_out(graph, {s, attend(graph, project_query(graph, s), sentences, memory)});
  }
  const Variable<T> a = attend(graph, project_query(graph, states.back().hidden), sentences, memory);
  const Variable<T> s = this->decoder_->step(graph, e, states, (*this->decoder_)[0].project_context(graph, a));
  return this->read_out(graph, {s, e, a});
}

template class RecurrentModel<float>;
template class RecurrentModel<double>;
template class Rnn<float>;
template class Rnn<double>;
template class RnnAttention<float>;
template class RnnAttention<double>;

}  // namespace heed
