#include "heed/inspect/attention_map.h"

#include <algorithm>
#include <cmath>

#include "heed/base/error.h"

namespace heed {
namespace {

std::string shape(const AttentionMap& map) {
  return std::to_string(map.rows.size()) + " x " + std::to_string(map.columns.size());
}

void check_groups(const WordGroups& groups, std::size_t pieces, const char* side) {
  bool good = groups.word_of.size() == pieces;
  int last = -1;
  for (const int word : groups.word_of) {
    good = good && (word == last || word == last + 1) && word >= 0;
    last = word;
  }
  if (!good || last + 1 != static_cast<int>(groups.words.size()))
    throw Error(std::string("merge_words: the words of the ") + side + " do not cover its " + std::to_string(pieces) +
                " pieces in order");
}

/// Returns a copy of the map without the last row (if `row` is true) and without the last column (if `column` is true).
AttentionMap without_last(const AttentionMap& map, bool row, bool column) {
  AttentionMap out = map;
  if (row) out.rows.pop_back();
  if (column) out.columns.pop_back();
  out.weights.clear();
  for (std::size_t r = 0; r < out.rows.size(); ++r)
    for (std::size_t c = 0; c < out.columns.size(); ++c) out.weights.push_back(map.at(r, c));
  return out;
}

}  // namespace

std::string AttentionMap::title() const {
  if (axes) return axes->caption;
  if (reduction == kRolloutReduction)
    return "attention rollout, " + (layer == 1 ? "layer 1" : "layers 1-" + std::to_string(layer));
  return kind + " attention, layer " + std::to_string(layer) + ", " +
         (head > 0 ? "head " + std::to_string(head) : reduction + " of heads");
}

void AttentionMap::check() const {
  if (weights.size() != rows.size() * columns.size())
    throw Error(title() + ": " + std::to_string(weights.size()) + " weights for " + shape(*this) + " tokens");
  if (!std::all_of(weights.begin(), weights.end(), [](float w) { return std::isfinite(w); }))
    throw Error(title() + ": a weight is not a finite number (the model's parameters may be damaged)");
}

WordGroups group_by_continuation(std::span<const std::string> pieces, std::string_view mark) {
  WordGroups groups;
  bool open = false;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::string piece = pieces[i];
    if (!open) groups.words.emplace_back();
    groups.word_of.push_back(static_cast<int>(groups.words.size()) - 1);
    open = !mark.empty() && i + 1 < pieces.size() && piece.ends_with(mark);
    if (open) piece.resize(piece.size() - mark.size());
    groups.words.back() += piece;
  }
  return groups;
}

AttentionMap merge_words(const AttentionMap& map, const WordGroups& rows, const WordGroups& columns) {
  map.check();
  check_groups(rows, map.rows.size(), "rows");
  check_groups(columns, map.columns.size(), "columns");
  AttentionMap out = map;
  out.rows = rows.words;
  out.columns = columns.words;
  out.weights.assign(out.rows.size() * out.columns.size(), 0.0F);
  std::vector<float> pieces_in(out.rows.size(), 0.0F);
  for (const int word : rows.word_of) pieces_in[static_cast<std::size_t>(word)] += 1;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const auto row = static_cast<std::size_t>(rows.word_of[r]);
    for (std::size_t c = 0; c < map.columns.size(); ++c)
      out.weights[row * out.columns.size() + static_cast<std::size_t>(columns.word_of[c])] +=
          map.at(r, c) / pieces_in[row];
  }
  return out;
}

AttentionMap reduce_heads(std::span<const AttentionMap> heads, HeadReduction reduction) {
  if (heads.empty()) throw Error("reduce_heads: no heads");
  AttentionMap out = heads[0];
  out.head = 0;
  out.reduction = reduction == HeadReduction::mean ? "mean" : "max";
  for (const AttentionMap& head : heads.subspan(1)) {
    if (head.rows != out.rows || head.columns != out.columns)
      throw Error("reduce_heads: " + head.title() + " is " + shape(head) + " with other tokens than the " + shape(out) +
                  " before");
    for (std::size_t i = 0; i < out.weights.size(); ++i)
      out.weights[i] = reduction == HeadReduction::mean ? out.weights[i] + head.weights[i]
                                                        : std::max(out.weights[i], head.weights[i]);
  }
  if (reduction == HeadReduction::mean)
    for (float& weight : out.weights) weight /= static_cast<float>(heads.size());
  return out;
}

AttentionMap drop_end_of_sentence(const AttentionMap& map, std::string_view end) {
  return without_last(map, !map.rows.empty() && map.rows.back() == end,
                      !map.columns.empty() && map.columns.back() == end);
}

Alignment align_argmax(const AttentionMap& map) {
  Alignment links;
  if (map.columns.empty()) return links;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    std::size_t best = 0;
    for (std::size_t c = 1; c < map.columns.size(); ++c)
      if (map.at(r, c) > map.at(r, best)) best = c;
    links.emplace_back(static_cast<int>(best), static_cast<int>(r));
  }
  return links;
}

Alignment align_threshold(const AttentionMap& map, float threshold) {
  Alignment links;
  for (std::size_t r = 0; r < map.rows.size(); ++r)
    for (std::size_t c = 0; c < map.columns.size(); ++c)
      if (map.at(r, c) >= threshold) links.emplace_back(static_cast<int>(c), static_cast<int>(r));
  return links;
}

std::string pharaoh(const Alignment& alignment) {
  std::string out;
  for (const auto& [column, row] : alignment)
    out += (out.empty() ? "" : " ") + std::to_string(column) + '-' + std::to_string(row);
  return out;
}

}  // namespace heed
