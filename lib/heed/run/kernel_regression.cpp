#include "heed/run/kernel_regression.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"
#include "heed/base/line_io.h"
#include "heed/base/number_text.h"
#include "heed/base/streams.h"
#include "heed/inspect/attention_picture.h"
#include "heed/inspect/terminal_heatmap.h"
#include "heed/inspect/terminal_plot.h"
#include "heed/nn/kernel_pooling.h"
#include "heed/run/kernel_data.h"
#include "heed/run/kernel_pictures.h"
#include "heed/run/kernel_width.h"
#include "heed/run/peer_options.h"

namespace heed {
namespace {

// The largest number of rows and columns of a map of the weights, in a picture and on a terminal.
constexpr std::size_t kMostInPicture = 100, kMostRowsOnTerminal = 25;
// The width of the labels at the left of a map on a terminal, with the space behind them.
constexpr int kTerminalLabels = 10;
// The number of queries for the pairs of --make, as in the textbook.
constexpr int kExampleQueries = 50;

using fields_detail::show_real;

/// Returns a number with few digits, for titles and messages.
std::string short_text(double value) {
  return number_text("%.4g", value);
}

std::vector<PoolingChoice> choices(const std::vector<PoolingChoice>& pooling) {
  std::vector<PoolingChoice> out;
  for (const PoolingChoice choice : pooling) {
    if (choice == PoolingChoice::all) {
      if (pooling.size() > 1) throw UsageError("--pooling all: leave out the other names");
      for (const auto& [value, name] : EnumNames<PoolingChoice>::values)
        if (value != PoolingChoice::all) out.push_back(value);
      continue;
    }
    if (std::find(out.begin(), out.end(), choice) != out.end())
      throw UsageError("--pooling: " + std::string(enum_name(choice)) + " is given twice");
    out.push_back(choice);
  }
  if (out.empty()) throw UsageError("--pooling: takes at least one name");
  return out;
}

PoolingKernel kernel_of(PoolingChoice choice) {
  switch (choice) {
    case PoolingChoice::average:
      return PoolingKernel::constant;
    case PoolingChoice::boxcar:
      return PoolingKernel::boxcar;
    case PoolingChoice::triangular:
      return PoolingKernel::triangular;
    case PoolingChoice::epanechnikov:
      return PoolingKernel::epanechnikov;
    case PoolingChoice::gaussian:
    case PoolingChoice::learned:
    case PoolingChoice::all:
      break;
  }
  return PoolingKernel::gaussian;
}

std::string title_of(PoolingChoice choice, double bandwidth) {
  if (choice == PoolingChoice::average) return "average";
  const std::string name = choice == PoolingChoice::learned || choice == PoolingChoice::gaussian
                               ? "Gaussian"
                               : std::string(enum_name(choice));
  return name + ", " + (choice == PoolingChoice::learned ? "learned " : "") + "bandwidth " + short_text(bandwidth);
}

class RegressionRun {
 public:
  RegressionRun(const KernelRegressionOptions& options, const TerminalEnvironment& environment, int columns,
                std::istream& in, std::ostream& out, Log& log)
      : options_(options),
        environment_(environment),
        in_(in),
        out_(out),
        log_(log),
        width_(options.terminal.width.value_or(columns)),
        choices_(choices(options.pooling)),
        format_(options.format) {
    using enum RegressionFormat;
    if (format_.empty()) format_ = environment.terminal ? std::vector{plot, heatmap} : std::vector{tsv};
    check_options();
  }

  int run() {
    pairs_ = options_.make
                 ? make_example_pairs(static_cast<std::size_t>(options_.points), options_.noise, options_.seed)
                 : read();
    if (!options_.pairs_output.empty()) write_pairs();
    for (const PoolingChoice choice : choices_) add_pooling(choice);
    const bool tsv = shows(RegressionFormat::tsv);
    if (tsv && options_.header) out_ << header() << '\n';
    predict(tsv);
    report_missing();
    if (shows(RegressionFormat::plot)) out_ << terminal_plot(plot(), {options_.terminal.shading(environment_), width_});
    if (shows(RegressionFormat::heatmap)) {
      if (shows(RegressionFormat::plot)) out_ << '\n';
      const auto columns = static_cast<std::size_t>(std::max(1, (width_ - kTerminalLabels) / 2));
      out_ << terminal_heatmap(weight_maps(pairs_, asked_, poolings_, kMostRowsOnTerminal, columns),
                               {options_.terminal.shading(environment_), width_});
    }
    if (!options_.plot.empty()) write_plot(options_.plot, plot());
    if (!options_.heatmap.empty()) write_heatmap();
    return 0;
  }

 private:
  bool given(std::string_view name) const { return is_given(options_.given, name); }
  bool chosen(PoolingChoice choice) const {
    return std::find(choices_.begin(), choices_.end(), choice) != choices_.end();
  }
  bool shows(RegressionFormat format) const {
    return std::find(format_.begin(), format_.end(), format) != format_.end();
  }
  bool draws() const {
    return shows(RegressionFormat::plot) || shows(RegressionFormat::heatmap) || !options_.plot.empty() ||
           !options_.heatmap.empty();
  }

  /// Throws UsageError when options contradict each other.
  void check_options() const {
    const auto refuse = [&](bool useless, std::initializer_list<const char*> names, const std::string& why) {
      for (const char* const name : names)
        if (useless && given(name)) throw UsageError("--" + std::string(name) + ": has no use " + why);
    };
    refuse(!options_.make, {"points", "noise", "seed"}, "without --make");
    refuse(options_.make, {"input"}, "with --make (leave one of them out)");
    refuse(!options_.queries.empty(), {"from", "to", "steps"}, "with --queries (leave one of them out)");
    refuse(!chosen(PoolingChoice::learned), {"epochs", "optimizer", "optimizer-params", "learn-rate", "lr-schedule"},
           "without --pooling learned");
    refuse(choices_ == std::vector{PoolingChoice::average}, {"bandwidth"}, "with --pooling average");
    refuse(!shows(RegressionFormat::tsv), {"header"}, "without --format tsv");
    refuse(!shows(RegressionFormat::plot) && !shows(RegressionFormat::heatmap), {"width", "ascii", "color"},
           "without --format plot or heatmap");
    if (!options_.make) check_standard_input({tool_input(options_.input), {"--queries", options_.queries}});
    for (const double limit : {options_.from.value_or(0), options_.to.value_or(0)})
      if (std::abs(limit) > kLargestKey) throw UsageError("--from and --to: must be between -1e150 and 1e150");
    if (options_.from && options_.to && *options_.from > *options_.to)
      throw UsageError("--from " + show_real(*options_.from) + " is above --to " + show_real(*options_.to) +
                       " (exchange them)");
    if (options_.make && options_.points < 2 && chosen(PoolingChoice::learned))
      throw UsageError("--points 1: learning the bandwidth needs at least 2 pairs");
    options_.optimisation.validate();
    options_.terminal.validate();
    check_picture("--plot", options_.plot);
    check_picture("--heatmap", options_.heatmap);
    if (has_ending(options_.output, ".svg") || has_ending(options_.output, ".png"))
      throw UsageError("-o " + options_.output +
                       ": the output is text (--plot FILE draws the predictions, --heatmap FILE the weights)");
  }

  NumberPairs read() {
    LineReader reader = open(options_.input);
    NumberPairs pairs = read_pairs(reader);
    reader.report(log_);
    if (pairs.size() < 2 && chosen(PoolingChoice::learned))
      throw Error(Position{reader.name()},
                  "has one pair, but learning the bandwidth needs at least 2 (--pooling gaussian needs one)");
    return pairs;
  }

  /// Opens an input of numbers. Bytes that are not UTF-8 stay as they are: no number has such bytes.
  LineReader open(const std::string& path) { return open_lines(path, in_, InvalidUtf8::keep); }

  void write_pairs() const {
    OutputFile file(options_.pairs_output);
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      file.stream() << show_real(pairs_.x[i]) << '\t' << show_real(pairs_.y[i]) << '\n';
    file.commit();
  }

  /// Adds a pooling to poolings_. For `learned`, learns the bandwidth first.
  void add_pooling(PoolingChoice choice) {
    const double w = choice == PoolingChoice::learned ? learn() : 1 / options_.bandwidth;
    poolings_.push_back(
        {std::string(enum_name(choice)), title_of(choice, 1 / w),
         [this, kernel = kernel_of(choice), w](double query, std::span<const double> keys, std::span<double> weights) {
           return kernel_weights(device_, kernel, w, query, keys, weights);
         }});
  }

  /// Returns the learned w > 0.
  double learn() {
    const double start = 1 / options_.bandwidth;
    OptimizerOptions optimisation = options_.optimisation;
    optimisation.clip_norm = 0;
    optimisation.lr_warmup = 0;
    // A learning rate in these units makes the result independent of the unit of x: the steps of Adam have the size of
    // the learning rate, and a gradient with respect to w has the unit of x.
    if (!optimisation.learn_rate)
      optimisation.learn_rate = optimisation.optimizer == OptimizerKind::sgd ? 0.5 * start * start : 0.1 * start;
    const std::vector<WidthStep> steps =
        learn_width(pairs_.x, pairs_.y, start, options_.epochs, optimisation.resolve(), log_);
    const WidthStep& first = steps.front();
    const WidthStep& last = steps.back();
    // The kernel is the same for w and -w.
    const double w = std::abs(last.w);
    log_.info("learned the bandwidth " + show_real(1 / w) + " (w = " + show_real(w) + ") in " +
              std::to_string(options_.epochs) + (options_.epochs == 1 ? " epoch" : " epochs") +
              "; leave-one-out loss " + short_text(first.loss) + " -> " + short_text(last.loss));
    if (last.loss > first.loss)
      log_.warn(
          "the loss of the learned bandwidth is larger than that of the first one (a smaller --learn-rate helps)");
    return w;
  }

  std::string header() const {
    std::string text = "x";
    for (const Pooling& pooling : poolings_) text += '\t' + pooling.name;
    return options_.make ? text + "\ttruth" : text;
  }

  /// Predicts for all queries, and writes the predictions if `write`. Keeps the queries for pictures. Shows the
  /// progress, unless the output goes to a terminal.
  void predict(bool write) {
    missing_.resize(poolings_.size());
    sorted_x_ = pairs_.x;
    std::ranges::sort(sorted_x_);
    std::optional<LineReader> reader;
    if (!options_.queries.empty()) reader.emplace(open(options_.queries));
    const bool on_grid = given("from") || given("to") || given("steps");
    const std::int64_t total = on_grid ? options_.steps : options_.make ? kExampleQueries : std::ssize(pairs_.x);
    std::int64_t done = 0;
    Progress progress(log_, "predicting", "queries", [&] {
      return reader ? reader->share() : std::optional(static_cast<double>(done) / static_cast<double>(total));
    });
    const auto answer = [&](double query) {
      if (draws()) asked_.push_back(query);
      count_missing(query);
      if (write) out_ << line(query) << '\n';
      ++done;
      if (!environment_.terminal) progress.to(done);
    };
    if (reader) {
      while (const auto query = read_number(*reader)) {
        answer(*query);
        if (write && !reader->ready()) out_.flush();
      }
      reader->report(log_);
    } else if (on_grid) {
      const auto [low, high] = std::minmax_element(pairs_.x.begin(), pairs_.x.end());
      grid(options_.from.value_or(options_.make ? 0 : std::min(*low, options_.to.value_or(*low))),
           options_.to.value_or(options_.make ? kExampleEnd : std::max(*high, options_.from.value_or(*high))), answer);
    } else if (options_.make) {
      for (int i = 0; i < kExampleQueries; ++i) answer(kExampleEnd * i / kExampleQueries);
    } else {
      for (const double query : pairs_.x) answer(query);
    }
  }

  template <class Answer>
  void grid(double from, double to, const Answer& answer) const {
    for (int i = 0; i < options_.steps; ++i)
      answer(i > 0 && i + 1 == options_.steps ? to : from + (to - from) * i / std::max(1, options_.steps - 1));
  }

  /// Counts the query for those poolings that have no prediction for it. No kernel grows with the distance, so that the
  /// nearest x on either side tell whether there is a pair with a weight above 0.
  void count_missing(double query) {
    const auto above = std::ranges::lower_bound(sorted_x_, query);
    const auto begin = above == sorted_x_.begin() ? above : above - 1,
               end = above == sorted_x_.end() ? above : above + 1;
    std::array<double, 2> weights{};
    const std::span<const double> nearest(begin, end);
    for (std::size_t p = 0; p < poolings_.size(); ++p)
      if (!poolings_[p].weights(query, nearest, std::span(weights).first(nearest.size())) && missing_[p].count++ == 0)
        missing_[p].first = query;
  }

  /// Returns a line of the output: the query, the prediction of each pooling and, for made pairs, the truth.
  std::string line(double query) {
    std::string text = show_real(query);
    for (const Pooling& pooling : poolings_) text += '\t' + show_real(pooling.predict(query, pairs_, space_));
    return options_.make ? text + '\t' + show_real(example_function(query)) : text;
  }

  /// Warns of queries that have no prediction.
  void report_missing() const {
    for (std::size_t p = 0; p < poolings_.size(); ++p)
      if (missing_[p].count > 0)
        log_.warn(poolings_[p].name + ": " + format_count(missing_[p].count) +
                  (missing_[p].count == 1 ? " query has" : " queries have") +
                  " no pair within the bandwidth, first x = " + show_real(missing_[p].first) +
                  "; the prediction is nan (a larger --bandwidth helps)");
  }

  Plot plot() const { return fit_plot(pairs_, asked_, poolings_, options_.make); }

  void write_heatmap() const {
    const std::vector<AttentionSection> sections{
        {"Attention weights", weight_maps(pairs_, asked_, poolings_, kMostInPicture, kMostInPicture)}};
    OutputFile file(options_.heatmap);
    file.stream() << (has_ending(options_.heatmap, ".png") ? attention_png(sections) : attention_svg(sections));
    file.commit();
  }

  /// The number of queries without a prediction, and the first of them.
  struct Missing {
    std::int64_t count = 0;
    double first = 0;
  };

  const KernelRegressionOptions& options_;
  const TerminalEnvironment& environment_;
  std::istream& in_;
  std::ostream& out_;
  Log& log_;
  int width_;
  std::vector<PoolingChoice> choices_;
  std::vector<RegressionFormat> format_;
  Arena arena_;
  CpuContext device_{arena_};
  NumberPairs pairs_;
  std::vector<Pooling> poolings_;
  std::vector<double> asked_, sorted_x_, space_;
  std::vector<Missing> missing_;
};

}  // namespace

int run_kernel_regression(const KernelRegressionOptions& options, const TerminalEnvironment& environment, int columns,
                          std::istream& in, std::ostream& out, Log& log) {
  // A wrong value of the environment variable HEED_ISA is reported by this call, before anything is read.
  static_cast<void>(instruction_set());
  return RegressionRun(options, environment, columns, in, out, log).run();
}

ToolInfo kernel_regression_tool_info() {
  return {
      .name = "kernel-regression",
      .purpose = "predict numbers by attention pooling (Nadaraya-Watson kernel regression)",
      .usage = {"kernel-regression [options] < pairs.tsv", "kernel-regression --make [options]"},
      .examples = {"kernel-regression --make -p average gaussian learned",
                   "kernel-regression --bandwidth 0.5 --from 0 --to 10 --steps 101 < pairs.tsv > predictions.tsv",
                   "kernel-regression -p learned --plot fit.svg --heatmap weights.png < pairs.tsv > predictions.tsv"},
      .peers = kernel_regression_peer_options()};
}

}  // namespace heed
