#include "heed/model/swin.h"

#include <string>
#include <utility>

#include "heed/ops/parts.h"
#include "heed/ops/sequence_mean.h"
#include "heed/ops/window_bias.h"

namespace heed {
namespace {

std::string stage_name(int stage) {
  return "stages/" + std::to_string(stage);
}

std::string layer_name(int stage, int index) {
  return stage_name(stage) + "/layers/" + std::to_string(index);
}

/// Returns an order for gather_rows() that has the same effect as gathering by `first` and then by `second`.
std::vector<std::int32_t> compose(std::span<const std::int32_t> first, std::span<const std::int32_t> second) {
  std::vector<std::int32_t> out;
  out.reserve(second.size());
  for (const std::int32_t place : second) out.push_back(first[static_cast<std::size_t>(place)]);
  return out;
}

/// Returns the order that gathers four tokens for each token of the next stage, from the window order of a stage into
/// that of the next stage.
std::vector<std::int32_t> merging_order(const SwinStage& from, const SwinStage& to) {
  const std::vector<std::int32_t> merged = patch_merging_order(from.grid);
  std::vector<std::int32_t> squares;
  squares.reserve(merged.size());
  for (const std::int32_t token : to.plain.order)
    for (std::int32_t k = 0; k < 4; ++k) squares.push_back(merged[static_cast<std::size_t>(4 * token + k)]);
  return compose(from.plain.inverse, squares);
}

/// Cuts the grid of a stage into plain and shifted windows.
SwinStage make_stage(const SwinConfig& c, int s) {
  SwinStage stage{.grid = c.grid(s),
                  .plain = window_partition(c.grid(s), c.window, 0),
                  .shifted = window_partition(c.grid(s), c.window, c.window / 2),
                  .norms = NormChain(c.width(s), true, Normalization::layer, c.norm_epsilon, c.dropout)};
  if (stage.shifted.shape_of.size() > stage.plain.shape_of.size()) {
    stage.to_shifted = compose(stage.plain.inverse, stage.shifted.order);
    stage.from_shifted = compose(stage.shifted.inverse, stage.plain.order);
  }
  return stage;
}

/// Returns an order for all images of a batch, in memory of the arena.
std::span<const std::int32_t> repeated(Arena& arena, const std::vector<std::int32_t>& order, int images) {
  const std::span<std::int32_t> rows = arena.tensor<std::int32_t>({std::ssize(order) * images}).span();
  repeat_order(order, images, rows);
  return rows;
}

/// Returns the windows of all images of a batch, in memory of the arena. BatchWindows::to and BatchWindows::back are
/// empty.
BatchWindows repeated(Arena& arena, const WindowPartition& partition, int images) {
  const std::span<std::int32_t> offsets = arena.tensor<std::int32_t>({partition.windows() * images + 1}).span(),
                                shape_of = arena.tensor<std::int32_t>({partition.windows() * images}).span();
  repeat_windows(partition, images, offsets, shape_of);
  return {.offsets = {offsets}, .windows = {partition.shapes, shape_of}, .to = {}, .back = {}};
}

/// Returns the windows of the layers of a stage with odd numbers.
BatchWindows shifted_windows(Arena& arena, const SwinStage& stage, int images) {
  BatchWindows out = repeated(arena, stage.shifted, images);
  out.to = repeated(arena, stage.to_shifted, images);
  out.back = repeated(arena, stage.from_shifted, images);
  return out;
}

/// Returns the number of pairs of a query and a key in the windows of an image.
std::int64_t pairs(const WindowPartition& partition) {
  std::int64_t out = 0;
  for (const std::int32_t k : partition.shape_of) {
    const std::int64_t tokens = partition.shapes[static_cast<std::size_t>(k)].tokens();
    out += tokens * tokens;
  }
  return out;
}

}  // namespace

SwinLayer::SwinLayer(ParameterLayout& layout, NormChain& norms, const SwinConfig& c, int stage, int index, int number)
    : number_(number),
      window_(c.window),
      left_out_(c.left_out(number)),
      self_attention_(layout, layer_name(stage, index) + "/self_attention", c.width(stage),
                      c.heads[static_cast<std::size_t>(stage)], c.attention_dropout),
      // The deviation is that of the authors' program.
      relative_positions_(
          layout.add(layer_name(stage, index) + "/relative_positions/weight",
                     {(2 * std::int64_t{c.window} - 1) * (2 * std::int64_t{c.window} - 1), self_attention_.heads()},
                     Initialiser::normal(0.02))),
      feed_forward_(layout, layer_name(stage, index) + "/feed_forward", c.width(stage), c.dim_ffn(stage),
                    FeedForwardActivation::gelu, c.ffn_dropout) {
  norms.add(layout, layer_name(stage, index) + "/self_attention_norm");
  norms.add(layout, layer_name(stage, index) + "/feed_forward_norm");
}

template <class T>
void SwinLayer::forward(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream, const BatchWindows& windows,
                        Trace<T>* trace) const {
  {
    const InferenceScope scope(graph);
    const bool moves = !windows.to.empty();
    const Variable<T> x = moves ? gather_rows(graph, stream.input, windows.to) : stream.input;
    const StackPositions<T> positions{
        .bias = window_bias(graph, graph.parameter(relative_positions_), window_, windows.windows)};
    const Variable<T> y = self_attention_.self_attention(graph, x, windows.offsets, false,
                                                         {trace, AttentionKind::encoder, number_}, positions);
    norms.advance(graph, stream, moves ? gather_rows(graph, y, windows.back) : y, left_out_);
  }
  const InferenceScope scope(graph);
  norms.advance(graph, stream, feed_forward_(graph, stream.input, ResultUse::residual), left_out_);
}

void SwinLayer::add_products(Product place, std::vector<Product>& products) const {
  place.layer = number_;
  self_attention_.add_self_attention_products(place, products);
  feed_forward_.add_products(place, products);
}

template <class T>
Swin<T>::Swin(const SwinConfig& config) : ImageClassifier<T>(config), swin_(config) {
  config.validate();
  ParameterLayout& layout = this->layout_;
  patches_ = {.outputs = config.width(0),
              .inputs = std::int64_t{config.image.channels} * config.patch * config.patch,
              .in_encoder = true};
  patches_.weight = layout.add("patches/weight", patches_.shape(), Initialiser::xavier());
  patches_.bias = layout.add("patches/bias", {patches_.outputs}, Initialiser::zeros());
  patches_norm_ = Norm::add(layout, "patches_norm", config.width(0), Normalization::layer, config.norm_epsilon);
  int number = 0;
  for (int s = 0; s < config.stages(); ++s) {
    SwinStage& stage = stages_.emplace_back(make_stage(config, s));
    for (int i = 0; i < config.depths[static_cast<std::size_t>(s)]; ++i)
      stage.layers.emplace_back(layout, stage.norms, config, s, i, number++);
    if (s + 1 == config.stages()) continue;
    const std::int64_t width = config.width(s);
    stage.merging_norm =
        Norm::add(layout, stage_name(s) + "/merging/norm", 4 * width, Normalization::layer, config.norm_epsilon);
    stage.merging = {.outputs = 2 * width, .inputs = 4 * width, .tokens_per_row = 4 << 2 * s, .in_encoder = true};
    stage.merging.layer = number;
    stage.merging.weight = layout.add(stage_name(s) + "/merging/weight", stage.merging.shape(), Initialiser::xavier());
  }
  for (std::size_t s = 0; s + 1 < stages_.size(); ++s)
    stages_[s].merging_order = merging_order(stages_[s], stages_[s + 1]);
  stages_.back().norms.add(layout, "norm");
  this->add_output(config.width(config.stages() - 1));
}

template <class T>
Variable<T> Swin<T>::embed(Graph<T>& graph, const PackedIds& images) const {
  const PixelFormat format = swin_.image.format();
  const Variable<T> rows = patch_rows(graph, images.ids, images.packed(), swin_.patch, format);
  const SwinStage& first = stages_.front();
  if (rows.value.rows() != first.grid.tokens() * images.sequences())
    throw Error("internal: images of another size than " + std::to_string(swin_.image.size));
  const Variable<T> ordered =
      gather_rows(graph, rows, repeated(graph.host_arena(), first.plain.order, images.sequences()));
  return patches_norm_(graph, patches_(graph, ordered));
}

template <class T>
Variable<T> Swin<T>::features(Graph<T>& graph, const PackedIds& images, Trace<T>* trace) const {
  Arena& arena = graph.host_arena();
  const int count = images.sequences();
  Variable<T> x = embed(graph, images);
  for (const SwinStage& stage : stages_) {
    const BatchWindows plain = repeated(arena, stage.plain, count);
    const BatchWindows shifted = stage.to_shifted.empty() ? plain : shifted_windows(arena, stage, count);
    graph.set_rows(image_offsets(arena, stage.grid.tokens(), count));
    ResidualStream<T> stream = stage.norms.start(graph, x);
    for (std::size_t i = 0; i < stage.layers.size(); ++i)
      stage.layers[i].forward(graph, stage.norms, stream, i % 2 == 0 ? plain : shifted, trace);
    x = stream.input;
    if (!stage.merging.weight) continue;
    const Variable<T> squares = gather_rows(graph, x, repeated(arena, stage.merging_order, count), 4);
    x = stage.merging(graph, stage.merging_norm(graph, squares));
  }
  return sequence_mean(graph, x, graph.rows());
}

template <class T>
std::vector<Product> Swin<T>::products() const {
  std::vector<Product> out{patches_};
  for (int s = 0; s < swin_.stages(); ++s) {
    const SwinStage& stage = stages_[static_cast<std::size_t>(s)];
    for (const SwinLayer& layer : stage.layers)
      layer.add_products({.tokens_per_row = 1 << 2 * s, .in_encoder = true}, out);
    if (stage.merging.weight) out.push_back(stage.merging);
  }
  return out;
}

template <class T>
std::vector<AttentionLayers> Swin<T>::attention_layers() const {
  std::vector<AttentionLayers> out;
  for (int s = 0; s < swin_.stages(); ++s) {
    const SwinStage& stage = stages_[static_cast<std::size_t>(s)];
    const int layers = static_cast<int>(stage.layers.size());
    const std::int64_t all = (layers + 1) / 2 * pairs(stage.plain) + layers / 2 * pairs(stage.shifted);
    out.push_back({.kind = AttentionKind::encoder,
                   .layers = layers,
                   .heads = swin_.heads[static_cast<std::size_t>(s)],
                   .width = swin_.width(s),
                   .dropout = swin_.attention_dropout,
                   .window = static_cast<double>(all) / static_cast<double>(layers * stage.grid.tokens()),
                   .tokens_per_query = 1 << 2 * s});
  }
  return out;
}

template <class T>
std::optional<ImageGrid> Swin<T>::image_grid(AttentionKind, int layer) const {
  for (const SwinStage& stage : stages_) {
    const int layers = static_cast<int>(stage.layers.size());
    if (layer < layers) return windows_grid(stage.grid, layer % 2 == 0 ? stage.plain : stage.shifted);
    layer -= layers;
  }
  return {};
}

template class Swin<float>;
template class Swin<double>;

}  // namespace heed
