#include "heed/decode/exhaustive_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/base/log.h"
#include "heed/decode/beam_search.h"
#include "heed/decode/hypothesis_tree.h"
#include "heed/tensor/arena.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {
namespace {

/// The number of scores that are in memory at a time: rows times vocabulary.
constexpr std::int64_t kScoresAtOnce = std::int64_t{1} << 23;

/// A prefix of a translation: the node of its last token and the sum of its log-probabilities.
struct Prefix {
  std::int32_t node = HypothesisTree::kRoot;
  double sum = 0;
};

/// Whether `a` comes before `b` in the result.
bool is_better(const Hypothesis& a, const Hypothesis& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.ids.size() != b.ids.size()) return a.ids.size() < b.ids.size();
  return a.ids < b.ids;
}

/// The search for one sentence. A prefix is open until it has been continued. The open prefixes are stored in
/// blocks; all prefixes of a block have the same length. The search continues the prefixes of one block by one
/// token, keeps the best continuations in the rows of the model and continues these in turn, and stores the other
/// continuations as new blocks. When no continuation is left, the search starts the model anew and feeds it the tokens
/// of the next block. Therefore open prefixes need no stored state of the model.
class ExhaustiveSearch {
 public:
  ExhaustiveSearch(StepModel& model, const PackedIds& source, const SearchOptions& options)
      : model_(model),
        options_(options),
        longest_(options.longest(source.packed().length(0))),
        most_rows_(static_cast<std::size_t>(std::max<std::int64_t>(1, kScoresAtOnce / model.vocabulary()))),
        source_(source),
        device_{arena_} {}

  std::vector<Hypothesis> run() {
    find_bound();
    blocks_.push_back({0, {Prefix()}});
    open_ = 1;
    while (!blocks_.empty()) {
      Block block = std::move(blocks_.back());
      blocks_.pop_back();
      open_ -= std::ssize(block.prefixes);
      prune(block.prefixes);
      if (block.prefixes.empty()) continue;
      feed(block);
      while (!block.prefixes.empty()) advance(block);
    }
    return std::move(found_.empty() ? beam_ : found_);
  }

 private:
  struct Block {
    int length;  ///< the number of tokens of each of the prefixes
    std::vector<Prefix> prefixes;
  };

  /// A continuation of the prefix in `row`.
  struct Child {
    double sum;
    std::int32_t row, token;
    float log_probability;
  };

  /// Sets the bound to the worst of the scores that beam search finds, if it finds as many as are wanted. It is a
  /// little lower, because the scores of two searches may be rounded in different ways. Hypotheses that could neither
  /// go on nor end are no bound.
  void find_bound() {
    SearchOptions beam = options_;
    beam.n_best = options_.results();
    beam.beam_size = std::max(options_.beam_size, beam.n_best);
    beam_ = beam_search(model_, source_, beam).front();
    const Hypothesis &first = beam_.front(), &last = beam_.back();
    const bool is_stuck = first.log_probabilities.size() == first.ids.size() && std::ssize(first.ids) < longest_;
    if (!is_stuck && std::ssize(beam_) >= options_.results()) bound_ = last.score - 1e-5 * (1 + std::abs(last.score));
  }

  /// Returns the least sum of log-probabilities with which a prefix may still lead to a score of at least the bound:
  /// scores are sums times a positive number, which is smallest for the greatest length.
  double least_sum() const { return bound_ / options_.final_score(1, longest_); }

  void prune(std::vector<Prefix>& prefixes) const {
    std::erase_if(prefixes, [least = least_sum()](const Prefix& each) { return each.sum < least; });
  }

  /// Starts the model, and feeds it the prefixes of a block but for the last token of each.
  void feed(const Block& block) {
    model_.start(source_);
    tokens_.assign(block.prefixes.size(), kStartId);
    model_.reorder(std::vector<std::int32_t>(block.prefixes.size(), 0));
    std::vector<std::vector<std::int32_t>> ids;
    for (const Prefix& each : block.prefixes) ids.push_back(tree_.hypothesis(each.node, each.sum, nullptr).ids);
    for (int t = 0; t < block.length; ++t) {
      arena_.reset();
      const Tensor<float> values = arena_.tensor<float>({std::ssize(tokens_), 1});
      const Tensor<std::int32_t> best = arena_.tensor<std::int32_t>({std::ssize(tokens_), 1});
      model_.step(tokens_, device_, 1, values.data(), best.data());
      for (std::size_t i = 0; i < ids.size(); ++i) tokens_[i] = ids[i][static_cast<std::size_t>(t)];
    }
  }

  /// Continues the prefixes of a block, which the model's rows hold, by one token.
  void advance(Block& block) {
    expansions_ += std::ssize(block.prefixes);
    if (expansions_ > options_.max_expansions) fail();
    const Tensor<float> scores = model_.step(tokens_);
    arena_.reset();
    const Tensor<float> normalizers = log_normalizers(device_, scores);
    const int length = block.length + 1;
    children_.clear();
    for (std::int64_t r = 0; r < scores.rows(); ++r) {
      const float* const row = scores.row(r);
      const float normalizer = normalizers.data()[r];
      if (std::isnan(normalizer)) fail_not_a_number();
      const Prefix& prefix = block.prefixes[static_cast<std::size_t>(r)];
      const double least = least_sum() - prefix.sum;
      for (std::int32_t token = 0; token < scores.columns(); ++token) {
        const float log_probability = std::min(row[token] - normalizer, 0.0F);
        // The negation also leaves out minus infinity where there is no bound.
        if (!(static_cast<double>(log_probability) >= least) || !std::isfinite(log_probability) || is_forbidden(token))
          continue;
        const double sum = prefix.sum + static_cast<double>(log_probability);
        if (token != kEndId) {
          children_.push_back({sum, static_cast<std::int32_t>(r), token, log_probability});
        } else if (length > options_.min_output_length) {
          finish(prefix.node, sum, &log_probability);
        }
      }
    }
    std::erase_if(children_, [least = least_sum()](const Child& child) { return child.sum < least; });
    if (length >= longest_) {
      for (const Child& child : children_)
        finish(tree_.add(node_of(block, child), child.token, child.log_probability), child.sum, nullptr);
      children_.clear();
    }
    keep_best_children(block);
  }

  /// Makes the best of children_ the prefixes of `block`, and adds the others to blocks_.
  void keep_best_children(Block& block) {
    std::sort(children_.begin(), children_.end(), [](const Child& a, const Child& b) {
      if (a.sum != b.sum) return a.sum > b.sum;
      return a.row != b.row ? a.row < b.row : a.token < b.token;
    });
    std::vector<Prefix> all;
    for (const Child& child : children_)
      all.push_back({tree_.add(node_of(block, child), child.token, child.log_probability), child.sum});
    const std::size_t kept = std::min(all.size(), most_rows_);
    // The blocks with the best prefixes come last, and are taken first.
    for (std::size_t end = all.size(); end > kept;) {
      const std::size_t begin = std::max(kept, end - std::min(end, most_rows_));
      blocks_.push_back({block.length + 1, {all.begin() + std::ptrdiff_t(begin), all.begin() + std::ptrdiff_t(end)}});
      open_ += std::ssize(blocks_.back().prefixes);
      end = begin;
    }
    all.resize(kept);
    if (expansions_ + open_ + std::ssize(all) > options_.max_expansions) fail_unless_pruned(std::ssize(all));
    block = {block.length + 1, std::move(all)};
    if (kept == 0) return;
    tokens_.clear();
    parents_.clear();
    for (std::size_t i = 0; i < kept; ++i) {
      tokens_.push_back(children_[i].token);
      parents_.push_back(children_[i].row);
    }
    model_.reorder(parents_);
  }

  std::int32_t node_of(const Block& block, const Child& child) const {
    return block.prefixes[static_cast<std::size_t>(child.row)].node;
  }

  /// Adds a hypothesis to found_, which keeps the best ones, and raises the bound. `end` is the log-probability of
  /// </s>, or null when the hypothesis ends at the length limit.
  void finish(std::int32_t node, double sum, const float* end) {
    Hypothesis hypothesis = tree_.hypothesis(node, sum, end);
    hypothesis.score = options_.final_score(hypothesis);
    if (hypothesis.score < bound_) return;
    found_.insert(std::upper_bound(found_.begin(), found_.end(), hypothesis, is_better), std::move(hypothesis));
    if (std::ssize(found_) < options_.results()) return;
    found_.resize(static_cast<std::size_t>(options_.results()));
    bound_ = std::max(bound_, found_.back().score);
  }

  /// Removes prefixes that cannot lead above the bound any more from blocks_. Throws if, with `others`, too many are
  /// left even so.
  void fail_unless_pruned(std::int64_t others) {
    open_ = 0;
    for (Block& block : blocks_) {
      prune(block.prefixes);
      open_ += std::ssize(block.prefixes);
    }
    if (expansions_ + open_ + others > options_.max_expansions) fail();
  }

  [[noreturn]] void fail() const {
    const bool divides = options_.normalize > 0 || options_.length_penalty > 0;
    throw SearchTooLong("--search exhaustive: more than " + format_count(options_.max_expansions) +
                        " prefixes may lead to a better translation than the best one so far (raise "
                        "--max-expansions, or take " +
                        (divides ? "--normalize 0 or a lower --max-output-length, which leave fewer)"
                                 : "a lower --max-output-length, which leaves fewer)"));
  }

  StepModel& model_;
  const SearchOptions& options_;
  int longest_;
  // The most prefixes that are continued at once.
  std::size_t most_rows_;
  const PackedIds& source_;
  // A hypothesis with a lower score is not wanted.
  double bound_ = -std::numeric_limits<double>::infinity();
  std::vector<Hypothesis> found_;
  // What beam search found, which is the result if no translation can end.
  std::vector<Hypothesis> beam_;
  HypothesisTree tree_;
  std::vector<Block> blocks_;
  // The number of prefixes in blocks_, and of those that were continued.
  std::int64_t open_ = 0, expansions_ = 0;
  std::vector<Child> children_;
  std::vector<std::int32_t> tokens_, parents_;
  Arena arena_;
  CpuContext device_;
};

}  // namespace

std::vector<Hypothesis> exhaustive_search(StepModel& model, const PackedIds& source, const SearchOptions& options) {
  return ExhaustiveSearch(model, source, options).run();
}

}  // namespace heed
