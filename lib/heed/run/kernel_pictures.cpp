#include "heed/run/kernel_pictures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "heed/nn/kernel_pooling.h"

namespace heed {
namespace {

/// The number of points that a curve is drawn with.
constexpr int kCurvePoints = 401;

std::vector<double> sorted(std::span<const double> numbers) {
  std::vector<double> out(numbers.begin(), numbers.end());
  std::sort(out.begin(), out.end());
  return out;
}

/// The division of `numbers` ascending numbers into groups of `each` neighbours; the last group may be smaller.
struct Groups {
  std::size_t numbers, each;

  Groups(std::size_t count, std::size_t most) : numbers(count), each((count + most - 1) / most) {}
  std::size_t size() const { return (numbers + each - 1) / each; }
  std::size_t begin(std::size_t group) const { return group * each; }
  std::size_t end(std::size_t group) const { return std::min(numbers, begin(group) + each); }
  /// Returns the name of an axis, with the number of neighbours that share a row or a column.
  std::string axis_name(const std::string& name) const {
    return each == 1 ? name : name + " (" + std::to_string(each) + " together)";
  }
};

/// Returns the numbers, which ascend, as labels of groups of neighbours: the number in the middle of each group,
/// with as many decimals as tell a hundredth of the range.
std::vector<std::string> labels(std::span<const double> numbers, const Groups& groups) {
  const double range = numbers.back() - numbers.front();
  const double largest = std::max(std::abs(numbers.back()), std::abs(numbers.front()));
  const double decimals = range > 0 ? std::max(0.0, 2 - std::floor(std::log10(range))) : 2;
  const bool fixed = largest < 1e7 && decimals <= 6;
  const int digits = range > 0 ? std::clamp(static_cast<int>(std::ceil(std::log10(largest / range))) + 2, 3, 15) : 3;
  std::vector<std::string> out;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    char text[32];
    std::snprintf(text, sizeof text, fixed ? "%.*f" : "%.*g", fixed ? static_cast<int>(decimals) : digits,
                  numbers[(groups.begin(g) + groups.end(g) - 1) / 2] + 0.0);
    std::string label = text;
    if (fixed && label.find('.') != std::string::npos) {
      label.resize(label.find_last_not_of('0') + 1);
      if (label.back() == '.') label.pop_back();
    }
    out.push_back(std::move(label));
  }
  return out;
}

}  // namespace

double Pooling::predict(double query, const NumberPairs& pairs, std::vector<double>& space) const {
  space.resize(pairs.size());
  return weights(query, pairs.x, space) ? pool(space, pairs.y) : std::numeric_limits<double>::quiet_NaN();
}

Plot fit_plot(const NumberPairs& pairs, std::span<const double> queries, std::span<const Pooling> poolings,
              bool truth) {
  auto [low, high] = std::minmax_element(pairs.x.begin(), pairs.x.end());
  double from = *low, to = *high;
  for (const double query : queries) {
    from = std::min(from, query);
    to = std::max(to, query);
  }
  if (truth) {
    from = std::min(from, 0.0);
    to = std::max(to, kExampleEnd);
  }
  Plot plot{.title = "Kernel regression",
            .x_label = "x",
            .left_label = "y",
            .right_label = "",
            .series = {},
            .counts = false};
  PlotSeries points{
      .name = std::to_string(pairs.size()) + (pairs.size() == 1 ? " pair" : " pairs"), .points = {}, .line = false};
  for (std::size_t i = 0; i < pairs.size(); ++i) points.points.push_back({pairs.x[i], pairs.y[i]});
  plot.series.push_back(std::move(points));
  const auto curve = [&](const std::string& name, const auto& function) {
    PlotSeries series{.name = name, .points = {}, .gaps = true};
    for (int i = 0; i < kCurvePoints; ++i) {
      const double x = i + 1 == kCurvePoints ? to : from + (to - from) * i / (kCurvePoints - 1);
      series.points.push_back({x, function(x)});
    }
    plot.series.push_back(std::move(series));
  };
  if (truth) curve("truth", example_function);
  std::vector<double> space;
  for (const Pooling& pooling : poolings)
    curve(pooling.title, [&](double x) { return pooling.predict(x, pairs, space); });
  return plot;
}

std::vector<AttentionMap> weight_maps(const NumberPairs& pairs, std::span<const double> queries,
                                      std::span<const Pooling> poolings, std::size_t most_rows,
                                      std::size_t most_columns) {
  if (queries.empty()) return {};
  const std::vector<double> keys = sorted(pairs.x), asked = sorted(queries);
  const Groups rows(asked.size(), most_rows), columns(keys.size(), most_columns);
  std::vector<AttentionMap> maps;
  std::vector<double> weights(keys.size());
  for (const Pooling& pooling : poolings) {
    AttentionMap map{.kind = pooling.name, .rows = labels(asked, rows), .columns = labels(keys, columns)};
    map.axes = NumberAxes{
        .caption = pooling.title, .rows = rows.axis_name("query x"), .columns = columns.axis_name("x of the pairs")};
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::vector<double> sums(columns.size());
      for (std::size_t q = rows.begin(r); q < rows.end(r); ++q) {
        pooling.weights(asked[q], keys, weights);
        for (std::size_t k = 0; k < keys.size(); ++k) sums[k / columns.each] += weights[k];
      }
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const auto count = static_cast<double>((rows.end(r) - rows.begin(r)) * (columns.end(c) - columns.begin(c)));
        map.weights.push_back(static_cast<float>(sums[c] / count));
      }
    }
    maps.push_back(std::move(map));
  }
  return maps;
}

}  // namespace heed
