#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "heed/text/strings/string_ids.h"

namespace heed {

/// One side of a parallel text: its sentences as numbers of pieces.
class PieceText {
 public:
  /// Adds a sentence of pieces with spaces between them.
  void add(std::string_view line);

  std::int64_t sentences() const { return static_cast<std::int64_t>(ends_.size()); }
  std::int64_t size() const { return static_cast<std::int64_t>(numbers_.size()); }
  /// Where a sentence begins among all pieces.
  std::int64_t begin(std::int64_t sentence) const {
    return sentence == 0 ? 0 : ends_[static_cast<std::size_t>(sentence) - 1];
  }
  std::span<const std::int32_t> sentence(std::int64_t i) const {
    return {numbers_.data() + begin(i), static_cast<std::size_t>(begin(i + 1) - begin(i))};
  }
  /// The number of the i-th piece of the text.
  std::int32_t number(std::int64_t i) const { return numbers_[static_cast<std::size_t>(i)]; }
  /// The different pieces, in the order of first occurrence, and how often each occurs.
  const StringIds& pieces() const { return pieces_; }
  const std::vector<std::int64_t>& counts() const { return counts_; }

 private:
  StringIds pieces_;
  std::vector<std::int64_t> counts_, ends_;
  std::vector<std::int32_t> numbers_;
};

/// p(target piece | source piece) for the pairs that occur in a sentence pair, as sparse rows.
struct LexicalTable {
  struct Row {
    std::span<const std::int32_t> targets;  ///< ascending
    std::span<const float> probabilities;
  };

  std::vector<std::int64_t> begins = {0};  ///< of each row, and the end of the last one
  std::vector<std::int32_t> targets;
  std::vector<float> probabilities;

  Row row(std::int32_t source) const {
    const auto at = static_cast<std::size_t>(source);
    const auto size = static_cast<std::size_t>(begins[at + 1] - begins[at]);
    return {{targets.data() + begins[at], size}, {probabilities.data() + begins[at], size}};
  }
};

/// IBM Model 1 (Brown et al. 1993, "The mathematics of statistical machine translation", section 4.1) by so many
/// iterations of EM from equal probabilities, with a NULL piece in every source sentence. Both texts have the same
/// number of sentences.
///
/// The result has a row for each source piece and is the same, bit for bit, for any number of threads: they share the
/// rows, or the sentences, and each sum is made in one order. Takes 8 bytes for each pair that occurs, 12 for each
/// target piece of the text and 8 for each source piece. Calls report(iterations done) on the way.
LexicalTable learn_model1(const PieceText& source, const PieceText& target, int iterations, int threads,
                          const std::function<void(int)>& report = {});

/// A link of a word alignment: places of two pieces, counted over the whole texts.
struct AlignmentLink {
  std::int64_t source, target;
};

/// Relative frequencies of linked pieces.
LexicalTable count_links(const PieceText& source, const PieceText& target, std::span<const AlignmentLink> links);

}  // namespace heed
