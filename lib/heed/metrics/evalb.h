#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/metrics/metric.h"

namespace heed {

/// What to do with a tree that cannot be scored, because it is broken or has other words than the gold tree.
enum class BadTree { fail, skip };

template <>
struct EnumNames<BadTree> {
  static constexpr std::pair<BadTree, std::string_view> values[] = {{BadTree::fail, "fail"}, {BadTree::skip, "skip"}};
};

/// The parameters of evalb, the scorer of constituency parsers by Sekine and Collins (1997). The defaults are those of
/// COLLINS.prm, the parameters with which results are published, and in addition an empty label: the outermost bracket
/// that the Penn Treebank writes around each tree is no constituent.
struct EvalbOptions {
  /// The name of the parameters in a signature.
  std::string name = "COLLINS";
  /// Whether a constituent counts as right only with the right label.
  bool labelled = true;
  /// A pre-terminal with one of these labels is removed with its word; of a phrase with one of these labels, only the
  /// bracket is removed.
  std::vector<std::string> deleted = {"TOP", "", "-NONE-", ",", ":", "``", "''", "."};
  /// The words with one of these labels do not count for the length of a sentence, which `cutoff` looks at.
  std::vector<std::string> deleted_for_length = {"-NONE-"};
  /// The parts of speech that a quotation mark may be confused with.
  std::vector<std::string> quotes = {"``", "''", "POS"};
  /// Pairs of labels, and of words, that count as equal.
  std::vector<std::pair<std::string, std::string>> equal_labels = {{"ADVP", "PRT"}}, equal_words = {};
  /// evalb's summary has a second part for the sentences of at most this length.
  int cutoff = 40;
  /// Whether the parts of speech of the gold tree decide for both trees which words are deleted. evalb asks each tree,
  /// so that a sentence with a comma that the parser takes for a noun has two lengths, and is an error.
  bool gold_tags = false;
  BadTree on_bad_tree = BadTree::fail;
};

/// Reads a parameter file of evalb, such as COLLINS.prm: lines of a keyword and a value, and comments that begin with
/// "#". Nothing else than what the file says is deleted or equal. The keywords DEBUG and MAX_ERROR are accepted without
/// effect. Throws Error with file and line for an unknown keyword or a value that does not fit.
EvalbOptions read_evalb_parameters(const std::string& path);

/// What evalb counts in a sentence, or adds up over a corpus; also the layout of the statistics of EvalbMetric.
struct EvalbCounts {
  double sentences = 0, errors = 0, skipped = 0;  ///< all sentences, those in error, and those without any words
  double matched = 0, gold = 0, test = 0;         ///< brackets: in both trees, in the gold tree, in the test tree
  double exact = 0;                               ///< sentences whose brackets are all right
  double crossing = 0;                            ///< test brackets that cross a gold bracket
  double no_crossing = 0, two_crossings = 0;      ///< sentences without a crossing bracket, and with at most two
  double words = 0, tags = 0;                     ///< words, and words with the right part of speech

  double valid() const { return sentences - errors - skipped; }
  /// The labelled recall, precision and F1 in percent; 0 where there is nothing to divide by.
  double recall() const;
  double precision() const;
  double f1() const;
  /// The share of words with the right part of speech, in percent.
  double tagging_accuracy() const;
};

/// The statistics of one sentence or the sums over a corpus: of all sentences, and of those of at most
/// EvalbOptions::cutoff words; and the length of the gold sentence.
struct EvalbStatistics {
  EvalbCounts all, shorter;
  double length = 0;
};

/// The metric evalb for constituency trees: the labelled F1 of brackets (PARSEVAL, Black et al. 1991) as the program
/// evalb computes it. The reference is the gold tree, one a line in Penn Treebank's brackets, and the hypothesis the
/// parser's tree over the same words. An empty tree, "(())", is skipped, as evalb does.
class EvalbMetric : public TranslationMetric {
 public:
  explicit EvalbMetric(EvalbOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "evalb"; }
  std::string settings() const override;
  std::size_t width() const override { return sizeof(EvalbStatistics) / sizeof(double); }
  std::unique_ptr<SegmentCounter> counter() const override;
  /// Returns the labelled F1 in percent.
  double score(std::span<const double> sums) const override;
  ResampledScore resampled_score(std::span<const float> sums) const override;
  /// Returns recall, precision, exact match and tagging accuracy, and how many sentences they are of.
  std::string details(std::span<const double> sums) const override;

  /// Returns the statistics that a row, or the sum of rows, consists of.
  static EvalbStatistics statistics(std::span<const double> row);

 private:
  EvalbOptions options_;
};

/// Returns the head of the table that evalb prints.
std::string evalb_table_head();
/// Returns the line of that table for the sentence with this number, counted from 1.
std::string evalb_table_row(std::int64_t number, const EvalbStatistics& sentence);
/// Returns the end of that table, the sums and the summary, in which `cutoff` stands.
std::string evalb_table_summary(const EvalbStatistics& sums, int cutoff);

}  // namespace heed
