#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/base/ascii.h"
#include "heed/metrics/ngram_matcher.h"
#include "heed/metrics/numbers.h"
#include "heed/run/bleu_modes.h"
#include "heed/text/strings/scan.h"
#include "heed/text/strings/unicode.h"

namespace heed {
namespace {

/// A block of segments (lines of the corpus) with the score of each segment and the report lines about them. If a
/// segment has a mistake, such as a broken tree, there are scores and report lines only for the segments before it.
struct ScoredBlock : SegmentBlock {
  std::vector<double> scores;
  std::string report;
};

/// Writes one report line with a score for each line of the corpus. `score` returns the score of a segment and appends
/// the report line, without the line feed, to `report`.
void score_lines(const BleuPlan& plan, Segments& segments,
                 const std::function<double(const SegmentBlock&, std::size_t segment, std::size_t thread,
                                            std::string& report)>& score,
                 std::ostream& out, Threshold& threshold) {
  const auto work = [&](ScoredBlock& block, int thread) {
    block.scores.clear();
    block.report.clear();
    for (std::size_t i = 0; i < block.size(); ++i) {
      block.scores.push_back(score(block, i, static_cast<std::size_t>(thread), block.report));
      block.report += '\n';
    }
  };
  const auto take = [&](ScoredBlock& block) {
    out << block.report;
    // A block with a mistake has the scores of the segments before the mistake only.
    for (std::size_t i = 0; i < block.scores.size(); ++i)
      threshold.check(block.scores[i],
                      [&] { return segments.system_name(0) + ":" + std::to_string(block.line_number(i)) + ": "; });
  };
  run_segment_pipeline<ScoredBlock>(plan, segments, work, take, [&] { out.flush(); });
}

/// Splits `line` at ASCII white space, as Perl's split does, and stores the parts in `words`.
void split_bytes(std::string_view line, std::vector<std::string_view>& words) {
  words.clear();
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t start = at;
    while (at < line.size() && !is_ascii_space(line[at])) ++at;
    if (at > start) words.push_back(line.substr(start, at - start));
    while (at < line.size() && is_ascii_space(line[at])) ++at;
  }
}

std::string lower_bytes(std::string_view line) {
  std::string out(line);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

void score_sentences(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold) {
  const TranslationMetric& metric = *plan.metrics[0];
  struct alignas(64) Worker {
    std::unique_ptr<SegmentCounter> counter;
    std::vector<double> row;
    SystemScore score;
  };
  std::vector<Worker> workers(static_cast<std::size_t>(plan.threads));
  for (Worker& worker : workers)
    worker = {
        metric.counter(), std::vector<double>(metric.width()), {metric.name(), 0, plan.signature(metric), {}, {}, {}}};
  if (plan.format == BleuFormat::tsv && !plan.options.score_only) out << "line\t" << metric.name() << '\n';
  const auto line = [&](const SegmentBlock& block, std::size_t segment, std::size_t thread, std::string& report) {
    auto& [counter, row, score] = workers[thread];
    try {
      counter->set_references(block.references(segment));
      counter->count(block.hypotheses(segment)[0], row);
    } catch (const SegmentError& error) {
      throw plan.locate(error, block, segment, 0);
    }
    score.score = metric.score(row);
    if (plan.options.score_only) {
      report += format_fixed(score.score, plan.width);
    } else if (plan.format == BleuFormat::tsv) {
      report.append(std::to_string(block.line_number(segment))).append(1, '\t');
      report += format_fixed(score.score, plan.width);
    } else {
      score.details = metric.details(row);
      report += plan.format == BleuFormat::json ? score_json(score, plan.width, -1) : score_text(score, plan.width);
    }
    return score.score;
  };
  score_lines(plan, segments, line, out, threshold);
}

void score_d2l(const BleuPlan& plan, Segments& segments, std::ostream& out, Threshold& threshold) {
  struct alignas(64) Worker {
    MtevalTokenizer hypothesis, reference;
  };
  const MtevalTokenizer tokenizer(plan.bleu.tokenize);
  std::vector<Worker> workers(static_cast<std::size_t>(plan.threads), Worker{tokenizer, tokenizer});
  const auto line = [&](const SegmentBlock& block, std::size_t segment, std::size_t thread, std::string& report) {
    std::string lowered[2];
    std::string_view one = block.hypotheses(segment)[0], other = block.references(segment)[0];
    if (plan.bleu.lowercase) {
      one = lowered[0] = to_lower(one);
      other = lowered[1] = to_lower(other);
    }
    auto& [hypothesis, reference] = workers[thread];
    const double value = d2l_bleu(hypothesis.tokens(one), reference.tokens(other), *plan.options.d2l);
    const std::string number = format_fixed(value, plan.width);
    if (plan.format != BleuFormat::json || plan.options.score_only)
      report += number;
    else
      report += "{\"name\": \"d2l\", \"max_order\": " + std::to_string(*plan.options.d2l) +
                ", \"score\": " + json_number(std::stod(number)) + "}";
    return value;
  };
  score_lines(plan, segments, line, out, threshold);
}

void score_worst(const BleuPlan& plan, Segments& segments, std::ostream& out) {
  struct Line {
    double score = 0;
    std::int64_t number = 0;
    std::string hypothesis;
    std::vector<std::string> references;
  };
  const TranslationMetric& metric = *plan.metrics[0];
  const auto before = [&](const Line& a, const Line& b) {
    return a.score != b.score ? plan.is_worse(a.score, b.score) : a.number < b.number;
  };
  struct Block : CountedBlock {
    std::vector<double> scores;
  };
  CorpusCounter counter(plan);
  const auto most = static_cast<std::size_t>(*plan.options.worst);
  // A heap of the lines with the worst scores so far; the best of these lines is at the front.
  std::vector<Line> worst;
  const auto work = [&](Block& block, int thread) {
    block.scores.clear();
    counter.count(block, thread);
    for (std::size_t i = 0; i < block.size(); ++i)
      block.scores.push_back(metric.score(std::span(block.rows).subspan(i * counter.width(), metric.width())));
  };
  run_segment_pipeline<Block>(plan, segments, work, [&](Block& block) {
    for (std::size_t i = 0; i < block.scores.size(); ++i) {
      Line line{block.scores[i], block.line_number(i), {}, {}};
      if (worst.size() == most && !before(line, worst.front())) continue;
      line.hypothesis = block.hypotheses(i)[0];
      for (const std::string_view reference : block.references(i)) line.references.emplace_back(reference);
      if (worst.size() == most) {
        std::pop_heap(worst.begin(), worst.end(), before);
        worst.pop_back();
      }
      worst.push_back(std::move(line));
      std::push_heap(worst.begin(), worst.end(), before);
    }
  });
  std::sort_heap(worst.begin(), worst.end(), before);
  if (plan.format == BleuFormat::tsv) {
    out << "line\t" << metric.name() << "\thypothesis";
    for (std::size_t r = 0; r < plan.references; ++r) out << "\treference";
    out << '\n';
  }
  for (const Line& line : worst) {
    const std::string score = format_fixed(line.score, plan.width);
    if (plan.format == BleuFormat::json) {
      out << "{\"line\": " << line.number << ", " << json_string(metric.name()) << ": " << score
          << ", \"hypothesis\": " << json_string(line.hypothesis) << ", \"references\": [";
      for (std::size_t r = 0; r < line.references.size(); ++r)
        out << (r > 0 ? ", " : "") << json_string(line.references[r]);
      out << "]}\n";
    } else if (plan.format == BleuFormat::tsv) {
      out << line.number << '\t' << score << '\t' << tsv_field(line.hypothesis);
      for (const std::string& reference : line.references) out << '\t' << tsv_field(reference);
      out << '\n';
    } else {
      out << "line " << line.number << ": " << metric.name() << " = " << score << "\n  hypothesis: " << line.hypothesis
          << '\n';
      for (const std::string& reference : line.references) out << "  reference:  " << reference << '\n';
    }
  }
}

void score_evalb_table(const BleuPlan& plan, Segments& segments, std::ostream& out) {
  CorpusCounter counter(plan);
  std::vector<double> sums(counter.width());
  out << evalb_table_head();
  run_segment_pipeline<CountedBlock>(
      plan, segments, [&](CountedBlock& block, int thread) { counter.count(block, thread); },
      [&](CountedBlock& block) {
        for (std::size_t i = 0; i < block.rows.size() / sums.size(); ++i) {
          const auto row = std::span<const double>(block.rows).subspan(i * sums.size(), sums.size());
          out << evalb_table_row(block.line_number(i), EvalbMetric::statistics(row));
          for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += row[k];
        }
      },
      [&] { out.flush(); });
  out << evalb_table_summary(EvalbMetric::statistics(sums), plan.evalb.cutoff);
}

int score_multi_bleu(const BleuPlan& plan, Segments& segments, std::ostream& out) {
  constexpr std::size_t kOrders = 4;
  struct Counts {
    std::int64_t matches[kOrders] = {}, totals[kOrders] = {}, length = 0, reference_length = 0;
  };
  struct Block : SegmentBlock {
    Counts counts;
  };
  struct alignas(64) Worker {
    NgramMatcher matcher{kOrders};
    // Lower-cased copies of a segment's hypothesis (element 0) and references (elements from 1).
    std::vector<std::string> lowered;
    std::vector<std::string_view> words;
  };
  std::vector<Worker> workers(static_cast<std::size_t>(plan.threads));
  for (Worker& worker : workers) worker.lowered.resize(1 + plan.references);
  const auto work = [&](Block& block, int thread) {
    Worker& worker = workers[static_cast<std::size_t>(thread)];
    const std::vector<std::string_view>& words = worker.words;
    const auto split = [&](std::string_view line, std::string& memory) {
      if (plan.bleu.lowercase) line = memory = lower_bytes(line);
      split_bytes(line, worker.words);
    };
    Counts& counts = block.counts = {};
    for (std::size_t i = 0; i < block.size(); ++i) {
      worker.matcher.clear();
      split(block.hypotheses(i)[0], worker.lowered[0]);
      const auto words_here = std::ssize(words);
      std::int64_t nearest = std::numeric_limits<std::int64_t>::max();
      for (std::size_t r = 0; r < block.references(i).size(); ++r) {
        split(block.references(i)[r], worker.lowered[r + 1]);
        worker.matcher.add_reference(words);
        const std::int64_t here = std::ssize(words), far = std::abs(here - words_here),
                           least = std::abs(nearest - words_here);
        if (r == 0 || far < least || (far == least && here < nearest)) nearest = here;
      }
      split(block.hypotheses(i)[0], worker.lowered[0]);
      worker.matcher.match(words, counts.matches);
      for (std::size_t n = 0; n < kOrders; ++n)
        counts.totals[n] += std::max<std::int64_t>(0, words_here - static_cast<std::int64_t>(n));
      counts.length += words_here;
      counts.reference_length += nearest;
    }
  };
  Counts sums;
  run_segment_pipeline<Block>(plan, segments, work, [&](Block& block) {
    for (std::size_t n = 0; n < kOrders; ++n) {
      sums.matches[n] += block.counts.matches[n];
      sums.totals[n] += block.counts.totals[n];
    }
    sums.length += block.counts.length;
    sums.reference_length += block.counts.reference_length;
  });
  const auto& [matches, totals, length, reference_length] = sums;
  if (reference_length == 0) {
    out << "BLEU = 0, 0/0/0/0 (BP=0, ratio=0, hyp_len=0, ref_len=0)\n";
    return 1;
  }
  double precisions[kOrders], log_sum = 0;
  for (std::size_t n = 0; n < kOrders; ++n) {
    precisions[n] = totals[n] > 0 ? static_cast<double>(matches[n]) / static_cast<double>(totals[n]) : 0;
    log_sum += precisions[n] > 0 ? std::log(precisions[n]) : -9999999999.0;
  }
  const double ratio = static_cast<double>(length) / static_cast<double>(reference_length);
  double penalty = 1;
  if (length < reference_length)
    penalty = length > 0 ? std::exp(1 - static_cast<double>(reference_length) / static_cast<double>(length)) : 0;
  out << "BLEU = " << format_fixed(100 * (penalty * std::exp(log_sum / 4)), 2) << ", ";
  for (std::size_t n = 0; n < kOrders; ++n) out << (n > 0 ? "/" : "") << format_fixed(100 * precisions[n], 1);
  out << " (BP=" << format_fixed(penalty, 3) << ", ratio=" << format_fixed(ratio, 3) << ", hyp_len=" << length
      << ", ref_len=" << reference_length << ")\n";
  return 0;
}

}  // namespace heed
