#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace heed {

/// The names of the axes of an attention map whose queries and keys are numbers instead of tokens, and a caption.
struct NumberAxes {
  std::string caption = {};
  std::string rows = {}, columns = {};  ///< what the numbers of the rows and of the columns are, such as "query x"
  std::string values = "weight";        ///< what the map shows in colours; values may be negative
  bool operator==(const NumberAxes&) const = default;
};

/// Says which tokens along a side of an attention map are not part of the text: `<s>` before the first token, and
/// `</s>` behind the last one. A word of the text may look like either of them.
struct SentenceMarks {
  bool start = false, end = false;
};

/// What AttentionMap::reduction has for attention rollout (inspect/attention_rollout.h).
constexpr const char* kRolloutReduction = "rollout";

/// Returns what a table says about a head, or about a combination of several heads (whose number is 0): "3", "mean".
std::string head_value(int head, const std::string& reduction);
/// Returns what a caption says about a head, or about a combination of several heads: "head 3", "mean of heads",
/// "rollout".
std::string head_title(int head, const std::string& reduction);

/// The attention weights of one head in one sentence: how strongly each query (row) weighs each key (column). In
/// cross-attention the rows are the target tokens that were produced and the columns are the source tokens. In the
/// encoder the rows and the columns are the source tokens. In the decoder the rows and the columns are the tokens that
/// were fed to the decoder (`<s>` first).
struct AttentionMap {
  std::string kind = {};       ///< the kind of attention: "encoder", "decoder" or "cross"
  int layer = 1;               ///< number of the layer; layer 1 is the nearest to the embeddings
  int head = 0;                ///< number of the head, from 1; 0 for a combination of several heads
  std::string reduction = {};  ///< "mean" or "max" for a combination of several heads, or "rollout", else empty
  std::vector<std::string> rows = {}, columns = {};  ///< the tokens of the queries and of the keys
  SentenceMarks row_marks = {}, column_marks = {};   ///< whether the first and the last of these tokens are marks
  std::vector<float> weights = {};  ///< [rows, columns], row-major; the weights in a row of one head sum to 1
  /// Present if `rows` and `columns` are numbers in ascending order, as in kernel regression. Pictures then show the
  /// map as a plot over two axes: with small cells, and with labels at some rows and columns only.
  std::optional<NumberAxes> axes = {};

  float at(std::size_t row, std::size_t column) const { return weights[row * columns.size() + column]; }
  /// Returns the head as a value of a table: its number, or the reduction.
  std::string head_value() const { return heed::head_value(head, reduction); }
  /// Returns what a caption says about the layer: "layer 4", or "layers 1-4" for the rollout of several layers.
  std::string layer_title() const;
  /// Returns a caption for the map: "cross attention, layer 4, head 2" or "cross attention, layer 4, mean of heads";
  /// or "attention rollout, layers 1-4"; for a map with axes, the axes' caption.
  std::string title() const;
  /// Throws Error unless the map has rows x columns weights and all weights are finite.
  void check() const;
};

/// Says which subword tokens (pieces) of a sentence form which word.
struct WordGroups {
  std::vector<int> word_of;  ///< [pieces] for each subword token, the index of its word in `words`; never decreasing
  std::vector<std::string> words;  ///< the text of each word, in the order of the sentence
};

/// Returns the number of words, when `word_of` has the index of each piece's word, or -1 for a piece of no word.
std::size_t word_count(std::span<const int> word_of);

/// Merges weights [pieces, pieces] of subword tokens into weights [words, words]. `row_words` and `column_words` have
/// the index of each piece's word, or -1 for a piece that is left out. The weight of a word is the mean over the word's
/// pieces as queries (rows) and the sum over the word's pieces as keys (columns), so that each row still sums to 1 if
/// no piece is left out.
std::vector<double> merge_weights(std::span<const float> weights, std::span<const int> row_words,
                                  std::span<const int> column_words);

/// Merges the rows and the columns of a map that belong to the subword tokens of one word; see merge_weights(). Throws
/// Error when `rows` or `columns` does not fit the map.
AttentionMap merge_words(const AttentionMap& map, const WordGroups& rows, const WordGroups& columns);

enum class HeadReduction { mean, max };

/// Combines the maps of a layer's heads into one map (with the head number 0): each weight is the mean or the maximum
/// of the heads' weights. The maps must have the same tokens.
AttentionMap reduce_heads(std::span<const AttentionMap> heads, HeadReduction reduction);

/// Returns a copy of the map without the row and the column of `</s>`, where the map's marks have them. The other
/// weights do not change, so that the weights of a row may sum to less than 1.
AttentionMap drop_end_of_sentence(const AttentionMap& map);
/// Returns a copy of the map without the rows and the columns of `<s>` and `</s>`, so that its rows and columns are
/// those of the text.
AttentionMap drop_marks(const AttentionMap& map);

/// A word alignment: a list of links (column, row) of an attention map, ordered by row and then by column. In
/// cross-attention a link is (index of the source token, index of the target token).
using Alignment = std::vector<std::pair<int, int>>;

/// Aligns each row of the map with the column that has the largest weight in this row; if several columns have the
/// largest weight, with the first of them.
Alignment align_argmax(const AttentionMap& map);
/// Returns a link for each weight of the map that is at least `threshold`: the weight's row is aligned with the
/// weight's column.
Alignment align_threshold(const AttentionMap& map, float threshold);

/// Returns the links of a word alignment as text, "0-0 1-2", in the format that the programs Pharaoh, Moses and
/// fast_align use.
std::string pharaoh(const Alignment& alignment);

}  // namespace heed
