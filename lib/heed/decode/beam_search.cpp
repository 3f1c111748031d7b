#include "heed/decode/beam_search.h"

#include <algorithm>
#include <cmath>

#include "heed/text/strings/vocabulary.h"

namespace heed {
namespace {

/// One token of a hypothesis, and the node of the preceding token (-1: none). Hypotheses that begin alike share nodes.
struct Node {
  std::int32_t parent, token;
  float log_probability;
};

/// An unfinished hypothesis: the node of its last token (-1: no token yet) and the sum of its log-probabilities.
struct Alive {
  std::int32_t node = -1;
  double sum = 0;
};

struct Sentence {
  int index = 0;
  int longest = 0;
  std::vector<Alive> alive;
};

/// A continuation of the hypothesis in `row` by `token`; `sum` includes the log-probability of `token`.
struct Candidate {
  double sum;
  std::int32_t row, token;
  float log_probability;
};

class BeamSearch {
 public:
  BeamSearch(StepModel& model, const PackedIds& source, const SearchOptions& options)
      : model_(model), options_(options), finished_(static_cast<std::size_t>(source.sequences())), device_{arena_} {
    model.start(source);
    for (int s = 0; s < source.sequences(); ++s)
      sentences_.push_back({s, options.longest(source.packed().length(s)), {Alive()}});
    tokens_.assign(sentences_.size(), kStartId);
  }

  std::vector<std::vector<Hypothesis>> run() {
    for (length_ = 1; !sentences_.empty(); ++length_) step();
    for (auto& hypotheses : finished_) keep_best(hypotheses, options_.results());
    return std::move(finished_);
  }

 private:
  void step() {
    // 2K continuations of a sentence are enough (K is the beam size), because at most K of them end with </s>. The 3
    // ids that a translation must not contain, and </s> while the output is too short, may also be among the k
    // likeliest tokens.
    const std::int64_t k = std::min<std::int64_t>(2 * options_.beam_size + 3 + (length_ <= options_.min_output_length),
                                                  model_.vocabulary());
    arena_.reset();
    const Tensor<float> values = arena_.tensor<float>({std::ssize(tokens_), k});
    const Tensor<std::int32_t> ids = arena_.tensor<std::int32_t>({std::ssize(tokens_), k});
    model_.step(tokens_, device_, k, values.data(), ids.data());
    parents_.clear();
    tokens_.clear();
    std::int32_t row = 0;
    for (Sentence& sentence : sentences_) {
      const auto rows = static_cast<std::int32_t>(sentence.alive.size());
      rank(sentence, row, values, ids);
      advance(sentence, row);
      row += rows;
    }
    std::erase_if(sentences_, [](const Sentence& sentence) { return sentence.alive.empty(); });
    if (!sentences_.empty() && !unmoved(row)) model_.reorder(parents_);
  }

  /// Returns whether each of the `rows` hypotheses continues in its own row of the model, so that the model's rows need
  /// no reordering. This is usual in greedy search.
  bool unmoved(std::int32_t rows) const {
    if (static_cast<std::int32_t>(parents_.size()) != rows) return false;
    for (std::size_t i = 0; i < parents_.size(); ++i)
      if (parents_[i] != static_cast<std::int32_t>(i)) return false;
    return true;
  }

  /// Sets candidates_ to the best 2K continuations of a sentence's hypotheses, best first (K is the beam size). When
  /// sums are equal, the continuation with the lower row comes first, then the one with the lower token id.
  void rank(const Sentence& sentence, std::int32_t first_row, Tensor<float> values, Tensor<std::int32_t> ids) {
    candidates_.clear();
    for (std::size_t i = 0; i < sentence.alive.size(); ++i) {
      const std::int32_t row = first_row + static_cast<std::int32_t>(i);
      if (std::isnan(values.row(row)[0])) fail_not_a_number();
      for (std::int64_t j = 0; j < values.columns(); ++j) {
        const std::int32_t token = ids.row(row)[j];
        if (is_forbidden(token) || (token == kEndId && length_ <= options_.min_output_length)) continue;
        const float log_probability = values.row(row)[j];
        if (!std::isfinite(log_probability)) continue;
        candidates_.push_back(
            {sentence.alive[i].sum + static_cast<double>(log_probability), row, token, log_probability});
      }
    }
    const auto count = std::min(candidates_.size(), static_cast<std::size_t>(2 * options_.beam_size));
    std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(count), candidates_.end(),
                      [](const Candidate& a, const Candidate& b) {
                        if (a.sum != b.sum) return a.sum > b.sum;
                        if (a.row != b.row) return a.row < b.row;
                        return a.token < b.token;
                      });
    candidates_.resize(count);
  }

  /// Finishes those of the sentence's K best continuations that end with </s>. The K best continuations without </s>
  /// become the sentence's next hypotheses (K is the beam size).
  void advance(Sentence& sentence, std::int32_t first_row) {
    auto& finished = finished_[static_cast<std::size_t>(sentence.index)];
    const auto beam = static_cast<std::size_t>(options_.beam_size);
    std::vector<Alive> next;
    const std::size_t rows_before = parents_.size();
    for (std::size_t i = 0; i < candidates_.size() && next.size() < beam; ++i) {
      const Candidate& candidate = candidates_[i];
      const std::int32_t parent = sentence.alive[static_cast<std::size_t>(candidate.row - first_row)].node;
      if (candidate.token == kEndId) {
        if (i < beam) finish(finished, parent, candidate.sum, &candidate.log_probability);
        continue;
      }
      nodes_.push_back({parent, candidate.token, candidate.log_probability});
      next.push_back({static_cast<std::int32_t>(nodes_.size()) - 1, candidate.sum});
      parents_.push_back(candidate.row);
      tokens_.push_back(candidate.token);
    }
    const bool at_limit = length_ >= sentence.longest;
    if (at_limit)
      for (const Alive& alive : next) finish(finished, alive.node, alive.sum, nullptr);
    sentence.alive = std::move(next);
    if (at_limit || finished.size() >= beam || sentence.alive.empty()) {
      if (finished.empty()) finished.push_back({});  // no continuation is possible: the translation is empty
      sentence.alive.clear();
      parents_.resize(rows_before);
      tokens_.resize(rows_before);
    }
  }

  /// Adds the hypothesis that ends at `node` to `finished`. `end` is the log-probability of </s>, or null when the
  /// hypothesis ended at the length limit.
  void finish(std::vector<Hypothesis>& finished, std::int32_t node, double sum, const float* end) {
    Hypothesis hypothesis;
    for (; node >= 0; node = nodes_[static_cast<std::size_t>(node)].parent) {
      hypothesis.ids.push_back(nodes_[static_cast<std::size_t>(node)].token);
      hypothesis.log_probabilities.push_back(nodes_[static_cast<std::size_t>(node)].log_probability);
    }
    std::reverse(hypothesis.ids.begin(), hypothesis.ids.end());
    std::reverse(hypothesis.log_probabilities.begin(), hypothesis.log_probabilities.end());
    if (end) hypothesis.log_probabilities.push_back(*end);
    hypothesis.sum = sum;
    hypothesis.score = options_.final_score(sum, static_cast<int>(hypothesis.log_probabilities.size()));
    finished.push_back(std::move(hypothesis));
  }

  StepModel& model_;
  const SearchOptions& options_;
  std::vector<std::vector<Hypothesis>> finished_;
  // Sentences with unfinished hypotheses. The model's rows hold the hypotheses sentence by sentence, in this order.
  std::vector<Sentence> sentences_;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> tokens_, parents_;
  std::vector<Candidate> candidates_;
  Arena arena_;
  CpuContext device_;
  int length_ = 0;
};

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(StepModel& model, const PackedIds& source,
                                                 const SearchOptions& options) {
  return BeamSearch(model, source, options).run();
}

}  // namespace heed
