#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "heed/base/log.h"
#include "heed/base/terminal.h"
#include "heed/config/command_line.h"
#include "heed/optim/optimizer.h"
#include "heed/run/terminal_options.h"

namespace heed {

/// The ways to pool the values of the pairs: with equal weights, with a kernel of a given bandwidth, or with a Gaussian
/// kernel whose bandwidth is learned; `all` stands for all of them.
enum class PoolingChoice { average, gaussian, boxcar, triangular, epanechnikov, learned, all };
/// What the tool writes to its output: the predictions as numbers, or a picture drawn with characters.
enum class RegressionFormat { tsv, plot, heatmap };

template <>
struct EnumNames<PoolingChoice> {
  static constexpr std::pair<PoolingChoice, std::string_view> values[] = {{PoolingChoice::average, "average"},
                                                                          {PoolingChoice::gaussian, "gaussian"},
                                                                          {PoolingChoice::boxcar, "boxcar"},
                                                                          {PoolingChoice::triangular, "triangular"},
                                                                          {PoolingChoice::epanechnikov, "epanechnikov"},
                                                                          {PoolingChoice::learned, "learned"},
                                                                          {PoolingChoice::all, "all"}};
};

template <>
struct EnumNames<RegressionFormat> {
  static constexpr std::pair<RegressionFormat, std::string_view> values[] = {
      {RegressionFormat::tsv, "tsv"}, {RegressionFormat::plot, "plot"}, {RegressionFormat::heatmap, "heatmap"}};
};

/// The options of the program `kernel-regression`.
struct KernelRegressionOptions {
  KernelRegressionOptions() { optimisation.lr_schedule = ScheduleKind::constant; }

  std::string input = "-", output = "-";
  bool make = false;
  int points = 50;
  double noise = 0.5;
  std::uint64_t seed = 1;
  std::string pairs_output;
  std::string queries;
  std::optional<double> from = {}, to = {};
  int steps = 50;
  bool header = false;
  std::vector<PoolingChoice> pooling = {PoolingChoice::gaussian};
  double bandwidth = 1;
  std::int64_t epochs = 200;
  OptimizerOptions optimisation;
  std::vector<RegressionFormat> format;
  std::string plot, heatmap;
  TerminalOptions terminal;
  CommonOptions common;
  std::vector<std::string> given;  ///< names of the options that the user has given

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Input and output");
    visit(input, {.name = "input",
                  .help = "read pairs, lines x TAB y, from FILE",
                  .value = "FILE",
                  .file = FileUse::read,
                  .letter = 'i'});
    visit(make,
          {.name = "make", .help = "make pairs y = 2 sin(x) + x^0.8 + noise, 0 <= x < 5, instead of reading them"});
    visit(points, {.name = "points", .help = "number of pairs that --make makes", .value = "N", .min = 1, .max = 1e7});
    visit(noise,
          {.name = "noise", .help = "standard deviation of the noise of --make", .value = "X", .min = 0, .max = 1e6});
    visit(seed, {.name = "seed", .help = "number that chooses the random numbers of --make", .value = "N"});
    visit(pairs_output,
          {.name = "pairs-output", .help = "write the pairs to FILE too", .value = "FILE", .file = FileUse::written});
    visit(queries, {.name = "queries",
                    .help = "predict for the numbers in FILE, one on each line (if not given: for the x of each pair)",
                    .value = "FILE",
                    .file = FileUse::read});
    visit(from,
          {.name = "from", .help = "predict for evenly spaced x from X (the smallest x of the pairs)", .value = "X"});
    visit(to, {.name = "to", .help = "predict for evenly spaced x to X (the largest x of the pairs)", .value = "X"});
    visit(steps, {.name = "steps", .help = "number of evenly spaced x", .value = "N", .min = 1, .max = 1e7});
    visit(output, {.name = "output",
                   .help = "write to FILE, which appears when it is complete",
                   .value = "FILE",
                   .file = FileUse::written,
                   .letter = 'o'});
    visit(header, {.name = "header", .help = "write the names of the columns as the first line"});
    visit.section("Pooling");
    visit(pooling, {.name = "pooling", .help = "how to weigh the pairs; several give a column each", .letter = 'p'});
    visit(bandwidth, {.name = "bandwidth",
                      .help = "distance at which u = 1 in the kernel K(u); for learned, the bandwidth to start from",
                      .value = "X",
                      .min = 1e-150,
                      .max = 1e150});
    visit.section("Learning the bandwidth");
    visit(epochs,
          {.name = "epochs", .help = "number of updates; each uses all pairs", .value = "N", .min = 0, .max = 1e9});
    visit(optimisation.optimizer, {.name = "optimizer", .help = "algorithm that updates w = 1 / bandwidth"});
    visit(optimisation.optimizer_params,
          {.name = "optimizer-params",
           .help = "adam and adamw: beta1 beta2 epsilon (0.9 0.98 1e-9); sgd: momentum (0)",
           .value = "X",
           .min = 0,
           .max = 1});
    visit(optimisation.learn_rate, {.name = "learn-rate",
                                    .help = "learning rate (0.1 / bandwidth; for sgd 0.5 / bandwidth^2)",
                                    .value = "X",
                                    .letter = 'l',
                                    .min = 0});
    visit(optimisation.lr_schedule, {.name = "lr-schedule", .help = "course of the learning rate"});
    visit.section("Presentation");
    visit(format, {.name = "format",
                   .help = "what to write (if not given: plot and heatmap on a terminal, tsv elsewhere)",
                   .letter = 'f'});
    visit(plot, {.name = "plot",
                 .help = "draw the predictions and the pairs as FILE (.svg or .png)",
                 .value = "FILE",
                 .file = FileUse::written});
    visit(heatmap, {.name = "heatmap",
                    .help = "draw the attention weights as FILE (.svg or .png)",
                    .value = "FILE",
                    .file = FileUse::written});
    terminal.fields(visit);
    common.fields(visit);
  }
};

ToolInfo kernel_regression_tool_info();

/// Runs the program `kernel-regression`: predicts y for each query x from pairs (x, y) by attention pooling.
/// `environment` describes the terminal, if any, that `out` is connected to, and `columns` is the width of the
/// terminal. Returns the exit code.
int run_kernel_regression(const KernelRegressionOptions& options, const TerminalEnvironment& environment, int columns,
                          std::istream& in, std::ostream& out, Log& log);

}  // namespace heed
