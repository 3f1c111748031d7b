#include "heed/run/attention_selection.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "heed/base/error.h"
#include "heed/inspect/attention_rollout.h"
#include "heed/run/number_ranges.h"

namespace heed {
namespace {

// The kinds of attention in the order of the report.
constexpr std::array kKinds{AttentionKind::encoder, AttentionKind::decoder, AttentionKind::cross};

/// Returns tokens each of which is a word.
AttentionTokens plain_tokens(std::vector<std::string> tokens) {
  AttentionTokens out;
  out.words.word_of.resize(tokens.size());
  std::iota(out.words.word_of.begin(), out.words.word_of.end(), 0);
  out.words.words = tokens;
  out.pieces = std::move(tokens);
  return out;
}

/// Returns the label of the only row of an image's self-attention.
std::string query_label(const AttendedImage::Layer& layer) {
  const std::vector<std::string> labels = patch_labels(layer.grid);
  if (!layer.query) return layer.grid.has_class_token() ? kClassTokenLabel : kMeanLabel;
  return labels[static_cast<std::size_t>(*layer.query) + (layer.grid.has_class_token() ? 1 : 0)];
}

/// Returns the tokens of the queries of an attention layer.
AttentionTokens queries_of(const SentenceAttention& sentence, AttentionKind kind, int layer) {
  if (kind == AttentionKind::decoder) return sentence.fed;
  if (kind == AttentionKind::cross) return sentence.produced;
  const AttendedImage::Layer* const image = sentence.image ? sentence.image->find(kind, layer) : nullptr;
  return image ? plain_tokens({query_label(*image)}) : sentence.source;
}

/// Returns the tokens of the keys of an attention layer.
AttentionTokens keys_of(const SentenceAttention& sentence, AttentionKind kind, int layer) {
  if (kind == AttentionKind::decoder) return sentence.fed;
  const AttendedImage::Layer* const image = sentence.image ? sentence.image->find(kind, layer) : nullptr;
  return image ? plain_tokens(patch_labels(image->grid)) : sentence.source;
}

/// Returns the row of `map`, all rows of the self-attention of an image, that is the query; or the mean of all rows.
AttentionMap query_row(const AttentionMap& map, const AttendedImage::Layer& image) {
  const std::size_t columns = map.columns.size();
  AttentionMap out = map;
  out.rows = {query_label(image)};
  out.weights.assign(columns, 0);
  const auto found = std::ranges::find(map.rows, out.rows.front());
  for (std::size_t c = 0; c < columns; ++c) {
    if (found != map.rows.end()) {
      out.weights[c] = map.at(static_cast<std::size_t>(found - map.rows.begin()), c);
      continue;
    }
    double sum = 0;
    for (std::size_t r = 0; r < map.rows.size(); ++r) sum += static_cast<double>(map.at(r, c));
    out.weights[c] = static_cast<float>(sum / static_cast<double>(map.rows.size()));
  }
  return out;
}

}  // namespace

AttentionSelection::AttentionSelection(const AttentionReportOptions& options, AttentionFormat format)
    : options_(options),
      format_(format),
      words_(options.words || !options.gold.empty() || (format == AttentionFormat::pharaoh && !options.pieces)) {
  if (options_.layer.empty()) options_.layer = options.summarizes() ? "all" : "last";
  if (options_.head.empty()) options_.head = options.summarizes() ? "all" : "mean";
}

/// Returns the number of the model's layers with this kind of attention.
int AttentionSelection::depth(AttentionKind kind) const {
  int layers = 0;
  for (const AttentionLayers& each : attention_)
    if (each.kind == kind) layers += each.layers;
  return layers;
}

void AttentionSelection::check_model(const std::vector<AttentionLayers>& attention) {
  attention_ = attention;
  const bool kind_given = options_.kind.has_value();
  if (!options_.kind) {
    const bool asks_encoder = options_.rollout || !options_.query.empty();
    const bool has_cross = depth(AttentionKind::cross) > 0 || depth(AttentionKind::encoder) == 0;
    options_.kind = has_cross && !asks_encoder ? AttentionChoice::cross : AttentionChoice::encoder;
  }
  int most = 0, layers_shown = 0;
  std::string kinds;
  for (const AttentionKind kind : kKinds) {
    if (depth(kind) == 0) continue;
    kinds += (kinds.empty() ? "" : ", ") + std::string(enum_name(kind));
    if (!wants(kind)) continue;
    most = std::max(most, depth(kind));
    layers_shown += static_cast<int>(layers(kind).size());
  }
  if (kinds.empty())
    throw UsageError(
        "the model has no attention, so that there is nothing to show (train --task rnn-attention and the "
        "Transformers have some)");
  if (most == 0 && !kind_given)  // the kind is that of --rollout; images, which --query is for, have it
    throw UsageError("--rollout: the model has no encoder attention (it has " + kinds + ")");
  if (most == 0)
    throw UsageError("--kind " + std::string(enum_name(*options_.kind)) + ": the model has no such attention (it has " +
                     kinds + ")");
  if (options_.layer != "last" && options_.layer != "all") {
    const std::int64_t greatest = NumberRanges::parse("layer", options_.layer).greatest_named();
    if (greatest > most)
      throw UsageError("--layer " + std::to_string(greatest) + ": the model has " + std::to_string(most) +
                       " such layers");
  }
  check_heads();
  if (format_ != AttentionFormat::pharaoh) return;
  int selected = 0;
  const int heads = most_heads(false);
  for (int head = 1; head <= heads && !is_reduced(options_.head); ++head)
    selected += options_.head == "all" || NumberRanges::parse("head", options_.head).contains(head) ? 1 : 0;
  if (layers_shown > 1 || selected > 1)
    throw UsageError(
        "--format pharaoh writes one line for each input line (choose one --layer, and one --head, mean or max)");
}

/// Returns the greatest number of heads in a layer of the kinds that are shown: in a layer that --layer chooses, or in
/// any layer if `all` is true.
int AttentionSelection::most_heads(bool all) const {
  int most = 0;
  for (const AttentionKind kind : kKinds) {
    if (!wants(kind)) continue;
    const std::vector<int> chosen = layers(kind);
    int layer = 0;
    for (const AttentionLayers& each : attention_) {
      if (each.kind != kind) continue;
      for (const int end = layer + each.layers; layer < end; ++layer)
        if (all || std::ranges::binary_search(chosen, layer + 1)) most = std::max(most, each.heads);
    }
  }
  return most;
}

/// Throws UsageError if --head names a head that no chosen layer has. The layers of a Swin Transformer have different
/// numbers of heads.
void AttentionSelection::check_heads() const {
  if (is_reduced(options_.head) || options_.head == "all") return;
  const std::int64_t greatest = NumberRanges::parse("head", options_.head).greatest_named();
  const int most = most_heads(false), most_of_all = most_heads(true);
  if (greatest <= most) return;
  const std::string heads = std::to_string(most) + (most == 1 ? " head" : " heads");
  throw UsageError("--head " + std::to_string(greatest) + ": " +
                   (most == most_of_all ? "the model has " + heads + " a layer"
                                        : "the chosen layers have at most " + heads + " (others of the model have " +
                                              std::to_string(most_of_all) + ")"));
}

bool AttentionSelection::wants(AttentionKind kind) const {
  return options_.kind == AttentionChoice::all ||
         enum_name(options_.kind.value_or(AttentionChoice::cross)) == enum_name(kind);
}

std::vector<int> AttentionSelection::layers(AttentionKind kind) const {
  std::vector<int> out;
  for (int layer = 1; layer <= depth(kind); ++layer)
    if (options_.layer == "all" ||
        (options_.layer == "last" ? layer == depth(kind)
                                  : NumberRanges::parse("layer", options_.layer).contains(layer)))
      out.push_back(layer);
  return out;
}

/// Returns the map with words instead of pieces, and without <s> and </s>, as the options say.
AttentionMap AttentionSelection::refined(AttentionMap map, const AttentionTokens& rows,
                                         const AttentionTokens& columns) const {
  if (words_) map = merge_words(map, rows.words, columns.words);
  if (format_ == AttentionFormat::pharaoh) return drop_marks(map);
  return options_.eos ? map : drop_end_of_sentence(map);
}

/// Returns the maps of the heads of a layer.
std::vector<AttentionMap> AttentionSelection::heads_of(const SentenceAttention& sentence, AttentionKind kind,
                                                       int layer) const {
  const AttentionTokens columns = keys_of(sentence, kind, layer);
  const AttentionTokens rows =
      options_.rollout && kind == AttentionKind::encoder ? columns : queries_of(sentence, kind, layer);
  std::vector<AttentionMap> out;
  for (const SentenceAttention::Head& head : sentence.heads) {
    if (head.kind != kind || head.layer != layer) continue;
    AttentionMap map{.kind = std::string(enum_name(kind)),
                     .layer = layer,
                     .head = head.head,
                     .rows = rows.pieces,
                     .columns = columns.pieces,
                     .row_marks = rows.marks,
                     .column_marks = columns.marks,
                     .weights = head.weights};
    map.check();
    out.push_back(options_.rollout ? std::move(map) : refined(std::move(map), rows, columns));
  }
  return out;
}

/// Returns those of the maps of a layer's heads that --head names, or their mean or maximum.
std::vector<AttentionMap> AttentionSelection::choose_heads(std::vector<AttentionMap> heads) const {
  if (options_.head == "all" || heads.empty()) return heads;
  if (is_reduced(options_.head))
    return {reduce_heads(heads, options_.head == "mean" ? HeadReduction::mean : HeadReduction::max)};
  std::erase_if(heads, [named = NumberRanges::parse("head", options_.head)](const AttentionMap& map) {
    return !named.contains(map.head);
  });
  return heads;
}

std::vector<AttentionSelection::Selected> AttentionSelection::select(const SentenceAttention& sentence) const {
  if (options_.rollout) return rollouts(sentence);
  std::vector<Selected> out;
  for (const AttentionKind kind : kKinds) {
    if (!wants(kind)) continue;
    for (const int layer : layers(kind))
      out.push_back({sentence.image ? sentence.image->find(kind, layer) : nullptr,
                     choose_heads(heads_of(sentence, kind, layer))});
  }
  return out;
}

/// Returns the attention rollout from the first layer to each layer that --layer names.
std::vector<AttentionSelection::Selected> AttentionSelection::rollouts(const SentenceAttention& sentence) const {
  constexpr AttentionKind kKind = AttentionKind::encoder;
  const std::vector<int> wanted = layers(kKind);
  std::vector<Selected> out;
  std::optional<AttentionRollout> rollout;
  for (int layer = 1; layer <= depth(kKind); ++layer) {
    const std::vector<AttentionMap> heads = heads_of(sentence, kKind, layer);
    if (heads.empty()) return {};
    AttentionMap map = reduce_heads(heads, HeadReduction::mean);
    if (!rollout) rollout.emplace(map.rows.size());
    rollout->add(map.weights);
    if (std::ranges::find(wanted, layer) == wanted.end()) continue;
    map.weights = rollout->weights();
    map.reduction = kRolloutReduction;
    const AttendedImage::Layer* const image = sentence.image ? sentence.image->find(kKind, layer) : nullptr;
    out.push_back({image, {image ? query_row(map, *image) : refined(map, sentence.source, sentence.source)}});
  }
  return out;
}

std::vector<AttentionMap> AttentionSelection::maps(const SentenceAttention& sentence) const {
  std::vector<AttentionMap> out;
  for (Selected& layer : select(sentence)) std::ranges::move(layer.maps, std::back_inserter(out));
  return out;
}

std::vector<PatchMap> AttentionSelection::patch_maps(const SentenceAttention& sentence) const {
  std::vector<PatchMap> out;
  for (Selected& layer : select(sentence)) {
    if (!layer.image) continue;
    if (options_.head == "all" && layer.maps.size() > 1)
      layer.maps.push_back(reduce_heads(layer.maps, HeadReduction::mean));
    for (AttentionMap& map : layer.maps) out.push_back({std::move(map), layer.image->grid, layer.image->query});
  }
  return out;
}

}  // namespace heed
