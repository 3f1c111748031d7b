#include "heed/model/transformer.h"

#include <algorithm>
#include <cmath>

#include "heed/base/error.h"
#include "heed/ops/arithmetic.h"
#include "heed/ops/parts.h"

namespace heed {
namespace {

/// Returns 1 if the piece ends a word, otherwise 0.
std::int32_t ends_word(const PieceSet& ends, std::int32_t piece) {
  return ends.contains(piece) ? 1 : 0;
}

/// Returns for each token the number of words of its sequence that have ended before it; with `itself`, the token
/// counts too. The array is in host_arena() of the graph.
template <class T>
std::span<const std::int32_t> count_words(Graph<T>& graph, std::span<const std::int32_t> ids, PackedOffsets packed,
                                          const PieceSet& ends, bool itself) {
  const Tensor<std::int32_t> out = graph.host_arena().template tensor<std::int32_t>({packed.tokens()});
  for (int b = 0; b < packed.sequences(); ++b) {
    std::int32_t words = 0;
    for (int t = packed.begin(b); t < packed.begin(b) + packed.length(b); ++t) {
      const std::int32_t before = words;
      words += ends_word(ends, ids[static_cast<std::size_t>(t)]);
      out[t] = itself ? words : before;
    }
  }
  return out.span();
}

}  // namespace

template <class T>
Transformer<T>::Transformer(const TransformerConfig& c, const ModelConfig& whole, bool reads_tokens)
    : Model<T>(whole),
      config_(c),
      encoder_norms_(c.dim_emb, c.norm == NormPlacement::pre, c.normalization, c.norm_epsilon, c.dropout),
      decoder_norms_(c.dim_emb, c.norm == NormPlacement::pre, c.normalization, c.norm_epsilon, c.dropout) {
  c.validate();
  const Initialiser normal = Initialiser::normal(1 / std::sqrt(static_cast<double>(c.dim_emb)));
  const auto add_embedding = [&](const char* name, std::int64_t size) {
    return layout_.add(std::string("embeddings/") + name + "/weight", {size, c.dim_emb}, normal);
  };
  const bool all = c.tied_embeddings == TiedEmbeddings::all;
  const ParameterId source =
      reads_tokens ? add_embedding(all ? "shared" : "source", c.source_vocabulary) : ParameterId();
  const ParameterId target = all ? source : add_embedding("target", c.target_vocabulary);
  ParameterId positions;
  std::shared_ptr<const SinusoidTable<T>> sinusoids;
  if (c.positions == PositionEncoding::learned)
    positions = layout_.add("positions/weight", {c.max_positions, c.dim_emb}, normal);
  else if (is_sinusoidal(c.positions))
    sinusoids = std::make_shared<SinusoidTable<T>>(c.positions, c.dim_emb);
  if (c.word_positions) sinusoids = std::make_shared<SinusoidTable<T>>(PositionEncoding::interleaved, c.dim_emb);
  if (c.counts_words()) {
    source_word_ends_ = PieceSet::parse(c.source_word_ends, c.source_vocabulary);
    target_word_ends_ = PieceSet::parse(c.target_word_ends, c.target_vocabulary);
  }
  source_embedding_ = std::make_unique<TokenEmbedding<T>>(source, positions, sinusoids, c.dim_emb, c.dropout);
  target_embedding_ = std::make_unique<TokenEmbedding<T>>(target, positions, sinusoids, c.dim_emb, c.dropout);

  encoder_positions_.emplace(layout_, "encoder", c.positions, c.dim_emb, c.heads, false);
  decoder_positions_.emplace(layout_, "decoder", c.decoder_attends() ? c.positions : PositionEncoding::none, c.dim_emb,
                             c.heads, !c.is_parallel());
  add_layers(encoder_layers_, encoder_norms_, c.enc_depth);
  if (c.next_word)
    next_word_ = {.weight = layout_.add("decoder/next_word/weight", {c.dim_emb, c.dim_emb}, Initialiser::xavier()),
                  .outputs = c.dim_emb,
                  .inputs = c.dim_emb,
                  .side = TokenSide::source};
  add_layers(decoder_layers_, decoder_norms_, c.dec_depth);
  if (c.norm == NormPlacement::pre) {
    encoder_norms_.add(layout_, "encoder/norm");
    decoder_norms_.add(layout_, "decoder/norm");
  }
  this->output_weight_ = c.tied_embeddings == TiedEmbeddings::none
                             ? layout_.add("output/weight", {c.target_vocabulary, c.dim_emb}, Initialiser::xavier())
                             : target;
  if (c.output_bias) this->output_bias_ = layout_.add("output/bias", {c.target_vocabulary}, Initialiser::zeros());
  if (c.is_parallel() && c.fixed_length == 0) lengths_.emplace(layout_, c.dim_emb, c.length_range);
  encoder_norms_.add_running(layout_);
  decoder_norms_.add_running(layout_);
}

/// Appends `depth` layers to `layers`, each with parameters of its own or with those of an earlier layer.
template <class T>
template <class Layer>
void Transformer<T>::add_layers(std::vector<Layer>& layers, NormChain& norms, int depth) {
  layers.reserve(static_cast<std::size_t>(depth));
  for (int i = 0; i < depth; ++i) {
    const int owner = config_.parameters_of_layer(i);
    if (owner == i)
      layers.emplace_back(layout_, norms, config_, i);
    else
      layers.emplace_back(layers[static_cast<std::size_t>(owner)], norms, config_, i);
  }
}

/// Returns the position of each token in the token's sequence, counted from 0: an array of N elements for N tokens, in
/// host_arena() of the graph. Throws Error if a sequence is longer than the number of learned positions; sinusoidal
/// positions have no limit.
template <class T>
std::span<const std::int32_t> Transformer<T>::positions(Graph<T>& graph, PackedOffsets packed) const {
  const int length = packed.longest();
  if (config_.positions == PositionEncoding::learned && length > config_.max_positions)
    throw Error("a sequence of " + std::to_string(length) + " tokens is longer than the model's " +
                std::to_string(config_.max_positions) + " learned positions (cut it with --max-length)");
  const Tensor<std::int32_t> out = graph.host_arena().template tensor<std::int32_t>({packed.tokens()});
  for (int b = 0; b < packed.sequences(); ++b)
    for (int t = 0; t < packed.length(b); ++t) out[packed.begin(b) + t] = t;
  return out.span();
}

/// Returns the number of words that have ended before each source token, [S].
template <class T>
std::span<const std::int32_t> Transformer<T>::source_words(Graph<T>& graph, std::span<const std::int32_t> ids,
                                                           PackedOffsets packed) const {
  return count_words(graph, ids, packed, source_word_ends_, false);
}

/// Returns the number of words that have ended when each target token has been read, [N].
template <class T>
std::span<const std::int32_t> Transformer<T>::target_words(Graph<T>& graph, std::span<const std::int32_t> ids,
                                                           PackedOffsets packed) const {
  return count_words(graph, ids, packed, target_word_ends_, true);
}

template <class T>
typename Transformer<T>::SourceTokens Transformer<T>::embed_source(Graph<T>& graph, const PackedIds& source) const {
  const PackedOffsets packed = source.packed();
  graph.set_rows(packed);
  const auto at = config_.word_positions ? source_words(graph, source.ids, packed) : positions(graph, packed);
  return {(*source_embedding_)(graph, source.ids, at, packed.longest()), packed};
}

/// Returns EncoderOutput::words: the rows of the first pieces of the words.
template <class T>
std::span<const std::int32_t> Transformer<T>::first_pieces(Graph<T>& graph, const PackedIds& source) const {
  const PackedOffsets packed = source.packed();
  const std::span<const std::int32_t> words = source_words(graph, source.ids, packed);
  const Tensor<std::int32_t> out = graph.host_arena().template tensor<std::int32_t>({packed.tokens()});
  for (int b = 0; b < packed.sequences(); ++b) {
    const std::int32_t begin = packed.begin(b), last = begin + packed.length(b) - 1;
    std::fill(out.data() + begin, out.data() + last + 1, last);
    for (std::int32_t row = last; row-- > begin;) out[begin + words[static_cast<std::size_t>(row)]] = row;
  }
  return out.span();
}

/// Returns for each target token the vector of the source word that is the next to be written when the token has been
/// read, [N, D].
template <class T>
Variable<T> Transformer<T>::next_words(Graph<T>& graph, const EncoderOutput<T>& encoded,
                                       std::span<const std::int32_t> target_in, PackedOffsets target) const {
  const std::span<const std::int32_t> words = target_words(graph, target_in, target);
  const Tensor<std::int32_t> rows = graph.host_arena().template tensor<std::int32_t>({target.tokens()});
  for (int b = 0; b < target.sequences(); ++b)
    for (int t = target.begin(b); t < target.begin(b) + target.length(b); ++t)
      rows[t] = encoded.row_of_word(b, words[static_cast<std::size_t>(t)]);
  return gather_rows<T>(graph, (*next_word_)(graph, encoded.last), rows.span());
}

template <class T>
EncoderOutput<T> Transformer<T>::encode(Graph<T>& graph, const PackedIds& source, Trace<T>* trace) const {
  const auto [embedded, packed] = embed_source(graph, source);
  graph.set_rows(packed);
  ResidualStream<T> stream = encoder_norms_.start(graph, embedded);
  // In inference, all layers write their outputs to the memory of the stream, so that outputs that are read later are
  // copied.
  const bool keeps = config_.cross_attention != CrossAttention::last;
  const Tensor<Variable<T>> outputs = graph.host_arena().template tensor<Variable<T>>({keeps ? config_.enc_depth : 0});
  const StackPositions<T> shared = encoder_positions_->shared(graph, packed.longest());
  for (std::size_t i = 0; i < encoder_layers_.size(); ++i) {
    encoder_layers_[i].forward(graph, encoder_norms_, stream, shared, packed, trace);
    if (keeps)
      outputs[static_cast<std::int64_t>(i)] =
          graph.recording() ? stream.input : graph.input(copy_in(graph.arena(), graph.device(), stream.input.value));
  }
  return {stream.input, packed, outputs.span(),
          next_word_ ? first_pieces(graph, source) : std::span<const std::int32_t>()};
}

template <class T>
template <class Memory>
Variable<T> Transformer<T>::run_decoder(Graph<T>& graph, std::span<const std::int32_t> target_in,
                                        const DecoderOffsets& offsets, const Variable<T>& next_words, Memory memory,
                                        Trace<T>* trace) const {
  const PackedOffsets packed = offsets.target;
  graph.set_rows(packed);
  const auto at = config_.word_positions ? target_words(graph, target_in, packed) : positions(graph, packed);
  Variable<T> input = (*target_embedding_)(graph, target_in, at, packed.longest() + 1);
  if (next_words) input = add(graph, input, next_words);
  ResidualStream<T> stream = decoder_norms_.start(graph, input);
  const StackPositions<T> shared = decoder_positions_->shared(graph, packed.longest());
  for (const DecoderLayer& layer : decoder_layers_) {
    const InferenceScope scope(graph);
    layer.forward(graph, decoder_norms_, stream, shared, memory(layer), offsets, trace);
  }
  return stream.input;
}

template <class T>
Variable<T> Transformer<T>::decode(Graph<T>& graph, const EncoderOutput<T>& encoded,
                                   std::span<const std::int32_t> target_in, const DecoderOffsets& offsets,
                                   Trace<T>* trace) const {
  const auto memory = [&](const DecoderLayer& layer) { return layer.project_memory(graph, encoded); };
  const Variable<T> words = next_word_ ? next_words(graph, encoded, target_in, offsets.target) : Variable<T>();
  return run_decoder(graph, target_in, offsets, words, memory, trace);
}

template <class T>
std::vector<Tensor<T>> Transformer<T>::project_memory(Graph<T>& graph, const EncoderOutput<T>& encoded,
                                                      Arena& arena) const {
  std::vector<Tensor<T>> out;
  for (const DecoderLayer& layer : decoder_layers_) {
    const InferenceScope scope(graph);
    out.push_back(copy_in(arena, graph.device(), layer.project_memory(graph, encoded).value));
  }
  return out;
}

template <class T>
Variable<T> Transformer<T>::decode(Graph<T>& graph, std::span<const Tensor<T>> memory,
                                   std::span<const std::int32_t> target_in, const DecoderOffsets& offsets) const {
  auto next = memory.begin();
  const auto stored = [&](const DecoderLayer&) { return graph.input(*next++); };
  return run_decoder(graph, target_in, offsets, {}, stored, nullptr);
}

template <class T>
Variable<T> Transformer<T>::hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace) const {
  const EncoderOutput<T> encoded = encode(graph, batch.source, trace);
  const PackedOffsets target = batch.target_in.packed();
  return decode(graph, encoded, batch.target_in.ids, {target, target, encoded.tokens}, trace);
}

template <class T>
std::vector<Product> Transformer<T>::products() const {
  std::vector<Product> out;
  for (const EncoderLayer& layer : encoder_layers_) layer.add_products(out);
  if (next_word_) out.push_back(*next_word_);
  for (const DecoderLayer& layer : decoder_layers_) layer.add_products(out);
  return out;
}

template <class T>
std::vector<AttentionLayers> Transformer<T>::attention_layers() const {
  const auto layers = [this](AttentionKind kind, int number) {
    return AttentionLayers{kind, number, config_.heads, config_.dim_emb, config_.attention_dropout};
  };
  std::vector<AttentionLayers> out{layers(AttentionKind::encoder, config_.enc_depth)};
  if (config_.decoder_attends()) out.push_back(layers(AttentionKind::decoder, config_.dec_depth));
  out.push_back(layers(AttentionKind::cross, config_.dec_depth));
  return out;
}

template <class T>
std::vector<PositionTable> Transformer<T>::position_tables(Graph<T>& graph, std::int64_t positions) const {
  using enum PositionTable::Stack;
  std::vector<PositionTable> out;
  // Both stacks add the same vectors to the embeddings of tokens, unless the encoder reads something else.
  target_embedding_->add_tables(graph, source_embedding_->weight() ? both : decoder, positions, out);
  if (config_.word_positions) out.back().term = PositionTable::Term::word;
  // Rotations are the same in both stacks, which other terms are not.
  const bool same = config_.positions == PositionEncoding::rotary && config_.decoder_attends();
  encoder_positions_->add_tables(graph, same ? both : encoder, positions, out);
  if (!same) decoder_positions_->add_tables(graph, decoder, positions, out);
  for (const EncoderLayer& layer : encoder_layers_) layer.add_tables(graph, out);
  for (const DecoderLayer& layer : decoder_layers_) layer.add_tables(graph, out);
  return out;
}

template <class T>
std::optional<ResidualNorms> Transformer<T>::residual_norms() const {
  // The cost models time the attention of dot products without terms of positions only, and a loss of all positions.
  if (config_.attention != AttentionScoring::dot || is_within_attention(config_.positions) || config_.is_parallel() ||
      config_.next_word)
    return {};
  return ResidualNorms{encoder_norms_.first(), 2 * config_.enc_depth, 3 * config_.dec_depth, config_.dropout};
}

template <class T>
void Transformer<T>::start(Graph<T>& graph, const EncoderOutput<T>& encoded, DecoderCache<T>& cache) const {
  cache.begin(encoded.tokens);
  if (next_word_) cache.set_words(gather_rows<T>(graph, (*next_word_)(graph, encoded.last), encoded.words).value);
  for (std::size_t i = 0; i < decoder_layers_.size(); ++i) {
    const InferenceScope scope(graph);
    cache.set_memory(static_cast<int>(i), decoder_layers_[i].project_memory(graph, encoded).value);
  }
}

template <class T>
Variable<T> Transformer<T>::step(Graph<T>& graph, std::span<const std::int32_t> tokens, DecoderCache<T>& cache) const {
  cache.begin_step();
  return run_step(graph, tokens, cache);
}

template <class T>
Variable<T> Transformer<T>::step_chains(Graph<T>& graph, std::span<const std::int32_t> tokens,
                                        std::span<const std::int32_t> counts, DecoderCache<T>& cache) const {
  cache.begin_chains(counts);
  return run_step(graph, tokens, cache);
}

/// Runs the decoder on the last position of each row (hypothesis) of the cache, which the cache has just added;
/// tokens[r] is the input token at this position of row r.
template <class T>
Variable<T> Transformer<T>::run_step(Graph<T>& graph, std::span<const std::int32_t> tokens,
                                     DecoderCache<T>& cache) const {
  const auto lengths = cache.lengths();
  const Tensor<std::int32_t> at =
      graph.host_arena().template tensor<std::int32_t>({static_cast<std::int64_t>(lengths.size())});
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    std::int32_t& position = at[static_cast<std::int64_t>(r)];
    position = lengths[r] - 1;
    if (config_.counts_words()) {
      const std::int32_t words = cache.count_before(r) + ends_word(target_word_ends_, tokens[r]);
      cache.set_count(r, words);
      if (config_.word_positions) position = words;
    }
  }
  Variable<T> input = (*target_embedding_)(graph, tokens, at.span(), cache.longest() + 1);
  if (next_word_) {
    const Tensor<std::int32_t> words =
        graph.host_arena().template tensor<std::int32_t>({static_cast<std::int64_t>(lengths.size())});
    for (std::size_t r = 0; r < lengths.size(); ++r) words.span()[r] = cache.word_of(r);
    input = add(graph, input, gather_rows<T>(graph, graph.input(cache.words()), words.span()));
  }
  ResidualStream<T> stream = decoder_norms_.start(graph, input);
  const StackPositions<T> shared = decoder_positions_->shared(graph, cache.longest());
  for (const DecoderLayer& layer : decoder_layers_) layer.step(graph, decoder_norms_, stream, shared, cache);
  return stream.input;
}

namespace {

/// The state of a batch that a Transformer decodes step by step: the key/value cache.
template <class T>
class TransformerState : public DecoderState<T> {
 public:
  TransformerState(const Transformer<T>& model, Device device) : model_(model), cache_(model.make_cache(device)) {}

  void start(Graph<T>& graph, const PackedIds& source) override {
    model_.start(graph, model_.encode(graph, source), cache_);
  }
  Variable<T> step(Graph<T>& graph, std::span<const std::int32_t> tokens) override {
    return model_.step(graph, tokens, cache_);
  }
  void select(std::span<const std::int32_t> parents) override { cache_.select(parents); }
  Variable<T> step_chains(Graph<T>& graph, std::span<const std::int32_t> tokens,
                          std::span<const std::int32_t> counts) override {
    return model_.step_chains(graph, tokens, counts, cache_);
  }
  void truncate(std::span<const std::int32_t> lengths) override { cache_.truncate(lengths); }

 private:
  const Transformer<T>& model_;
  DecoderCache<T> cache_;
};

}  // namespace

template <class T>
std::unique_ptr<DecoderState<T>> Transformer<T>::make_state(Device device) const {
  return std::make_unique<TransformerState<T>>(*this, device);
}

template class Transformer<float>;
template class Transformer<double>;

}  // namespace heed
