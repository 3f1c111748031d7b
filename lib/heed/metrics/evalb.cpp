#include "heed/metrics/evalb.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "heed/base/line_io.h"
#include "heed/metrics/bracket_matcher.h"
#include "heed/metrics/numbers.h"
#include "heed/text/trees/tree.h"

namespace heed {
namespace {

/// The statistics of a sentence as a row of numbers.
using Row = std::array<double, sizeof(EvalbStatistics) / sizeof(double)>;

double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

bool contains(const std::vector<std::string>& list, std::string_view label) {
  return std::find(list.begin(), list.end(), label) != list.end();
}

bool are_equal(std::string_view one, std::string_view other,
               const std::vector<std::pair<std::string, std::string>>& pairs) {
  if (one == other) return true;
  return std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
    return (one == pair.first && other == pair.second) || (one == pair.second && other == pair.first);
  });
}

struct Word {
  std::string_view label, text;
};

/// A quotation mark and its place in the sentence. A parser may take such a mark for a possessive ending (POS).
struct Quote {
  Word word;
  /// The number of words before it that are not deleted.
  std::size_t index = 0;
  /// `brackets` is the number of brackets that open before the quotation mark; `open` has the indices of those brackets
  /// that close behind the mark.
  std::size_t brackets = 0;
  std::vector<std::size_t> open;
};

/// A tree as evalb sees it: words and brackets without the deleted words.
class Sentence {
 public:
  /// `deciding` has the parts of speech by which words are deleted; null: those of the tree.
  void set(const Tree& tree, const EvalbOptions& options, const std::vector<std::string_view>* deciding = nullptr) {
    words.clear();
    brackets.clear();
    quotes.clear();
    labels.clear();
    std::vector<std::pair<std::size_t, std::size_t>> open;  // of each open bracket: where its subtree ends, its number
    for (std::size_t i = 0; i <= tree.nodes.size(); ++i) {
      for (; !open.empty() && open.back().first == i; open.pop_back()) brackets[open.back().second].end = words.size();
      if (i == tree.nodes.size()) break;
      const TreeNode& node = tree.nodes[i];
      if (!node.is_word()) {
        open.emplace_back(node.end, brackets.size());
        brackets.push_back({words.size(), 0, node.label});
        continue;
      }
      const bool is_trace = contains(options.deleted_for_length, node.label);
      if (!is_trace) labels.push_back(node.label);
      const bool is_known = !is_trace && deciding && labels.size() <= deciding->size();
      const std::string_view label = is_known ? (*deciding)[labels.size() - 1] : node.label;
      if (!deciding && contains(options.quotes, node.label) &&
          (node.word == "'" || node.word == "\"" || node.word == "/")) {
        quotes.push_back({{node.label, node.word}, words.size(), brackets.size(), {}});
        for (const auto& [end, number] : open) quotes.back().open.push_back(number);
      }
      if (!contains(options.deleted, label)) words.push_back({node.label, node.word});
    }
  }

  /// Puts a deleted quotation mark, and the place of all that follows, back into the sentence.
  void insert(std::size_t quote) {
    const Quote& mark = quotes[quote];
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(mark.index), mark.word);
    for (std::size_t b = mark.brackets; b < brackets.size(); ++b) {
      ++brackets[b].start;
      ++brackets[b].end;
    }
    for (const std::size_t b : mark.open) ++brackets[b].end;
    for (std::size_t q = quote; q < quotes.size(); ++q) ++quotes[q].index;
  }

  /// Removes function tags from the labels and finds the brackets that count.
  void finish(const EvalbOptions& options) {
    for (Bracket& bracket : brackets) bracket.label = bracket.label.substr(0, bracket.label.find_first_of("-="));
    std::erase_if(brackets, [&](const Bracket& bracket) {
      return bracket.start >= bracket.end ||
             std::any_of(options.deleted.begin(), options.deleted.end(), [&](const std::string& label) {
               return are_equal(bracket.label, label, options.equal_labels);
             });
    });
  }

  std::vector<Word> words;
  /// The parts of speech of all words but traces, also of the deleted ones.
  std::vector<std::string_view> labels;
  std::vector<Bracket> brackets;
  std::vector<Quote> quotes;
  std::size_t length() const { return labels.size(); }
};

/// evalb's repair of two trees of different lengths: where one tree has a possessive and the other a quotation mark,
/// which is deleted, the quotation mark is put back.
void repair_quotes(Sentence& gold, Sentence& test, const EvalbOptions& options) {
  for (std::size_t t = 0; t < test.quotes.size(); ++t) {
    const std::size_t index = test.quotes[t].index;
    for (std::size_t g = 0; g < gold.quotes.size(); ++g) {
      const std::string_view in_gold = gold.quotes[g].word.label, in_test = test.quotes[t].word.label;
      if (gold.quotes[g].index != index || in_gold == in_test) continue;
      const bool gold_deleted = contains(options.deleted, in_gold), test_deleted = contains(options.deleted, in_test);
      if (gold_deleted && !test_deleted) gold.insert(g);
      if (test_deleted && !gold_deleted) test.insert(t);
    }
  }
}

class EvalbCounter : public SegmentCounter {
 public:
  explicit EvalbCounter(const EvalbOptions& options)
      : options_(options), matcher_(options.labelled, options.equal_labels) {}

  void set_references(std::span<const std::string_view> references) override {
    if (const auto mistake = parse_tree(references[0], gold_tree_))
      throw SegmentError(true, mistake->column, mistake->message);
  }

  void count(std::string_view hypothesis, std::span<double> row) override {
    EvalbStatistics out;
    gold_.set(gold_tree_, options_);
    out.all.sentences = 1;
    out.length = static_cast<double>(gold_.length());
    if (const auto mistake = compare(hypothesis, out.all)) {
      if (options_.on_bad_tree == BadTree::fail)
        throw SegmentError(false, mistake->column,
                           mistake->message + " (--on-bad-tree skip leaves such trees out and counts them)");
      out.all = {.sentences = 1, .errors = 1};
    }
    if (gold_.length() <= static_cast<std::size_t>(options_.cutoff)) out.shorter = out.all;
    const auto numbers = std::bit_cast<Row>(out);
    std::copy(numbers.begin(), numbers.end(), row.begin());
  }

 private:
  /// Compares the gold tree with a hypothesis, or returns why they cannot be compared.
  std::optional<TreeMistake> compare(std::string_view hypothesis, EvalbCounts& counts) {
    if (is_empty_tree(hypothesis)) {
      counts.skipped = 1;
      return {};
    }
    if (auto mistake = parse_tree(hypothesis, test_tree_)) return mistake;
    test_.set(test_tree_, options_, options_.gold_tags ? &gold_.labels : nullptr);
    if (test_.words.empty()) {
      counts.skipped = 1;
      return {};
    }
    const std::size_t before = test_.words.size(), gold_before = gold_.words.size();
    if (before != gold_before && !options_.gold_tags) repair_quotes(gold_, test_, options_);
    if (gold_.words.size() != test_.words.size())
      return TreeMistake{0, "the tree has " + std::to_string(before) + " words, but the gold tree has " +
                                std::to_string(gold_before) +
                                ", not counting the parts of speech that the parameters delete"};
    for (std::size_t i = 0; i < gold_.words.size(); ++i)
      if (!are_equal(gold_.words[i].text, test_.words[i].text, options_.equal_words))
        return TreeMistake{static_cast<std::size_t>(test_.words[i].text.data() - hypothesis.data()) + 1,
                           "the word '" + std::string(test_.words[i].text) + "' is '" +
                               std::string(gold_.words[i].text) + "' in the gold tree"};
    gold_.finish(options_);
    test_.finish(options_);
    counts.words = static_cast<double>(gold_.words.size());
    for (std::size_t i = 0; i < gold_.words.size(); ++i)
      counts.tags += are_equal(gold_.words[i].label, test_.words[i].label, options_.equal_labels) ? 1 : 0;
    counts.gold = static_cast<double>(gold_.brackets.size());
    counts.test = static_cast<double>(test_.brackets.size());
    counts.matched = static_cast<double>(matcher_.matched(gold_.brackets, test_.brackets));
    counts.crossing = static_cast<double>(matcher_.crossing(gold_.brackets, test_.brackets, gold_.words.size()));
    counts.exact = counts.matched == counts.gold && counts.matched == counts.test ? 1 : 0;
    counts.no_crossing = counts.crossing == 0 ? 1 : 0;
    counts.two_crossings = counts.crossing <= 2 ? 1 : 0;
    return {};
  }

  const EvalbOptions& options_;
  Tree gold_tree_, test_tree_;
  Sentence gold_, test_;
  BracketMatcher matcher_;
};

/// Returns the words of a line of a parameter file.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

int read_number(const std::string& text, const Position& where) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw Error(where, "'" + text + "' is no whole number from 0 on (such as CUTOFF_LEN 40)");
  return number;
}

/// Returns a number with `decimals` decimals, with spaces before it up to a width.
std::string cell(double value, std::size_t width, int decimals = 0) {
  const std::string number = format_fixed(value, decimals);
  return std::string(width - std::min(width, number.size()), ' ') + number;
}

std::string summary_part(const EvalbCounts& counts) {
  const double valid = counts.valid();
  const auto line = [](const std::string& name, double value, int decimals) {
    return name + std::string(26 - name.size(), ' ') + "= " + cell(value, 6, decimals) + "\n";
  };
  return line("Number of sentence", counts.sentences, 0) + line("Number of Error sentence", counts.errors, 0) +
         line("Number of Skip  sentence", counts.skipped, 0) + line("Number of Valid sentence", valid, 0) +
         line("Bracketing Recall", counts.recall(), 2) + line("Bracketing Precision", counts.precision(), 2) +
         line("Bracketing FMeasure", counts.f1(), 2) + line("Complete match", percent(counts.exact, valid), 2) +
         line("Average crossing", valid > 0 ? counts.crossing / valid : 0, 2) +
         line("No crossing", percent(counts.no_crossing, valid), 2) +
         line("2 or less crossing", percent(counts.two_crossings, valid), 2) +
         line("Tagging accuracy", counts.tagging_accuracy(), 2);
}

}  // namespace

double EvalbCounts::recall() const {
  return percent(matched, gold);
}

double EvalbCounts::precision() const {
  return percent(matched, test);
}

double EvalbCounts::f1() const {
  const double p = precision(), r = recall();
  return p + r > 0 ? 2 * p * r / (p + r) : 0;
}

double EvalbCounts::tagging_accuracy() const {
  return percent(tags, words);
}

EvalbOptions read_evalb_parameters(const std::string& path) {
  EvalbOptions options;
  options.name = path.substr(path.find_last_of('/') + 1);
  options.deleted = options.deleted_for_length = options.quotes = {};
  options.equal_labels.clear();
  LineReader reader(path);
  for (std::string line; reader.next(line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty() || words[0].starts_with('#')) continue;
    const std::string& keyword = words[0];
    const auto need = [&](std::size_t values) {
      if (words.size() != values + 1)
        throw Error(reader.position(),
                    keyword + " takes " + (values == 1 ? "one value" : "two values (such as EQ_LABEL ADVP PRT)"));
    };
    const bool pair = keyword == "EQ_LABEL" || keyword == "EQ_WORD";
    need(pair ? 2 : 1);
    if (keyword == "LABELED")
      options.labelled = read_number(words[1], reader.position()) != 0;
    else if (keyword == "CUTOFF_LEN")
      options.cutoff = read_number(words[1], reader.position());
    else if (keyword == "DELETE_LABEL")
      options.deleted.push_back(words[1]);
    else if (keyword == "DELETE_LABEL_FOR_LENGTH")
      options.deleted_for_length.push_back(words[1]);
    else if (keyword == "QUOTE_LABEL")
      options.quotes.push_back(words[1]);
    else if (pair)
      (keyword == "EQ_LABEL" ? options.equal_labels : options.equal_words).emplace_back(words[1], words[2]);
    else if (keyword != "DEBUG" && keyword != "MAX_ERROR")
      throw Error(reader.position(), "evalb has no parameter '" + keyword +
                                         "' (LABELED, CUTOFF_LEN, DELETE_LABEL, DELETE_LABEL_FOR_LENGTH, QUOTE_LABEL, "
                                         "EQ_LABEL, EQ_WORD, DEBUG and MAX_ERROR)");
  }
  return options;
}

std::string EvalbMetric::settings() const {
  return "params:" + options_.name + (options_.gold_tags ? "|tags:gold" : "") +
         "|labels:" + (options_.labelled ? "yes" : "no");
}

std::unique_ptr<SegmentCounter> EvalbMetric::counter() const {
  return std::make_unique<EvalbCounter>(options_);
}

EvalbStatistics EvalbMetric::statistics(std::span<const double> row) {
  Row numbers;
  std::copy_n(row.begin(), numbers.size(), numbers.begin());
  return std::bit_cast<EvalbStatistics>(numbers);
}

double EvalbMetric::score(std::span<const double> sums) const {
  return statistics(sums).all.f1();
}

ResampledScore EvalbMetric::resampled_score(std::span<const float> sums) const {
  const std::vector<double> row(sums.begin(), sums.end());
  return {score(row), false};
}

std::string EvalbMetric::details(std::span<const double> sums) const {
  const EvalbCounts counts = statistics(sums).all;
  const auto rounded = [](double value) { return format_fixed(value, 2); };
  return rounded(counts.recall()) + "/" + rounded(counts.precision()) + "/" +
         rounded(percent(counts.exact, counts.valid())) + "/" + rounded(counts.tagging_accuracy()) +
         " (recall/precision/exact/tags; sentences = " + format_fixed(counts.sentences, 0) +
         " errors = " + format_fixed(counts.errors, 0) + " skipped = " + format_fixed(counts.skipped, 0) + ")";
}

std::string evalb_table_head() {
  return "  Sent.                        Matched  Bracket   Cross        Correct Tag\n"
         " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy\n" +
         std::string(76, '=') + "\n";
}

std::string evalb_table_row(std::int64_t number, const EvalbStatistics& sentence) {
  const EvalbCounts& counts = sentence.all;
  const int status = counts.errors > 0 ? 1 : counts.skipped > 0 ? 2 : 0;
  return cell(static_cast<double>(number), 4) + cell(sentence.length, 5) + cell(status, 5) +
         cell(counts.recall(), 8, 2) + cell(counts.precision(), 7, 2) + cell(counts.matched, 6) + cell(counts.gold, 7) +
         cell(counts.test, 5) + cell(counts.crossing, 7) + cell(counts.words, 7) + cell(counts.tags, 6) +
         cell(counts.tagging_accuracy(), 9, 2) + "\n";
}

std::string evalb_table_summary(const EvalbStatistics& sums, int cutoff) {
  const EvalbCounts& all = sums.all;
  std::string out = std::string(76, '=') + "\n";
  if (all.gold > 0 && all.test > 0)
    out += std::string(15, ' ') + cell(all.recall(), 7, 2) + cell(all.precision(), 7, 2) + cell(all.matched, 7) +
           cell(all.gold, 6) + cell(all.test, 6) + cell(all.crossing, 7);
  out += cell(all.words, 7) + cell(all.tags, 6) + cell(all.tagging_accuracy(), 9, 2) + "\n";
  return out + "=== Summary ===\n\n-- All --\n" + summary_part(all) + "\n-- len<=" + std::to_string(cutoff) + " --\n" +
         summary_part(sums.shorter);
}

}  // namespace heed
