#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// The attention weights of one head in one sentence: how strongly each query (row) weighs each key (column). In
/// cross-attention the rows are the target tokens that were produced and the columns are the source tokens. In the
/// encoder the rows and the columns are the source tokens. In the decoder the rows and the columns are the tokens that
/// were fed to the decoder (`<s>` first).
struct AttentionMap {
  std::string kind = {};                             ///< "encoder", "decoder" or "cross"
  int layer = 1;                                     ///< counts from 1, the layer nearest to the embeddings
  int head = 0;                                      ///< counts from 1; 0: a combination of several heads
  std::string reduction = {};                        ///< "mean" or "max" for a combination of heads
  std::vector<std::string> rows = {}, columns = {};  ///< the tokens of the queries and of the keys
  std::vector<float> weights = {};                   ///< [rows, columns], row-major; a head's rows sum to 1

  float at(std::size_t row, std::size_t column) const { return weights[row * columns.size() + column]; }
  /// Returns the map's caption: "cross attention, layer 4, head 2" or "cross attention, layer 4, mean of heads".
  std::string title() const;
  /// Throws Error unless the map has rows x columns weights and all weights are finite.
  void check() const;
};

/// A grouping of subword pieces into words.
struct WordGroups {
  std::vector<int> word_of;        ///< [pieces] the index of each piece's word: 0, 1, ... in order
  std::vector<std::string> words;  ///< the text of each word
};

/// Groups pieces into words by a continuation mark at the end of a piece: "lo@@ st ." are the words "lost" and ".". A
/// mark on the last piece stays in the text, since no piece follows.
WordGroups group_by_continuation(std::span<const std::string> pieces, std::string_view mark = "@@");

/// Returns a map with one row and one column for each word. The weight of a word is the mean over its pieces as queries
/// and the sum over its pieces as keys, so that the rows still sum to 1. Throws Error when a grouping does not fit the
/// map.
AttentionMap merge_words(const AttentionMap& map, const WordGroups& rows, const WordGroups& columns);

enum class HeadReduction { mean, max };

/// Combines the heads of one layer into one map (whose head is 0): each weight is the mean or the maximum of the heads'
/// weights. The maps must have the same tokens.
AttentionMap reduce_heads(std::span<const AttentionMap> heads, HeadReduction reduction);

/// Returns a map without the row and the column of `</s>` at the end. The other weights do not change, so that a row's
/// sum lacks the weight of `</s>`.
AttentionMap drop_end_of_sentence(const AttentionMap& map, std::string_view end = "</s>");

/// A list of links (column, row), ordered by row and then by column. In cross-attention a link is (source, target).
using Alignment = std::vector<std::pair<int, int>>;

/// Links each row with the column of the row's largest weight; if several columns have that weight, with the first.
Alignment align_argmax(const AttentionMap& map);
/// Links each row and column whose weight is at least `threshold`.
Alignment align_threshold(const AttentionMap& map, float threshold);

/// Returns the links as text, "0-0 1-2", in the format of Pharaoh, Moses and fast_align.
std::string pharaoh(const Alignment& alignment);

}  // namespace heed
