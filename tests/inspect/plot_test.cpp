#include "heed/inspect/plot.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "heed/base/error.h"
#include "inspect/count.h"

using namespace heed;

TEST_CASE("ticks are round and enclose the data") {
  CHECK(nice_ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(nice_ticks(1.8, 7.7, 6) == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(nice_ticks(-3, 3, 3) == std::vector<double>{-4, -2, 0, 2, 4});
  for (const auto& [low, high] : {std::pair{0.0, 0.0}, {5.0, 5.0}, {-2.0, -2.0}, {1e-7, 3e-7}, {0.0, 4e9}}) {
    const auto ticks = nice_ticks(low, high, 6);
    CHECK(ticks.size() >= 3);
    CHECK(ticks.size() <= 14);
    CHECK(ticks.front() <= low + 1e-12);
    CHECK(ticks.back() >= high - 1e-12);
  }
}

TEST_CASE("a curve with two axes") {
  const Plot plot{"run <1>",
                  "updates",
                  "loss",
                  "BLEU",
                  {{"train", {{0, 8}, {10, 4}, {20, 2}}}, {"BLEU", {{10, 12.5}, {20, 40}}, true, true}}};
  const std::string svg = plot_svg(plot);
  CHECK(count(svg, ">run &lt;1&gt;</text>") == 1);
  CHECK(count(svg, ">train</text>") == 1);
  CHECK(count(svg, ">BLEU</text>") == 2);  // once in the legend and once at the axis
  CHECK(count(svg, "<title>BLEU: 12.5 at 10</title>") == 1);
  CHECK(count(svg, "<circle") == 2);
  CHECK(count(svg, "nan") == 0);
}

TEST_CASE("one point, none, and values that are not numbers") {
  const std::string one = plot_svg({"t", "updates", "loss", "", {{"train", {{100, 4.5}}}}});
  CHECK(count(one, "<title>train: 4.5 at 100</title>") == 1);
  const std::string none = plot_svg({"t", "updates", "loss", "BLEU", {{"train", {}}, {"BLEU", {}, true}}});
  CHECK(count(none, "<circle") == 0);
  const std::string some =
      plot_svg({"t", "u", "loss", "", {{"train", {{1, 2}, {2, NAN}, {3, INFINITY}}, false, true}}});
  CHECK(count(some, "<circle") == 1);
  for (const auto& svg : {one, none, some}) {
    CHECK(svg.ends_with("</svg>\n"));
    CHECK(count(svg, "nan") == 0);
    CHECK(count(svg, "inf") == 0);
  }
}

TEST_CASE("a long run keeps the file small") {
  PlotSeries series{"train", {}};
  for (int i = 0; i < 200000; ++i) series.points.push_back({static_cast<double>(i), std::exp(-i / 2e4)});
  CHECK(plot_svg({"t", "updates", "loss", "", {series}}).size() < 30000);
}

TEST_CASE("ticks are labelled so that neighbours differ, and a range of last digits ends") {
  using Labels = std::vector<std::string>;
  CHECK(tick_labels(std::vector{0.0, 0.1, 0.2, 0.1 * 3}) == Labels{"0", "0.1", "0.2", "0.3"});
  CHECK(tick_labels(std::vector{0.0, 2e4}) == Labels{"0", "20K"});
  CHECK(tick_labels(std::vector{1.6e9, 1.6e9 + 10, 1.6e9 + 20}) == Labels{"1600M", "1600.00001M", "1600.00002M"});
  CHECK(tick_labels(std::vector{0.0, 5e11}) == Labels{"0", "500000M"});
  CHECK(tick_labels(std::vector{-5e11, 0.0, 5e11, 1e12}) == Labels{"-5e+11", "0", "5e+11", "1e+12"});
  CHECK(tick_labels(std::vector{0.0, 1e14, 2e14, 3e14}) == Labels{"0", "1e+14", "2e+14", "3e+14"});
  CHECK(nice_ticks(1e18, 1e18 + 256, 6).size() < 20);
  CHECK(nice_ticks(-1, 1 + 1e-15, 4).size() < 20);
}

TEST_CASE("points without a line are grey dots below the curves, and take no colour from them") {
  Plot plot{.title = "t", .x_label = "x", .left_label = "y", .right_label = "", .series = {}, .counts = false};
  plot.series.push_back({.name = "curve", .points = {{0.1, 1}, {0.4, 2}}});
  plot.series.push_back({.name = "points", .points = {{0.15, 1.5}, {0.35, NAN}, {0.2, 1.7}}, .line = false});
  plot.series.push_back({.name = "next", .points = {{0.1, 1}, {0.4, 1}}});
  CHECK(plot_color(plot, 1) == Rgb{140, 140, 140});
  CHECK(
      plot_color(plot, 2) ==
      plot_color(
          {.title = "", .x_label = "", .left_label = "", .right_label = "", .series = {plot.series[0], plot.series[2]}},
          1));
  const std::string svg = plot_svg(plot);
  CHECK(count(svg, "<circle") == 3);  // one of them in the legend
  CHECK(svg.rfind("<circle") < svg.find("stroke-width=\"2\""));
  CHECK(count(svg, "<title>points: 1.7 at 0.2</title>") == 1);
  // x is any number: the axis has ticks at fractions.
  CHECK(count(svg, ">0.25</text>") == 1);
  CHECK(plot_png(plot).starts_with("\x89PNG"));
}

TEST_CASE("a curve with gaps is drawn in parts; of very many points some are kept, not means") {
  PlotSeries series{.name = "s", .points = {{0, 1}, {1, 2}, {2, NAN}, {3, NAN}, {4, 5}, {5, 6}, {6, NAN}}};
  CHECK(plot_lines(series).size() == 1);
  CHECK(plot_lines(series)[0].size() == 4);
  series.gaps = true;
  const auto lines = plot_lines(series);
  REQUIRE(lines.size() == 3);  // the last one is empty
  CHECK(lines[0].size() == 2);
  CHECK(lines[1][0].y == 5);
  const std::string svg = plot_svg(
      {.title = "t", .x_label = "x", .left_label = "y", .right_label = "", .series = {series}, .counts = false});
  CHECK(count(svg, "stroke-width=\"2\"") == 2);
  PlotSeries many{.name = "m", .points = {}, .line = false};
  for (int i = 0; i < 5000; ++i) many.points.push_back({static_cast<double>(i), static_cast<double>(i % 2)});
  const auto kept = plot_lines(many)[0];
  CHECK(kept.size() == 2000);
  for (const Point& point : kept) CHECK((point.y == 0 || point.y == 1));
}

TEST_CASE("a plot is written whole, again and again") {
  const auto path = std::filesystem::temp_directory_path() / ("heed_plot_test_" + std::to_string(::getpid()) + ".svg");
  for (int round = 0; round < 2; ++round) write_plot(path, {"round " + std::to_string(round), "u", "loss", "", {}});
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  CHECK(count(text.str(), ">round 1</text>") == 1);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(write_plot("/nonexistent-folder/p.svg", {}), Error);
}

TEST_CASE("the ending of the name decides the kind of picture, in capital and small letters") {
  for (const char* const ending : {".png", ".PNG", ".Png", ".svg"}) {
    CAPTURE(ending);
    const auto path =
        std::filesystem::temp_directory_path() / ("heed_plot_test_" + std::to_string(::getpid()) + ending);
    write_plot(path, {"a", "u", "loss", "", {}});
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    CHECK(text.str().starts_with("\x89PNG") == (ending != std::string(".svg")));
    std::filesystem::remove(path);
  }
}

TEST_CASE("the picture is as wide as its title and its legend") {
  const auto width = [](const Plot& plot) {
    const std::string svg = plot_svg(plot);
    return std::stod(svg.substr(svg.find("width=\"") + 7));
  };
  CHECK(width({"t", "u", "loss", "", {}}) == 860);
  const std::string path(100, 'm');
  CHECK(width({path, "u", "loss", "", {}}) > 74 + text_width(path, 16, true));
  Plot many{"t", "u", "loss", "", {}};
  for (int i = 0; i < 9; ++i) many.series.push_back({"a metric with a name " + std::to_string(i), {{1, 2}}});
  CHECK(width(many) > 74 + 9 * (26 + text_width("a metric with a name 0", 12)));
}
