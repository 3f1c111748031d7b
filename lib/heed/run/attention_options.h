#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/base/terminal.h"
#include "heed/config/fields.h"
#include "heed/nn/trace.h"
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
  /// Nothing: cross, or encoder where the model has no cross attention and with `rollout` or `query`.
  std::optional<AttentionChoice> kind = {};
  std::optional<int> positions = {};
  /// Empty: the last layer, and the mean of its heads; with `stats` or `gold`, all layers and all heads.
  std::string layer = {}, head = {};
  bool words = false, pieces = false;
  bool eos = true;
  bool stats = false;
  std::string gold = {};
  std::optional<int> top = {};
  bool rollout = false;
  std::string query = {};
  std::optional<AttentionFormat> format = {};
  std::vector<std::string> alignment = {};
  TerminalOptions terminal = {};

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Selection");
    visit(kind, {.name = "kind",
                 .help = "which attention to show (cross, or encoder if the model has no other); or positions: how the "
                         "model encodes them"});
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
    visit(rollout,
          {.name = "rollout",
           .help = "attention rollout through the encoder's layers 1 to --layer: what each token consists of"});
    visit(query,
          {.name = "query",
           .help = "images: show what the patch with this pixel attends to (if not given: the class token, or the "
                   "mean of all patches)",
           .value = "X,Y"});
    visit.section("Summary of all lines");
    visit(stats,
          {.name = "stats", .help = "how sharp each head is over all lines, how far it looks, and its share on </s>"});
    visit(gold, {.name = "gold",
                 .help = "compare each head's links with the word alignments in FILE: alignment error rate",
                 .value = "FILE",
                 .file = FileUse::read});
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

  /// Returns whether the report is a summary of all lines, instead of maps.
  bool summarizes() const { return stats || !gold.empty(); }
};

/// Returns the output format: what --format or --alignment names, else what the ending of the output file's name says,
/// else a heat map (or a table, for a summary) on a terminal and TSV elsewhere. Throws UsageError for the ending of a
/// format that heed does not write, such as .pdf.
AttentionFormat choose_format(const AttentionReportOptions& options, const std::string& output,
                              const TerminalEnvironment& environment);
/// Throws UsageError if options contradict each other, or have no use with `format`. `output` is the name of the output
/// file.
void check_report_options(const AttentionReportOptions& options, AttentionFormat format, const std::string& output,
                          const TerminalEnvironment& environment);
/// Parses the value of --alignment: returns T for "threshold T", and nothing for "argmax" or an empty value.
std::optional<float> parse_alignment(const std::vector<std::string>& words);
/// Returns whether --head combines all heads of a layer into one map.
bool is_reduced(const std::string& head);

}  // namespace heed
