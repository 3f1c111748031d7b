#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "heed/base/random.h"
#include "heed/decode/search.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {

/// A model given as a table that maps each prefix to the log-probabilities of the next token. The prefix begins with
/// the first id of the source, so that the sentences of a batch differ; the other source ids are ignored.
class TableModel : public StepModel {
 public:
  using Table = std::map<std::vector<std::int32_t>, std::map<std::int32_t, double>>;
  TableModel(std::int64_t vocabulary, Table table) : vocabulary_(vocabulary), table_(std::move(table)) {}

  std::int64_t vocabulary() const override { return vocabulary_; }
  void start(const PackedIds& source) override {
    rows_.clear();
    for (int s = 0; s < source.sequences(); ++s) rows_.push_back({source.sequence(s)[0]});
  }
  Tensor<float> step(std::span<const std::int32_t> tokens) override {
    REQUIRE(tokens.size() == rows_.size());
    scores_.assign(rows_.size() * static_cast<std::size_t>(vocabulary_), -std::numeric_limits<float>::infinity());
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (tokens[r] != kStartId) rows_[r].push_back(tokens[r]);
      const auto known = table_.find(rows_[r]);  // a prefix that is not in the table is followed by </s>
      for (const auto& [token, p] :
           known == table_.end() ? std::map<std::int32_t, double>{{kEndId, 1.0}} : known->second)
        scores_[r * static_cast<std::size_t>(vocabulary_) + static_cast<std::size_t>(token)] =
            static_cast<float>(std::log(p));
    }
    return {scores_.data(), {static_cast<std::int64_t>(rows_.size()), vocabulary_}};
  }
  void reorder(std::span<const std::int32_t> parents) override {
    std::vector<std::vector<std::int32_t>> next;
    for (const std::int32_t parent : parents) next.push_back(rows_.at(static_cast<std::size_t>(parent)));
    rows_ = std::move(next);
  }
  void share_with(ThreadTeam*) override {}

 private:
  std::int64_t vocabulary_;
  Table table_;
  std::vector<std::vector<std::int32_t>> rows_;
  std::vector<float> scores_;
};

inline PackedIds sources(const std::vector<std::int32_t>& first) {
  PackedIds out;
  for (const std::int32_t id : first) out.append(std::vector<std::int32_t>{id, kEndId});
  return out;
}

using Ids = std::vector<std::int32_t>;

/// Returns random distributions over the tokens first ... last and </s> for every prefix that begins with the source's
/// id 9 and has fewer than `longest` tokens. Some prefixes may not end yet.
inline TableModel::Table random_table(std::uint64_t seed, std::int32_t first, std::int32_t last, std::size_t longest) {
  TableModel::Table table;
  const RandomStream stream(seed, RandomUse::sampling);
  std::uint64_t draws = 0;
  std::vector<Ids> prefixes{{9}};
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const Ids prefix = prefixes[i];
    if (prefix.size() > longest) continue;
    std::map<std::int32_t, double>& next = table[prefix];
    double sum = 0;
    for (std::int32_t token = first - 1; token <= last; ++token) {
      const std::int32_t id = token < first ? kEndId : token;
      const double weight = std::exp(2 * stream.normal(draws++));
      if (id == kEndId && stream.uniform(draws++) < 0.25) continue;
      sum += next[id] = weight;
      if (id == kEndId) continue;
      prefixes.push_back(prefix);
      prefixes.back().push_back(id);
    }
    for (auto& [token, p] : next) p /= sum;
  }
  return table;
}

/// A hypothesis of the exhaustive search, with its score.
struct Scored {
  Ids ids;
  double score;
};

/// Returns every hypothesis that a search of the source 9 may return, best first: the sequences that end with </s> and
/// have options.min_output_length ... options.max_output_length - 1 tokens, and those of options.max_output_length
/// tokens, which end without </s>.
inline std::vector<Scored> every_hypothesis(const TableModel::Table& table, const SearchOptions& options) {
  std::vector<Scored> found;
  struct Prefix {
    Ids row;
    double sum;
  };
  std::vector<Prefix> prefixes{{{9}, 0}};
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const Prefix prefix = prefixes[i];
    const auto length = static_cast<int>(prefix.row.size()) - 1;
    const auto finish = [&](double sum, int scored) {
      const double penalty = options.length_penalty > 0 ? std::pow((5.0 + scored) / 6, options.length_penalty)
                                                        : std::pow(scored, options.normalize);
      found.push_back({{prefix.row.begin() + 1, prefix.row.end()}, sum / penalty});
    };
    if (length == options.max_output_length) {
      finish(prefix.sum, length);
      continue;
    }
    for (const auto& [token, p] : table.at(prefix.row)) {
      if (token == kEndId && length < options.min_output_length) continue;
      const double sum = prefix.sum + std::log(p);
      if (token == kEndId) {
        finish(sum, length + 1);
      } else {
        prefixes.push_back({prefix.row, sum});
        prefixes.back().row.push_back(token);
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const Scored& a, const Scored& b) { return a.score > b.score; });
  return found;
}

}  // namespace heed
