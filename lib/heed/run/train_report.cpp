#include "heed/run/train_report.h"

#include <cmath>
#include <cstdio>

#include "heed/cost/training_cost.h"
#include "heed/data/corpus_statistics.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/run/device_choice.h"
#include "heed/train/model_files.h"

namespace heed {
namespace {

/// The number of updates in the speed measurement of --check.
constexpr int kUpdates = 20;

template <class... Arguments>
std::string text(const char* format, Arguments... arguments) {
  char out[512];
  std::snprintf(out, sizeof out, format, arguments...);
  return out;
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return text("%.2f %%", whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
}

/// Writes lines "label   value". A mark "!" at the beginning of a line draws the user's attention.
class Table {
 public:
  explicit Table(std::ostream& out) : out_(out) {}
  void line(const std::string& label, const std::string& value, bool look = false) {
    constexpr std::size_t kColumn = 28;
    out_ << (look ? "! " : "  ") << label << std::string(kColumn - std::min(kColumn - 1, label.size()), ' ') << value
         << '\n';
  }
  void count(const std::string& label, std::int64_t count, std::int64_t whole, std::int64_t first_line) {
    line(label,
         format_count(count) +
             (count > 0 ? " (" + percent(count, whole) + "), the first in line " + format_count(first_line) : ""),
         count > 0);
  }

 private:
  std::ostream& out_;
};

std::string lengths(const LengthStatistics& statistics) {
  return text("mean %.1f, median %d, 99 %% at most %d, longest %d", statistics.mean, statistics.median,
              statistics.percentile99, statistics.longest);
}

void print_data(TrainSession& session, Table& table) {
  const CorpusReport& report = session.text().report();
  const ParallelCorpus& pairs = session.text().corpus().present();
  const CorpusStatistics statistics = corpus_statistics(pairs, session.one_vocabulary());
  table.line("pairs read", format_count(report.pairs));
  table.line("lines with invalid UTF-8",
             format_count(report.invalid_lines) +
                 (report.invalid_lines > 0 ? ", the first is line " + format_count(report.first_invalid_line) : ""),
             report.invalid_lines > 0);
  table.count("with an empty side", report.empty, report.pairs, report.first_empty.line);
  table.count("longer than the limit", report.too_long, report.pairs, report.first_too_long.line);
  table.line("pairs to train on", format_count(session.text().corpus().pairs()));
  if (session.text().corpus().windows() > 1)
    table.line("pairs examined", format_count(pairs.size()) + ", one window of --shuffle-window");
  table.count("duplicates", statistics.duplicates, pairs.size(), statistics.first_duplicate_line);
  if (session.one_vocabulary())
    table.count("target equals source", statistics.copies, pairs.size(), statistics.first_copy_line);
  // The source of an image is its path, whose length says nothing.
  const bool images = session.reads_images();
  if (!images) {
    table.count("one side 3 times longer", statistics.ratio_outliers, pairs.size(),
                statistics.first_ratio_outlier_line);
    table.line("source tokens a pair", lengths(statistics.source));
  }
  if (session.classifies())
    table.line("labels", format_count(session.model().target_vocabulary()));
  else
    table.line("target tokens a pair", lengths(statistics.target));
  const auto pieces = [&](const char* label, std::int64_t count, std::int64_t words, std::int64_t unknown) {
    table.line(label,
               text("%.2f a word; unknown: ",
                    static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(1, words))) +
                   format_count(unknown) + " (" + percent(unknown, count) + ")",
               100 * unknown > count);
  };
  if (!images) pieces("source pieces", report.source_pieces, report.source_words, report.source_unknown);
  if (!session.classifies()) pieces("target pieces", report.target_pieces, report.target_words, report.target_unknown);
  if (session.validator()) {
    const ParallelCorpus& held_out = session.text().valid_corpus();
    const std::int64_t overlap = count_overlap(pairs, held_out);
    table.line("validation pairs",
               format_count(held_out.size()) + ", of them in the training text: " + format_count(overlap), overlap > 0);
  }
}

void print_learning_rate(TrainSession& session, Table& table) {
  const Schedule& schedule = session.optimizer().schedule;
  table.line("until", session.options().run.after + ", about " + format_count(std::llround(session.planned_updates())) +
                          " updates");
  table.line("learning rate", text("%.3g at its peak, after ", schedule.peak) + format_count(schedule.warmup) +
                                  " updates, then " + std::string(enum_name(schedule.kind)));
}

void print_clusters(const std::vector<ClusterCost>& costs, Table& table) {
  double one = 0;
  for (const ClusterCost& cost : costs) {
    const std::string nodes = std::to_string(cost.nodes);
    if (cost.nodes == 1) {
      one = cost.speed;
      table.line("1 machine", format_count(std::llround(one)) + " target tokens/s");
      continue;
    }
    const auto speed = [&](double tokens, double network_share) {
      return format_count(std::llround(tokens)) +
             text(" (%.0f %% of %d times the speed of one; %.0f %% of the time spent on the network)",
                  100 * tokens / (cost.nodes * one), cost.nodes, 100 * network_share);
    };
    table.line(nodes + " machines", speed(cost.speed, cost.network_share));
    table.line("  batches " + nodes + " times as large", speed(cost.weak_speed, cost.weak_network_share));
  }
  table.line("each sends in an update", text("%.1f MB", costs.back().sent_bytes / 1e6));
}

void print_cost(TrainSession& session, Table& table) {
  TrainingWork work = session.work(session.optimizer());
  if (!session.options().cluster.empty()) work.cluster = Cluster::parse("--cluster", session.options().cluster);
  const TrainingCost cost = training_cost(work);
  if (cost.parts.empty()) return;
  table.line(session.ranks().size() > 1 ? "speed of one rank" : "speed expected",
             format_count(std::llround(cost.tokens_per_second())) + " target tokens/s, of which:");
  const double tokens = static_cast<double>(cost.target_tokens);
  const double seconds = cost.seconds * (session.gpu() ? 1 : session.threads());
  for (const CostPart& part : cost.parts) table.line("  " + part.name, describe(part, seconds, tokens, "target token"));
  if (!cost.clusters.empty()) print_clusters(cost.clusters, table);
}

}  // namespace

std::string describe_model(TrainSession& session) {
  const std::string model = describe(session.model().config(), session.model().layout().parameter_count()) + ", " +
                            (session.precision() == Precision::bfloat16 ? "bfloat16" : "float32") + " on ";
  const int ranks = session.ranks().size();
  const std::string processor = processor_name(session.gpu());
  if (session.gpu() && ranks == 1) return model + "cuda:" + std::to_string(*session.gpu()) + " (" + processor + ")";
  if (session.gpu())
    return model + std::to_string(ranks) + " ranks with GPUs (" + processor + "), whose gradients are added up by " +
           session.gradient_sum();
  return model + (ranks > 1 ? std::to_string(ranks) + " ranks of " : "") + std::to_string(session.threads()) +
         (session.threads() == 1 ? " thread" : " threads") + " with " + processor + " and " + gemm_library();
}

void print_plan(TrainSession& session, std::ostream& out) {
  Reporter nowhere(LogFormat::text, out, session.log());
  Trainer trainer = session.make_trainer(nowhere);
  const TrainOptions& options = session.options();
  Table table(out);
  const TrainingState& state = session.run().state;
  const bool is_finished = trainer.already_finished();
  session.take_changes(is_finished);
  table.line("model", describe_model(session));
  table.line("training pairs", format_count(session.text().corpus().pairs()) + ", " +
                                   format_count(session.epoch_tokens()) + " target tokens");
  table.line("batches an epoch", format_count(session.epoch_batches()));
  if (session.validator()) table.line("validation pairs", format_count(session.text().valid_corpus().size()));
  print_learning_rate(session, table);
  table.line("state", state.updates == 0 ? "from the beginning"
                      : is_finished      ? "finished after update " + format_count(state.updates)
                                         : "goes on after update " + format_count(state.updates));
  std::string files = options.model;
  if (options.run.keep_best)
    for (const Metric metric : options.run.valid_metrics)
      files += ", " + model_file_variant(options.model, "best-" + std::string(enum_name(metric)));
  if (options.run.keep_last > 0 || options.run.average_last > 0)
    files += ", " + model_file_variant(options.model, "update-N");
  if (!options.run.plot.empty()) files += ", " + options.run.plot;
  table.line("files", files);
  out.flush();
  print_cost(session, table);
}

void print_check(TrainSession& session, Log& log, std::ostream& out) {
  Reporter nowhere(LogFormat::text, out, log);
  Trainer trainer = session.make_trainer(nowhere);
  Table table(out);
  print_data(session, table);
  out.flush();
  table.line("model", describe_model(session));
  out.flush();
  const Trainer::Trial trial = trainer.try_updates(kUpdates);
  const double speed = trial.tokens_per_second;
  table.line("batches an epoch", format_count(session.epoch_batches()));
  print_learning_rate(session, table);
  table.line("memory", text("%.1f MB", static_cast<double>(session.memory()) / 1e6));
  table.line("speed",
             format_count(std::llround(speed)) + " target tokens/s, over " + std::to_string(kUpdates) + " updates");
  if (trial.not_finite > 0)
    table.line("updates not finite",
               format_count(trial.not_finite) + " of " + format_count(trial.updates) + " (lower --learn-rate)", true);
  const TrainingLength after("--after", session.options().run.after);
  const double epoch_seconds = static_cast<double>(session.epoch_tokens()) / speed;
  const double seconds = after.unit() == TrainingLength::Unit::hours
                             ? after.count() * 3600
                             : session.planned_updates() / static_cast<double>(session.epoch_updates()) * epoch_seconds;
  table.line("time for an epoch", format_duration(epoch_seconds));
  table.line("time until " + session.options().run.after, format_duration(seconds) + ", without validation");
}

}  // namespace heed
