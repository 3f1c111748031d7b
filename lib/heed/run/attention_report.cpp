#include "heed/run/attention_report.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/inspect/attention_html.h"
#include "heed/inspect/attention_text.h"
#include "heed/inspect/terminal_heatmap.h"
#include "heed/run/number_ranges.h"
#include "heed/run/position_maps.h"

namespace heed {
namespace {

// The kinds of attention in the order of the report.
constexpr std::array kKinds{AttentionKind::encoder, AttentionKind::decoder, AttentionKind::cross};
// The greatest width, in terminal columns, of the heading above a picture of attention maps.
constexpr int kLongestHeading = 100;
// The largest number of columns of a table of positions in a picture, and the width of the labels at the left of such a
// table on a terminal, with the space behind them.
constexpr std::size_t kMostPositionColumns = 512;
constexpr int kPositionLabels = 6;

/// Returns the heading above the attention maps of a sentence: "line 3: source text → target text".
std::string heading(const SentenceAttention& sentence, bool ascii = false) {
  std::string text = "line " + std::to_string(sentence.line);
  if (!sentence.source_text.empty()) text += ": " + sentence.source_text;
  if (!sentence.target_text.empty()) text += (ascii ? " -> " : " → ") + sentence.target_text;
  return visible_text(text);
}

}  // namespace

AttentionReport::AttentionReport(const AttentionReportOptions& options, const std::string& output, std::ostream& out,
                                 const TerminalEnvironment& environment, int terminal_columns)
    : options_(options),
      format_(choose_format(options, output, environment)),
      threshold_(parse_alignment(options.alignment)),
      out_(out),
      shading_(options.terminal.shading(environment)) {
  check_report_options(options, format_, output, environment);
  using enum AttentionFormat;
  if (options_.layer.empty()) options_.layer = options.summarizes() ? "all" : "last";
  if (options_.head.empty()) options_.head = options.summarizes() ? "all" : "mean";
  words_ = options.words || !options.gold.empty() || (format_ == pharaoh && !options.pieces);
  if (format_ == hdf5) file_.emplace(output);
  width_ = options.terminal.width.value_or(format_ == table && !environment.terminal ? 0 : terminal_columns);
}

/// Returns the number of the model's layers with this kind of attention.
int AttentionReport::depth(AttentionKind kind) const {
  for (const AttentionLayers& each : attention_)
    if (each.kind == kind) return each.layers;
  return 0;
}

void AttentionReport::check_model(const std::vector<AttentionLayers>& attention) {
  attention_ = attention;
  if (!options_.kind)
    options_.kind = depth(AttentionKind::cross) > 0 || depth(AttentionKind::encoder) == 0 ? AttentionChoice::cross
                                                                                          : AttentionChoice::encoder;
  const auto check = [](const char* option, const std::string& text, int there, const std::string& what) {
    const std::int64_t greatest = NumberRanges::parse(option, text).greatest_named();
    if (greatest > there)
      throw UsageError("--" + std::string(option) + ' ' + std::to_string(greatest) + ": the model has " +
                       std::to_string(there) + ' ' + what);
  };
  int most = 0, heads = 0, layers_shown = 0;
  std::string kinds;
  for (const AttentionLayers& each : attention_) {
    kinds += (kinds.empty() ? "" : ", ") + std::string(enum_name(each.kind));
    if (!wants(each.kind)) continue;
    most = std::max(most, each.layers);
    heads = std::max(heads, each.heads);
    layers_shown += static_cast<int>(layers(each.kind).size());
  }
  if (kinds.empty())
    throw UsageError(
        "the model has no attention, so that there is nothing to show (train --task rnn-attention and the "
        "Transformers have some)");
  if (most == 0)
    throw UsageError("--kind " + std::string(enum_name(*options_.kind)) + ": the model has no such attention (it has " +
                     kinds + ")");
  if (options_.layer != "last" && options_.layer != "all") check("layer", options_.layer, most, "such layers");
  if (!is_reduced(options_.head) && options_.head != "all") check("head", options_.head, heads, "heads a layer");
  if (format_ != AttentionFormat::pharaoh) return;
  int selected = 0;
  for (int head = 1; head <= heads && !is_reduced(options_.head); ++head)
    selected += options_.head == "all" || NumberRanges::parse("head", options_.head).contains(head) ? 1 : 0;
  if (layers_shown > 1 || selected > 1)
    throw UsageError(
        "--format pharaoh writes one line for each input line (choose one --layer, and one --head, mean or max)");
}

bool AttentionReport::wants(AttentionKind kind) const {
  return options_.kind == AttentionChoice::all ||
         enum_name(options_.kind.value_or(AttentionChoice::cross)) == enum_name(kind);
}

std::vector<int> AttentionReport::layers(AttentionKind kind) const {
  std::vector<int> out;
  for (int layer = 1; layer <= depth(kind); ++layer)
    if (options_.layer == "all" ||
        (options_.layer == "last" ? layer == depth(kind)
                                  : NumberRanges::parse("layer", options_.layer).contains(layer)))
      out.push_back(layer);
  return out;
}

/// Returns the attention maps of `sentence` that the options choose, ordered by kind, layer and head.
std::vector<AttentionMap> AttentionReport::select(const SentenceAttention& sentence) const {
  std::vector<AttentionMap> out;
  for (const AttentionKind kind : kKinds) {
    if (!wants(kind)) continue;
    const AttentionTokens& queries = kind == AttentionKind::encoder   ? sentence.source
                                     : kind == AttentionKind::decoder ? sentence.fed
                                                                      : sentence.produced;
    const AttentionTokens& keys = kind == AttentionKind::decoder ? sentence.fed : sentence.source;
    for (const int layer : layers(kind)) {
      std::vector<AttentionMap> heads;
      for (const SentenceAttention::Head& head : sentence.heads) {
        if (head.kind != kind || head.layer != layer) continue;
        AttentionMap map{.kind = std::string(enum_name(kind)),
                         .layer = layer,
                         .head = head.head,
                         .rows = queries.pieces,
                         .columns = keys.pieces,
                         .weights = head.weights};
        map.check();
        if (words_) map = merge_words(map, queries.words, keys.words);
        if (!options_.eos || format_ == AttentionFormat::pharaoh) map = drop_end_of_sentence(map);
        heads.push_back(std::move(map));
      }
      if (heads.empty()) continue;
      if (is_reduced(options_.head)) {
        out.push_back(reduce_heads(heads, options_.head == "mean" ? HeadReduction::mean : HeadReduction::max));
        continue;
      }
      for (AttentionMap& map : heads)
        if (options_.head == "all" || NumberRanges::parse("head", options_.head).contains(map.head))
          out.push_back(std::move(map));
    }
  }
  return out;
}

std::string AttentionReport::links(const std::vector<AttentionMap>& maps) const {
  if (maps.empty()) return "\n";
  return pharaoh(threshold_ ? align_threshold(maps[0], *threshold_) : align_argmax(maps[0])) + '\n';
}

void AttentionReport::add_positions(std::vector<PositionTable> tables) {
  if (tables.empty())
    throw UsageError(
        "--kind positions: this model does not encode positions (train --transformer-positions makes models that do)");
  tables = choose_layers(std::move(tables), options_.layer);
  constexpr std::size_t kAll = PTRDIFF_MAX;
  using enum AttentionFormat;
  switch (format_) {
    case heatmap:
      out_ << terminal_heatmap(
          position_maps(tables, static_cast<std::size_t>(std::max(1, (width_ - kPositionLabels) / 2))),
          {shading_, width_});
      break;
    case table:
      for (const AttentionMap& map : position_maps(tables, kAll)) {
        if (begun_) out_ << '\n';
        begun_ = true;
        out_ << attention_table(map, width_);
      }
      break;
    case tsv:
      out_ << position_tsv(tables);
      begun_ = true;
      break;
    case jsonl:
      out_ << position_jsonl(tables);
      break;
    case svg:
    case png:
      sections_.push_back({"Positions", position_maps(tables, kMostPositionColumns)});
      break;
    case pharaoh:
    case html:
    case hdf5:
      break;  // the constructor refuses it
  }
}

/// Adds a sentence to the summary of all.
void AttentionReport::summarize(const SentenceAttention& sentence) {
  for (const AttentionMap& map : select(sentence)) {
    if (options_.stats) statistics_.add(map);
    if (options_.gold.empty()) continue;
    const AttentionMap words = drop_end_of_sentence(map);
    statistics_.add_links(map, threshold_ ? align_threshold(words, *threshold_) : align_argmax(words), sentence.gold);
  }
}

void AttentionReport::add(const SentenceAttention& sentence) {
  if (options_.summarizes()) return summarize(sentence);
  std::vector<AttentionMap> maps = select(sentence);
  using enum AttentionFormat;
  if (format_ == tsv && !begun_) out_ << attention_tsv_header();
  if ((format_ == heatmap || format_ == table) && begun_) out_ << '\n';
  begun_ = true;
  switch (format_) {
    case heatmap:
      out_ << fit_width(heading(sentence, options_.terminal.ascii), width_, options_.terminal.ascii ? "~" : "…")
           << '\n';
      out_ << terminal_heatmap(maps, {shading_, width_});
      break;
    case table:
      out_ << (width_ > 0 ? fit_width(heading(sentence), width_) : heading(sentence)) << '\n';
      for (const AttentionMap& map : maps)
        out_ << (options_.top ? attention_list(map, *options_.top) : attention_table(map, width_));
      break;
    case pharaoh:
      out_ << links(maps);
      break;
    case tsv:
      for (const AttentionMap& map : maps) out_ << attention_tsv(sentence.line, map, options_.top);
      break;
    case jsonl:
      for (const AttentionMap& map : maps) out_ << attention_jsonl(sentence.line, map);
      break;
    case svg:
    case png:
      sections_.push_back({fit_width(heading(sentence), kLongestHeading), std::move(maps)});
      break;
    case html:
      sections_.push_back({heading(sentence), std::move(maps)});
      break;
    case hdf5:
      file_->add(sentence.line, sentence.source_text, sentence.target_text, maps);
      break;
  }
}

void AttentionReport::finish() {
  if (options_.summarizes()) {
    const HeadColumns columns{options_.stats, !options_.gold.empty()};
    const auto write = format_ == AttentionFormat::table ? head_table
                       : format_ == AttentionFormat::tsv ? head_tsv
                                                         : head_jsonl;
    out_ << write(statistics_.heads(), columns);
    return;
  }
  if (format_ == AttentionFormat::tsv && !begun_) out_ << attention_tsv_header();
  if (format_ == AttentionFormat::svg) out_ << attention_svg(sections_);
  if (format_ == AttentionFormat::png) out_ << attention_png(sections_);
  if (format_ == AttentionFormat::html) out_ << attention_html(sections_);
  if (file_) file_->write_to(out_);
}

}  // namespace heed
