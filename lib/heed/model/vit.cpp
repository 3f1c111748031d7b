#include "heed/model/vit.h"

#include <utility>

#include "heed/ops/dropout.h"
#include "heed/ops/parts.h"
#include "heed/ops/sequence_mean.h"

namespace heed {
namespace {

/// Returns the config of the Transformer in a model that describes images. Throws UsageError if fields of the model's
/// config contradict each other, which the Transformer's own check would report in words that do not fit images.
TransformerConfig checked_transformer(const VitCaptionConfig& config) {
  config.validate();
  return config.transformer();
}

}  // namespace

template <class T>
Vit<T>::Vit(const VitConfig& config)
    : ImageClassifier<T>(config),
      vit_(config),
      norms_(config.dim_emb, true, Normalization::layer, config.norm_epsilon, config.dropout) {
  config.validate();
  ParameterLayout& layout = this->layout_;
  embedding_.emplace(layout, "encoder", config.image.format(), config.image.size, config.patch, config.dim_emb,
                     config.pooling == ImagePooling::class_token);
  const TransformerConfig layers = config.layers();
  for (int i = 0; i < config.enc_depth; ++i) layers_.emplace_back(layout, norms_, layers, i);
  norms_.add(layout, "encoder/norm");
  this->add_output(config.dim_emb);
}

template <class T>
Variable<T> Vit<T>::features(Graph<T>& graph, const PackedIds& images, Trace<T>* trace) const {
  const Variable<T> embedded = (*embedding_)(graph, images.ids, images.packed());
  const PackedOffsets tokens = embedding_->token_offsets(graph, images.packed());
  graph.set_rows(tokens);
  ResidualStream<T> stream = norms_.start(graph, dropout(graph, embedded, vit_.dropout));
  for (const EncoderLayer& layer : layers_) layer.forward(graph, norms_, stream, {}, tokens, trace);
  if (vit_.pooling == ImagePooling::mean) return sequence_mean(graph, stream.input, tokens);
  return gather_rows<T>(graph, stream.input, tokens.offsets.first(tokens.offsets.size() - 1));
}

template <class T>
std::vector<Product> Vit<T>::products() const {
  std::vector<Product> out{embedding_->product({.side = TokenSide::source, .in_encoder = true})};
  for (const EncoderLayer& layer : layers_) layer.add_products(out);
  return out;
}

template <class T>
std::vector<AttentionLayers> Vit<T>::attention_layers() const {
  return {{AttentionKind::encoder, vit_.enc_depth, vit_.heads, vit_.dim_emb, vit_.attention_dropout}};
}

template <class T>
std::optional<ImageGrid> Vit<T>::image_grid(AttentionKind, int) const {
  return whole_grid({vit_.side(), vit_.side()}, vit_.pooling == ImagePooling::class_token);
}

template <class T>
std::vector<PositionTable> Vit<T>::position_tables(Graph<T>& graph, std::int64_t) const {
  return {embedding_->position_table(graph)};
}

template <class T>
VitCaption<T>::VitCaption(const VitCaptionConfig& config)
    : Transformer<T>(checked_transformer(config), config, false),
      caption_(config),
      embedding_(this->layout_, "encoder", config.image.format(), config.image.size, config.patch, config.dim_emb,
                 false) {}

template <class T>
typename Transformer<T>::SourceTokens VitCaption<T>::embed_source(Graph<T>& graph, const PackedIds& images) const {
  const Variable<T> embedded = embedding_(graph, images.ids, images.packed());
  const PackedOffsets tokens = embedding_.token_offsets(graph, images.packed());
  graph.set_rows(tokens);
  return {dropout(graph, embedded, caption_.dropout), tokens};
}

template <class T>
std::vector<Product> VitCaption<T>::products() const {
  std::vector<Product> out{embedding_.product({.side = TokenSide::source, .in_encoder = true})};
  for (const Product& product : Transformer<T>::products()) out.push_back(product);
  return out;
}

template <class T>
std::vector<PositionTable> VitCaption<T>::position_tables(Graph<T>& graph, std::int64_t positions) const {
  std::vector<PositionTable> out{embedding_.template position_table<T>(graph)};
  for (PositionTable& table : Transformer<T>::position_tables(graph, positions)) out.push_back(std::move(table));
  return out;
}

template <class T>
std::optional<ImageGrid> VitCaption<T>::image_grid(AttentionKind kind, int) const {
  if (kind == AttentionKind::decoder) return {};
  return whole_grid({caption_.side(), caption_.side()}, false);
}

template class Vit<float>;
template class Vit<double>;
template class VitCaption<float>;
template class VitCaption<double>;

}  // namespace heed
