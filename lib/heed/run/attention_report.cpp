#include "heed/run/attention_report.h"

#include <algorithm>

#include "heed/base/number_text.h"
#include "heed/inspect/attention_html.h"
#include "heed/inspect/attention_text.h"
#include "heed/inspect/image_panels.h"
#include "heed/inspect/image_picture.h"
#include "heed/inspect/terminal_cells.h"
#include "heed/inspect/terminal_heatmap.h"
#include "heed/inspect/terminal_image.h"
#include "heed/run/position_maps.h"

namespace heed {
namespace {

// The greatest width, in terminal columns, of the heading above a picture of attention maps.
constexpr int kLongestHeading = 100;
// The largest number of columns of a table of positions in a picture, and the width of the labels at the left of such a
// table on a terminal, with the space behind them.
constexpr std::size_t kMostPositionColumns = 512;
constexpr int kPositionLabels = 6;

/// Returns the heading above the attention maps of a sentence: "line 3: source text → target text", with the
/// probability of a label.
std::string heading(const SentenceAttention& sentence, bool ascii = false) {
  std::string text = "line " + std::to_string(sentence.line);
  if (!sentence.source_text.empty()) text += ": " + sentence.source_text;
  if (!sentence.target_text.empty()) text += (ascii ? " -> " : " → ") + sentence.target_text;
  if (sentence.image && sentence.image->probability) text += number_text(" (p = %.3f)", *sentence.image->probability);
  return visible_text(text, ascii);
}

}  // namespace

AttentionReport::AttentionReport(const AttentionReportOptions& options, const std::string& output, std::ostream& out,
                                 const TerminalEnvironment& environment, int terminal_columns)
    : options_(options),
      format_(choose_format(options, output, environment)),
      selection_(options, format_),
      threshold_(parse_alignment(options.alignment)),
      out_(out),
      shading_(options.terminal.shading(environment)) {
  check_report_options(options, format_, output, environment);
  using enum AttentionFormat;
  if (format_ == hdf5) file_.emplace(output);
  width_ = options.terminal.width.value_or(format_ == table && !environment.terminal ? 0 : terminal_columns);
}

std::string AttentionReport::links(const std::vector<AttentionMap>& maps) const {
  if (maps.empty()) return "\n";
  return pharaoh(threshold_ ? align_threshold(maps[0], *threshold_) : align_argmax(maps[0])) + '\n';
}

void AttentionReport::add_positions(std::vector<PositionTable> tables) {
  tables = choose_layers(std::move(tables), selection_.layer());
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
  for (const AttentionMap& map : selection_.maps(sentence)) {
    if (options_.stats) statistics_.add(map);
    if (options_.gold.empty()) continue;
    const AttentionMap words = drop_marks(map);
    statistics_.add_links(map, threshold_ ? align_threshold(words, *threshold_) : align_argmax(words), sentence.gold);
  }
}

bool AttentionReport::ascii() const {
  return format_ == AttentionFormat::heatmap && shading_ == Shading::ascii;
}

/// Returns a heading, cut to the width of the output.
std::string AttentionReport::shown_heading(const std::string& text) const {
  return width_ > 0 ? fit_width(text, width_, cut_mark(ascii() ? Shading::ascii : Shading::blocks)) : text;
}

bool AttentionReport::draws() const {
  using enum AttentionFormat;
  return format_ == heatmap || format_ == svg || format_ == png;
}

/// Writes or keeps the maps of attention to the patches of an image, for formats that show the image or its grid.
void AttentionReport::add_image(const SentenceAttention& sentence) {
  ImageSection section{heading(sentence, ascii()), sentence.image->picture, selection_.patch_maps(sentence)};
  if (format_ == AttentionFormat::svg || format_ == AttentionFormat::png) {
    section.heading = fit_width(section.heading, kLongestHeading);
    images_.push_back(std::move(section));
    return;
  }
  if (begun_) out_ << '\n';
  begun_ = true;
  out_ << shown_heading(section.heading) << '\n';
  if (format_ == AttentionFormat::heatmap)
    out_ << terminal_image(section, {shading_, width_});
  else
    for (const PanelGroup& group : image_panels(section.maps))
      for (const ImagePanel& panel : group.panels) out_ << attention_table(percent_map(group, panel), width_);
}

void AttentionReport::add(const SentenceAttention& sentence) {
  if (options_.summarizes()) return summarize(sentence);
  const bool shows_grid = draws() || (format_ == AttentionFormat::table && !options_.top);
  if (sentence.image && shows_grid && !selection_.shows(AttentionKind::decoder)) return add_image(sentence);
  std::vector<AttentionMap> maps = selection_.maps(sentence);
  using enum AttentionFormat;
  if (format_ == tsv && !begun_) out_ << attention_tsv_header();
  if ((format_ == heatmap || format_ == table) && begun_) out_ << '\n';
  begun_ = true;
  switch (format_) {
    case heatmap:
      out_ << shown_heading(heading(sentence, ascii())) << '\n';
      out_ << terminal_heatmap(maps, {shading_, width_});
      break;
    case table:
      out_ << shown_heading(heading(sentence)) << '\n';
      for (const AttentionMap& map : maps)
        out_ << (options_.top ? attention_list(map, *options_.top, width_) : attention_table(map, width_));
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
  if (format_ == AttentionFormat::svg)
    out_ << (images_.empty() ? attention_svg(sections_) : image_attention_svg(images_));
  if (format_ == AttentionFormat::png)
    out_ << (images_.empty() ? attention_png(sections_) : image_attention_png(images_));
  if (format_ == AttentionFormat::html) out_ << attention_html(sections_);
  if (file_) file_->write_to(out_);
}

}  // namespace heed
