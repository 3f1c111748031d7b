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

/// Returns the output format that fits the ending of the output file's name, such as .svg. Returns nothing when the
/// ending fits no kind of file. Throws UsageError for the ending of a format that heed does not write, such as .pdf.
std::optional<AttentionFormat> format_of_name(const std::string& output) {
  using enum AttentionFormat;
  constexpr std::array<std::pair<std::string_view, AttentionFormat>, 8> endings{{{".svg", svg},
                                                                                 {".png", png},
                                                                                 {".html", html},
                                                                                 {".htm", html},
                                                                                 {".hdf5", hdf5},
                                                                                 {".h5", hdf5},
                                                                                 {".jsonl", jsonl},
                                                                                 {".tsv", tsv}}};
  // The endings of file formats that heed does not write.
  constexpr std::array<std::string_view, 12> foreign{".pdf",  ".eps", ".ps",   ".jpg", ".jpeg", ".gif",
                                                     ".webp", ".bmp", ".tiff", ".tif", ".json", ".csv"};
  constexpr std::string_view kGzip = ".gz";
  std::string_view name = output;
  if (has_ending(name, kGzip)) name.remove_suffix(kGzip.size());
  for (const auto& [ending, format] : endings)
    if (has_ending(name, ending)) return format;
  for (const std::string_view ending : foreign)
    if (has_ending(name, ending))
      throw UsageError("-o " + output + ": there is no format for " + std::string(ending) +
                       " files (.svg, .png, .html, .h5, .tsv and .jsonl name one, or --format)");
  return std::nullopt;
}

/// Parses the value of --alignment: returns T for "threshold T", and nothing for "argmax" or an empty value.
std::optional<float> parse_alignment(const std::vector<std::string>& words) {
  if (words.empty() || (words.size() == 1 && words[0] == "argmax")) return std::nullopt;
  if (words.size() == 2 && words[0] == "threshold") {
    double threshold = 0;
    const char* const end = words[1].data() + words[1].size();
    const auto [stop, error] = std::from_chars(words[1].data(), end, threshold);
    if (error == std::errc() && stop == end && threshold >= 0 && threshold <= 1) return static_cast<float>(threshold);
    throw UsageError("--alignment threshold '" + words[1] + "': must be a number from 0 to 1");
  }
  std::string given;
  for (const std::string& word : words) given += (given.empty() ? "" : " ") + word;
  throw UsageError("--alignment '" + given + "': must be argmax, or threshold and a number from 0 to 1");
}

/// Returns the heading above the attention maps of a sentence: "line 3: source text → target text".
std::string heading(const SentenceAttention& sentence, bool ascii = false) {
  std::string text = "line " + std::to_string(sentence.line);
  if (!sentence.source_text.empty()) text += ": " + sentence.source_text;
  if (!sentence.target_text.empty()) text += (ascii ? " -> " : " → ") + sentence.target_text;
  return visible_text(text);
}

/// Returns whether --head combines all heads of a layer into one map.
bool is_reduced(const std::string& head) {
  return head == "mean" || head == "max";
}

/// Throws UsageError where an option that is about the tokens of sentences is given together with --kind positions.
void check_position_options(const AttentionReportOptions& options, AttentionFormat format) {
  if (options.kind != AttentionChoice::positions) {
    if (options.positions) throw UsageError("--positions: has no use without --kind positions");
    return;
  }
  const AttentionReportOptions defaults;
  const auto refuse = [](bool given, const char* option) {
    if (given)
      throw UsageError(std::string(option) +
                       ": has no use with --kind positions, which shows numbers of the model and not tokens");
  };
  refuse(options.head != defaults.head, "--head");
  refuse(options.words, "--words");
  refuse(options.pieces, "--pieces");
  refuse(!options.eos, "--no-eos");
  refuse(!options.alignment.empty(), "--alignment");
  refuse(options.stats, "--stats");
  refuse(!options.gold.empty(), "--gold");
  refuse(options.top.has_value(), "--top");
  for (const AttentionFormat each : {AttentionFormat::pharaoh, AttentionFormat::html, AttentionFormat::hdf5})
    refuse(format == each, format == AttentionFormat::pharaoh ? "--format pharaoh"
                           : format == AttentionFormat::html  ? "--format html"
                                                              : "--format hdf5");
}

}  // namespace

AttentionReport::AttentionReport(const AttentionReportOptions& options, const std::string& output, std::ostream& out,
                                 const TerminalEnvironment& environment, int terminal_columns)
    : options_(options),
      threshold_(parse_alignment(options.alignment)),
      out_(out),
      shading_(options.terminal.shading(environment)) {
  using enum AttentionFormat;
  const bool links_wanted = !options.alignment.empty() && options.gold.empty();
  if (options_.layer.empty()) options_.layer = summarizes() ? "all" : "last";
  if (options_.head.empty()) options_.head = summarizes() ? "all" : "mean";
  if (options.format)
    format_ = *options.format;
  else if (links_wanted)
    format_ = pharaoh;
  else
    format_ = format_of_name(output).value_or(!environment.terminal ? tsv : summarizes() ? table : heatmap);
  check_position_options(options, format_);
  if (links_wanted && format_ != pharaoh)
    throw UsageError("--alignment makes links, which --format " + std::string(enum_name(format_)) +
                     " does not show (leave one of them out)");
  const auto needs = [&](bool given, std::initializer_list<AttentionFormat> formats, const std::string& option,
                         const std::string& what) {
    if (given && std::find(formats.begin(), formats.end(), format_) == formats.end())
      throw UsageError(option + ": has no use with --format " + std::string(enum_name(format_)) + " (" + what + ")");
  };
  needs(options.top.has_value(), {table, tsv}, "--top", "table and tsv list weights");
  if (summarizes()) {
    const char* const option = options.stats ? "--stats" : "--gold";
    needs(true, {table, tsv, jsonl}, option, "a summary is a table, tsv or jsonl");
    const auto refuse = [&](bool given, const std::string& other, const std::string& why) {
      if (given) throw UsageError(other + ": has no use with " + option + why);
    };
    refuse(options.top.has_value(), "--top", ", which adds up all weights");
    refuse(!options.eos, "--no-eos", ", which tells the share of </s>");
    refuse(options.terminal.width.has_value(), "--width", ", whose table is not broken");
    refuse(options_.head == "max", "--head max", " because the greatest weights of several heads do not sum to 1");
    if (!options.gold.empty() && options.kind != AttentionChoice::cross)
      throw UsageError("--gold: word alignments are compared with cross attention (leave --kind out)");
    if (!options.gold.empty() && options.pieces) throw UsageError("--pieces: --gold compares words");
  }
  needs(options.terminal.width.has_value(), {heatmap, table}, "--width", "heatmap and table have columns");
  needs(options.terminal.ascii, {heatmap}, "--ascii", "a heatmap is drawn with characters");
  needs(options.terminal.color != ColorChoice::automatic, {heatmap}, "--color", "a heatmap has colours");
  options.terminal.validate();
  if (format_ == hdf5 && (output.empty() || output == "-"))
    throw UsageError("--format hdf5: needs a file (-o FILE.h5)");
  if (options.words && options.pieces) throw UsageError("--words and --pieces exclude each other");
  if (format_ == png && environment.terminal)
    throw UsageError("--format png is not text for a terminal (give -o FILE.png, or a pipe)");
  words_ = options.words || !options.gold.empty() || (format_ == pharaoh && !options.pieces);
  if (format_ == hdf5) file_.emplace(output);
  width_ = options.terminal.width.value_or(format_ == table && !environment.terminal ? 0 : terminal_columns);
  if (options_.layer != "last" && options_.layer != "all") NumberRanges::parse("layer", options_.layer);
  if (!is_reduced(options_.head) && options_.head != "all") NumberRanges::parse("head", options_.head);
  if (format_ == pharaoh && options.kind == AttentionChoice::all)
    throw UsageError("--format pharaoh writes one line for each input line (choose one --kind)");
}

/// Returns the number of the model's layers with this kind of attention.
int AttentionReport::depth(AttentionKind kind) const {
  int layers = 0;
  for (const AttentionLayers& each : attention_)
    if (each.kind == kind) layers += each.layers;
  return layers;
}

void AttentionReport::check_model(const std::vector<AttentionLayers>& attention) {
  attention_ = attention;
  const auto check = [](const char* option, const std::string& text, int there, const std::string& what) {
    const std::int64_t greatest = NumberRanges::parse(option, text).greatest_named();
    if (greatest > there)
      throw UsageError("--" + std::string(option) + ' ' + std::to_string(greatest) + ": the model has " +
                       std::to_string(there) + ' ' + what);
  };
  int most = 0, heads = 0, layers_shown = 0;
  std::string kinds;
  for (const AttentionKind kind : kKinds) {
    if (depth(kind) == 0) continue;
    kinds += (kinds.empty() ? "" : ", ") + std::string(enum_name(kind));
    if (!wants(kind)) continue;
    most = std::max(most, depth(kind));
    for (const AttentionLayers& each : attention_)
      if (each.kind == kind) heads = std::max(heads, each.heads);
    layers_shown += static_cast<int>(layers(kind).size());
  }
  if (kinds.empty())
    throw UsageError(
        "the model has no attention, so that there is nothing to show (train --task rnn-attention and the "
        "Transformers have some)");
  if (most == 0)
    throw UsageError("--kind " + std::string(enum_name(options_.kind)) + ": the model has no such attention (it has " +
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
  return options_.kind == AttentionChoice::all || enum_name(options_.kind) == enum_name(kind);
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
  if (summarizes()) return summarize(sentence);
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
  if (summarizes()) {
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
