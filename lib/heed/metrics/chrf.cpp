#include "heed/metrics/chrf.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "heed/base/utf8.h"
#include "heed/metrics/character_matcher.h"
#include "heed/metrics/ngram_matcher.h"
#include "heed/text/scoring/mteval.h"
#include "heed/text/strings/unicode.h"

namespace heed {
namespace {

/// Computes the chrF score, 100 times the F score, from the statistics summed over a corpus. The arithmetic has the
/// same order as in sacreBLEU and the number type `Number`.
template <class Number>
Number f_score(std::span<const Number> sums, const ChrfOptions& options) {
  constexpr Number eps = static_cast<Number>(1e-16);
  const Number factor = static_cast<Number>(options.beta) * static_cast<Number>(options.beta);
  Number total = 0, precision_sum = 0, recall_sum = 0;
  int order = 0;
  for (std::size_t i = 0; i + 3 <= sums.size(); i += 3) {
    const Number hypothesis = sums[i], reference = sums[i + 1], matches = sums[i + 2];
    const Number precision = hypothesis > 0 ? matches / hypothesis : eps;
    const Number recall = reference > 0 ? matches / reference : eps;
    const Number denominator = factor * precision + recall;
    total += denominator > 0 ? (1 + factor) * precision * recall / denominator : eps;
    if (hypothesis > 0 && reference > 0) {
      precision_sum += precision;
      recall_sum += recall;
      ++order;
    }
  }
  if (options.eps_smoothing) return 100 * total / static_cast<Number>(options.char_order + options.word_order);
  if (order == 0) return 0;
  precision_sum /= static_cast<Number>(order);
  recall_sum /= static_cast<Number>(order);
  if (precision_sum + recall_sum == 0) return 0;
  Number score = (1 + factor) * precision_sum * recall_sum;
  score /= factor * precision_sum + recall_sum;
  return 100 * score;
}

/// Returns whether sacreBLEU's score with eps_smoothing is a float32 if the statistics `sums` are float32. sacreBLEU
/// starts with Python's zero and adds a term for each n-gram length. The term is the Python number eps if both texts
/// have n-grams but no matches, or if both have no n-grams.
bool smoothed_is_single(std::span<const float> sums) {
  for (std::size_t i = 0; i + 3 <= sums.size(); i += 3)
    if (sums[i + 2] > 0 || (sums[i] > 0) != (sums[i + 1] > 0)) return true;
  return false;
}

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// A line, split into characters and into words. A Segment owns the text of both.
class Segment {
 public:
  void read(std::string_view line, const ChrfOptions& options, MtevalTokenizer& words) {
    if (options.lowercase) {
      lowered_ = to_lower(line);
      line = lowered_;
    }
    characters_.resize(line.size());
    char32_t* out = characters_.data();
    for (std::size_t at = 0; at < line.size();) {
      const auto byte = static_cast<unsigned char>(line[at]);
      if (byte > ' ' && byte < 0x80) {
        *out++ = byte;
        ++at;
        continue;
      }
      const std::size_t space = options.whitespace ? 0 : space_length(line, at);
      if (space > 0) {
        at += space;
        continue;
      }
      bool valid = true;
      const std::size_t start = at;
      const char32_t c = decode_utf8(line, at, &valid);
      if (valid) {
        *out++ = c;
      } else {
        // A byte that is not valid UTF-8 becomes a character of its own, with a code above all Unicode characters.
        for (std::size_t i = start; i < at; ++i) *out++ = 0x110000 + static_cast<unsigned char>(line[i]);
      }
    }
    characters_.resize(static_cast<std::size_t>(out - characters_.data()));
    words_.clear();
    if (options.word_order > 0)
      for (const std::string_view word : words.tokens(line)) split_punctuation(word);
  }

  const std::vector<char32_t>& characters() const { return characters_; }
  const std::vector<std::string_view>& words() const { return words_; }

 private:
  /// Adds a word to words_. If the word ends with a punctuation mark, the mark is added as a separate word; if only the
  /// beginning of the word is a punctuation mark, that mark is added as a separate word.
  void split_punctuation(std::string_view word) {
    std::size_t first = 0;
    decode_utf8(word, first);
    if (first == word.size()) {
      words_.push_back(word);
    } else if (is_ascii_punctuation(word.back())) {
      words_.push_back(word.substr(0, word.size() - 1));
      words_.push_back(word.substr(word.size() - 1));
    } else if (is_ascii_punctuation(word.front())) {
      words_.push_back(word.substr(0, 1));
      words_.push_back(word.substr(1));
    } else {
      words_.push_back(word);
    }
  }

  std::string lowered_;
  std::vector<char32_t> characters_;
  std::vector<std::string_view> words_;
};

/// A reference of the segment: the line itself and a count of its n-grams of words.
struct Reference {
  explicit Reference(const ChrfOptions& options) : words(options.word_order) {}

  Segment segment;
  NgramMatcher words;
};

class ChrfCounter : public SegmentCounter {
 public:
  explicit ChrfCounter(const ChrfOptions& options)
      : options_(options),
        characters_(options.char_order),
        matches_(static_cast<std::size_t>(std::max(options.char_order, options.word_order))) {}

  void set_references(std::span<const std::string_view> references) override {
    while (references_.size() < references.size()) references_.emplace_back(options_);
    count_ = references.size();
    for (std::size_t r = 0; r < count_; ++r) {
      Reference& reference = references_[r];
      reference.segment.read(references[r], options_, splitter_);
      reference.words.clear();
      if (options_.word_order > 0) reference.words.add_reference(reference.segment.words());
    }
  }

  void count(std::string_view hypothesis, std::span<double> row) override {
    hypothesis_.read(hypothesis, options_, splitter_);
    compare(references_[0], row);
    if (count_ == 1) return;
    double best = f_score<double>(row, options_);
    other_.resize(row.size());
    for (std::size_t r = 1; r < count_; ++r) {
      compare(references_[r], other_);
      const double score = f_score<double>(other_, options_);
      if (score <= best) continue;
      best = score;
      std::copy(other_.begin(), other_.end(), row.begin());
    }
  }

 private:
  void compare(Reference& reference, std::span<double> row) {
    const Segment& other = reference.segment;
    const auto orders = static_cast<std::size_t>(options_.char_order);
    if (orders > 0) {
      characters_.match(hypothesis_.characters(), other.characters(), std::span(matches_).first(orders));
      fill(hypothesis_.characters().size(), other.characters().size(), row.first(3 * orders));
    }
    if (options_.word_order > 0) {
      std::fill(matches_.begin(), matches_.end(), 0);
      reference.words.match(hypothesis_.words(), matches_);
      fill(hypothesis_.words().size(), other.words().size(), row.subspan(3 * orders));
    }
  }

  /// Writes three numbers for each n into `row`: how many n-grams the hypothesis has, how many the reference has, and
  /// how many both share (matches_[n - 1]). `hypothesis` and `reference` are lengths, in characters or in words.
  void fill(std::size_t hypothesis, std::size_t reference, std::span<double> row) const {
    for (std::size_t n = 0; 3 * n < row.size(); ++n) {
      // When the reference has no n-grams of this length, sacreBLEU does not count the hypothesis' n-grams of this
      // length either.
      const bool any = reference > n;
      row[3 * n] = any && hypothesis > n ? static_cast<double>(hypothesis - n) : 0;
      row[3 * n + 1] = any ? static_cast<double>(reference - n) : 0;
      row[3 * n + 2] = static_cast<double>(matches_[n]);
    }
  }

  ChrfOptions options_;
  MtevalTokenizer splitter_{MtevalMode::none};
  Segment hypothesis_;
  // The references of the present segment are the first `count_` elements; the other elements are kept for later
  // segments.
  std::deque<Reference> references_;
  std::size_t count_ = 0;
  CharacterMatcher characters_;
  std::vector<std::int64_t> matches_;
  std::vector<double> other_;
};

}  // namespace

std::string ChrfMetric::name() const {
  return "chrF" + std::to_string(options_.beta) + std::string(static_cast<std::size_t>(options_.word_order), '+');
}

std::string ChrfMetric::settings() const {
  return std::string("case:") + (options_.lowercase ? "lc" : "mixed") +
         "|eff:" + (options_.eps_smoothing ? "no" : "yes") + "|nc:" + std::to_string(options_.char_order) +
         "|nw:" + std::to_string(options_.word_order) + "|space:" + (options_.whitespace ? "yes" : "no");
}

std::unique_ptr<SegmentCounter> ChrfMetric::counter() const {
  return std::make_unique<ChrfCounter>(options_);
}

double ChrfMetric::score(std::span<const double> sums) const {
  return f_score(sums, options_);
}

ResampledScore ChrfMetric::resampled_score(std::span<const float> sums) const {
  const float score = f_score(sums, options_);
  return {static_cast<double>(score), options_.eps_smoothing ? smoothed_is_single(sums) : score > 0};
}

}  // namespace heed
