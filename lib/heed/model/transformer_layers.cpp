#include "heed/model/transformer_layers.h"

#include "heed/base/error.h"
#include "heed/ops/arithmetic.h"
#include "heed/ops/decode_attention.h"
#include "heed/ops/softmax.h"

namespace heed {
namespace {

std::string layer_name(const char* side, int index) {
  return std::string(side) + "/layers/" + std::to_string(index);
}

/// Returns the name of the first sublayer of decoder layers, which is part of the names of its parameters.
std::string autoregression_name(const TransformerConfig& config) {
  return config.decoder_attends() ? "self_attention" : std::string(enum_name(config.decoder_autoreg));
}

/// Returns the distance at which the relative vectors of self-attention layers are clipped; 0 if they have none.
int relative_distance(const TransformerConfig& c) {
  return c.positions == PositionEncoding::relative ? SelfAttentionPositions::kRelativeDistance : 0;
}

AutoregressiveSublayer make_autoregression(ParameterLayout& layout, const TransformerConfig& c, int index) {
  const std::string name = layer_name("decoder", index) + "/" + autoregression_name(c);
  switch (c.decoder_autoreg) {
    case DecoderAutoreg::self_attention:
    case DecoderAutoreg::none:
      return MultiHeadAttention(layout, name, c.dim_emb, c.heads, c.attention_dropout, c.attention,
                                relative_distance(c));
    case DecoderAutoreg::average:
      return AverageAttention(layout, name, c.dim_emb, c.dim_aan, c.ffn_activation, c.ffn_dropout);
    case DecoderAutoreg::rnn:
      return SimpleRecurrentUnit(layout, name, c.dim_emb);
  }
  throw Error("internal: unknown kind of decoder");
}

/// Creates the variable for a result that only linear() reads.
template <class T>
Variable<T> result_for_linear(Graph<T>& graph, const Shape& shape) {
  return stores_rounded(graph, ResultUse::linear) ? graph.rounded_result(shape) : graph.result(shape);
}

}  // namespace

EncoderLayer::EncoderLayer(ParameterLayout& layout, NormChain& norms, const TransformerConfig& c, int index)
    : index_(index),
      left_out_(c.left_out(index, c.enc_depth)),
      self_attention_(layout, layer_name("encoder", index) + "/self_attention", c.dim_emb, c.heads, c.attention_dropout,
                      c.attention, relative_distance(c)),
      feed_forward_(layout, layer_name("encoder", index) + "/feed_forward", c.dim_emb, c.dim_ffn, c.ffn_activation,
                    c.ffn_dropout) {
  norms.add(layout, layer_name("encoder", index) + "/self_attention_norm");
  norms.add(layout, layer_name("encoder", index) + "/feed_forward_norm");
}

EncoderLayer::EncoderLayer(const EncoderLayer& owner, NormChain& norms, const TransformerConfig& c, int index)
    : EncoderLayer(owner) {
  constexpr std::size_t kSublayers = 2;
  norms.repeat(kSublayers * static_cast<std::size_t>(owner.index_), kSublayers);
  index_ = index;
  left_out_ = c.left_out(index, c.enc_depth);
}

template <class T>
void EncoderLayer::forward(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream,
                           const StackPositions<T>& positions, PackedOffsets source, Trace<T>* trace) const {
  {
    const InferenceScope scope(graph);
    norms.advance(graph, stream,
                  self_attention_.self_attention(graph, stream.input, source, false,
                                                 {trace, AttentionKind::encoder, index_}, positions),
                  left_out_);
  }
  const InferenceScope scope(graph);
  norms.advance(graph, stream, feed_forward_(graph, stream.input, ResultUse::residual), left_out_);
}

void EncoderLayer::add_products(std::vector<Product>& products) const {
  const Product place{.side = TokenSide::source, .in_encoder = true, .layer = index_};
  self_attention_.add_self_attention_products(place, products);
  feed_forward_.add_products(place, products);
}

DecoderLayer::DecoderLayer(ParameterLayout& layout, NormChain& norms, const TransformerConfig& c, int index)
    : index_(index),
      left_out_(c.left_out(index, c.dec_depth)),
      causal_(!c.is_parallel()),
      source_(c.cross_attention),
      autoregression_(make_autoregression(layout, c, index)),
      cross_attention_(layout, layer_name("decoder", index) + "/cross_attention", c.dim_emb, c.heads,
                       c.attention_dropout, c.attention),
      feed_forward_(layout, layer_name("decoder", index) + "/feed_forward", c.dim_emb, c.dim_ffn, c.ffn_activation,
                    c.ffn_dropout) {
  if (source_ == CrossAttention::mix)
    mix_ = layout.add(layer_name("decoder", index) + "/cross_attention/mix", {c.enc_depth}, Initialiser::zeros());
  norms.add(layout, layer_name("decoder", index) + "/" + autoregression_name(c) + "_norm");
  norms.add(layout, layer_name("decoder", index) + "/cross_attention_norm");
  norms.add(layout, layer_name("decoder", index) + "/feed_forward_norm");
}

DecoderLayer::DecoderLayer(const DecoderLayer& owner, NormChain& norms, const TransformerConfig& c, int index)
    : DecoderLayer(owner) {
  constexpr std::size_t kSublayers = 3;
  norms.repeat(kSublayers * static_cast<std::size_t>(owner.index_), kSublayers);
  index_ = index;
  left_out_ = c.left_out(index, c.dec_depth);
}

template <class T>
void DecoderLayer::forward(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream,
                           const StackPositions<T>& positions, const Variable<T>& memory, const DecoderOffsets& offsets,
                           Trace<T>* trace) const {
  {
    const InferenceScope scope(graph);
    if (const auto* attention = std::get_if<MultiHeadAttention>(&autoregression_))
      norms.advance(graph, stream,
                    attention->self_attention(graph, stream.input, offsets.target, causal_,
                                              {trace, AttentionKind::decoder, index_}, positions),
                    left_out_);
    else if (const auto* average = std::get_if<AverageAttention>(&autoregression_))
      norms.advance(graph, stream, (*average)(graph, stream.input, offsets.target), left_out_);
    else
      norms.advance(graph, stream, std::get<SimpleRecurrentUnit>(autoregression_)(graph, stream.input, offsets.target),
                    left_out_);
  }
  {
    const InferenceScope scope(graph);
    norms.advance(graph, stream,
                  cross_attention_.cross_attention(graph, stream.input, memory, offsets.queries, offsets.source,
                                                   {trace, AttentionKind::cross, index_}),
                  left_out_);
  }
  const InferenceScope scope(graph);
  norms.advance(graph, stream, feed_forward_(graph, stream.input, ResultUse::residual), left_out_);
}

template <class T>
Variable<T> DecoderLayer::memory_of(Graph<T>& graph, const EncoderOutput<T>& encoded) const {
  switch (source_) {
    case CrossAttention::last:
      return encoded.last;
    case CrossAttention::layerwise:
      return encoded.layers[static_cast<std::size_t>(index_)];
    case CrossAttention::mix:
      return weighted_sum(graph, softmax(graph, graph.parameter(mix_)), encoded.layers);
  }
  throw Error("internal: unknown kind of cross-attention");
}

template <class T>
Variable<T> DecoderLayer::project_memory(Graph<T>& graph, const EncoderOutput<T>& encoded) const {
  return cross_attention_.project_memory(graph, memory_of(graph, encoded));
}

template <class T>
Variable<T> DecoderLayer::step_autoregression(Graph<T>& graph, const Variable<T>& x, const StackPositions<T>& positions,
                                              DecoderCache<T>& cache) const {
  if (const auto* average = std::get_if<AverageAttention>(&autoregression_))
    return average->step(graph, x, cache.states(index_));
  if (const auto* unit = std::get_if<SimpleRecurrentUnit>(&autoregression_))
    return unit->step(graph, x, cache.states(index_));
  const auto& self_attention = std::get<MultiHeadAttention>(autoregression_);
  const std::int64_t width = self_attention.width();
  const Variable<T> qkv = self_attention.project_step(graph, x, cache.lengths(), positions);
  cache.append(index_, qkv.value);
  const auto arrays = cache.arrays();
  const Variable<T> out = result_for_linear(graph, {x.value.rows(), width});
  if (const Variable<T> scorer = self_attention.scorer(graph))
    graph.run([&](auto& device) {
      additive_cached_attention<T>(device, {qkv.value.data(), 3 * width}, scorer.value.data(), cache.keys(index_),
                                   cache.values(index_), arrays.slots, arrays.capacity, arrays.lengths,
                                   self_attention.heads(), width, value_of(out));
    });
  else
    graph.run([&](auto& device) {
      cached_attention<T>(device, {qkv.value.data(), 3 * width}, cache.keys(index_), cache.values(index_), arrays.slots,
                          arrays.capacity, arrays.lengths, self_attention.heads(), width, value_of(out),
                          self_attention.position_terms(graph, positions));
    });
  return self_attention.output(graph, out);
}

template <class T>
void DecoderLayer::step(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream,
                        const StackPositions<T>& positions, DecoderCache<T>& cache) const {
  const std::int64_t width = cross_attention_.width();
  const std::int64_t rows = stream.input.value.rows();
  const int heads = cross_attention_.heads();
  {
    const InferenceScope scope(graph);
    norms.advance(graph, stream, step_autoregression(graph, stream.input, positions, cache));
  }
  {
    const InferenceScope scope(graph);
    const Variable<T> query = cross_attention_.project_query(graph, stream.input);
    const Variable<T> cross_attention = result_for_linear(graph, {rows, width});
    const auto arrays = cache.arrays();
    if (const Variable<T> scorer = cross_attention_.scorer(graph))
      graph.run([&](auto& device) {
        additive_memory_attention<T>(device, {query.value.data(), width}, scorer.value.data(),
                                     cache.memory_keys(index_), cache.memory_values(index_), arrays.source,
                                     arrays.sentences, heads, width, value_of(cross_attention));
      });
    else
      graph.run([&](auto& device) {
        memory_attention<T>(device, {query.value.data(), width}, cache.memory_keys(index_), cache.memory_values(index_),
                            arrays.source, arrays.sentences, heads, width, value_of(cross_attention));
      });
    norms.advance(graph, stream, cross_attention_.output(graph, cross_attention));
  }
  const InferenceScope scope(graph);
  norms.advance(graph, stream, feed_forward_(graph, stream.input));
}

void DecoderLayer::add_products(std::vector<Product>& products) const {
  const Product place{.side = TokenSide::target, .in_encoder = false, .layer = index_};
  if (const auto* attention = std::get_if<MultiHeadAttention>(&autoregression_))
    attention->add_self_attention_products(place, products);
  else if (const auto* average = std::get_if<AverageAttention>(&autoregression_))
    average->add_products(place, products);
  else
    std::get<SimpleRecurrentUnit>(autoregression_).add_products(place, products);
  cross_attention_.add_cross_attention_products(place, products);
  feed_forward_.add_products(place, products);
}

#define HEED_INSTANTIATE(T)                                                                                      \
  template void EncoderLayer::forward(Graph<T>&, const NormChain&, ResidualStream<T>&, const StackPositions<T>&, \
                                      PackedOffsets, Trace<T>*) const;                                           \
  template void DecoderLayer::forward(Graph<T>&, const NormChain&, ResidualStream<T>&, const StackPositions<T>&, \
                                      const Variable<T>&, const DecoderOffsets&, Trace<T>*) const;               \
  template Variable<T> DecoderLayer::project_memory(Graph<T>&, const EncoderOutput<T>&) const;                   \
  template void DecoderLayer::step(Graph<T>&, const NormChain&, ResidualStream<T>&, const StackPositions<T>&,    \
                                   DecoderCache<T>&) const;
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
