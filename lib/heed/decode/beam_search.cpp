#include "heed/decode/beam_search.h"

#include <algorithm>
#include <cmath>

#include "heed/decode/hypothesis_tree.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {
namespace {

/// An unfinished hypothesis: the node of its last token and the sum of its log-probabilities.
struct Alive {
  std::int32_t node = HypothesisTree::kRoot;
  double sum = 0;
};

/// The unfinished hypotheses of a sentence, or of one of the sentence's groups.
struct Beam {
  int sentence = 0;
  int group = 0;
  int longest = 0;
  std::vector<Alive> alive;
  std::size_t finished = 0;  ///< the number of its hypotheses that are finished
};

/// A continuation of the hypothesis in `row` by `token`. `sum` includes the log-probability of `token`. `rank` is `sum`
/// minus the penalty of diverse beam search for a token by which earlier groups continue, too.
struct Candidate {
  double rank, sum;
  std::int32_t row, token;
  float log_probability;
};

class BeamSearch {
 public:
  BeamSearch(StepModel& model, const PackedIds& source, const SearchOptions& options)
      : model_(model),
        options_(options),
        size_(static_cast<std::size_t>(options.beam_size / options.beam_groups)),
        finished_(static_cast<std::size_t>(source.sequences())),
        stuck_(finished_.size()),
        device_{arena_} {
    model.start(source);
    for (int s = 0; s < source.sequences(); ++s)
      for (int group = 0; group < options.beam_groups; ++group) {
        beams_.push_back({s, group, options.longest(source.packed().length(s)), {Alive()}});
        parents_.push_back(s);
      }
    if (options.beam_groups > 1) model.reorder(parents_);
    tokens_.assign(beams_.size(), kStartId);
  }

  std::vector<std::vector<Hypothesis>> run() {
    for (length_ = 1; !beams_.empty(); ++length_) step();
    for (std::size_t s = 0; s < finished_.size(); ++s) {
      std::vector<Hypothesis>& hypotheses = finished_[s];
      if (hypotheses.empty()) hypotheses = std::move(stuck_[s]);
      if (options_.beam_groups > 1) drop_repeated(hypotheses);
      keep_best(hypotheses, options_.results());
    }
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
    int sentence = -1;
    for (Beam& beam : beams_) {
      if (beam.sentence != sentence) chosen_.clear();
      sentence = beam.sentence;
      const auto rows = static_cast<std::int32_t>(beam.alive.size());
      rank(beam, row, values, ids);
      if (candidates_.empty()) keep_stuck(beam);
      advance(beam, row);
      row += rows;
    }
    std::erase_if(beams_, [](const Beam& beam) { return beam.alive.empty(); });
    if (!beams_.empty() && !unmoved(row)) model_.reorder(parents_);
  }

  /// Removes hypotheses that are equal to an earlier one.
  static void drop_repeated(std::vector<Hypothesis>& hypotheses) {
    for (std::size_t i = 0; i < hypotheses.size(); ++i)
      hypotheses.erase(std::remove_if(hypotheses.begin() + static_cast<std::ptrdiff_t>(i) + 1, hypotheses.end(),
                                      [&](const Hypothesis& other) {
                                        return other.ids == hypotheses[i].ids && other.sum == hypotheses[i].sum;
                                      }),
                       hypotheses.end());
  }

  /// Returns whether each of the `rows` hypotheses continues in its own row of the model, so that the model's rows need
  /// no reordering. This is usual in greedy search.
  bool unmoved(std::int32_t rows) const {
    if (static_cast<std::int32_t>(parents_.size()) != rows) return false;
    for (std::size_t i = 0; i < parents_.size(); ++i)
      if (parents_[i] != static_cast<std::int32_t>(i)) return false;
    return true;
  }

  /// Sets candidates_ to the best 2K continuations of a beam's hypotheses, best first (K is the beam's size). When they
  /// rank the same, the continuation with the lower row comes first, then the one with the lower token id.
  void rank(const Beam& beam, std::int32_t first_row, Tensor<float> values, Tensor<std::int32_t> ids) {
    candidates_.clear();
    for (std::size_t i = 0; i < beam.alive.size(); ++i) {
      const std::int32_t row = first_row + static_cast<std::int32_t>(i);
      if (std::isnan(values.row(row)[0])) fail_not_a_number();
      for (std::int64_t j = 0; j < values.columns(); ++j) {
        const std::int32_t token = ids.row(row)[j];
        if (is_forbidden(token) || (token == kEndId && length_ <= options_.min_output_length)) continue;
        const float log_probability = values.row(row)[j];
        if (!std::isfinite(log_probability)) continue;
        const double sum = beam.alive[i].sum + static_cast<double>(log_probability);
        const auto same = static_cast<double>(std::ranges::count(chosen_, token));
        candidates_.push_back({sum - options_.diversity_strength * same, sum, row, token, log_probability});
      }
    }
    const auto count = std::min(candidates_.size(), 2 * size_);
    std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(count), candidates_.end(),
                      [](const Candidate& a, const Candidate& b) {
                        if (a.rank != b.rank) return a.rank > b.rank;
                        if (a.row != b.row) return a.row < b.row;
                        return a.token < b.token;
                      });
    candidates_.resize(count);
  }

  /// Finishes those of the beam's K best continuations that end with </s>. The K best continuations without </s> become
  /// the beam's next hypotheses (K is the beam's size).
  void advance(Beam& beam, std::int32_t first_row) {
    std::vector<Alive> next;
    const std::size_t rows_before = parents_.size();
    for (std::size_t i = 0; i < candidates_.size() && next.size() < size_; ++i) {
      const Candidate& candidate = candidates_[i];
      const std::int32_t parent = beam.alive[static_cast<std::size_t>(candidate.row - first_row)].node;
      if (candidate.token == kEndId) {
        if (i < size_) finish(beam, parent, candidate.sum, &candidate.log_probability);
        continue;
      }
      next.push_back({tree_.add(parent, candidate.token, candidate.log_probability), candidate.sum});
      parents_.push_back(candidate.row);
      tokens_.push_back(candidate.token);
    }
    const bool at_limit = length_ >= beam.longest;
    if (at_limit)
      for (const Alive& alive : next) finish(beam, alive.node, alive.sum, nullptr);
    beam.alive = std::move(next);
    const bool is_done = at_limit || beam.finished >= size_ || beam.alive.empty();
    if (at_limit || !is_done)
      chosen_.insert(chosen_.end(), tokens_.begin() + static_cast<std::ptrdiff_t>(rows_before), tokens_.end());
    if (is_done) {
      beam.alive.clear();
      parents_.resize(rows_before);
      tokens_.resize(rows_before);
    }
  }

  /// Finishes the hypothesis of a beam that ends at `node`. `end` is the log-probability of </s>, or null when the
  /// hypothesis ended at the length limit.
  void finish(Beam& beam, std::int32_t node, double sum, const float* end) {
    finished_[static_cast<std::size_t>(beam.sentence)].push_back(scored(node, sum, end));
    ++beam.finished;
  }

  /// Keeps the hypotheses of a beam of which none can go on or end, because rules forbid all tokens.
  void keep_stuck(const Beam& beam) {
    for (const Alive& alive : beam.alive)
      stuck_[static_cast<std::size_t>(beam.sentence)].push_back(scored(alive.node, alive.sum, nullptr));
  }

  Hypothesis scored(std::int32_t node, double sum, const float* end) const {
    Hypothesis out = tree_.hypothesis(node, sum, end);
    out.score = options_.final_score(out);
    return out;
  }

  StepModel& model_;
  const SearchOptions& options_;
  // The number of hypotheses in a beam.
  std::size_t size_;
  // The hypotheses of each sentence that are finished, and those that could neither go on nor end.
  std::vector<std::vector<Hypothesis>> finished_, stuck_;
  // The beams with unfinished hypotheses. The model's rows hold the hypotheses beam by beam, in this order.
  std::vector<Beam> beams_;
  HypothesisTree tree_;
  std::vector<std::int32_t> tokens_, parents_;
  // The tokens by which earlier groups of the sentence go on in this step.
  std::vector<std::int32_t> chosen_;
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
