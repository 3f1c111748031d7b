#include "heed/run/translate_output.h"

#include <algorithm>
#include <charconv>

#include "heed/base/error.h"
#include "heed/base/number_text.h"
#include "heed/decode/force.h"
#include "heed/inspect/attention_map.h"
#include "heed/text/trees/linear_tree.h"

namespace heed {
namespace {

AlignmentStyle parse_alignment(const std::string& text) {
  using Kind = AlignmentStyle::Kind;
  if (text.empty()) return {};
  if (text == "hard") return {Kind::hard, 0};
  if (text == "soft") return {Kind::soft, 0};
  double threshold = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threshold);
  if (error != std::errc() || end != text.data() + text.size() || !(threshold > 0 && threshold <= 1))
    throw UsageError("--alignment '" + text + "': must be hard, soft or a threshold above 0 and at most 1");
  return {Kind::threshold, threshold};
}

std::string number(double x) {
  return number_text("%.4f", x);
}

}  // namespace

TranslateFormat::TranslateFormat(const TranslateOptions& options)
    : options_(options), alignment_(parse_alignment(options.alignment)) {}

std::unique_ptr<TranslateFormat> make_format(const TranslateOptions& options) {
  return std::make_unique<TranslateFormat>(options);
}

std::string TranslateFormat::alignment(Translator& translator, const std::vector<std::int32_t>& source,
                                       const Hypothesis& hypothesis) const {
  Batch pair;
  pair.add(source, hypothesis.ids);
  // The last row and the last column are those of </s>, which belongs to no word.
  std::vector<int> target_words = translator.target().words_of(hypothesis.ids);
  std::vector<int> source_words = translator.source().words_of(source);
  target_words.push_back(-1);
  source_words.push_back(-1);
  const std::vector<double> words = merge_weights(translator.attention(pair).front(), target_words, source_words);
  const std::size_t columns = word_count(source_words);
  std::string out;
  const auto add = [&](const std::string& item) { out += (out.empty() ? "" : " ") + item; };
  for (std::size_t t = 0; columns > 0 && t < word_count(target_words); ++t) {
    const std::span row(words.data() + t * columns, columns);
    const auto link = [&](std::size_t s) { return std::to_string(s) + "-" + std::to_string(t); };
    switch (alignment_.kind) {
      case AlignmentStyle::Kind::none:
        break;
      case AlignmentStyle::Kind::hard:
        add(link(static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin())));
        break;
      case AlignmentStyle::Kind::threshold:
        for (std::size_t s = 0; s < row.size(); ++s)
          if (row[s] >= alignment_.threshold) add(link(s));
        break;
      case AlignmentStyle::Kind::soft: {
        std::string list;
        for (const double x : row) list += (list.empty() ? "" : ",") + number(x);
        add(list);
        break;
      }
    }
  }
  return out;
}

/// Returns the fields that follow the translation in an output line: the word scores " ||| WordScores= ..." and the
/// alignment " ||| 0-0 1-1", each only if the options ask for it.
std::string TranslateFormat::extras(Translator& translator, const std::vector<std::int32_t>& source,
                                    const Hypothesis& hypothesis) const {
  std::string out;
  if (options_.word_scores) {
    out += " ||| WordScores=";
    for (const float x : hypothesis.log_probabilities) out += " " + number(static_cast<double>(x));
  }
  if (alignment_.kind != AlignmentStyle::Kind::none) out += " ||| " + alignment(translator, source, hypothesis);
  return out;
}

std::string TranslateFormat::lines(Translator& translator, std::int64_t line_number,
                                   const std::vector<std::int32_t>& source, const std::vector<Hypothesis>& hypotheses,
                                   std::span<const std::string_view> words) const {
  const TextModel& target = translator.target();
  std::string out;
  for (const Hypothesis& hypothesis : hypotheses) {
    if (options_.search.n_best > 0) out += std::to_string(line_number - 1) + " ||| ";
    const std::string tokens = target.join(hypothesis.ids);
    out += options_.no_detokenize ? tokens : words.empty() ? target.detokenize(tokens) : tree_of_linear(tokens, words);
    if (options_.search.n_best > 0) out += " ||| F0= " + number(hypothesis.sum);
    if (options_.search.n_best > 0 || options_.scores) out += " ||| " + number(hypothesis.score);
    out += extras(translator, source, hypothesis) + "\n";
  }
  return out;
}

std::string TranslateFormat::score(Translator& translator, const std::vector<std::int32_t>& source,
                                   const Hypothesis& hypothesis) const {
  return number_text("%.6f", hypothesis.score) + extras(translator, source, hypothesis) + "\n";
}

std::string TranslateFormat::plain(std::int64_t line_number, const std::string& text) const {
  std::string out;
  if (options_.search.n_best > 0) out += std::to_string(line_number - 1) + " ||| ";
  out += text;
  if (options_.search.n_best > 0) out += " ||| F0= 0.0000";
  if (options_.search.n_best > 0 || options_.scores) out += " ||| 0.0000";
  if (options_.word_scores) out += " ||| WordScores=";
  if (alignment_.kind != AlignmentStyle::Kind::none) out += " ||| ";
  return out + "\n";
}

}  // namespace heed
