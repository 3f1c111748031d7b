#include "heed/inspect/terminal_heatmap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

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

std::string align_right(const std::string& text, int width) {
  return spaces(width - display_width(text)) + text;
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
  int width() const { return kHeatCellWidth * static_cast<int>(last - first); }
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
  std::string_view mark() const { return ascii() ? "~" : "…"; }
  void add_title(const std::string& text);
  void set_label_width(const std::vector<std::string>& rows);
  void strip(std::span<const Panel> panels, std::span<const std::string> titles);
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

/// Adds a caption to the output. A caption that is wider than the terminal takes several lines.
void HeatmapPainter::add_title(const std::string& text) {
  for (const std::string& line : wrap_width(text, style_.width, mark()))
    add(colored() ? "\x1b[1m" + line + "\x1b[0m" : line);
}

void HeatmapPainter::set_label_width(const std::vector<std::string>& rows) {
  label_width_ = 0;
  for (const std::string& row : rows) label_width_ = std::max(label_width_, display_width(visible_token(row)));
  label_width_ = std::min(label_width_, std::max(4, style_.width / 3));
}

/// Returns whether the column labels fit as a staircase: the panel has few enough columns, and on each line at least
/// the beginning of the label fits to the right of the vertical lines (rails) of the columns before.
bool HeatmapPainter::stairs_fit(const Panel& panel) const {
  if (panel.last - panel.first > kMostStairs) return false;
  int room = style_.width - label_width_ - 1 - 2;
  for (std::size_t c = panel.first; c < panel.last; ++c, room -= kHeatCellWidth)
    if (room < std::min(4, display_width(visible_token(panel.map->columns[c])))) return false;
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
    line.put(at + 2, fit_width(visible_token(panel.map->columns[c]), style_.width - at - 2, mark()));
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
      auto letters = text_clusters(visible_token(panel.map->columns[c]));
      if (letters.size() > kLongestVertical) {
        letters.resize(kLongestVertical - 1);
        letters.emplace_back(ascii() ? "~" : "⋮");
      }
      height = std::max(height, letters.size());
      labels.emplace_back(at + kHeatCellWidth * static_cast<int>(c - panel.first), std::move(letters));
    }
    at += panel.width() + kMapGap;
  }
  for (std::size_t down = height; down > 0; --down) {
    Line line;
    for (const auto& [column, letters] : labels)
      if (letters.size() >= down) line.put(column, letters[letters.size() - down]);
    add(line.take());
  }
}

/// Draws the column labels of a map with axes: numbers side by side, as many as fit, each with its middle above its
/// column.
void HeatmapPainter::numbers(const Panel& panel) {
  Line labels, rails;
  int used = label_width_;
  for (std::size_t c = panel.first; c < panel.last; ++c) {
    const std::string label = visible_token(panel.map->columns[c]);
    const int column = label_width_ + 1 + kHeatCellWidth * static_cast<int>(c - panel.first);
    const int at = column - (display_width(label) - 1) / 2;
    if (at <= used || at + display_width(label) > style_.width) continue;
    labels.put(at, label);
    rails.put(column, ascii() ? "|" : "│");
    used = at + display_width(label) + 1;
  }
  add(labels.take());
  add(rails.take());
}

/// Draws panels (parts of attention maps) that have the same row tokens side by side. `titles` has a title for each
/// panel, or is empty.
void HeatmapPainter::strip(std::span<const Panel> panels, std::span<const std::string> titles) {
  if (!titles.empty()) {
    Line line;
    int at = label_width_ + 1;
    for (std::size_t i = 0; i < panels.size(); ++i) {
      line.put(at, fit_width(titles[i], panels[i].width() + kMapGap - 1, mark()));
      at += panels[i].width() + kMapGap;
    }
    add(line.take());
  }
  if (panels[0].map->axes)
    numbers(panels[0]);
  else if (titles.empty() && stairs_fit(panels[0]))
    stairs(panels[0]);
  else
    vertical(panels);
  const AttentionMap& map = *panels[0].map;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    std::string line = align_right(fit_width(visible_token(map.rows[r]), label_width_, mark()), label_width_) + ' ';
    for (const Panel& panel : panels) {
      if (&panel != &panels[0]) line += spaces(kMapGap);
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
  set_label_width(first.rows);
  const int room = style_.width - label_width_ - 1;
  const std::size_t columns = first.columns.size();
  const int panel_width = kHeatCellWidth * static_cast<int>(columns);
  const auto beside = static_cast<std::size_t>(std::max(1, (room + kMapGap) / std::max(1, panel_width + kMapGap)));
  if (maps.size() > 1 && beside > 1) {
    add_title(first.kind + " attention, layer " + std::to_string(first.layer));
    std::vector<Panel> panels;
    std::vector<std::string> titles;
    for (const AttentionMap& map : maps) {
      panels.push_back({&map, 0, columns});
      titles.push_back(map.head > 0 ? "head " + std::to_string(map.head) : map.reduction);
    }
    const std::size_t strips = (maps.size() + beside - 1) / beside, each = (maps.size() + strips - 1) / strips;
    for (std::size_t i = 0; i < maps.size(); i += each) {
      const std::size_t count = std::min(each, maps.size() - i);
      strip(std::span(panels).subspan(i, count), std::span(titles).subspan(i, count));
    }
    return out_;
  }
  const auto block = static_cast<std::size_t>(std::max(1, room / kHeatCellWidth));
  for (const AttentionMap& map : maps) {
    for (std::size_t begin = 0; begin == 0 || begin < columns; begin += block) {
      const std::size_t end = std::min(columns, begin + block);
      add_title(map.title() + (columns <= block ? ""
                                                : " (columns " + std::to_string(begin + 1) + "-" + std::to_string(end) +
                                                      " of " + std::to_string(columns) + ")"));
      if (map.axes) add_title("rows: " + map.axes->rows + "; columns: " + map.axes->columns);
      const Panel panel{&map, begin, end};
      strip({&panel, 1}, {});
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
