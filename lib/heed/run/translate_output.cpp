#include "heed/run/translate_output.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "heed/base/error.h"
#include "heed/decode/force.h"
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

std::string number(double x, const char* format = "%.4f") {
  char text[32];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

/// Returns attention weights between words, [target words][source words], computed from `weights` between subword
/// pieces. The weights of a target word are the mean over its pieces; the weights of a source word are the sum over its
/// pieces. `weights` includes `</s>` on both sides; the result does not.
std::vector<std::vector<double>> merge_words(const std::vector<float>& weights, const std::vector<int>& target_words,
                                             const std::vector<int>& source_words) {
  const auto count = [](const std::vector<int>& words) {
    return words.empty() ? std::size_t{0} : static_cast<std::size_t>(*std::max_element(words.begin(), words.end()) + 1);
  };
  std::vector<std::vector<double>> out(count(target_words), std::vector<double>(count(source_words)));
  std::vector<int> pieces(out.size());
  const std::size_t columns = source_words.size() + 1;
  for (std::size_t t = 0; t < target_words.size(); ++t) {
    if (target_words[t] < 0) continue;
    const auto row = static_cast<std::size_t>(target_words[t]);
    ++pieces[row];
    for (std::size_t s = 0; s < source_words.size(); ++s)
      if (source_words[s] >= 0)
        out[row][static_cast<std::size_t>(source_words[s])] += static_cast<double>(weights[t * columns + s]);
  }
  for (std::size_t row = 0; row < out.size(); ++row)
    for (double& x : out[row]) x /= std::max(1, pieces[row]);
  return out;
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
  const auto words = merge_words(translator.attention(pair).front(), translator.target().words_of(hypothesis.ids),
                                 translator.source().words_of(source));
  std::string out;
  const auto add = [&](const std::string& item) { out += (out.empty() ? "" : " ") + item; };
  for (std::size_t t = 0; t < words.size(); ++t) {
    const auto& row = words[t];
    if (row.empty()) continue;
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
  return number(hypothesis.score, "%.6f") + extras(translator, source, hypothesis) + "\n";
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
