#include "heed/inspect/terminal_heatmap.h"

#include <algorithm>

#include "heed/base/utf8.h"
#include "heed/inspect/color_map.h"
#include "heed/inspect/terminal_cells.h"

namespace heed {
namespace {

constexpr int kMapGap = 2;
constexpr int kLongestVertical = 14;  // a column label that is written vertically takes at most this many lines
// A heat map with more columns than this gets vertical column labels; the other form, a staircase, takes one line for
// each column.
constexpr std::size_t kMostStairs = 16;

std::string spaces(int count) {
  return std::string(static_cast<std::size_t>(std::max(count, 0)), ' ');
}

/// Builds a line of text from parts. put() adds a part at a given terminal column; the parts must come from left to
/// right.
class Line {
 public:
  void put(int column, const std::string& text) {
    text_ += spaces(column - used_) + text;
    used_ = std::max(column, used_) + display_width(text);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  int used_ = 0;
};

/// The columns first .. last-1 of an attention map. They are drawn as one heat map; a map that is wider than the
/// terminal is divided into several panels.
struct Panel {
  const AttentionMap* map;
  std::size_t first, last;
  std::string title = {};  // above the cells; empty for a panel that stands alone
  int cells_width() const { return kHeatCellWidth * static_cast<int>(last - first); }
  /// Returns the width that the cells and the title need, in terminal columns, of which there are `room`.
  int width(int room) const { return std::min(room, std::max(cells_width(), display_width(title))); }
};

/// Draws attention maps as text for a terminal. The labels of the columns are drawn in one of two ways: as a staircase,
/// in which a vertical line (rail) leads from each label down to its column, or vertically, from top to bottom.
/// Example, the columns "the" and "cat" in both ways:
///
///          ┌ the           t c
///          │ ┌ cat         h a
///       le ██░░            e t
///     chat ░░██         le ██░░  (a cell is two terminal columns wide)
class HeatmapPainter {
 public:
  HeatmapPainter(const HeatmapStyle& style, ColorScale scale) : style_(style), scale_(scale) {}

  std::string paint(std::span<const AttentionMap> maps);

 private:
  bool colored() const { return has_colors(style_.shading); }
  bool ascii() const { return style_.shading == Shading::ascii; }
  std::string_view mark() const { return cut_mark(style_.shading); }
  std::string token(const std::string& text) const { return visible_token(text, ascii()); }
  /// Returns the number of terminal columns to the right of the labels of the rows.
  int room() const { return style_.width - label_width_ - 1; }
  void add_title(const std::string& text) { out_ += caption_lines(text, style_.width, style_.shading); }
  void strip(std::span<const Panel> panels);
  bool stairs_fit(const Panel& panel) const;
  void stairs(const Panel& panel);
  void vertical(std::span<const Panel> panels);
  void numbers(const Panel& panel);
  void add(const std::string& line) { out_ += line + '\n'; }

  const HeatmapStyle& style_;
  ColorScale scale_;
  int label_width_ = 0;
  std::string out_;
};

/// Returns whether the column labels fit as a staircase: the panel has few enough columns, and on each line at least
/// the beginning of the label fits to the right of the vertical lines (rails) of the columns before.
bool HeatmapPainter::stairs_fit(const Panel& panel) const {
  if (panel.last - panel.first > kMostStairs) return false;
  int left = room() - 2;
  for (std::size_t c = panel.first; c < panel.last; ++c, left -= kHeatCellWidth)
    if (left < std::min(4, display_width(token(panel.map->columns[c])))) return false;
  return true;
}

/// Draws the column labels as a staircase: each label is on a line of its own, and a vertical line (rail) leads from
/// the label down to its column.
void HeatmapPainter::stairs(const Panel& panel) {
  for (std::size_t c = panel.first; c < panel.last; ++c) {
    Line line;
    int at = label_width_ + 1;
    for (std::size_t before = panel.first; before < c; ++before, at += kHeatCellWidth)
      line.put(at, ascii() ? "|" : "│");
    line.put(at, ascii() ? "+ " : "┌ ");
    line.put(at + 2, fit_width(token(panel.map->columns[c]), style_.width - at - 2, mark()));
    add(line.take());
  }
}

/// Draws the column labels vertically, one character on each line; the last character of each label is directly above
/// its column.
void HeatmapPainter::vertical(std::span<const Panel> panels) {
  // For each column label: the terminal column in which it is drawn, and its characters.
  std::vector<std::pair<int, std::vector<std::string>>> labels;
  std::size_t height = 0;
  int at = label_width_ + 1;
  for (const Panel& panel : panels) {
    for (std::size_t c = panel.first; c < panel.last; ++c) {
      auto letters = text_clusters(token(panel.map->columns[c]));
      if (letters.size() > kLongestVertical) {
        letters.resize(kLongestVertical - 1);
        letters.emplace_back(ascii() ? "~" : "⋮");
      }
      height = std::max(height, letters.size());
      labels.emplace_back(at + kHeatCellWidth * static_cast<int>(c - panel.first), std::move(letters));
    }
    at += panel.width(room()) + kMapGap;
  }
  for (std::size_t down = height; down > 0; --down) {
    Line line;
    for (const auto& [column, letters] : labels)
      if (letters.size() >= down) line.put(column, letters[letters.size() - down]);
    add(line.take());
  }
}

/// Draws the column labels of a map with axes: numbers side by side, each with its middle above its column, if this is
/// not too near to the edge of the terminal. All numbers are shown if there is a space between them, or else as many as
/// fit with two spaces between them.
void HeatmapPainter::numbers(const Panel& panel) {
  struct NumberLabel {
    int column, at;
    std::string text;
  };
  const auto placed = [&](int gap) {
    std::vector<NumberLabel> out;
    int free = 0;  // the first column in which a label may begin
    for (std::size_t c = panel.first; c < panel.last; ++c) {
      std::string text = token(panel.map->columns[c]);
      const int width = display_width(text);
      const int column = label_width_ + 1 + kHeatCellWidth * static_cast<int>(c - panel.first);
      const int at = std::max(0, std::min(column - (width - 1) / 2, style_.width - width));
      if (at < free) continue;
      out.push_back({column, at, std::move(text)});
      free = at + width + gap;
    }
    return out;
  };
  std::vector<NumberLabel> shown = placed(1);
  if (shown.size() < panel.last - panel.first) shown = placed(2);
  Line labels, rails;
  for (const NumberLabel& label : shown) {
    labels.put(label.at, label.text);
    rails.put(label.column, ascii() ? "|" : "│");
  }
  add(labels.take());
  add(rails.take());
}

/// Draws panels (parts of attention maps) that have the same row tokens side by side.
void HeatmapPainter::strip(std::span<const Panel> panels) {
  const bool titled = !panels[0].title.empty();
  if (titled) {
    Line line;
    int at = label_width_ + 1;
    for (const Panel& panel : panels) {
      line.put(at, fit_width(panel.title, panel.width(room()), mark()));
      at += panel.width(room()) + kMapGap;
    }
    add(line.take());
  }
  if (panels[0].map->axes)
    numbers(panels[0]);
  else if (!titled && stairs_fit(panels[0]))
    stairs(panels[0]);
  else
    vertical(panels);
  const AttentionMap& map = *panels[0].map;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    std::string line = pad_left(fit_width(token(map.rows[r]), label_width_, mark()), label_width_) + ' ';
    int gap = 0;  // between the cells of the panel before and those of the panel
    for (const Panel& panel : panels) {
      line += spaces(gap);
      gap = panel.width(room()) - panel.cells_width() + kMapGap;
      std::vector<float> shares;
      for (std::size_t c = panel.first; c < panel.last; ++c) shares.push_back(scale_.place(panel.map->at(r, c)));
      line += heat_cells(shares, style_.shading);
    }
    while (!colored() && line.ends_with(' ')) line.pop_back();
    add(line);
  }
  add("");
}

/// Draws the maps of several heads, which belong to the same kind of attention, layer and sentence, and returns the
/// text.
std::string HeatmapPainter::paint(std::span<const AttentionMap> maps) {
  out_.clear();
  const AttentionMap& first = maps[0];
  label_width_ = row_label_width(first.rows, style_.width, style_.shading);
  const std::size_t columns = first.columns.size();
  std::vector<Panel> panels;
  int panel_width = 0;
  for (const AttentionMap& map : maps) {
    panels.push_back({&map, 0, columns, head_title(map.head, map.reduction)});
    panel_width = std::max(panel_width, panels.back().width(room()));
  }
  const auto beside = static_cast<std::size_t>(std::max(1, (room() + kMapGap) / (panel_width + kMapGap)));
  if (maps.size() > 1 && beside > 1) {
    add_title(first.kind + " attention, " + first.layer_title());
    const std::size_t strips = (maps.size() + beside - 1) / beside, each = (maps.size() + strips - 1) / strips;
    for (std::size_t i = 0; i < maps.size(); i += each) {
      const std::size_t count = std::min(each, maps.size() - i);
      strip(std::span(panels).subspan(i, count));
    }
    return out_;
  }
  const auto block = static_cast<std::size_t>(std::max(1, room() / kHeatCellWidth));
  for (const AttentionMap& map : maps) {
    for (std::size_t begin = 0; begin == 0 || begin < columns; begin += block) {
      const std::size_t end = std::min(columns, begin + block);
      add_title(map.title() + (columns <= block ? ""
                                                : " (columns " + std::to_string(begin + 1) + "-" + std::to_string(end) +
                                                      " of " + std::to_string(columns) + ")"));
      if (map.axes) add_title("rows: " + map.axes->rows + "; columns: " + map.axes->columns);
      const Panel panel{&map, begin, end};
      strip({&panel, 1});
    }
  }
  return out_;
}

bool same_group(const AttentionMap& a, const AttentionMap& b) {
  if (a.axes || b.axes) return &a == &b;
  return a.kind == b.kind && a.layer == b.layer && a.rows == b.rows && a.columns == b.columns;
}

}  // namespace

std::string terminal_heatmap(std::span<const AttentionMap> maps, const HeatmapStyle& style) {
  float greatest = 0;
  for (const AttentionMap& map : maps) {
    map.check();
    for (const float weight : map.weights) greatest = std::max(greatest, weight);
  }
  const ColorScale common{0, scale_top(greatest)};
  HeatmapPainter painter(style, common);
  std::string out;
  bool own_scales = false;
  for (std::size_t begin = 0, end = 0; begin < maps.size(); begin = end) {
    while (end < maps.size() && same_group(maps[begin], maps[end])) ++end;
    if (!maps[begin].axes) {
      out += painter.paint(maps.subspan(begin, end - begin));
      continue;
    }
    const ColorScale scale = fine_scale(maps[begin].weights);
    HeatmapPainter own(style, scale);
    out += (begin > 0 ? "\n" : "") + own.paint(maps.subspan(begin, end - begin)) +
           terminal_color_scale(maps[begin].axes->values, "%g", scale, style.shading, style.width);
    own_scales = true;
  }
  return maps.empty() || own_scales ? out
                                    : out + terminal_color_scale("weight", "%.1f", common, style.shading, style.width);
}

}  // namespace heed
