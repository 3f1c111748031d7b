#include "heed/run/kernel_regression.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "heed/base/error.h"
#include "heed/base/utf8.h"
#include "heed/run/kernel_data.h"
#include "heed/run/kernel_pictures.h"
#include "heed/run/kernel_width.h"
#include "scratch_folder.h"

using namespace heed;
using doctest::Approx;
namespace fs = std::filesystem;

namespace {

constexpr const char* kTwoPairs = "0\t1\n2\t5\n";

struct Regression {
  std::string out, messages;
};

/// Runs the tool with these words as its command line and `input` as standard input, for a pipe or a terminal.
Regression run(const std::vector<std::string>& words, const std::string& input,
               const TerminalEnvironment& environment = {}) {
  KernelRegressionOptions options;
  FieldList fields = FieldList::of(options);
  std::istringstream in(input);
  std::ostringstream out, messages;
  const bool parsed = parse_command_line(kernel_regression_tool_info(), fields, words, out);
  CHECK(parsed);
  options.given = fields.given();
  Log log(messages, "kernel-regression", options.common.quiet ? Verbosity::quiet : Verbosity::normal);
  const int code = run_kernel_regression(options, environment, 80, in, out, log);
  CHECK(code == 0);
  return {out.str(), messages.str()};
}

std::string output(const std::vector<std::string>& words, const std::string& input) {
  return run(words, input).out;
}

template <class E>
std::string regression_complaint(const std::vector<std::string>& words, const std::string& input = kTwoPairs) {
  try {
    return "none; " + output(words, input);
  } catch (const UsageError& error) {
    CHECK((std::is_same_v<E, UsageError>));
    return error.what();
  } catch (const Error& error) {
    CHECK((std::is_same_v<E, Error>));
    return error.what();
  }
}

std::vector<std::vector<double>> table(const std::string& tsv) {
  std::vector<std::vector<double>> rows;
  std::istringstream lines(tsv);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, '\t');) rows.back().push_back(std::stod(cell));
  }
  return rows;
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("kernel-regression: two pairs by hand; one line for each pair, in the order of the input") {
  const auto rows = table(output({}, "2\t5\n0\t1\n"));
  REQUIRE(rows.size() == 2);
  CHECK((rows[0][0] == 2 && rows[1][0] == 0));
  CHECK(rows[0][1] == Approx(4.5231883119115297).epsilon(1e-14));
  CHECK(rows[1][1] == Approx(1.4768116880884702).epsilon(1e-14));
  CHECK(output({"-p", "average"}, kTwoPairs) == "0\t3\n2\t3\n");
  CHECK(output({"-p", "boxcar", "average", "--bandwidth", "3", "--header"}, kTwoPairs) ==
        "x\tboxcar\taverage\n0\t3\t3\n2\t3\t3\n");
  CHECK(output({"--from", "1", "--to", "1", "--steps", "1"}, kTwoPairs) == "1\t3\n");
  CHECK(output({"-p", "average"}, "+1 \t 2e0\r\n") == "1\t2\n");
}

TEST_CASE("kernel-regression: queries from a file or evenly spaced; numbers read back as they are") {
  const ScratchFolder folder;
  CHECK(output({"-p", "average", "--queries", folder.file("q", "0.1\n1e-7\n-3\n")}, kTwoPairs) ==
        "0.1\t3\n1e-07\t3\n-3\t3\n");
  const auto rows = table(output({"--from", "0", "--to", "5", "--steps", "51"}, kTwoPairs));
  REQUIRE(rows.size() == 51);
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(rows[i][0] == static_cast<double>(i) / 10);
  CHECK(table(output({"--steps", "3"}, "4\t1\n1\t2\n")) ==
        table(output({"--from", "1", "--to", "4", "--steps", "3"}, "4\t1\n1\t2\n")));
  CHECK(output({"-p", "average", "--from", "7", "--steps", "2"}, kTwoPairs) == "7\t3\n7\t3\n");
  CHECK(output({"-i", folder.file("pairs", kTwoPairs), "--queries", "-"}, "1\n") == "1\t3\n");
}

TEST_CASE("kernel-regression: --make is the textbook's data, the same for one seed") {
  const auto rows = table(output({"--make", "-p", "average", "--header"}, "").substr(16));
  REQUIRE(rows.size() == 50);
  for (std::size_t i = 0; i < 50; ++i) {
    CHECK(rows[i][0] == static_cast<double>(i) / 10);
    CHECK(rows[i][2] == Approx(2 * std::sin(rows[i][0]) + std::pow(rows[i][0], 0.8)));
  }
  const ScratchFolder folder;
  output({"--make", "--points", "4000", "--noise", "0.25", "--pairs-output", folder / "pairs"}, "");
  const auto pairs = table(contents(folder / "pairs"));
  REQUIRE(pairs.size() == 4000);
  double mean = 0, square = 0, x = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const double noise = pairs[i][1] - example_function(pairs[i][0]);
    mean += noise / 4000;
    square += noise * noise / 4000;
    x += pairs[i][0] / 4000;
    CHECK((pairs[i][0] >= (i > 0 ? pairs[i - 1][0] : 0) && pairs[i][0] < 5));
  }
  CHECK(std::abs(mean) < 0.02);
  CHECK(std::sqrt(square) == Approx(0.25).epsilon(0.05));
  CHECK(x == Approx(2.5).epsilon(0.03));
  // The pairs of the file give what --make itself gives.
  const std::string ours = output({"--make", "--points", "9", "--pairs-output", folder / "nine"}, "");
  const auto made = table(ours), read = table(output({"--from", "0", "--to", "4.9"}, contents(folder / "nine")));
  for (std::size_t i = 0; i < 50; ++i) CHECK(read[i][1] == Approx(made[i][1]).epsilon(1e-12));
  CHECK(output({"--make", "--points", "9"}, "") == ours);
  CHECK(output({"--make", "--points", "9", "--seed", "2"}, "") != ours);
}

TEST_CASE("the learned width follows PyTorch, step by step") {
  std::ifstream in(std::string(HEED_TEST_DATA) + "/run/reference/kernel_width.json");
  REQUIRE(in.good());
  const auto reference = nlohmann::json::parse(in);
  const auto x = reference["x"].get<std::vector<double>>(), y = reference["y"].get<std::vector<double>>();
  REQUIRE(reference["cases"].size() == 4);
  for (const auto& data : reference["cases"]) {
    CAPTURE(data["name"].get<std::string>());
    OptimizerOptions options;
    options.optimizer = data["optimizer"] == "sgd" ? OptimizerKind::sgd : OptimizerKind::adam;
    options.optimizer_params = data.value("params", std::vector<double>{});
    options.learn_rate = data["rate"].get<double>();
    options.lr_warmup = 0;
    options.lr_schedule = ScheduleKind::constant;
    options.clip_norm = 0;
    std::ostringstream messages;
    Log log(messages, "test");
    const auto steps = learn_width(x, y, data["start"].get<double>(), 25, options.resolve(), log);
    REQUIRE(steps.size() == data["steps"].size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CAPTURE(i);
      CHECK(steps[i].w == Approx(data["steps"][i][0].get<double>()).epsilon(1e-9));
      CHECK(steps[i].loss == Approx(data["steps"][i][1].get<double>()).epsilon(1e-9));
    }
  }
}

TEST_CASE("kernel-regression: learning lowers the loss, and the message gives the bandwidth to use again") {
  const ScratchFolder folder;
  const Regression learned = run({"--make", "-p", "learned", "--pairs-output", folder / "pairs"}, "");
  const std::string& said = learned.messages;
  const std::string begin = "kernel-regression: learned the bandwidth ";
  REQUIRE(said.starts_with(begin));
  CHECK(said.find(" in 200 epochs; leave-one-out loss 0.65 -> 0.2303\n") != std::string::npos);
  const std::string bandwidth = said.substr(begin.size(), said.find(' ', begin.size()) - begin.size());
  const auto again = table(output({"--make", "--bandwidth", bandwidth}, "")), first = table(learned.out);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(again[i][1] == Approx(first[i][1]).epsilon(1e-12));
  CHECK(run({"--make", "-p", "learned", "-q"}, "").messages.empty());
  // In another unit of x, everything is the same up to rounding.
  std::string scaled;
  for (const auto& pair : table(contents(folder / "pairs"))) {
    std::ostringstream line;
    line.precision(17);
    line << pair[0] * 1024 << '\t' << pair[1] << '\n';
    scaled += line.str();
  }
  for (const std::string optimizer : {"adam", "sgd"}) {
    const auto ours = table(output({"-p", "learned", "--optimizer", optimizer, "--epochs", "30", "--optimizer-params",
                                    optimizer == "sgd" ? "0.5" : "0.9"},
                                   contents(folder / "pairs")));
    const auto other = table(output({"-p", "learned", "--optimizer", optimizer, "--epochs", "30", "--optimizer-params",
                                     optimizer == "sgd" ? "0.5" : "0.9", "--bandwidth", "1024"},
                                    scaled));
    for (std::size_t i = 0; i < ours.size(); ++i) {
      CHECK(other[i][0] == ours[i][0] * 1024);
      CHECK(other[i][1] == Approx(ours[i][1]).epsilon(1e-6));
    }
  }
  CHECK(run({"-p", "learned", "-l", "100", "--epochs", "1"}, "0\t0\n1\t1\n2\t0\n3\t1\n4\t0\n")
            .messages.find("warning: the loss of the learned bandwidth is larger") != std::string::npos);
}

TEST_CASE("kernel-regression: a query beyond the kernel's reach has the prediction nan, and is counted") {
  const Regression outcome = run({"-p", "boxcar", "gaussian", "--from", "1", "--to", "9", "--steps", "3"}, kTwoPairs);
  CHECK(outcome.out.find("5\tnan\t") != std::string::npos);
  CHECK(
      outcome.messages ==
      "kernel-regression: warning: boxcar: 3 queries have no pair within the bandwidth, first x = 1; the prediction is "
      "nan (a larger --bandwidth helps)\n");
  // A picture has the same warning, and the edge of the kernel is as far from a query on either side.
  CHECK(
      run({"-p", "boxcar", "gaussian", "--from", "1", "--to", "9", "--steps", "3", "-f", "plot"}, kTwoPairs).messages ==
      outcome.messages);
  CHECK(
      run({"-p", "triangular", "epanechnikov", "--from", "-1", "--to", "3", "--steps", "5", "-f", "heatmap"}, kTwoPairs)
          .messages ==
      "kernel-regression: warning: triangular: 3 queries have no pair within the bandwidth, first x = -1; the "
      "prediction is nan (a larger --bandwidth helps)\n"
      "kernel-regression: warning: epanechnikov: 3 queries have no pair within the bandwidth, first x = -1; the "
      "prediction is nan (a larger --bandwidth helps)\n");
  CHECK(table(output({"--from", "1e6", "--to", "1e150", "--steps", "2"}, kTwoPairs)) ==
        std::vector<std::vector<double>>{{1e6, 5}, {1e150, 5}});
}

TEST_CASE("kernel-regression: bad lines are named, with the column and what to do") {
  const auto bad = [](const std::string& input) { return regression_complaint<Error>({}, input); };
  CHECK(bad("") == "standard input: has no pairs (a line is: x TAB y)");
  CHECK(bad("1\t2\n\n") == "standard input:2: this line is empty (a line is: x TAB y)");
  CHECK(bad("1\n") == "standard input:1: no TAB in this line (a line is: x TAB y)");
  CHECK(bad("1 2\n") == "standard input:1: no TAB in this line (a line is: x TAB y; tr ' ' '\\t' writes TABs)");
  CHECK(bad("1,2\n") == "standard input:1: no TAB in this line (a line is: x TAB y; tr ',' '\\t' writes TABs)");
  CHECK(bad("1\t2\t3\n") == "standard input:1:4: more than two columns (a line is: x TAB y; cut -f1,2 picks two)");
  CHECK(bad("x\ty\n1\t2\n") ==
        "standard input:1:1: 'x' is not a number (if line 1 is a header, tail -n +2 removes it)");
  CHECK(bad("1\t2\n10\t3b\n") == "standard input:2:4: '3b' is not a number (a number is written like 2, -1.5 or 3e-4)");
  CHECK(bad("1\t2,5\n") == "standard input:1:3: '2,5' is not a number (the decimal sign is a point)");
  CHECK(bad("1\tnan\n") == "standard input:1:3: 'nan' is not a finite number (leave the line out)");
  CHECK(bad("-inf\t1\n") == "standard input:1:1: '-inf' is not a finite number (leave the line out)");
  const std::string range = " is out of range (the largest size is 1e150, the smallest above 0 is 1e-307)";
  CHECK(bad("1e151\t1\n") == "standard input:1:1: '1e151'" + range);
  CHECK(bad("1\t-1e999\n") == "standard input:1:3: '-1e999'" + range);
  CHECK(bad("-1e-308\t1\n") == "standard input:1:1: '-1e-308'" + range);
  CHECK(bad("1\t1e-999\n") == "standard input:1:3: '1e-999'" + range);
  CHECK(bad("1\t\n") == "standard input:1:3: no number here (a number is written like 2, -1.5 or 3e-4)");
  CHECK(bad("0x1f\t1\n").starts_with("standard input:1:1: '0x1f' is not a number"));
  CHECK(bad("\x1b[31m\xff\t1\n").starts_with("standard input:1:1: '␛[31m�' is not a number"));
  CHECK(regression_complaint<Error>({"-p", "learned"}, "1\t2\n") ==
        "standard input: has one pair, but learning the bandwidth needs at least 2 (--pooling gaussian needs one)");
  CHECK(regression_complaint<Error>({"-p", "learned", "--optimizer", "sgd"}, "1\t1e150\n2\t-1e150\n4\t1e150\n") ==
        "learning diverged in epoch 1 (lower --learn-rate, or divide the numbers y by a constant)");
  const ScratchFolder folder;
  const std::string queries = folder.file("q", "1\n2\t3\n");
  CHECK(regression_complaint<Error>({"--queries", queries}) ==
        queries + ":2:2: more than one column (a line is one number; cut -f1 picks one)");
  CHECK(regression_complaint<Error>({"--queries", folder.file("r", "1\nabc\n")}) ==
        folder / "r" + ":2:1: 'abc' is not a number (a number is written like 2, -1.5 or 3e-4)");
}

TEST_CASE("kernel-regression: options that contradict each other") {
  const auto wrong = [](const std::vector<std::string>& words) { return regression_complaint<UsageError>(words); };
  CHECK(wrong({"--noise", "1"}) == "--noise: has no use without --make");
  CHECK(wrong({"--make", "-i", "a"}) == "--input: has no use with --make (leave one of them out)");
  CHECK(wrong({"--queries", "a", "--to", "1"}) == "--to: has no use with --queries (leave one of them out)");
  CHECK(wrong({"--queries", "-"}) == "--queries - reads standard input, and so does the input (give files)");
  CHECK(wrong({"--epochs", "3"}) == "--epochs: has no use without --pooling learned");
  CHECK(wrong({"-p", "average", "--bandwidth", "3"}) == "--bandwidth: has no use with --pooling average");
  CHECK(wrong({"--from", "3", "--to", "2"}) == "--from 3 is above --to 2 (exchange them)");
  CHECK(wrong({"--to", "1e200"}) == "--from and --to: must be between -1e150 and 1e150");
  CHECK(wrong({"-p", "gaussian", "gaussian"}) == "--pooling: gaussian is given twice");
  CHECK(wrong({"-p", "all", "gaussian"}) == "--pooling all: leave out the other names");
  CHECK(wrong({"--make", "--points", "1", "-p", "learned"}) ==
        "--points 1: learning the bandwidth needs at least 2 pairs");
  CHECK(wrong({"--bandwidth", "0"}) == "--bandwidth 0: must be between 1e-150 and 1e+150");
  CHECK(wrong({"--plot", "a.pdf"}) == "--plot a.pdf: the name of a picture ends in .svg or .png");
  CHECK(wrong({"--heatmap", "a"}) == "--heatmap a: the name of a picture ends in .svg or .png");
  CHECK(wrong({"-o", "a.SVG"}) ==
        "-o a.SVG: the output is text (--plot FILE draws the predictions, --heatmap FILE the weights)");
  CHECK(wrong({"--ascii"}) == "--ascii: has no use without --format plot or heatmap");
  CHECK(wrong({"-f", "plot", "--header"}) == "--header: has no use without --format tsv");
  CHECK(wrong({"-f", "plot", "--ascii", "--color", "always"}) ==
        "--color always: has no use with --ascii (leave one of them out)");
  CHECK(wrong({"-p", "learned", "--optimizer", "sgd", "--optimizer-params", "0.9", "0.9"}) ==
        "--optimizer-params: sgd takes one value: momentum");
}

TEST_CASE("kernel-regression: pictures for files and terminals") {
  const ScratchFolder folder;
  const std::vector<std::string> make{"--make", "-q", "-p", "average", "gaussian", "learned"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), make.begin(), make.end());
    return more;
  };
  const std::string numbers = output(make, "");
  CHECK(output(with({"--plot", folder / "fit.svg", "--heatmap", folder / "weights.svg"}), "") == numbers);
  const std::string fit = contents(folder / "fit.svg"), weights = contents(folder / "weights.svg");
  for (const char* const name :
       {"50 pairs", "truth", "average", "Gaussian, bandwidth 1", "Gaussian, learned bandwidth 0.1931"})
    CHECK(fit.find(">" + std::string(name) + "</text>") != std::string::npos);
  CHECK(weights.find(">Gaussian, learned bandwidth 0.1931</text>") != std::string::npos);
  CHECK(weights.find("<title>4.9 → 4.75: 0.642") != std::string::npos);
  output(with({"--plot", folder / "fit.PNG", "--heatmap", folder / "weights.png"}), "");
  CHECK(contents(folder / "fit.PNG").starts_with("\x89PNG"));
  CHECK(contents(folder / "weights.png").starts_with("\x89PNG"));

  const std::string drawn = run(make, "", {true, "", "xterm-256color", ""}).out;
  CHECK(drawn.find("Kernel regression") != std::string::npos);
  CHECK(drawn.find("rows: query x (2 together); columns: x of the pairs (2 together)") != std::string::npos);
  CHECK(drawn.find("\x1b[38;5;") != std::string::npos);
  CHECK(drawn.find("\x1b[48;5;") != std::string::npos);
  CHECK(output(with({"-f", "tsv"}), "") == numbers);
  CHECK(output(with({"-f", "plot", "heatmap", "--ascii", "--width", "60"}), "").find_first_of("│┤█•") ==
        std::string::npos);
}

TEST_CASE("the map of the weights: rows and columns ascend, neighbours share them") {
  NumberPairs pairs;
  pairs.x = {3, 1, 2};
  pairs.y = {0, 0, 0};
  // The weight of a key is the key itself.
  const Pooling pooling{"p", "a title", [](double, std::span<const double> keys, std::span<double> weights) {
                          std::copy(keys.begin(), keys.end(), weights.begin());
                          return true;
                        }};
  const std::vector<double> queries{0.25, 0.5, -7};
  const auto maps = weight_maps(pairs, queries, {&pooling, 1}, 10, 10);
  REQUIRE(maps.size() == 1);
  CHECK(maps[0].title() == "a title");
  CHECK(maps[0].rows == std::vector<std::string>{"-7", "0.25", "0.5"});
  CHECK(maps[0].columns == std::vector<std::string>{"1", "2", "3"});
  CHECK(maps[0].weights == std::vector<float>{1, 2, 3, 1, 2, 3, 1, 2, 3});
  const auto small = weight_maps(pairs, queries, {&pooling, 1}, 1, 2);
  CHECK(small[0].rows.size() == 1);
  CHECK(small[0].columns.size() == 2);
  CHECK(small[0].weights == std::vector<float>{1.5, 3});
  CHECK(small[0].axes->rows == "query x (3 together)");
  CHECK(weight_maps(pairs, {}, {&pooling, 1}, 1, 2).empty());
}
