#include "heed/train/reporter.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "heed/base/number_text.h"

namespace heed {
namespace {

/// The columns of the TSV training log that hold measurements. Before these columns come event, update, epoch,
/// target_tokens and seconds; after these columns comes text.
constexpr std::string_view kColumns[] = {
    "loss",       "cross_entropy", "accuracy",  "learning_rate", "gradient_norm", "tokens_per_second", "ce-mean-words",
    "perplexity", "bleu",          "alignment", "exact",         "evalb",         "valid-accuracy",    "chrf"};

/// Returns the name of a metric of validations in the records. The accuracy of an update's tokens, a share, has the
/// name "accuracy" there.
std::string record_name(Metric metric) {
  return (metric == Metric::accuracy ? "valid-" : "") + std::string(enum_name(metric));
}

/// Returns the shortest decimal number that is read back as exactly `value`.
std::string exact(double value) {
  return fields_detail::show_real(value);
}

std::string line_of(const UpdateReport& report) {
  std::string out = "epoch " + number_text("%.2f", report.progress.epochs) + "  update " +
                    format_count(report.progress.updates) + "  loss " + number_text("%.3f", report.loss) +
                    "  perplexity " + number_text("%.4g", std::exp(report.cross_entropy)) + "  accuracy " +
                    number_text("%.1f %%", 100 * report.accuracy) + "  rate " +
                    number_text("%.2e", report.learning_rate) + "  norm " + number_text("%.2f", report.gradient_norm) +
                    "  " + format_count(std::llround(report.tokens_per_second)) + " tokens/s";
  if (report.alignment) out += "  alignment " + number_text("%.3f", *report.alignment);
  if (report.seconds_left >= 0) out += "  " + format_duration(report.seconds_left) + " left";
  return out;
}

}  // namespace

std::string format_score(Metric metric, double score) {
  switch (metric) {
    case Metric::bleu:
    case Metric::chrf:
    case Metric::ter:
    case Metric::exact:
    case Metric::evalb:
    case Metric::accuracy:
      return number_text("%.2f", score);
    case Metric::perplexity:
      return number_text("%.4g", score);
    case Metric::ce_mean_words:
      return number_text("%.4f", score);
  }
  throw Error("internal: unknown metric");
}

void Reporter::update(const UpdateReport& report) {
  if (format_ == LogFormat::text) {
    log_.plain(line_of(report));
    return;
  }
  Values values = {{"loss", report.loss},
                   {"cross_entropy", report.cross_entropy},
                   {"accuracy", report.accuracy},
                   {"learning_rate", report.learning_rate},
                   {"gradient_norm", report.gradient_norm},
                   {"tokens_per_second", report.tokens_per_second}};
  if (report.alignment) values.emplace_back("alignment", *report.alignment);
  record(report.progress, "update", values, "");
}

void Reporter::status(const UpdateReport& report) {
  StatusLine line{"", report.share, {}};
  line.fields = {{"epoch " + number_text("%.2f", report.progress.epochs), 3},
                 {"perplexity " + number_text("%.4g", std::exp(report.cross_entropy)), 2},
                 {format_count(std::llround(report.tokens_per_second)) + " tokens/s", 4}};
  if (report.seconds_left >= 0) line.fields.push_back({format_duration(report.seconds_left) + " left", 1});
  log_.status(line);
}

void Reporter::validation(const TrainingProgress& progress, const std::vector<Metric>& metrics,
                          const std::vector<double>& scores, const std::vector<bool>& better, double seconds) {
  Values values;
  std::string line;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    values.emplace_back(record_name(metrics[i]), scores[i]);
    line += (i == 0 ? "" : "  ") + std::string(enum_name(metrics[i])) + " " + format_score(metrics[i], scores[i]) +
            (better[i] ? " (best)" : "");
  }
  if (format_ == LogFormat::text) {
    log_.plain("validation after update " + format_count(progress.updates) + ":  " + line + "  in " +
               format_duration(seconds));
    return;
  }
  record(progress, "validation", values, "");
}

void Reporter::event(const TrainingProgress& progress, const std::string& name, const std::string& text, bool detail) {
  if (format_ == LogFormat::text) {
    detail ? log_.detail(text) : log_.info(text);
  } else {
    record(progress, name, {}, text);
  }
}

void Reporter::record(const TrainingProgress& progress, const std::string& event, const Values& values,
                      const std::string& text) {
  if (format_ == LogFormat::jsonl) {
    nlohmann::ordered_json line = {{"event", event},
                                   {"update", progress.updates},
                                   {"epoch", progress.epochs},
                                   {"target_tokens", progress.target_tokens},
                                   {"seconds", progress.seconds}};
    for (const auto& [name, value] : values) line[name] = value;
    if (!text.empty()) line["text"] = text;
    out_ << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n' << std::flush;
    return;
  }
  if (!header_written_) {
    out_ << "event\tupdate\tepoch\ttarget_tokens\tseconds";
    for (const std::string_view column : kColumns) out_ << '\t' << column;
    out_ << "\ttext\n";
    header_written_ = true;
  }
  out_ << event << '\t' << progress.updates << '\t' << exact(progress.epochs) << '\t' << progress.target_tokens << '\t'
       << number_text("%.3f", progress.seconds);
  std::size_t written = 0;
  for (const std::string_view column : kColumns) {
    out_ << '\t';
    const auto found = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == column; });
    if (found == values.end()) continue;
    out_ << exact(found->second);
    ++written;
  }
  if (written != values.size()) throw Error("internal: a measurement without a column in the training log");
  std::string cell = text;
  std::replace_if(
      cell.begin(), cell.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
  out_ << '\t' << cell << '\n' << std::flush;
}

}  // namespace heed
