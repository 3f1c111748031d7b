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

/// Returns a copy of the map without the tokens `rows` and `columns` at the ends of its sides.
AttentionMap without(const AttentionMap& map, SentenceMarks rows, SentenceMarks columns) {
  const auto cut = [](std::vector<std::string>& tokens, SentenceMarks& marks, SentenceMarks dropped) {
    if (dropped.end) tokens.pop_back();
    if (dropped.start) tokens.erase(tokens.begin());
    marks = {marks.start && !dropped.start, marks.end && !dropped.end};
  };
  AttentionMap out = map;
  cut(out.rows, out.row_marks, rows);
  cut(out.columns, out.column_marks, columns);
  out.weights.clear();
  for (std::size_t r = 0; r < out.rows.size(); ++r)
    for (std::size_t c = 0; c < out.columns.size(); ++c)
      out.weights.push_back(map.at(r + (rows.start ? 1 : 0), c + (columns.start ? 1 : 0)));
  return out;
}

}  // namespace

std::string head_value(int head, const std::string& reduction) {
  return head > 0 ? std::to_string(head) : reduction;
}

std::string head_title(int head, const std::string& reduction) {
  if (reduction == kRolloutReduction) return reduction;
  return head > 0 ? "head " + std::to_string(head) : reduction + " of heads";
}

std::string AttentionMap::layer_title() const {
  return (reduction == kRolloutReduction && layer > 1 ? "layers 1-" : "layer ") + std::to_string(layer);
}

std::string AttentionMap::title() const {
  if (axes) return axes->caption;
  if (reduction == kRolloutReduction) return "attention rollout, " + layer_title();
  return kind + " attention, " + layer_title() + ", " + head_title(head, reduction);
}

void AttentionMap::check() const {
  if (weights.size() != rows.size() * columns.size())
    throw Error(title() + ": " + std::to_string(weights.size()) + " weights for " + shape(*this) + " tokens");
  if (!std::all_of(weights.begin(), weights.end(), [](float w) { return std::isfinite(w); }))
    throw Error(title() + ": a weight is not a finite number (the model's parameters may be damaged)");
}

std::size_t word_count(std::span<const int> word_of) {
  return word_of.empty() ? 0 : static_cast<std::size_t>(*std::ranges::max_element(word_of) + 1);
}

std::vector<double> merge_weights(std::span<const float> weights, std::span<const int> row_words,
                                  std::span<const int> column_words) {
  const std::size_t columns = word_count(column_words);
  std::vector<double> out(word_count(row_words) * columns);
  std::vector<int> pieces(word_count(row_words));
  for (std::size_t r = 0; r < row_words.size(); ++r) {
    if (row_words[r] < 0) continue;
    const auto row = static_cast<std::size_t>(row_words[r]);
    ++pieces[row];
    for (std::size_t c = 0; c < column_words.size(); ++c)
      if (column_words[c] >= 0)
        out[row * columns + static_cast<std::size_t>(column_words[c])] +=
            static_cast<double>(weights[r * column_words.size() + c]);
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] /= std::max(1, pieces[i / columns]);
  return out;
}

AttentionMap merge_words(const AttentionMap& map, const WordGroups& rows, const WordGroups& columns) {
  map.check();
  check_groups(rows, map.rows.size(), "rows");
  check_groups(columns, map.columns.size(), "columns");
  AttentionMap out = map;
  out.rows = rows.words;
  out.columns = columns.words;
  const std::vector<double> merged = merge_weights(map.weights, rows.word_of, columns.word_of);
  out.weights.assign(merged.begin(), merged.end());
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

AttentionMap drop_end_of_sentence(const AttentionMap& map) {
  return without(map, {.end = map.row_marks.end}, {.end = map.column_marks.end});
}

AttentionMap drop_marks(const AttentionMap& map) {
  return without(map, map.row_marks, map.column_marks);
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
