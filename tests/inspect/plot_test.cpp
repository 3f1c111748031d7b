#include "heed/inspect/plot.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "heed/base/error.h"

using namespace heed;

namespace {

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

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

TEST_CASE("a plot is written whole, again and again") {
  const auto path = std::filesystem::temp_directory_path() / ("heed_plot_test_" + std::to_string(::getpid()) + ".svg");
  for (int round = 0; round < 2; ++round) write_plot(path, {"round " + std::to_string(round), "u", "loss", "", {}});
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  CHECK(count(text.str(), ">round 1</text>") == 1);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(write_plot("/nonexistent-folder/p.svg", {}), Error);
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
