#include <algorithm>
#include <cmath>

#include "heed/metrics/numbers.h"
#include "heed/run/bleu_modes.h"

namespace heed {
namespace {

/// When at least this number of a system's lines end in " .", sacreBLEU warns that the text looks tokenised.
constexpr int kTokenizedLines = 100;
/// A difference between two systems is significant when the p-value is less than this limit.
constexpr double kSignificant = 0.05;

/// Warns of systems whose lines look tokenised, as sacreBLEU does.
class TokenizedCheck {
 public:
  explicit TokenizedCheck(const BleuPlan& plan) : lines_(plan.systems.size()) {
    const bool asked =
        std::find(plan.options.metrics.begin(), plan.options.metrics.end(), Metric::bleu) != plan.options.metrics.end();
    active_ = asked && !plan.options.force && plan.bleu.tokenize != MtevalMode::none;
  }

  void look(const SegmentBlock& block) {
    if (!active_) return;
    for (std::size_t i = 0; i < block.size(); ++i)
      for (std::size_t s = 0; s < lines_.size(); ++s) lines_[s] += block.hypotheses(i)[s].ends_with(" .") ? 1 : 0;
  }
  void report(const Segments& segments, Log& log) const {
    for (std::size_t s = 0; s < lines_.size(); ++s)
      if (lines_[s] >= kTokenizedLines)
        log.warn(segments.system_name(s) + ": " + format_count(lines_[s]) +
                 " lines end in \" .\", as tokenised text does, and will be tokenised again (detokenise it first; "
                 "--force if it is right as it is)");
  }

 private:
  bool active_ = false;
  std::vector<std::int64_t> lines_;
};

/// Returns the scores, confidence intervals and p-values of all systems.
std::vector<SystemReport> make_reports(const BleuPlan& plan, const SegmentStatistics& statistics,
                                       const std::vector<double>& sums, const Segments& segments, Log& log) {
  const std::size_t metrics = plan.metrics.size(), systems = segments.systems();
  std::vector<double> scores;
  std::vector<SystemReport> reports;
  for (std::size_t s = 0; s < systems; ++s) {
    reports.push_back({(plan.test && s == 0 ? "Baseline: " : "") + segments.system_name(s), {}});
    for (std::size_t m = 0; m < metrics; ++m) {
      const TranslationMetric& metric = *plan.metrics[m];
      const auto part = std::span(sums).subspan(statistics.offset(s, m), metric.width());
      scores.push_back(metric.score(part));
      reports.back().scores.push_back(
          {metric.name(), scores.back(), plan.signature(metric), metric.details(part), {}, {}});
    }
  }
  const auto at = [&](std::size_t index) -> SystemScore& { return reports[index / metrics].scores[index % metrics]; };
  const auto seed = static_cast<std::uint64_t>(plan.options.seed);
  Progress progress(log, "resampling", "trials", plan.test ? plan.test->samples : plan.options.confidence_n);
  const TrialsDone tell = [&](std::int64_t done) { progress.to(done); };
  if (plan.test && plan.test->test == "ar") {
    const auto p_values = randomization_p_values(statistics, scores, plan.test->samples, seed, plan.threads, tell);
    for (std::size_t k = metrics; k < p_values.size(); ++k) at(k).p_value = p_values[k];
  } else if (plan.test) {
    const auto resampled = bootstrap_scores(statistics, plan.test->samples, seed, plan.threads, tell);
    for (std::size_t k = 0; k < resampled.size(); ++k) {
      at(k).confidence = numpy_interval(resampled[k]);
      if (k >= metrics)
        at(k).p_value =
            bootstrap_p_value(resampled[k % metrics], resampled[k], std::abs(scores[k % metrics] - scores[k]));
    }
  } else if (plan.options.confidence) {
    const auto resampled = bootstrap_scores(statistics, plan.options.confidence_n, seed, plan.threads, tell);
    for (std::size_t k = 0; k < resampled.size(); ++k) at(k).confidence = exact_interval(resampled[k]);
  }
  return reports;
}

/// Returns the systems whose scores --fail-under or --fail-drop does not allow, each with an error message.
std::vector<ScoreFailure> check_reports(const BleuPlan& plan, const std::vector<SystemReport>& reports,
                                        Threshold& threshold) {
  std::vector<ScoreFailure> failures;
  const bool baseline = !plan.options.baseline.empty();
  const double reference = reports[0].scores[plan.first_metric].score;
  for (std::size_t s = baseline ? 1 : 0; s < reports.size(); ++s) {
    const SystemScore& score = reports[s].scores[plan.first_metric];
    const std::string whose = reports.size() > 1 ? reports[s].name + ": " : std::string();
    if (auto message = threshold.check(score.score, [&] { return whose; }))
      failures.push_back({reports[s].name, score.metric, *message});
    if (!plan.options.fail_drop || *score.p_value >= kSignificant) continue;
    const bool lower_is_better = plan.metrics[plan.first_metric]->lower_is_better();
    const double drop = lower_is_better ? score.score - reference : reference - score.score;
    if (drop <= *plan.options.fail_drop) continue;
    const std::string message = whose + format_fixed(score.score, plan.width) + " is " +
                                format_fixed(drop, plan.width) + " worse than " + format_fixed(reference, plan.width) +
                                " of the baseline (p = " + format_fixed(*score.p_value, 4) + "; --fail-drop " +
                                json_number(*plan.options.fail_drop) + ")";
    failures.push_back({reports[s].name, score.metric, message});
    threshold.fail(message);
  }
  return failures;
}

void write_reports(const BleuPlan& plan, const std::vector<SystemReport>& reports,
                   const std::vector<ScoreFailure>& failures, std::ostream& out) {
  if (plan.options.score_only) {
    const bool list = plan.format == BleuFormat::json && reports.size() == 1 && plan.metrics.size() > 1;
    if (list) out << "[\n";
    for (const SystemReport& system : reports) {
      // The greatest length of a score. Shorter scores are padded, so that the confidence intervals of several metrics
      // are aligned.
      std::size_t longest = 0;
      for (const SystemScore& score : system.scores)
        longest = std::max(longest, format_fixed(score.score, plan.width).size());
      for (std::size_t m = 0; m < system.scores.size(); ++m) {
        const SystemScore& score = system.scores[m];
        const std::string number = score_number(score, plan.width);
        if (score.confidence && plan.format == BleuFormat::text)
          out << std::string(longest - format_fixed(score.score, plan.width).size(), ' ');
        out << number << (list && m + 1 < system.scores.size() ? ",\n" : "\n");
      }
    }
    if (list) out << "]\n";
    return;
  }
  switch (plan.format) {
    case BleuFormat::text:
      out << (reports.size() > 1 ? systems_table(reports, plan.width, plan.test)
                                 : scores_text(reports[0].scores, plan.width));
      break;
    case BleuFormat::json:
      out << (reports.size() > 1 ? systems_json(reports, plan.width) : scores_json(reports[0].scores, plan.width));
      break;
    case BleuFormat::tsv:
      out << systems_tsv(reports, plan.width);
      break;
    case BleuFormat::junit:
      out << systems_junit(reports, failures, plan.width);
      break;
  }
}

}  // namespace

CorpusCounter::CorpusCounter(const BleuPlan& plan) : plan_(plan), statistics_(plan.metrics, plan.systems.size()) {
  counters_.resize(static_cast<std::size_t>(plan.threads));
  for (auto& counters : counters_)
    for (const auto& metric : plan.metrics) counters.push_back(metric->counter());
}

void CorpusCounter::count(CountedBlock& block, int thread) {
  block.rows.resize(block.size() * width());
  for (std::size_t i = 0; i < block.size(); ++i) {
    const auto row = std::span(block.rows).subspan(i * width(), width());
    for (std::size_t m = 0; m < plan_.metrics.size(); ++m) {
      SegmentCounter& counter = *counters_[static_cast<std::size_t>(thread)][m];
      std::size_t s = 0;
      try {
        counter.set_references(block.references(i));
        for (; s < statistics_.systems(); ++s)
          counter.count(block.hypotheses(i)[s], row.subspan(statistics_.offset(s, m), plan_.metrics[m]->width()));
      } catch (const SegmentError& error) {
        block.rows.resize(i * width());
        throw plan_.locate(error, block, i, s);
      }
    }
  }
}

void score_corpus(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold, Log& log) {
  CorpusCounter counter(plan);
  SegmentStatistics statistics(plan.metrics, segments.systems());
  TokenizedCheck tokenized(plan);
  std::vector<double> sums(counter.width());
  {
    Progress progress(log, "scoring", "lines", [&] { return segments.share(); });
    run_segment_pipeline<CountedBlock>(
        plan, segments, [&](CountedBlock& block, int thread) { counter.count(block, thread); },
        [&](CountedBlock& block) {
          tokenized.look(block);
          for (std::size_t at = 0; at < block.rows.size(); ++at) sums[at % sums.size()] += block.rows[at];
          if (plan.test || plan.options.confidence) statistics.append(block.rows);
          progress.advance(static_cast<std::int64_t>(block.size()));
        },
        [&] { log.clear_status(); });
  }
  tokenized.report(segments, log);
  const std::vector<SystemReport> reports = make_reports(plan, statistics, sums, segments, log);
  const std::vector<ScoreFailure> failures = check_reports(plan, reports, threshold);
  write_reports(plan, reports, failures, out);
}

void score_by_length(const BleuPlan& plan, Segments& segments, std::ostream& out) {
  constexpr std::size_t kStep = 10, kBuckets = 7;
  struct Bucket {
    std::int64_t lines = 0;
    std::vector<double> sums;
  };
  struct Block : CountedBlock {
    // For each segment, the index of the bucket for the length of the segment's reference.
    std::vector<std::size_t> buckets;
  };
  CorpusCounter counter(plan);
  std::vector<Bucket> buckets(kBuckets, {0, std::vector<double>(counter.width())});
  struct alignas(64) Worker {
    MtevalTokenizer splitter{MtevalMode::none};
  };
  std::vector<Worker> workers(static_cast<std::size_t>(plan.threads));
  const auto work = [&](Block& block, int thread) {
    counter.count(block, thread);
    block.buckets.clear();
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::size_t words =
          workers[static_cast<std::size_t>(thread)].splitter.tokens(block.references(i)[0]).size();
      block.buckets.push_back(std::min(kBuckets - 1, words / kStep));
    }
  };
  run_segment_pipeline<Block>(plan, segments, work, [&](Block& block) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      Bucket& bucket = buckets[block.buckets[i]];
      ++bucket.lines;
      for (std::size_t k = 0; k < bucket.sums.size(); ++k) bucket.sums[k] += block.rows[i * bucket.sums.size() + k];
    }
  });
  const bool json = plan.format == BleuFormat::json;
  std::vector<std::vector<std::string>> table = {{"words", "lines"}};
  for (const auto& metric : plan.metrics) table[0].push_back(metric->name());
  for (std::size_t b = 0; b < kBuckets; ++b) {
    if (buckets[b].lines == 0) continue;
    const std::string last = b + 1 < kBuckets ? std::to_string(kStep * (b + 1) - 1) : std::string();
    const std::string words = std::to_string(kStep * b) + "-" + last;
    table.push_back({json ? json_string(words) : words, std::to_string(buckets[b].lines)});
    std::size_t at = 0;
    for (const auto& metric : plan.metrics) {
      table.back().push_back(format_fixed(
          metric->score(std::span<const double>(buckets[b].sums).subspan(at, metric->width())), plan.width));
      at += metric->width();
    }
  }
  if (json) {
    out << "[\n";
    for (std::size_t r = 1; r < table.size(); ++r) {
      for (std::size_t c = 0; c < table[r].size(); ++c)
        out << (c == 0 ? " {" : ", ") << json_string(table[0][c]) << ": " << table[r][c];
      out << (r + 1 < table.size() ? "},\n" : "}\n");
    }
    out << "]\n";
    return;
  }
  for (const auto& row : table) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (plan.format == BleuFormat::tsv) {
        out << (c > 0 ? "\t" : "") << row[c];
        continue;
      }
      std::size_t width = 0;
      for (const auto& other : table) width = std::max(width, other[c].size());
      const std::string space(width - row[c].size(), ' ');
      out << (c > 0 ? "  " : "") << (c == 0 ? row[c] + space : space + row[c]);
    }
    out << '\n';
  }
}

}  // namespace heed
