#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "heed/text/lexicon/alignment_links.h"
#include "heed/text/strings/string_ids.h"

namespace heed {

/// One side of a parallel text: the source sentences or the target sentences, as sequences of pieces. Each different
/// piece has an id, which is called its number.
class PieceText {
 public:
  /// Adds a sentence to the text. `line` has the pieces of the sentence, separated by spaces.
  void add(std::string_view line);

  /// Returns the number of sentences in the text.
  std::int64_t sentences() const { return static_cast<std::int64_t>(ends_.size()); }
  /// Returns how many pieces all sentences have together; a piece that occurs twice counts twice.
  std::int64_t size() const { return static_cast<std::int64_t>(numbers_.size()); }
  /// Returns the index of the first piece of the sentence `sentence`; the pieces of all sentences are counted from 0
  /// on.
  std::int64_t begin(std::int64_t sentence) const {
    return sentence == 0 ? 0 : ends_[static_cast<std::size_t>(sentence) - 1];
  }
  /// Returns the ids of the pieces of sentence `i`, in the order of the sentence.
  std::span<const std::int32_t> sentence(std::int64_t i) const {
    return {numbers_.data() + begin(i), static_cast<std::size_t>(begin(i + 1) - begin(i))};
  }
  /// Returns the id of the `i`-th piece of the text; the pieces of all sentences are counted from 0 on.
  std::int32_t number(std::int64_t i) const { return numbers_[static_cast<std::size_t>(i)]; }
  /// Returns the different pieces of the text. Their ids count from 0 in the order in which the pieces first occur.
  const StringIds& pieces() const { return pieces_; }
  /// Returns how often each different piece occurs in the text, by the id of the piece.
  const std::vector<std::int64_t>& counts() const { return counts_; }

 private:
  StringIds pieces_;
  std::vector<std::int64_t> counts_, ends_;
  std::vector<std::int32_t> numbers_;
};

/// The probabilities p(target piece | source piece) of a lexicon, as a sparse matrix with a row for each source piece.
/// A row has an entry for each target piece that occurs together with the source piece in a sentence pair (or, in the
/// result of count_links(), in an alignment link).
struct LexicalTable {
  struct Row {
    std::span<const std::int32_t> targets;  ///< the ids of the target pieces that have entries in the row, ascending
    std::span<const float> probabilities;
  };

  /// For each row, the index in `targets` and `probabilities` at which the row's entries begin; and, as the last
  /// element, the number of all entries.
  std::vector<std::int64_t> begins = {0};
  std::vector<std::int32_t> targets;
  std::vector<float> probabilities;

  Row row(std::int32_t source) const {
    const auto at = static_cast<std::size_t>(source);
    const auto size = static_cast<std::size_t>(begins[at + 1] - begins[at]);
    return {{targets.data() + begins[at], size}, {probabilities.data() + begins[at], size}};
  }
};

/// Learns the translation probabilities of IBM Model 1 (Brown et al. 1993, "The mathematics of statistical machine
/// translation", section 4.1): `iterations` rounds of expectation maximisation (EM) from equal probabilities, with a
/// NULL piece in every source sentence. `source` and `target` must have the same number of sentences; lexical_table.cpp
/// has an example.
///
/// The result has a row for each source piece and is the same, bit for bit, for any number of threads: a thread works
/// on some of the rows, or on some of the sentences, and every sum is added in one fixed order. The memory is 8 bytes
/// for each pair of pieces that occurs in a sentence pair, 12 bytes for each piece of the target text, and 8 bytes for
/// each piece of the source text. Calls report(number of finished iterations) after each iteration.
LexicalTable learn_model1(const PieceText& source, const PieceText& target, int iterations, int threads,
                          const std::function<void(int)>& report = {});

/// Returns the relative frequencies of linked pieces; the pieces of all sentences of a text are counted from 0 on.
/// p(target piece | source piece) is the number of links between the two pieces, divided by the number of links of the
/// source piece.
LexicalTable count_links(const PieceText& source, const PieceText& target, std::span<const AlignmentLink> links);

}  // namespace heed
