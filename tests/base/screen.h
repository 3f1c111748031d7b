#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A model of a terminal's screen, for tests of status lines. The terminal understands "\r", "\n", ESC [ K and ESC [ J,
/// and breaks lines that are too long.
class Screen {
 public:
  explicit Screen(std::size_t width) : width_(width), rows_(1) {}

  void write(std::string_view text) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text.substr(at, 3) == "\x1b[K" || text.substr(at, 3) == "\x1b[J") {
        rows_[row_].text.resize(std::min(rows_[row_].text.size(), column_));
        if (text[at + 2] == 'J') rows_.resize(row_ + 1);
        rows_[row_].continued = false;
        at += 2;
      } else if (text[at] == '\r') {
        column_ = 0;
      } else if (text[at] == '\n') {
        next_row(false);
      } else {
        if (column_ == width_) next_row(true);
        std::string& row = rows_[row_].text;
        row.resize(std::max(row.size(), column_ + 1), ' ');
        row[column_++] = text[at];
      }
    }
  }

  /// Changes the width of the window. Some terminals then break all lines again, and the cursor stays at its character
  /// (`reflow` true); other terminals cut the lines.
  void resize(std::size_t width, bool reflow) {
    width_ = width;
    if (!reflow) {
      for (Row& row : rows_) row.text.resize(std::min(row.text.size(), width));
      column_ = std::min(column_, width - 1);
      return;
    }
    std::vector<Row> rows;
    std::size_t cursor_row = 0, cursor_column = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      std::string line = rows_[i].text;
      std::size_t cursor = row_ == i ? column_ : std::string::npos;
      for (; rows_[i].continued; line += rows_[i].text) {
        ++i;
        if (row_ == i) cursor = line.size() + column_;
      }
      if (cursor != std::string::npos) {
        cursor_row = rows.size() + cursor / width;
        cursor_column = cursor % width;
      }
      do {
        rows.push_back({line.substr(0, width), line.size() > width});
        line.erase(0, width);
      } while (!line.empty());
    }
    rows_ = std::move(rows);
    row_ = cursor_row;
    column_ = cursor_column;
    rows_.resize(std::max(rows_.size(), row_ + 1));
  }

  /// Returns the rows that can be seen, without the empty rows at the end.
  std::vector<std::string> rows() const {
    std::vector<std::string> out;
    for (const Row& row : rows_) out.push_back(row.text);
    while (!out.empty() && out.back().empty()) out.pop_back();
    return out;
  }

 private:
  struct Row {
    std::string text;
    bool continued = false;  // true when the row's line continues in the next row
  };

  void next_row(bool continued) {
    rows_[row_].continued = continued;
    if (++row_ == rows_.size()) rows_.emplace_back();
    column_ = 0;
  }

  std::size_t width_, row_ = 0, column_ = 0;
  std::vector<Row> rows_;
};

}  // namespace heed
