#include "heed/inspect/head_statistics.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "heed/base/number_text.h"
#include "heed/base/terminal.h"

namespace heed {
namespace {

bool has(const Alignment& links, const std::pair<int, int>& link) {
  return std::ranges::binary_search(links, link);
}

/// A column of a table of heads: its name and its value as text, and whether the value is a number.
struct Cell {
  const char* name;
  std::string text;
  bool number = true;
};

std::vector<Cell> cells(const HeadSummary& head, HeadColumns columns) {
  std::vector<Cell> out{{"kind", head.kind, false}, {"layer", std::to_string(head.layer)}};
  out.push_back({"head", head_value(head.head, head.reduction), head.head > 0});
  if (columns.statistics) {
    out.push_back({"sentences", std::to_string(head.sentences)});
    out.push_back({"queries", std::to_string(head.queries)});
    out.push_back({"entropy", number_text("%.4f", head.mean(head.entropy))});
    out.push_back({"distance", number_text("%.3f", head.mean(head.distance))});
    out.push_back({"largest", number_text("%.4f", head.mean(head.largest))});
    out.push_back({"first", number_text("%.4f", head.mean(head.first))});
    out.push_back({"end", number_text("%.4f", head.mean(head.end))});
  }
  if (columns.gold) {
    out.push_back({"links", std::to_string(head.gold.links)});
    out.push_back({"precision", number_text("%.4f", head.gold.precision())});
    out.push_back({"recall", number_text("%.4f", head.gold.recall())});
    out.push_back({"aer", number_text("%.4f", head.gold.error_rate())});
  }
  return out;
}

}  // namespace

void LinkCounts::add(const Alignment& alignment, const GoldAlignment& gold) {
  links += std::ssize(alignment);
  sure += std::ssize(gold.sure);
  for (const auto& link : alignment) {
    right_sure += has(gold.sure, link);
    right += has(gold.sure, link) || has(gold.possible, link);
  }
}

double LinkCounts::error_rate() const {
  if (links + sure == 0) return 1;
  return 1 - static_cast<double>(right_sure + right) / static_cast<double>(links + sure);
}

HeadSummary& HeadStatistics::summary_of(const AttentionMap& map) {
  const auto known = std::ranges::find_if(heads_, [&](const HeadSummary& head) {
    return head.kind == map.kind && head.layer == map.layer && head.head == map.head && head.reduction == map.reduction;
  });
  if (known != heads_.end()) return *known;
  heads_.push_back({.kind = map.kind, .reduction = map.reduction, .layer = map.layer, .head = map.head});
  return heads_.back();
}

void HeadStatistics::add(const AttentionMap& map) {
  map.check();
  HeadSummary& head = summary_of(map);
  ++head.sentences;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    ++head.queries;
    double largest = 0;
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const auto weight = static_cast<double>(map.at(r, c));
      if (weight > 0) head.entropy -= weight * std::log2(weight);
      head.distance += weight * std::abs(static_cast<double>(c) - static_cast<double>(r));
      largest = std::max(largest, weight);
      if (c == 0) head.first += weight;
      if (c + 1 == map.columns.size() && map.column_marks.end) head.end += weight;
    }
    head.largest += largest;
  }
}

void HeadStatistics::add_links(const AttentionMap& map, const Alignment& alignment, const GoldAlignment& gold) {
  summary_of(map).gold.add(alignment, gold);
}

std::string head_tsv(const std::vector<HeadSummary>& heads, HeadColumns columns) {
  std::string out;
  for (const Cell& cell : cells({}, columns)) out += (out.empty() ? "" : "\t") + std::string(cell.name);
  out += '\n';
  for (const HeadSummary& head : heads) {
    std::string line;
    for (const Cell& cell : cells(head, columns)) line += (line.empty() ? "" : "\t") + cell.text;
    out += line + '\n';
  }
  return out;
}

std::string head_jsonl(const std::vector<HeadSummary>& heads, HeadColumns columns) {
  std::string out;
  for (const HeadSummary& head : heads) {
    nlohmann::ordered_json object;
    for (const Cell& cell : cells(head, columns)) {
      if (cell.number)
        object[cell.name] = nlohmann::ordered_json::parse(cell.text);
      else
        object[cell.name] = cell.text;
    }
    out += object.dump() + '\n';
  }
  return out;
}

std::string head_table(const std::vector<HeadSummary>& heads, HeadColumns columns) {
  std::vector<std::vector<std::string>> lines(1);
  for (const Cell& cell : cells({}, columns)) lines[0].emplace_back(cell.name);
  for (const HeadSummary& head : heads) {
    lines.emplace_back();
    for (const Cell& cell : cells(head, columns)) lines.back().push_back(cell.text);
  }
  std::vector<std::size_t> widths(lines[0].size());
  for (const auto& line : lines)
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  std::string out;
  for (const auto& line : lines) {
    out += line[0] + std::string(widths[0] - line[0].size(), ' ');
    for (std::size_t c = 1; c < line.size(); ++c) out += "  " + pad_left(line[c], static_cast<int>(widths[c]));
    out += '\n';
  }
  if (!columns.gold || heads.empty()) return out;
  const HeadSummary& best =
      *std::ranges::min_element(heads, {}, [](const HeadSummary& head) { return head.gold.error_rate(); });
  return out + "lowest alignment error rate: " + number_text("%.4f", best.gold.error_rate()) + ", layer " +
         std::to_string(best.layer) + ", " + head_title(best.head, best.reduction) + '\n';
}

}  // namespace heed
