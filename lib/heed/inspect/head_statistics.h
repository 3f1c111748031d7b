#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/inspect/attention_map.h"

namespace heed {

/// A word alignment that people have made. Links are (source word, target word), counted from 0. Sure links are
/// possible links, too. Each list is in ascending order, without duplicates.
struct GoldAlignment {
  Alignment sure = {}, possible = {};
};

/// Counts of links for the alignment error rate (Och and Ney 2003): 1 - (|A & S| + |A & P|) / (|A| + |S|) for the links
/// A of an alignment, the sure links S and the possible links P.
struct LinkCounts {
  std::int64_t links = 0, sure = 0;
  std::int64_t right = 0;       ///< links that are possible
  std::int64_t right_sure = 0;  ///< links that are sure

  void add(const Alignment& alignment, const GoldAlignment& gold);
  /// Returns the share of the links that are possible; 0 if there are no links.
  double precision() const { return links > 0 ? static_cast<double>(right) / static_cast<double>(links) : 0; }
  /// Returns the share of the sure links that were found; 0 if there are none.
  double recall() const { return sure > 0 ? static_cast<double>(right_sure) / static_cast<double>(sure) : 0; }
  /// Returns the alignment error rate; 1 if there are neither links nor sure ones, as for a head that has found
  /// nothing.
  double error_rate() const;
};

/// What the attention maps of one head, or of heads that were combined, look like in the mean over all queries of all
/// sentences.
struct HeadSummary {
  std::string kind = {}, reduction = {};
  int layer = 1, head = 0;
  std::int64_t sentences = 0, queries = 0;
  /// Sums over the queries. The entropy of a query's weights is in bits; the distance is the mean of |key - query|, in
  /// positions, by the weights; the largest weight; the weights of the first key and of `</s>`.
  double entropy = 0, distance = 0, largest = 0, first = 0, end = 0;
  LinkCounts gold = {};

  double mean(double sum) const { return queries > 0 ? sum / static_cast<double>(queries) : 0; }
};

/// Collects the maps of many sentences.
class HeadStatistics {
 public:
  /// Adds a map with `</s>`, if its kind of attention has that, which the marks of its columns say.
  void add(const AttentionMap& map);
  /// Adds the links that were read from a map of this head.
  void add_links(const AttentionMap& map, const Alignment& alignment, const GoldAlignment& gold);
  /// Returns the summary of each head, in the order in which the heads were added first.
  const std::vector<HeadSummary>& heads() const { return heads_; }

 private:
  HeadSummary& summary_of(const AttentionMap& map);

  std::vector<HeadSummary> heads_;
};

/// Which columns a table of heads has.
struct HeadColumns {
  bool statistics = true, gold = false;
};

/// Returns the summaries as TSV with a line of column names: kind, layer, head; sentences, queries, entropy, distance,
/// largest, first, end; links, precision, recall, aer.
std::string head_tsv(const std::vector<HeadSummary>& heads, HeadColumns columns);
/// Returns the summaries as lines with a JSON object each, whose members have the names of the columns of head_tsv().
std::string head_jsonl(const std::vector<HeadSummary>& heads, HeadColumns columns);
/// Returns the summaries as a table for people, and, with alignments, which head has the lowest error rate.
std::string head_table(const std::vector<HeadSummary>& heads, HeadColumns columns);

}  // namespace heed
