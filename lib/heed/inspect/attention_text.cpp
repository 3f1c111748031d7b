#include "heed/inspect/attention_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "heed/base/number_text.h"
#include "heed/base/terminal.h"
#include "heed/base/utf8.h"
#include "heed/inspect/terminal_cells.h"
#include "heed/text/strings/scan.h"

namespace heed {
namespace {

/// How tables are drawn: without colours, but not in ASCII alone.
constexpr Shading kPlain = Shading::blocks;

/// Returns the limit that a width of an argument stands for: 0 is no limit.
int limit_of(int width) {
  return width > 0 ? width : std::numeric_limits<int>::max();
}

/// Returns a token as it is shown, cut to `width` terminal columns.
std::string cut_token(const std::string& token, int width) {
  return fit_width(visible_token(token), width);
}

std::string weight_text(float weight) {
  return number_text("%.2f", static_cast<double>(weight));
}

/// Returns the columns of a row: all in order or, with `top`, those of the greatest weights, the greatest first. Of
/// equal weights, the first comes first.
std::vector<std::size_t> columns_of(const AttentionMap& map, std::size_t row, std::optional<int> top) {
  std::vector<std::size_t> out(map.columns.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  if (!top) return out;
  std::ranges::stable_sort(out, [&](std::size_t a, std::size_t b) { return map.at(row, a) > map.at(row, b); });
  out.resize(std::min(out.size(), static_cast<std::size_t>(*top)));
  return out;
}

}  // namespace

std::string attention_list(const AttentionMap& map, int top, int width) {
  map.check();
  width = limit_of(width);
  const int labels = row_label_width(map.rows, width, kPlain);
  std::string out = caption_lines(map.title(), width, kPlain);
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    std::string line = cut_token(map.rows[r], labels);
    line.append(static_cast<std::size_t>(labels - display_width(line)), ' ');
    int used = labels;
    for (const std::size_t c : columns_of(map, r, top)) {
      const std::string weight = ' ' + weight_text(map.at(r, c));
      const std::string key =
          cut_token(map.columns[c], std::max(1, width - labels - 2 - display_width(weight))) + weight;
      if (used > labels && used + 2 + display_width(key) > width) {
        out += line + '\n';
        line.assign(static_cast<std::size_t>(labels), ' ');
        used = labels;
      }
      line += "  " + key;
      used += 2 + display_width(key);
    }
    out += line + '\n';
  }
  return out;
}

std::string attention_tsv_header() {
  return "line\tkind\tlayer\thead\tquery\tquery_token\tkey\tkey_token\tweight\n";
}

std::string attention_tsv(std::int64_t line, const AttentionMap& map, std::optional<int> top) {
  map.check();
  const std::string start =
      std::to_string(line) + '\t' + map.kind + '\t' + std::to_string(map.layer) + '\t' + map.head_value() + '\t';
  std::string out;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const std::string query = start + std::to_string(r) + '\t' + tsv_field(map.rows[r]) + '\t';
    for (const std::size_t c : columns_of(map, r, top))
      out += query + std::to_string(c) + '\t' + tsv_field(map.columns[c]) + '\t' +
             number_text("%.6f", static_cast<double>(map.at(r, c))) + '\n';
  }
  return out;
}

std::string attention_jsonl(std::int64_t line, const AttentionMap& map) {
  map.check();
  nlohmann::ordered_json object;
  object["line"] = line;
  object["kind"] = map.kind;
  object["layer"] = map.layer;
  if (map.head > 0)
    object["head"] = map.head;
  else
    object["head"] = map.reduction;
  object["rows"] = map.rows;
  object["columns"] = map.columns;
  auto& weights = object["weights"] = nlohmann::ordered_json::array();
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    auto row = nlohmann::ordered_json::array();
    // The weights are rounded to six decimals. They are rounded as doubles: a float32 such as 0.1F would otherwise be
    // written as 0.10000000149011612 and not as 0.1.
    for (std::size_t c = 0; c < map.columns.size(); ++c)
      row.push_back(std::round(static_cast<double>(map.at(r, c)) * 1e6) / 1e6);
    weights.push_back(std::move(row));
  }
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::string attention_table(const AttentionMap& map, int width) {
  map.check();
  width = limit_of(width);
  const int labels = row_label_width(map.rows, width, kPlain);
  const int widest_cell = std::max(4, width - labels - 2);
  std::string out = caption_lines(map.title(), width, kPlain);
  for (std::size_t begin = 0; begin < map.columns.size();) {
    std::vector<int> widths;
    int used = labels;
    std::size_t end = begin;
    for (; end < map.columns.size(); ++end) {
      int cell = std::max(4, display_width(cut_token(map.columns[end], widest_cell)));
      for (std::size_t r = 0; r < map.rows.size(); ++r)
        cell = std::max(cell, display_width(weight_text(map.at(r, end))));
      if (end > begin && used + 2 + cell > width) break;
      used += 2 + cell;
      widths.push_back(cell);
    }
    if (begin > 0) out += '\n';
    out += std::string(static_cast<std::size_t>(labels), ' ');
    for (std::size_t c = begin; c < end; ++c)
      out += "  " + pad_left(cut_token(map.columns[c], widest_cell), widths[c - begin]);
    for (std::size_t r = 0; r < map.rows.size(); ++r) {
      out += '\n' + pad_left(cut_token(map.rows[r], labels), labels);
      for (std::size_t c = begin; c < end; ++c) out += "  " + pad_left(weight_text(map.at(r, c)), widths[c - begin]);
    }
    out += '\n';
    begin = end;
  }
  return out;
}

}  // namespace heed
