#include "heed/run/bleu.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "heed/base/line_io.h"
#include "heed/base/streams.h"
#include "heed/metrics/bleu_report.h"
#include "heed/text/unicode.h"

namespace heed {
namespace {

constexpr int kBelowThreshold = 3;
/// As many lines that end in " ." as sacreBLEU takes before it speaks.
constexpr int kTokenizedLines = 100;

std::string count_of(std::int64_t count, const std::string& what) {
  return format_count(count) + " " + what + (count == 1 ? "" : "s");
}

bool is_stdin(const std::string& path) {
  return path.empty() || path == "-";
}

/// The options made whole: the defaults that depend on other options, and what may not stand together.
BleuOptions settle(const BleuToolOptions& options, Log& log) {
  BleuOptions bleu;
  bleu.tokenize = options.tokenize.value_or(options.d2l ? MtevalMode::none : MtevalMode::v13a);
  bleu.lowercase = options.lowercase;
  bleu.smooth_method = options.smooth_method;
  bleu.smooth_value = options.smooth_value;
  bleu.max_order = options.max_order;
  bleu.effective_order = options.effective_order.value_or(options.sentence_level);

  if (options.references.empty())
    throw UsageError("no reference (bleu REF... < HYP, or bleu REF... -i HYP; the references come first)");
  const auto stdin_uses = std::count_if(options.references.begin(), options.references.end(), is_stdin) +
                          std::count_if(options.input.begin(), options.input.end(), is_stdin) +
                          (options.input.empty() ? 1 : 0);
  if (stdin_uses > 1 && !options.signature)
    throw UsageError("standard input can be read only once (name a file for the other side: -i HYP)");
  if ((options.sentence_level || options.d2l) && options.input.size() > 1)
    throw UsageError("scores of single lines are for one system (give one HYP to -i)");
  if (options.d2l) {
    const bool smoothed = options.smooth_method != BleuSmoothing::exp || options.smooth_value;
    if (smoothed || options.effective_order || options.max_order != BleuOptions{}.max_order || options.sentence_level ||
        options.signature)
      throw UsageError(
          "--d2l is a formula of its own (leave out --smooth-method, --smooth-value, --max-order, --effective-order, "
          "--sentence-level and --signature)");
    if (options.references.size() > 1) throw UsageError("--d2l compares with one reference (give one REF)");
  } else if (options.smooth_value && bleu.smooth_method != BleuSmoothing::floor &&
             bleu.smooth_method != BleuSmoothing::add_k) {
    log.warn("--smooth-value does nothing with --smooth-method " + std::string(enum_name(bleu.smooth_method)) +
             " (floor and add-k take one)");
  }
  return bleu;
}

/// The references and hypotheses, read side by side.
class Segments {
 public:
  Segments(const BleuToolOptions& options, std::istream& in) : references_(options.references.size()) {
    const auto open = [&](const std::string& path) {
      const InvalidUtf8 policy = options.utf8.on_invalid_utf8;
      readers_.push_back(is_stdin(path) ? std::make_unique<LineReader>(in, input_name(path), policy)
                                        : std::make_unique<LineReader>(path, policy));
    };
    for (const auto& path : options.references) open(path);
    for (const auto& path : options.input) open(path);
    if (options.input.empty()) open("-");
    lines_.resize(readers_.size());
    views_.resize(readers_.size());
  }

  /// The next line of every file, without the white space at its end; false at the end of all.
  bool next() {
    std::size_t ended = 0;
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      if (!readers_[i]->next(lines_[i])) ++ended;
      views_[i] = strip_trailing_space(lines_[i]);
    }
    if (ended == 0) {
      ++count_;
      return true;
    }
    if (ended < readers_.size()) fail_unequal();
    if (count_ == 0) throw Error(Position{readers_[references_]->name()}, "no lines (nothing to score)");
    return false;
  }

  bool ready() {
    return std::all_of(readers_.begin(), readers_.end(), [](const auto& reader) { return reader->ready(); });
  }

  std::int64_t count() const { return count_; }
  std::span<const std::string_view> references() const { return std::span(views_).first(references_); }
  std::span<const std::string_view> hypotheses() const { return std::span(views_).subspan(references_); }
  std::string system_name(std::size_t system) const { return readers_[references_ + system]->name(); }
  Position hypothesis_position() const { return readers_[references_]->position(); }
  void report_invalid(Log& log) const {
    for (const auto& reader : readers_) reader->report_invalid(log);
  }

 private:
  [[noreturn]] void fail_unequal() {
    for (std::size_t i = 0; i < readers_.size(); ++i)
      while (readers_[i]->next(lines_[i])) {
      }
    const LineReader& first = *readers_.front();
    for (const auto& reader : readers_)
      if (reader->line_number() != first.line_number())
        throw Error(Position{reader->name()}, count_of(reader->line_number(), "line") + ", but " + first.name() +
                                                  " has " + count_of(first.line_number(), "line") +
                                                  " (line N of one is scored against line N of the other)");
    throw Error("internal: files that end apart have equal lengths");
  }

  std::size_t references_;
  std::vector<std::unique_ptr<LineReader>> readers_;  // the references, then the systems
  std::vector<std::string> lines_;
  std::vector<std::string_view> views_;
  std::int64_t count_ = 0;
};

/// Remembers the first score below the threshold.
class Threshold {
 public:
  explicit Threshold(std::optional<double> limit) : limit_(limit) {}

  void check(double score, const std::function<std::string()>& whose) {
    if (!limit_ || score >= *limit_) return;
    if (below_++ == 0) first_ = whose() + json_number(score) + " is below --fail-under " + json_number(*limit_);
  }
  /// The exit code; says on the log why it is not 0.
  int exit_code(Log& log) const {
    if (below_ == 0) return 0;
    log.warn(first_ + (below_ > 1 ? " (the first of " + format_count(below_) + ")" : ""));
    return kBelowThreshold;
  }

 private:
  std::optional<double> limit_;
  std::int64_t below_ = 0;
  std::string first_;
};

/// One score a line: `score` gives a segment's value and its line of the report.
struct LineScore {
  double value;
  std::string text;
};

void score_lines(Segments& segments, const std::function<LineScore()>& score, std::ostream& out, Threshold& threshold) {
  for (;;) {
    if (!segments.ready()) out.flush();  // somebody may be waiting at the other end
    if (!segments.next()) return;
    const LineScore line = score();
    out << line.text << '\n';
    threshold.check(line.value, [&] { return segments.hypothesis_position().text() + ": "; });
  }
}

void score_sentences(const BleuToolOptions& options, const BleuOptions& bleu, Segments& segments, std::ostream& out,
                     Threshold& threshold) {
  const std::string signature = bleu_signature(bleu, options.references.size());
  const int width = options.width.value_or(1);
  BleuCounter counter(bleu);
  const auto score = [&]() -> LineScore {
    counter.set_references(segments.references());
    BleuStatistics statistics(bleu.max_order);
    counter.add(segments.hypotheses()[0], statistics);
    const BleuScore result = bleu_score(statistics, bleu);
    if (options.score_only) return {result.score, format_fixed(result.score, width)};
    if (options.format == BleuFormat::json) return {result.score, bleu_json(result, signature, width, -1)};
    return {result.score, bleu_text(result, signature, width)};
  };
  score_lines(segments, score, out, threshold);
}

void score_d2l(const BleuToolOptions& options, const BleuOptions& bleu, Segments& segments, std::ostream& out,
               Threshold& threshold) {
  MtevalTokenizer hypothesis(bleu.tokenize), reference(bleu.tokenize);
  const bool json = options.format == BleuFormat::json && !options.score_only;
  const auto score = [&]() -> LineScore {
    std::string lowered[2];
    std::string_view one = segments.hypotheses()[0], other = segments.references()[0];
    if (bleu.lowercase) {
      one = lowered[0] = to_lower(one);
      other = lowered[1] = to_lower(other);
    }
    const double value = d2l_bleu(hypothesis.tokens(one), reference.tokens(other), *options.d2l);
    const std::string number = format_fixed(value, options.width.value_or(3));
    if (!json) return {value, number};
    return {value, "{\"name\": \"d2l\", \"max_order\": " + std::to_string(*options.d2l) +
                       ", \"score\": " + json_number(std::stod(number)) + "}"};
  };
  score_lines(segments, score, out, threshold);
}

/// Sums of all systems over all segments. Warns of systems that look tokenised, as sacreBLEU does.
std::vector<BleuStatistics> count_corpus(const BleuToolOptions& options, const BleuOptions& bleu, Segments& segments,
                                         Log& log) {
  BleuCounter counter(bleu);
  const std::size_t systems = segments.hypotheses().size();
  std::vector<BleuStatistics> sums(systems, BleuStatistics(bleu.max_order));
  std::vector<int> tokenized(systems);
  while (segments.next()) {
    counter.set_references(segments.references());
    for (std::size_t s = 0; s < systems; ++s) {
      const std::string_view line = segments.hypotheses()[s];
      tokenized[s] += line.ends_with(" .") ? 1 : 0;
      counter.add(line, sums[s]);
    }
  }
  if (!options.force && bleu.tokenize != MtevalMode::none)
    for (std::size_t s = 0; s < systems; ++s)
      if (tokenized[s] >= kTokenizedLines)
        log.warn(segments.system_name(s) + ": " + format_count(tokenized[s]) +
                 " lines end in \" .\", as tokenised text does, and will be tokenised again (detokenise it first; "
                 "--force if it is right as it is)");
  return sums;
}

void score_corpus(const BleuToolOptions& options, const BleuOptions& bleu, Segments& segments, std::ostream& out,
                  Threshold& threshold, Log& log) {
  std::vector<NamedBleu> systems;
  std::vector<BleuScore> scores;
  for (const BleuStatistics& sum : count_corpus(options, bleu, segments, log)) {
    scores.push_back(bleu_score(sum, bleu));
    systems.push_back({segments.system_name(systems.size()), scores.back().score});
    threshold.check(systems.back().score,
                    [&] { return options.input.size() > 1 ? systems.back().name + ": " : std::string(); });
  }
  const std::string signature = bleu_signature(bleu, options.references.size());
  const int width = options.width.value_or(1);
  const bool json = options.format.value_or(BleuFormat::json) == BleuFormat::json;
  if (options.score_only) {
    for (const NamedBleu& system : systems) out << format_fixed(system.score, width) << '\n';
  } else if (systems.size() > 1) {
    out << (json ? bleu_table_json(systems, width) + "\n" : bleu_table(systems, signature, width));
  } else {
    out << (json ? bleu_json(scores[0], signature, width) : bleu_text(scores[0], signature, width)) << '\n';
  }
}

}  // namespace

int run_bleu(const BleuToolOptions& options, std::istream& in, std::ostream& out, Log& log) {
  const BleuOptions bleu = settle(options, log);
  if (options.signature) {
    out << bleu_signature(bleu, options.references.size()) << '\n';
    return 0;
  }
  Segments segments(options, in);
  Threshold threshold(options.fail_under);
  if (options.d2l)
    score_d2l(options, bleu, segments, out, threshold);
  else if (options.sentence_level)
    score_sentences(options, bleu, segments, out, threshold);
  else
    score_corpus(options, bleu, segments, out, threshold, log);
  segments.report_invalid(log);
  log.detail(count_of(segments.count(), "line") + ", " +
             count_of(static_cast<std::int64_t>(options.references.size()), "reference"));
  return threshold.exit_code(log);
}

ToolInfo bleu_tool_info() {
  return {.name = "bleu",
          .purpose = "BLEU of translations, the number sacreBLEU prints",
          .usage = {"bleu [options] REF... < HYP", "bleu [options] REF... -i HYP [HYP...]"},
          .examples = {"bleu test.ref < test.hyp", "bleu test.ref.gz -b -w 2 < test.hyp",
                       "bleu ref.1 ref.2 -i baseline.txt new.txt -f text", "bleu test.ref --fail-under 35 < test.hyp"},
          .hints = {{"sys", "input", "fairseq"},
                    {"ignore-case", "lowercase", "fairseq"},
                    {"order", "max-order", "fairseq"},
                    {"sentence-bleu", "sentence-level", "fairseq"},
                    {"max-ngram-order", "max-order", "sacreBLEU's library"}}};
}

}  // namespace heed
