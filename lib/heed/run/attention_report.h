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
#include "heed/inspect/head_statistics.h"
#include "heed/model/model.h"
#include "heed/run/attention_file.h"
#include "heed/run/terminal_options.h"

namespace heed {

/// What the user wants to see: a kind of attention, all kinds, or how the model encodes positions.
enum class AttentionChoice { cross, encoder, decoder, all, positions };
enum class AttentionFormat { heatmap, table, pharaoh, tsv, jsonl, svg, png, html, hdf5 };

template <>
struct EnumNames<AttentionChoice> {
  static constexpr std::pair<AttentionChoice, std::string_view> values[] = {{AttentionChoice::cross, "cross"},
                                                                            {AttentionChoice::encoder, "encoder"},
                                                                            {AttentionChoice::decoder, "decoder"},
                                                                            {AttentionChoice::all, "all"},
                                                                            {AttentionChoice::positions, "positions"}};
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
      {AttentionFormat::png, "png"},         {AttentionFormat::html, "html"},   {AttentionFormat::hdf5, "hdf5"}};
};

/// The options that choose attention weights and their presentation.
struct AttentionReportOptions {
  AttentionChoice kind = AttentionChoice::cross;
  std::optional<int> positions = {};
  /// Empty: the last layer, and the mean of its heads; with `stats` or `gold`, all layers and all heads.
  std::string layer = {}, head = {};
  bool words = false, pieces = false;
  bool eos = true;
  bool stats = false;
  std::string gold = {};
  std::optional<int> top = {};
  std::optional<AttentionFormat> format = {};
  std::vector<std::string> alignment = {};
  TerminalOptions terminal = {};

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Selection");
    visit(kind, {.name = "kind", .help = "which attention to show; or positions: how the model encodes them"});
    visit(positions, {.name = "positions",
                      .help = "number of positions that --kind positions shows (60)",
                      .value = "N",
                      .min = 1,
                      .max = 10000});
    visit(layer,
          {.name = "layer",
           .help = "layers to show: numbers from 1 (2 or 1,3-4), last (default) or all (with --stats and --gold)",
           .value = "N|last|all"});
    visit(head,
          {.name = "head",
           .help = "heads to show: numbers from 1, all (with --stats and --gold), or the mean (default) or max over "
                   "the heads",
           .value = "N|mean|max|all"});
    visit(words, {.name = "words", .help = "merge the pieces of each word (default for pharaoh)"});
    visit(pieces, {.name = "pieces", .help = "show pieces (default for the other formats)"});
    visit(eos, {.name = "eos", .help = "show </s>, except in pharaoh"});
    visit(top, {.name = "top",
                .help = "show only the N keys with the greatest weights of each query (table, tsv)",
                .value = "N",
                .min = 1,
                .max = 1000000});
    visit.section("Summary of all lines");
    visit(stats,
          {.name = "stats", .help = "how sharp each head is over all lines, how far it looks, and its share on </s>"});
    visit(gold, {.name = "gold",
                 .help = "compare each head's links with the word alignments in FILE: alignment error rate",
                 .value = "FILE"});
    visit.section("Presentation");
    visit(
        format,
        {.name = "format",
         .help = "output format (if not given: by the name of --output, else heatmap on a terminal and tsv elsewhere)",
         .letter = 'f'});
    visit(alignment, {.name = "alignment",
                      .help = "links that pharaoh writes: argmax (default), or threshold T: all weights of at least T",
                      .value = "argmax|threshold T"});
    terminal.fields(visit);
  }
};

/// The tokens along one side of an attention map.
struct AttentionTokens {
  std::vector<std::string> pieces = {};
  /// The words that the pieces form: the text of each word, and the index of each piece's word.
  WordGroups words = {};
};

/// The attention weights that a model computes for one sentence pair, with the texts and tokens of the pair.
struct SentenceAttention {
  std::int64_t line = 0;
  /// The source and the target sentence as raw text.
  std::string source_text = {}, target_text = {};
  /// The tokens that the encoder reads: pieces of the source and `</s>`.
  AttentionTokens source = {};
  /// The tokens that the decoder reads: `<s>` and pieces of the target.
  AttentionTokens fed = {};
  /// The tokens that the decoder predicts: pieces of the target and `</s>`.
  AttentionTokens produced = {};
  struct Head {
    AttentionKind kind = AttentionKind::cross;
    int layer = 1, head = 1;
    /// The attention weights of this head: [queries, keys] in row-major order.
    std::vector<float> weights;
  };
  /// The word alignment that people have made, with --gold.
  GoldAlignment gold = {};
  /// The attention weights of each head; empty when source and target are empty lines.
  std::vector<Head> heads = {};
};

/// Writes the attention of sentences in the format that the user chose; with --stats or --gold, a summary of all.
class AttentionReport {
 public:
  /// `output` is the name of the output file; its ending may choose the format. `environment` describes the terminal,
  /// if any, that `out` is connected to. Throws UsageError when options contradict each other.
  AttentionReport(const AttentionReportOptions& options, const std::string& output, std::ostream& out,
                  const TerminalEnvironment& environment, int terminal_columns);

  /// Checks that the model has the kind of attention, the layers and the heads that the options name. `attention` is
  /// what Model::attention_layers() returned. Throws UsageError otherwise.
  void check_model(const std::vector<AttentionLayers>& attention);
  /// Returns whether the report needs the weights of this kind of attention.
  bool wants(AttentionKind kind) const;
  AttentionFormat format() const { return format_; }

  /// Writes the tables by which the model encodes positions, of which --layer chooses some. Throws UsageError where
  /// there are no such tables.
  void add_positions(std::vector<PositionTable> tables);
  /// Writes the attention maps of a sentence. For SVG, PNG and HTML, keeps the maps instead, for the picture or page of
  /// all sentences that finish() writes, and for HDF5 adds them to the file.
  void add(const SentenceAttention& sentence);
  /// Writes the picture, page, file or summary of all sentences. For TSV, writes the header line if add() was never
  /// called; for other formats, writes nothing.
  void finish();

 private:
  bool summarizes() const { return options_.stats || !options_.gold.empty(); }
  void summarize(const SentenceAttention& sentence);
  std::vector<AttentionMap> select(const SentenceAttention& sentence) const;
  std::vector<int> layers(AttentionKind kind) const;
  int depth(AttentionKind kind) const;
  std::string links(const std::vector<AttentionMap>& maps) const;

  AttentionReportOptions options_;
  AttentionFormat format_;
  bool words_;
  std::optional<float> threshold_;
  std::ostream& out_;
  Shading shading_;
  int width_;
  std::vector<AttentionLayers> attention_;  // of the model
  bool begun_ = false;
  std::vector<AttentionSection> sections_;
  HeadStatistics statistics_;
  std::optional<AttentionFile> file_;
};

}  // namespace heed
