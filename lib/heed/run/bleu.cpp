#include "heed/run/bleu.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "heed/base/streams.h"
#include "heed/base/threads.h"
#include "heed/metrics/exact_match.h"
#include "heed/metrics/numbers.h"
#include "heed/run/bleu_modes.h"
#include "heed/run/peer_options.h"

namespace heed {
namespace {

bool is_stdin(const std::string& path) {
  return path.empty() || path == "-";
}

/// Throws UsageError with `message` when `wrong` is true.
void refuse(bool wrong, const std::string& message) {
  if (wrong) throw UsageError(message);
}

/// Throws UsageError when options of different modes are combined, such as a test of significance with scores of lines.
void check_modes(const BleuToolOptions& options, const BleuPlan& plan) {
  const bool lines = options.sentence_level || options.d2l.has_value();
  const bool tested = options.confidence || plan.test;
  const bool junit = plan.format == BleuFormat::junit;
  const int modes = (options.sentence_level ? 1 : 0) + (options.d2l ? 1 : 0) + (options.multi_bleu ? 1 : 0) +
                    (options.worst ? 1 : 0) + (options.by_length ? 1 : 0) + (options.evalb_table ? 1 : 0);
  const auto given = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return is_given(options.given, name); });
  };
  // Options of sacreBLEU's BLEU and of its reports that other formulas have no use for.
  const bool of_sacrebleu = options.effective_order.value_or(false) ||
                            given({"smooth-method", "smooth-value", "max-order", "force", "signature", "short"});
  if (options.d2l) {
    refuse(of_sacrebleu || options.sentence_level,
           "--d2l is a formula of its own (leave out --smooth-method, --smooth-value, --max-order, "
           "--effective-order, --force, --signature, --short and --sentence-level)");
    refuse(plan.references > 1, "--d2l compares with one reference (give one REF)");
  }
  refuse(modes > 1, "give one of --sentence-level, --d2l, --multi-bleu, --worst, --by-length and --evalb-table");
  refuse(lines && plan.systems.size() > 1, "scores of single lines are for one system (give one HYP to -i)");
  refuse(modes > 0 && plan.systems.size() > 1,
         "--multi-bleu, --worst, --by-length and --evalb-table are for one system (give one HYP to -i)");
  refuse((lines || options.worst) && plan.metrics.size() > 1, "lines have one score (give one metric to -m)");
  refuse((options.d2l || options.multi_bleu) && options.metrics != std::vector{Metric::bleu},
         "--d2l and --multi-bleu are kinds of BLEU (leave out -m)");
  refuse(modes > 0 && tested,
         "tests of significance are for a corpus (leave out --sentence-level, --d2l, --multi-bleu, "
         "--worst, --by-length and --evalb-table)");
  refuse(modes > 0 && junit, "--format junit is for a corpus");
  refuse(options.d2l && plan.format == BleuFormat::tsv, "--d2l gives text or json");
  refuse(options.multi_bleu && (of_sacrebleu || given({"format", "score-only", "width", "tokenize"})),
         "--multi-bleu prints its own line of tokenised text (leave out --smooth-method, --smooth-value, --max-order, "
         "--effective-order, --force, --signature, --short, --format, --score-only, --width and --tokenize)");
  const bool trees = std::find(options.metrics.begin(), options.metrics.end(), Metric::evalb) != options.metrics.end();
  refuse(trees && plan.references > 1, "evalb compares with one gold tree (give one REF)");
  refuse(trees && options.by_length, "--by-length counts words of text (for trees, see --evalb-cutoff)");
  refuse(options.evalb_table && options.metrics != std::vector{Metric::evalb}, "--evalb-table needs -m evalb");
  refuse(options.evalb_table && given({"format", "score-only", "width", "signature", "short"}),
         "--evalb-table prints what evalb prints (leave out --format, --score-only, --width, --signature and --short)");
  refuse((options.multi_bleu || options.worst || options.by_length || options.evalb_table) &&
             (options.fail_under || options.fail_drop),
         "--fail-under and --fail-drop are for a corpus or for --sentence-level");
  refuse((options.worst || options.by_length) && options.score_only, "--score-only is for scores alone");
  refuse(
      options.score_only && (plan.format == BleuFormat::tsv || junit),
      "--score-only prints numbers without a table (leave out --format " + std::string(enum_name(plan.format)) + ")");
  refuse(options.score_only && plan.test && !options.fail_drop,
         "--score-only leaves out what a paired test finds (leave out --score-only, or give --fail-drop)");
}

/// Throws UsageError when options for tests of significance contradict each other.
void check_tests(const BleuToolOptions& options, const BleuPlan& plan) {
  refuse(options.paired_bs && options.paired_ar, "give one of --paired-bs and --paired-ar");
  refuse(plan.test && plan.systems.size() < 2,
         "a paired test compares systems (give several HYP to -i, or --baseline)");
  refuse(options.confidence && plan.systems.size() > 1,
         "--confidence is for one system (of several, --paired-bs gives intervals too)");
  refuse(options.fail_drop && options.baseline.empty(), "--fail-drop needs --baseline HYP");
}

/// Returns the names of the hypothesis files (systems) in the user's order, with the baseline first, if given. A
/// baseline that is also listed as a system is not compared with itself.
std::vector<std::string> systems_of(const BleuToolOptions& options, bool paired, Log& log) {
  std::vector<std::string> systems = options.input;
  if (systems.empty()) systems.push_back("-");
  if (!options.baseline.empty()) systems.insert(systems.begin(), options.baseline);
  for (std::size_t i = 1; i < systems.size();) {
    const auto same = std::find(systems.begin(), systems.begin() + static_cast<std::ptrdiff_t>(i), systems[i]);
    if (same == systems.begin() + static_cast<std::ptrdiff_t>(i)) {
      ++i;
      continue;
    }
    if (is_stdin(systems[i]))
      throw UsageError("standard input can be read only once (name a file for the other side: -i HYP)");
    if (!paired || same != systems.begin()) throw UsageError("the system " + systems[i] + " is given twice");
    log.info(systems[i] + " is the baseline already: not compared with itself");
    systems.erase(systems.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return systems;
}

/// Returns the parameters of evalb that the options ask for.
EvalbOptions evalb_options(const BleuToolOptions& options) {
  EvalbOptions evalb;
  if (!options.evalb_params.empty()) evalb = read_evalb_parameters(options.evalb_params);
  if (options.evalb_unlabelled) evalb.labelled = false;
  evalb.gold_tags = options.evalb_gold_tags;
  evalb.cutoff = options.evalb_cutoff.value_or(evalb.cutoff);
  evalb.on_bad_tree = options.on_bad_tree;
  return evalb;
}

TranslationMetrics make_metrics(const BleuToolOptions& options, const BleuOptions& bleu, const EvalbOptions& evalb) {
  TranslationMetrics metrics;
  std::vector<Metric> seen;
  for (const Metric kind : options.metrics) {
    if (std::find(seen.begin(), seen.end(), kind) != seen.end()) continue;
    seen.push_back(kind);
    if (kind == Metric::bleu) metrics.push_back(std::make_unique<BleuMetric>(bleu));
    if (kind == Metric::chrf) metrics.push_back(std::make_unique<ChrfMetric>(options.chrf));
    if (kind == Metric::ter) metrics.push_back(std::make_unique<TerMetric>(options.ter));
    if (kind == Metric::exact) metrics.push_back(std::make_unique<ExactMatchMetric>());
    if (kind == Metric::evalb) metrics.push_back(std::make_unique<EvalbMetric>(evalb));
    refuse(kind == Metric::chrf && options.chrf.char_order + options.chrf.word_order == 0,
           "chrF needs n-grams (--chrf-char-order or --chrf-word-order above 0)");
  }
  refuse(metrics.empty(), "no metric (-m bleu, chrf, ter, exact or evalb)");
  return metrics;
}

/// Sorts the metrics of `plan` in the order in which sacreBLEU prints them: BLEU, chrF, TER. Paired tests keep the
/// user's order, as in sacreBLEU.
void sort_metrics(BleuPlan& plan) {
  if (plan.test) return;
  const TranslationMetric* const first = plan.metrics.front().get();
  const auto rank = [](const auto& metric) { return metric->name()[0] == 'B' ? 0 : metric->name()[0] == 'c' ? 1 : 2; };
  std::stable_sort(plan.metrics.begin(), plan.metrics.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  while (plan.metrics[plan.first_metric].get() != first) ++plan.first_metric;
}

/// Returns whether the output has signatures in which --short shortens the names.
bool shows_signature(const BleuToolOptions& options, BleuFormat format) {
  if (options.signature) return true;
  if (options.score_only || options.worst || options.by_length || format == BleuFormat::json) return false;
  return !(options.sentence_level && format == BleuFormat::tsv);
}

/// Warns of given options that have no effect. They are not errors, because sacreBLEU accepts them silently.
void warn_of_useless(const BleuToolOptions& options, const BleuPlan& plan, Log& log) {
  const auto has = [&](Metric kind) {
    return std::find(options.metrics.begin(), options.metrics.end(), kind) != options.metrics.end();
  };
  const auto is_any_of = [](std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto needed = [&](std::string_view name) -> std::string_view {
    const bool of_bleu = is_any_of(
        name, {"tokenize", "lowercase", "smooth-method", "smooth-value", "max-order", "effective-order", "force"});
    if (of_bleu && !has(Metric::bleu)) return "-m bleu";
    if (name.starts_with("chrf-") && !has(Metric::chrf)) return "-m chrf";
    if (name.starts_with("ter-") && !has(Metric::ter)) return "-m ter";
    if ((name.starts_with("evalb-") || name == "on-bad-tree") && !has(Metric::evalb)) return "-m evalb";
    if (name == "force" && (options.sentence_level || options.worst || options.by_length))
      return "the score of a corpus (leave out --sentence-level, --worst and --by-length)";
    if (name == "short" && !shows_signature(options, plan.format)) return "a signature in the output (--signature)";
    if (name == "ter-asian-support" && !options.ter.normalized && !options.ter.no_punct)
      return "--ter-normalized or --ter-no-punct";
    if (name == "evalb-cutoff" && !options.evalb_table) return "--evalb-table";
    if (name == "confidence-n" && !options.confidence) return "--confidence";
    if (name == "paired-bs-n" && !(plan.test && plan.test->test == "bs")) return "--paired-bs";
    if (name == "paired-ar-n" && !options.paired_ar) return "--paired-ar";
    if (name == "seed" && !options.confidence && !plan.test) return "--confidence, --paired-bs or --paired-ar";
    return "";
  };
  for (const std::string& name : options.given)
    if (const std::string_view what = needed(name); !what.empty())
      log.warn("--" + name + " does nothing without " + std::string(what));
}

/// Checks the options and fills in the defaults that depend on other options.
BleuPlan make_plan(const BleuToolOptions& options, Log& log) {
  BleuPlan plan{options, {}, {}, {}, 0, 1, {}, {}};
  const bool lines = options.sentence_level || options.worst || options.by_length || options.d2l;
  plan.bleu = {.tokenize = options.tokenize.value_or(options.d2l ? MtevalMode::none : MtevalMode::v13a),
               .lowercase = options.lowercase,
               .smooth_method = options.smooth_method,
               .smooth_value = options.smooth_value,
               .max_order = options.max_order,
               .effective_order = options.effective_order.value_or(options.sentence_level || options.worst)};
  plan.format = options.format.value_or(lines ? BleuFormat::text : BleuFormat::json);
  plan.width = options.width.value_or(options.d2l ? 3 : 1);
  plan.threads = thread_count(options.threads);
  const bool paired = options.paired_bs || options.paired_ar || !options.baseline.empty();
  if (paired) {
    plan.test = Resampling{"bs", options.paired_bs_n, static_cast<std::uint64_t>(options.seed)};
    if (options.paired_ar) plan.test = Resampling{"ar", options.paired_ar_n, plan.test->seed};
  }
  if (options.references.empty())
    throw UsageError("no reference (bleu REF... < HYP, or bleu REF... -i HYP; the references come first)");
  refuse(options.num_refs > 1 && options.references.size() > 1,
         "--num-refs splits the lines of one file (give one REF)");
  plan.references = options.references.size() * static_cast<std::size_t>(options.num_refs);
  plan.systems = systems_of(options, paired, log);
  const auto stdin_uses = std::count_if(options.references.begin(), options.references.end(), is_stdin) +
                          std::count_if(plan.systems.begin(), plan.systems.end(), is_stdin) +
                          (options.evalb_params == "-" ? 1 : 0);
  if (stdin_uses > 1 && !options.signature)
    throw UsageError("standard input can be read only once (name a file for the other side: -i HYP)");
  plan.evalb = evalb_options(options);
  plan.metrics = make_metrics(options, plan.bleu, plan.evalb);
  sort_metrics(plan);
  check_modes(options, plan);
  check_tests(options, plan);
  warn_of_useless(options, plan, log);
  if (options.smooth_value && options.smooth_method != BleuSmoothing::floor &&
      options.smooth_method != BleuSmoothing::add_k)
    log.warn("--smooth-value does nothing with --smooth-method " + std::string(enum_name(options.smooth_method)) +
             " (floor and add-k take one)");
  return plan;
}

}  // namespace

std::string BleuPlan::signature(const TranslationMetric& metric) const {
  std::optional<Resampling> resampling = test;
  if (options.confidence) resampling = Resampling{"bs", options.confidence_n, static_cast<std::uint64_t>(options.seed)};
  const std::string out = heed::signature(metric, references, resampling);
  const bool is_part_of_json = format == BleuFormat::json && !options.signature;
  return options.short_signature && !is_part_of_json ? heed::short_signature(out) : out;
}

Error BleuPlan::locate(const SegmentError& error, const SegmentBlock& block, std::size_t segment,
                       std::size_t system) const {
  const std::string& path = error.in_reference ? options.references[0] : systems[system];
  const std::string_view line = error.in_reference ? block.references(segment)[0] : block.hypotheses(segment)[system];
  return error.at(is_stdin(path) ? "standard input" : path, block.line_number(segment), line);
}

std::optional<std::string> Threshold::check(double score, const std::function<std::string()>& whose) {
  const auto limit = plan_.options.fail_under;
  if (!limit || !plan_.is_worse(score, *limit)) return {};
  // The message shows at least two decimals, and as many as are needed to tell the score from the limit --fail-under.
  int digits = std::max(2, plan_.width);
  while (digits < 17 && format_fixed(score, digits) == format_fixed(*limit, digits)) ++digits;
  const std::string message = whose() + plan_.metrics[plan_.first_metric]->name() + " " + format_fixed(score, digits) +
                              (score < *limit ? " is below" : " is above") + " --fail-under " + json_number(*limit);
  fail(message);
  return message;
}

void Threshold::fail(std::string message) {
  if (failures_++ == 0) first_ = std::move(message);
}

int Threshold::exit_code(Log& log) const {
  if (failures_ == 0) return 0;
  log.warn(first_ + (failures_ > 1 ? " (the first of " + format_count(failures_) + ")" : ""));
  return kBelowThreshold;
}

int run_bleu(const BleuToolOptions& options, std::istream& in, std::ostream& out, Log& log) {
  const BleuPlan plan = make_plan(options, log);
  if (options.signature) {
    for (const auto& metric : plan.metrics)
      out << (plan.metrics.size() > 1 ? metric->name() + "|" : "") << plan.signature(*metric) << '\n';
    return 0;
  }
  Segments segments(options.references, plan.systems, options.utf8.on_invalid_utf8, !options.multi_bleu, in,
                    static_cast<std::size_t>(options.num_refs));
  Threshold threshold(plan);
  int code = 0;
  if (options.d2l)
    score_d2l(plan, segments, out, threshold);
  else if (options.sentence_level)
    score_sentences(plan, segments, out, threshold);
  else if (options.worst)
    score_worst(plan, segments, out);
  else if (options.by_length)
    score_by_length(plan, segments, out);
  else if (options.evalb_table)
    score_evalb_table(plan, segments, out);
  else if (options.multi_bleu)
    code = score_multi_bleu(plan, segments, out);
  else
    score_corpus(plan, segments, out, threshold, log);
  segments.report(log);
  log.detail(count_of(segments.count(), "line") + ", " +
             count_of(static_cast<std::int64_t>(plan.references), "reference"));
  return code != 0 ? code : threshold.exit_code(log);
}

ToolInfo bleu_tool_info() {
  return {
      .name = "bleu",
      .purpose =
          "score translations by BLEU, chrF and TER, with the numbers that sacreBLEU prints, and parse trees by evalb",
      .usage = {"bleu [options] REF... < HYP", "bleu [options] REF... -i HYP [HYP...]"},
      .examples = {"bleu test.ref < test.hyp", "bleu test.ref.gz -b -w 2 < test.hyp",
                   "bleu test.ref -m bleu chrf ter -f text < test.hyp",
                   "bleu ref.1 ref.2 -i baseline.txt new.txt --paired-bs -f text",
                   "bleu test.ref --fail-under 35 < test.hyp", "bleu gold.trees -m evalb < parsed.trees",
                   "bleu test.ref --baseline old.txt --fail-drop 0.5 < new.txt"},
      .peers = bleu_peer_options()};
}

}  // namespace heed
