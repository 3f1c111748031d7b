#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "heed/base/terminal.h"
#include "heed/config/fields.h"
#include "heed/inspect/attention_map.h"
#include "heed/inspect/attention_picture.h"
#include "heed/nn/trace.h"

namespace heed {

/// Whose attention is asked for.
enum class AttentionChoice { cross, encoder, decoder, all };
enum class AttentionFormat { heatmap, table, pharaoh, tsv, jsonl, svg, png };

template <>
struct EnumNames<AttentionChoice> {
  static constexpr std::pair<AttentionChoice, std::string_view> values[] = {{AttentionChoice::cross, "cross"},
                                                                            {AttentionChoice::encoder, "encoder"},
                                                                            {AttentionChoice::decoder, "decoder"},
                                                                            {AttentionChoice::all, "all"}};
};

template <>
struct EnumNames<AttentionKind> {
  static constexpr std::pair<AttentionKind, std::string_view> values[] = {
      {AttentionKind::cross, "cross"}, {AttentionKind::encoder, "encoder"}, {AttentionKind::decoder, "decoder"}};
};

template <>
struct EnumNames<AttentionFormat> {
  static constexpr std::pair<AttentionFormat, std::string_view> values[] = {
      {AttentionFormat::heatmap, "heatmap"}, {AttentionFormat::table, "table"}, {AttentionFormat::pharaoh, "pharaoh"},
      {AttentionFormat::tsv, "tsv"},         {AttentionFormat::jsonl, "jsonl"}, {AttentionFormat::svg, "svg"},
      {AttentionFormat::png, "png"}};
};

template <>
struct EnumNames<ColorChoice> {
  static constexpr std::pair<ColorChoice, std::string_view> values[] = {
      {ColorChoice::automatic, "auto"}, {ColorChoice::always, "always"}, {ColorChoice::never, "never"}};
};

/// What of the attention is shown, and how.
struct AttentionReportOptions {
  AttentionChoice kind = AttentionChoice::cross;
  std::string layer = "last";
  std::string head = "mean";
  bool words = false, pieces = false;
  bool eos = true;
  std::optional<AttentionFormat> format = {};
  std::vector<std::string> alignment = {};
  std::optional<int> width = {};
  bool ascii = false;
  ColorChoice color = ColorChoice::automatic;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Selection");
    visit(kind, {.name = "kind", .help = "whose attention"});
    visit(layer, {.name = "layer", .help = "numbers from 1 (2 or 1,3-4), last or all", .value = "N|last|all"});
    visit(head,
          {.name = "head", .help = "numbers from 1, mean or max over the heads, or all", .value = "N|mean|max|all"});
    visit(words, {.name = "words", .help = "merge the pieces of a word (default for pharaoh)"});
    visit(pieces, {.name = "pieces", .help = "show pieces (default elsewhere)"});
    visit(eos, {.name = "eos", .help = "show </s> (never in pharaoh)"});
    visit.section("Presentation");
    visit(format, {.name = "format",
                   .help = "by the output's name; heatmap on a terminal and tsv elsewhere where it tells nothing",
                   .letter = 'f'});
    visit(alignment, {.name = "alignment",
                      .help = "links for pharaoh: argmax (default), or threshold T for all weights of at least T",
                      .value = "argmax|threshold T"});
    visit(width, {.name = "width",
                  .help = "columns of heatmap and table; the terminal's where not given",
                  .value = "N",
                  .min = 20,
                  .max = 10000});
    visit(ascii, {.name = "ascii", .help = "draw the heat map with ASCII characters"});
    visit(color, {.name = "color", .help = "colours in the heat map; auto minds NO_COLOR, COLORTERM and TERM"});
  }
};

/// The tokens along one side of a map.
struct AttentionTokens {
  std::vector<std::string> pieces = {};
  WordGroups words = {};  ///< over the pieces
};

/// All that a model looked at in one sentence.
struct SentenceAttention {
  std::int64_t line = 0;
  std::string source_text = {}, target_text = {};  ///< raw
  AttentionTokens source = {};                     ///< ends with `</s>`
  AttentionTokens fed = {};                        ///< what the decoder was given: `<s>` and the target
  AttentionTokens produced = {};                   ///< what it was to answer: the target and `</s>`
  struct Head {
    AttentionKind kind = AttentionKind::cross;
    int layer = 1, head = 1;
    std::vector<float> weights;  ///< queries x keys
  };
  std::vector<Head> heads = {};  ///< may be empty for an empty line
};

/// Turns sentences' attention into the format that was asked for.
class AttentionReport {
 public:
  /// `output` is the output's name, which may tell the format; `environment` describes what `out` is connected to.
  /// Throws UsageError where options contradict each other.
  AttentionReport(const AttentionReportOptions& options, const std::string& output, std::ostream& out,
                  const TerminalEnvironment& environment, int terminal_columns);

  /// Throws UsageError where the model has not what was asked for.
  void check_model(int encoder_layers, int decoder_layers, int heads);
  /// Whether this kind of attention is needed at all.
  bool wants(AttentionKind kind) const;
  AttentionFormat format() const { return format_; }

  /// Writes the sentence, or keeps it for a picture.
  void add(const SentenceAttention& sentence);
  /// Writes the picture, where there is one.
  void finish();

 private:
  std::vector<AttentionMap> select(const SentenceAttention& sentence) const;
  std::vector<int> layers(AttentionKind kind) const;
  int depth(AttentionKind kind) const { return kind == AttentionKind::encoder ? encoder_layers_ : decoder_layers_; }
  std::string links(const std::vector<AttentionMap>& maps) const;

  AttentionReportOptions options_;
  AttentionFormat format_;
  bool words_;
  std::optional<float> threshold_;
  std::ostream& out_;
  Shading shading_;
  int width_;
  int encoder_layers_ = 0, decoder_layers_ = 0, heads_ = 0;
  bool begun_ = false;
  std::vector<AttentionSection> sections_;
};

}  // namespace heed
