#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// What one attention head looked at in one sentence: how strongly each query (row) weighs each key (column).
/// Cross attention: rows are the produced target tokens, columns the source tokens. Encoder: both are source tokens.
/// Decoder: both are the tokens fed to the decoder (`<s>` first).
struct AttentionMap {
  std::string kind = {};                             ///< "encoder", "decoder" or "cross"
  int layer = 1;                                     ///< from 1, the layer nearest to the embeddings
  int head = 0;                                      ///< from 1; 0: several heads in one, as `reduction` says
  std::string reduction = {};                        ///< "mean" or "max" where head is 0
  std::vector<std::string> rows = {}, columns = {};  ///< the queries' and the keys' tokens
  std::vector<float> weights = {};                   ///< rows x columns, row-major; a head's own rows sum to 1

  float at(std::size_t row, std::size_t column) const { return weights[row * columns.size() + column]; }
  /// "cross attention, layer 4, head 2" or "cross attention, layer 4, mean of heads".
  std::string title() const;
  /// Throws Error unless there are rows x columns weights, all finite.
  void check() const;
};

/// Which word each piece belongs to.
struct WordGroups {
  std::vector<int> word_of;        ///< one index for each piece, never falling, no index left out
  std::vector<std::string> words;  ///< the words' text
};

/// Words from a continuation mark at a piece's end: "lo@@ st ." are the words "lost" and ".". A mark on the last piece
/// stays, as there is nothing to join it with.
WordGroups group_by_continuation(std::span<const std::string> pieces, std::string_view mark = "@@");

/// One row and column for each word: the mean over its pieces as queries, the sum over its pieces as keys, so a row
/// that sums to 1 still does. Throws Error when a group list does not fit the map.
AttentionMap merge_words(const AttentionMap& map, const WordGroups& rows, const WordGroups& columns);

enum class HeadReduction { mean, max };

/// Element-wise mean or maximum over the heads of one layer (head becomes 0). The maps must have the same tokens.
AttentionMap reduce_heads(std::span<const AttentionMap> heads, HeadReduction reduction);

/// Without the `</s>` that ends the rows and the columns. The other weights stay as they are: what is missing from a
/// row's sum is what went to `</s>`.
AttentionMap drop_end_of_sentence(const AttentionMap& map, std::string_view end = "</s>");

/// Links (column, row), that is (source, target) for cross attention; ordered by row, then by column.
using Alignment = std::vector<std::pair<int, int>>;

/// Each row's strongest column, the first of equals.
Alignment align_argmax(const AttentionMap& map);
/// Every pair whose weight is at least `threshold`.
Alignment align_threshold(const AttentionMap& map, float threshold);

/// The links as "0-0 1-2", as Pharaoh, Moses and fast_align write them.
std::string pharaoh(const Alignment& alignment);

}  // namespace heed
