#include "heed/inspect/attention_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "heed/base/terminal.h"
#include "heed/base/utf8.h"
#include "heed/text/strings/scan.h"

namespace heed {
namespace {

std::string fixed(float value, int digits) {
  char out[32];
  std::snprintf(out, sizeof out, "%.*f", digits, static_cast<double>(value));
  return out;
}

std::string pad_left(const std::string& text, int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width - display_width(text))), ' ') + text;
}

std::string head_name(const AttentionMap& map) {
  return map.head > 0 ? std::to_string(map.head) : map.reduction;
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

std::string attention_list(const AttentionMap& map, int top) {
  map.check();
  int width = 0;
  for (const std::string& row : map.rows) width = std::max(width, display_width(visible_token(row)));
  std::string out = map.title() + '\n';
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const std::string query = visible_token(map.rows[r]);
    out += query + std::string(static_cast<std::size_t>(width - display_width(query)), ' ');
    for (const std::size_t c : columns_of(map, r, top))
      out += "  " + visible_token(map.columns[c]) + ' ' + fixed(map.at(r, c), 2);
    out += '\n';
  }
  return out;
}

std::string attention_tsv_header() {
  return "line\tkind\tlayer\thead\tquery\tquery_token\tkey\tkey_token\tweight\n";
}

std::string attention_tsv(std::int64_t line, const AttentionMap& map, std::optional<int> top) {
  map.check();
  const std::string start =
      std::to_string(line) + '\t' + map.kind + '\t' + std::to_string(map.layer) + '\t' + head_name(map) + '\t';
  std::string out;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const std::string query = start + std::to_string(r) + '\t' + tsv_field(map.rows[r]) + '\t';
    for (const std::size_t c : columns_of(map, r, top))
      out += query + std::to_string(c) + '\t' + tsv_field(map.columns[c]) + '\t' + fixed(map.at(r, c), 6) + '\n';
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
  int label_width = 0;
  for (const std::string& row : map.rows) label_width = std::max(label_width, display_width(visible_token(row)));
  std::string out;
  if (width <= 0) out = map.title() + '\n';
  for (const std::string& line : width > 0 ? wrap_width(map.title(), width) : std::vector<std::string>())
    out += line + '\n';
  for (std::size_t begin = 0; begin < map.columns.size();) {
    std::vector<int> widths;
    int used = label_width;
    std::size_t end = begin;
    for (; end < map.columns.size(); ++end) {
      int cell = std::max(4, display_width(visible_token(map.columns[end])));
      for (std::size_t r = 0; r < map.rows.size(); ++r)
        cell = std::max(cell, static_cast<int>(fixed(map.at(r, end), 2).size()));
      if (width > 0 && end > begin && used + 2 + cell > width) break;
      used += 2 + cell;
      widths.push_back(cell);
    }
    if (begin > 0) out += '\n';
    out += std::string(static_cast<std::size_t>(label_width), ' ');
    for (std::size_t c = begin; c < end; ++c) out += "  " + pad_left(visible_token(map.columns[c]), widths[c - begin]);
    for (std::size_t r = 0; r < map.rows.size(); ++r) {
      out += '\n' + pad_left(visible_token(map.rows[r]), label_width);
      for (std::size_t c = begin; c < end; ++c) out += "  " + pad_left(fixed(map.at(r, c), 2), widths[c - begin]);
    }
    out += '\n';
    begin = end;
  }
  return out;
}

}  // namespace heed
