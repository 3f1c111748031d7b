#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/config/fields.h"
#include "heed/text/mteval.h"

namespace heed {

/// What stands in for an n-gram precision of zero (Chen and Cherry 2014): half of what the last zero got (exp), a fixed
/// count (floor), k added to matches and totals of n > 1 (add_k), or nothing.
enum class BleuSmoothing { exp, floor, add_k, none };

template <>
struct EnumNames<BleuSmoothing> {
  static constexpr std::pair<BleuSmoothing, std::string_view> values[] = {{BleuSmoothing::exp, "exp"},
                                                                          {BleuSmoothing::floor, "floor"},
                                                                          {BleuSmoothing::add_k, "add-k"},
                                                                          {BleuSmoothing::none, "none"}};
};

/// How BLEU (Papineni et al. 2002) is computed; the defaults are sacreBLEU's.
struct BleuOptions {
  MtevalMode tokenize = MtevalMode::v13a;
  bool lowercase = false;  ///< full Unicode lower-casing before tokenising
  BleuSmoothing smooth_method = BleuSmoothing::exp;
  std::optional<double> smooth_value;  ///< of floor (default 0.1) and add_k (default 1)
  int max_order = 4;                   ///< longest n-gram
  bool effective_order = false;        ///< leave out the orders the hypothesis is too short for
};

/// The sums BLEU is made of: add them up over sentences, then score.
struct BleuStatistics {
  explicit BleuStatistics(int max_order);
  BleuStatistics& operator+=(const BleuStatistics& other);

  std::int64_t hypothesis_length = 0;  ///< tokens
  std::int64_t reference_length = 0;   ///< tokens of the references nearest in length
  std::vector<std::int64_t> matches;   ///< [max_order] n-grams found in a reference, clipped
  std::vector<std::int64_t> totals;    ///< [max_order] n-grams of the hypotheses
};

/// A score and what it is made of.
struct BleuScore {
  double score = 0;                ///< 0 to 100
  std::vector<double> precisions;  ///< [max_order] per cent, smoothed; all 0 where nothing matches
  double brevity_penalty = 1;
  std::int64_t hypothesis_length = 0, reference_length = 0;

  /// Hypothesis length over reference length, 0 where there is no reference text.
  double length_ratio() const;
};

/// The score of summed statistics; every step in the order sacreBLEU takes it, so that the digits are the same.
BleuScore bleu_score(const BleuStatistics& statistics, const BleuOptions& options);

/// Tokenises and counts, a segment at a time; keeps its memory from one to the next.
class BleuCounter {
 public:
  explicit BleuCounter(const BleuOptions& options);
  ~BleuCounter();
  BleuCounter(BleuCounter&&) noexcept;
  BleuCounter& operator=(BleuCounter&&) noexcept;

  /// The references of the segment the next hypotheses belong to (at least one; an empty line is a reference too). The
  /// lines must live until the next call.
  void set_references(std::span<const std::string_view> references);
  /// Adds a hypothesis for that segment to `sum`.
  void add(std::string_view hypothesis, BleuStatistics& sum);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// BLEU of a corpus. `references[r][i]` is the r-th reference of `hypotheses[i]`. Throws Error where the numbers of
/// lines differ or nothing is there to score.
BleuScore corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
                      const BleuOptions& options = {});

/// BLEU of one sentence; set options.effective_order as sacreBLEU's command line does.
BleuScore sentence_bleu(std::string_view hypothesis, std::span<const std::string> references,
                        const BleuOptions& options);

/// The value that smooth_method takes: options.smooth_value or the method's default; 0 where it takes none.
double smoothing_value(const BleuOptions& options);

/// The textbook's sentence BLEU (Zhang et al., Dive into Deep Learning, 10.7) of two token sequences, 0 to 1:
/// exp(min(0, 1 - |reference| / |hypothesis|)) * product over n <= min(max_order, |hypothesis|) of p_n^(1/2^n).
/// Two empty sequences give 1, one empty sequence 0.
double d2l_bleu(std::span<const std::string_view> hypothesis, std::span<const std::string_view> reference,
                int max_order);

/// The same on the tokens that white space separates.
double d2l_bleu(std::string_view hypothesis, std::string_view reference, int max_order);

}  // namespace heed
