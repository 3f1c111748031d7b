#include "heed/run/image_inspector.h"

#include <charconv>
#include <cmath>

#include "heed/base/error.h"
#include "heed/decode/force.h"
#include "heed/text/strings/unicode.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {
namespace {

/// Parses the value of --query, X,Y, two numbers from 0 to size - 1.
std::pair<int, int> parse_query(const std::string& text, int size) {
  std::pair<int, int> out{-1, -1};
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, out.first);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == ',') {
    const auto second = std::from_chars(first.ptr + 1, end, out.second);
    if (second.ec != std::errc() || second.ptr != end) out.second = -1;
  }
  const auto within = [size](int number) { return number >= 0 && number < size; };
  if (within(out.first) && within(out.second)) return out;
  const std::string last = std::to_string(size - 1);
  throw UsageError("--query '" + text + "': must be a pixel X,Y of the image as the model sees it, from 0,0 to " +
                   last + ',' + last);
}

/// Copies the attention weights that the report needs for one image.
class ImageTrace : public Trace<float> {
 public:
  ImageTrace(const Model<float>& model, const AttentionReport& report, std::optional<std::pair<int, int>> query,
             SentenceAttention& sentence)
      : model_(model), report_(report), query_(query), sentence_(sentence) {}

  bool wants(AttentionKind kind, int) const override { return report_.wants(kind); }
  void attention(AttentionKind kind, int layer, int heads, PackedOffsets queries, PackedOffsets keys,
                 const Variable<float>& variable) override {
    const std::span<const float> weights(variable.value.data(), static_cast<std::size_t>(variable.value.size()));
    std::optional<ImageGrid> grid = model_.image_grid(kind, layer);
    if (!grid) {
      add_text(kind, layer, heads, weights, queries.tokens() * keys.tokens());
      return;
    }
    const LayerWeights traced{*grid, heads, queries, keys, weights};
    std::optional<std::int32_t> patch;
    if (query_) patch = patch_at(*grid, query_->first, query_->second, sentence_.image->picture.width);
    for (int head = 0; head < heads; ++head)
      sentence_.heads.push_back({kind, layer + 1, head + 1,
                                 kind != AttentionKind::encoder ? cross_attention_weights(traced, head)
                                 : report_.wants_rollout()      ? self_attention_weights(traced, head)
                                                                : query_weights(traced, head, patch)});
    sentence_.image->layers.push_back({kind, layer + 1, std::move(*grid), patch});
  }

 private:
  /// Copies the weights between tokens of text.
  void add_text(AttentionKind kind, int layer, int heads, std::span<const float> weights, int size) {
    for (int head = 0; head < heads; ++head) {
      const float* const from = weights.data() + static_cast<std::ptrdiff_t>(head) * size;
      sentence_.heads.push_back({kind, layer + 1, head + 1, std::vector<float>(from, from + size)});
    }
  }

  const Model<float>& model_;
  const AttentionReport& report_;
  std::optional<std::pair<int, int>> query_;
  SentenceAttention& sentence_;
};

}  // namespace

ImageInspector::ImageInspector(const InspectAttentionOptions& options, const Checkpoint& checkpoint, Decoder& decoder,
                               ForcedDecoder& forced, const SearchOptions& search, const AttentionReport& report)
    : options_(options),
      checkpoint_(checkpoint),
      decoder_(decoder),
      forced_(forced),
      search_(search),
      report_(report),
      images_(*image_input(checkpoint.model->config()), options.input) {
  check_options();
  if (options.report.rollout) check_rollout();
  if (!options.report.query.empty()) query_ = parse_query(options.report.query, images_.input().size);
}

bool ImageInspector::classifies() const {
  return is_classifier(checkpoint_.model->config());
}

/// Throws UsageError for options that have no use with the model.
void ImageInspector::check_options() const {
  const AttentionReportOptions& report = options_.report;
  const AttentionFormat format = report_.format();
  const bool limits_length = options_.max_length != InspectAttentionOptions().max_length;
  const auto refuse = [&](bool given, const std::string& option, const std::string& why = "") {
    if (given)
      throw UsageError(option + ": has no use with " + options_.model + ", which reads images" +
                       (why.empty() && classifies() ? " and gives labels" : why));
  };
  refuse(!report.gold.empty(), "--gold", " (patches are no words)");
  refuse(report.stats, "--stats", " (distances between patches are no distances between words)");
  refuse(!report.alignment.empty(), "--alignment", " (patches are no words)");
  refuse(format == AttentionFormat::pharaoh, "--format pharaoh", " (patches are no words)");
  refuse(format == AttentionFormat::html, "--format html", " (svg shows the weight under the pointer)");
  if (classifies()) {
    refuse(report.words, "--words");
    refuse(report.pieces, "--pieces");
    refuse(!report.eos, "--no-eos");
    refuse(options_.beam_size.has_value(), "--beam-size");
    refuse(limits_length, "--max-length");
  }
  const bool has_target = options_.tsv || !options_.target.empty();
  refuse(limits_length && !has_target, "--max-length", " (it limits the sentences of -t and --tsv)");
  const bool encoder = report_.wants(AttentionKind::encoder);
  if (!report.query.empty() && !encoder)
    throw UsageError("--query: has no use with --kind " + std::string(enum_name(*report.kind)) +
                     ", whose queries are words (leave one of them out)");
  if (report.kind == AttentionChoice::all && report_.draws() && !classifies())
    throw UsageError("--kind all: a picture of an image shows one kind (choose one, or --format tsv, jsonl or hdf5)");
}

/// Throws UsageError if layers attend to other tokens than other layers, or within windows.
void ImageInspector::check_rollout() const {
  int layers = 0;
  for (const AttentionLayers& each : checkpoint_.model->attention_layers())
    if (each.kind == AttentionKind::encoder) layers += each.layers;
  std::int32_t tokens = 0;
  for (int layer = 0; layer < layers; ++layer) {
    const std::optional<ImageGrid> grid = checkpoint_.model->image_grid(AttentionKind::encoder, layer);
    if (!grid || grid->has_windows() || (tokens > 0 && tokens != grid->tokens()))
      throw UsageError("--rollout: follows tokens that attend to all others in every layer, but those of " +
                       options_.model + " attend within windows, and are merged");
    tokens = grid->tokens();
  }
}

/// Reads the target that the user gives for an image, and adds both to `batch`.
void ImageInspector::read_target(SentenceAttention& sentence, const SentenceReader& reader,
                                 std::span<const std::int32_t> samples, Batch& batch) const {
  const Position where = reader.target_position();
  const PieceSentence target = encode(checkpoint_.target, sentence.target_text, where);
  if (!classifies()) {
    if (std::ssize(target.ids) > options_.max_length)
      throw Error(where, "has " + std::to_string(target.ids.size()) + " pieces, more than " +
                             std::to_string(options_.max_length) + " (--max-length N allows more)");
    batch.add(samples, target.ids);
    sentence.produced = tokens_of(checkpoint_.target, target.pieces, false, true);
    sentence.fed = tokens_of(checkpoint_.target, target.pieces, true, false);
    return;
  }
  batch.add_classified(samples, class_of_label(target.ids, sentence.target_text, options_.model, where));
  sentence.image->probability = std::exp(static_cast<double>(forced_.scores(batch).front().front()));
}

/// Predicts the label of an image, or a sentence about it, and adds both to `batch`.
void ImageInspector::predict(SentenceAttention& sentence, std::span<const std::int32_t> samples, Batch& batch) const {
  PackedIds image;
  image.ids.assign(samples.begin(), samples.end());
  image.ids.push_back(kEndId);
  image.end_sequence();
  const Hypothesis best = decoder_.translate(image, search_).front().front();
  sentence.target_text = checkpoint_.target.decode(best.ids);
  if (classifies()) {
    batch.add_classified(samples, best.ids.front() - kReservedIds);
    sentence.image->probability = std::exp(best.sum);
    return;
  }
  const PieceSentence target = from_ids(checkpoint_.target, best.ids);
  batch.add(samples, target.ids);
  sentence.produced = tokens_of(checkpoint_.target, target.pieces, false, true);
  sentence.fed = tokens_of(checkpoint_.target, target.pieces, true, false);
}

void ImageInspector::inspect(SentenceAttention& sentence, const SentenceReader& reader) const {
  sentence.heads.clear();
  sentence.image.emplace();
  if (!reader.has_target()) sentence.target_text.clear();
  if (is_blank(sentence.source_text)) return;
  try {
    sentence.image->picture = images_.read(sentence.source_text);
  } catch (const Error& error) {
    throw Error(reader.source_position(), error.what());
  }
  std::vector<std::int32_t> samples;
  ImageReader::append_ids(sentence.image->picture, samples);
  Batch batch;
  if (reader.has_target())
    read_target(sentence, reader, samples, batch);
  else
    predict(sentence, samples, batch);
  ImageTrace trace(*checkpoint_.model, report_, query_, sentence);
  forced_.attention(batch, trace);
}

}  // namespace heed
