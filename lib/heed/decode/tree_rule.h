#pragma once

#include <cstdint>
#include <vector>

#include "heed/decode/score_rules.h"
#include "heed/decode/search.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {

/// The kind of each piece in a vocabulary of linear trees (see text/trees/linear_tree.h): opening bracket, closing
/// bracket, or word (part of speech). Immutable; any number of threads may use one object.
class TreePieces {
 public:
  /// Throws Error if the vocabulary has no part of speech, without which no tree has words.
  explicit TreePieces(const Vocabulary& vocabulary);

  enum class Kind : std::uint8_t { other, open, close, word };
  std::int32_t size() const { return static_cast<std::int32_t>(kinds_.size()); }
  Kind kind(std::int32_t piece) const { return kinds_[static_cast<std::size_t>(piece)]; }
  /// Returns the closing bracket of an opening bracket.
  std::int32_t closing(std::int32_t open) const { return closing_[static_cast<std::size_t>(open)]; }

 private:
  std::vector<Kind> kinds_;
  std::vector<std::int32_t> closing_;
};

/// Lets hypotheses be linear trees only: brackets match and are never empty, and a tree has exactly the words of its
/// source. A hypothesis can always be finished within its limit, because a bracket is opened only while there is room
/// to close it.
class TreeRule : public ScoreRule {
 public:
  /// The limits of the tree of one source: the exact number of words, at least 1, and the greatest number of pieces,
  /// which is at least the number of words.
  struct Shape {
    int words = 1;
    int longest = 1;
  };
  /// `shapes` has the shape for each source of a batch. `pieces` must outlive this object.
  TreeRule(const TreePieces& pieces, std::vector<Shape> shapes) : pieces_(pieces), shapes_(std::move(shapes)) {}

  void apply(int sentence, std::span<const std::int32_t> history, NextTokens& next) const override;

 private:
  const TreePieces& pieces_;
  std::vector<Shape> shapes_;
};

/// Returns a copy of `options` whose limits on the length of a translation have no effect, for searches in which a
/// TreeRule limits the length.
inline SearchOptions without_length_limit(SearchOptions options) {
  options.max_output_length = 1 << 30;
  options.max_length_factor = 1 << 20;
  return options;
}

}  // namespace heed
