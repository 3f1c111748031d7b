#include "heed/nn/patch_embedding.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "heed/base/error.h"
#include "heed/ops/arithmetic.h"
#include "network.h"

using namespace heed;
using nlohmann::json;

namespace {

/// Images as a batch stores them.
struct Images {
  std::vector<std::int32_t> ids, offsets{0};

  /// Adds an image of size x size pixels with the samples sample(row, column, channel).
  template <class Sample>
  void add(const PixelFormat& format, int size, Sample sample) {
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x)
        for (int c = 0; c < format.channels; ++c) ids.push_back(format.first_id + sample(y, x, c));
    ids.push_back(3);
    offsets.push_back(static_cast<std::int32_t>(ids.size()));
  }
  PackedOffsets packed() const { return {offsets}; }
};

/// A format whose numbers are the samples themselves.
PixelFormat plain_format(int channels) {
  const auto n = static_cast<std::size_t>(channels);
  return {channels, 4, std::vector<double>(n, 0), std::vector<double>(n, 1 / 255.0)};
}

template <class T>
std::vector<double> row_of(const Variable<T>& x, std::int64_t row) {
  return {x.value.row(row), x.value.row(row) + x.value.columns()};
}

}  // namespace

TEST_CASE_TEMPLATE("patch rows: patches are in reading order, their columns by channel, row and column", T, float,
                   double) {
  Network<T> net;
  net.begin(false);
  const PixelFormat format = plain_format(3);
  Images images;
  images.add(format, 4, [](int y, int x, int c) { return 40 * c + 10 * y + x; });
  images.add(format, 4, [](int y, int x, int c) { return 120 + 40 * c + 10 * y + x; });
  const Variable<T> rows = patch_rows(*net.graph, images.ids, images.packed(), 2, format);
  REQUIRE(rows.shape() == Shape{8, 12});
  const auto check = [&](std::int64_t row, const std::vector<double>& expected) {
    CAPTURE(row);
    const std::vector<double> actual = row_of(rows, row);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(actual[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  };
  check(0, {0, 1, 10, 11, 40, 41, 50, 51, 80, 81, 90, 91});
  check(1, {2, 3, 12, 13, 42, 43, 52, 53, 82, 83, 92, 93});
  check(2, {20, 21, 30, 31, 60, 61, 70, 71, 100, 101, 110, 111});
  check(3, {22, 23, 32, 33, 62, 63, 72, 73, 102, 103, 112, 113});
  check(4, {120, 121, 130, 131, 160, 161, 170, 171, 200, 201, 210, 211});
  check(7, {142, 143, 152, 153, 182, 183, 192, 193, 222, 223, 232, 233});
  // A patch may be the whole image, or one pixel.
  check(0, row_of(patch_rows(*net.graph, images.ids, images.packed(), 2, format), 0));
  CHECK(patch_rows(*net.graph, images.ids, images.packed(), 4, format).shape() == Shape{2, 48});
  CHECK(row_of(patch_rows(*net.graph, images.ids, images.packed(), 1, format), 17)[1] == doctest::Approx(161));
}

TEST_CASE("patch rows: a sample is divided by 255, then the channel's mean and deviation normalise it") {
  Network<double> net;
  net.begin(false);
  const PixelFormat format{3, 4, {0.1, 0.5, 0}, {0.5, 0.25, 2}};
  Images images;
  images.add(format, 1, [](int, int, int c) { return c == 0 ? 51 : c == 1 ? 0 : 255; });
  const std::vector<double> row = row_of(patch_rows(*net.graph, images.ids, images.packed(), 1, format), 0);
  REQUIRE(row.size() == 3);
  CHECK(row[0] == doctest::Approx((0.2 - 0.1) / 0.5).epsilon(1e-15));
  CHECK(row[1] == doctest::Approx(-2).epsilon(1e-15));
  CHECK(row[2] == doctest::Approx(0.5).epsilon(1e-15));
}

TEST_CASE("patch rows: images that are not square or do not fit are errors") {
  CHECK(image_size_of(3 * 5 * 5 + 1, 3) == 5);
  CHECK(image_size_of(4096 * 4096 + 1, 1) == 4096);
  CHECK_THROWS_WITH_AS(image_size_of(1, 3), "internal: 0 samples are no square image with 3 channels", Error);
  CHECK_THROWS_WITH_AS(image_size_of(0, 3), "internal: -1 samples are no square image with 3 channels", Error);
  CHECK_THROWS_WITH_AS(image_size_of(14, 3), "internal: 13 samples are no square image with 3 channels", Error);
  CHECK_THROWS_WITH_AS(image_size_of(19, 3), "internal: 18 samples are no square image with 3 channels", Error);
  CHECK_THROWS_WITH_AS(image_size_of(9, 1), "internal: 8 samples are no square image with 1 channels", Error);

  Network<float> net;
  net.begin(false);
  const PixelFormat format = plain_format(1);
  Images images;
  const auto zero = [](int, int, int) { return 0; };
  images.add(format, 4, zero);
  const auto rows = [&](int patch) { return patch_rows(*net.graph, images.ids, images.packed(), patch, format); };
  CHECK_THROWS_WITH_AS(rows(3), "images of 4 x 4 pixels cannot be cut into patches of 3 x 3", Error);
  CHECK_THROWS_WITH_AS(rows(8), "images of 4 x 4 pixels cannot be cut into patches of 8 x 8", Error);
  images.add(format, 2, zero);
  CHECK_THROWS_WITH_AS(rows(2), "internal: the images of a batch have different sizes", Error);
}

TEST_CASE_TEMPLATE("resize_grid: the grids are those of PyTorch's bicubic interpolation", T, float, double) {
  std::ifstream in(std::string(HEED_TEST_DATA) + "/nn/reference/resized_grids.json");
  const json all = json::parse(in);
  CHECK(all["grids"].size() == 6);
  const std::int64_t columns = all["columns"];
  Arena arena;
  for (const json& test : all["grids"]) {
    const int from = test["from"], to = test["to"];
    CAPTURE(from);
    CAPTURE(to);
    const Tensor<T> grid = arena.tensor<T>({std::int64_t{from} * from, columns});
    for (std::int64_t i = 0; i < grid.size(); ++i)
      grid[i] = static_cast<T>(0.3 * std::sin(1 + 0.91 * static_cast<double>(i)));
    const Tensor<T> out = resize_grid<T>(arena, grid, from, to);
    REQUIRE(out.shape() == Shape{std::int64_t{to} * to, columns});
    REQUIRE(test["result"].size() == static_cast<std::size_t>(out.size()));
    for (std::int64_t i = 0; i < out.size(); ++i)
      CHECK(out[i] == doctest::Approx(test["result"][static_cast<std::size_t>(i)].get<double>())
                          .epsilon(std::is_same_v<T, float> ? 1e-6 : 1e-11)
                          .scale(1));
  }
}

TEST_CASE("patch embedding: the gradients of all parameters are those of finite differences") {
  for (const bool class_token : {false, true}) {
    CAPTURE(class_token);
    Network<double> net;
    const PixelFormat format{3, 4, {0.4, 0.5, 0.6}, {0.2, 0.3, 0.25}};
    const PatchEmbedding layer(net.layout, "encoder", format, 4, 2, 5, class_token);
    CHECK(net.layout.all().size() == (class_token ? 4 : 3));
    CHECK(static_cast<bool>(net.layout.find("encoder/class_token")) == class_token);
    const int tokens = class_token ? 5 : 4;
    CHECK(layer.tokens(4) == tokens);
    CHECK(layer.tokens(6) == tokens + 5);
    net.begin();
    Images images;
    for (int b = 0; b < 3; ++b)
      images.add(format, 4, [b](int y, int x, int c) { return (31 * b + 77 * y + 53 * x + 101 * c) % 256; });
    const Tensor<double> weights = net.input({3 * tokens, 5}).value;
    const PackedOffsets offsets = layer.token_offsets(*net.graph, images.packed());
    REQUIRE(offsets.sequences() == 3);
    for (int b = 0; b < 3; ++b) CHECK(offsets.length(b) == tokens);
    check_parameter_gradients(net, [&] {
      const Variable<double> y = layer(*net.graph, images.ids, images.packed());
      REQUIRE(y.shape() == Shape{3 * tokens, 5});
      return sum(*net.graph, multiply(*net.graph, y, net.graph->input(weights)));
    });
  }
}

TEST_CASE("patch embedding: images of another size have interpolated positions, and only in inference") {
  Network<double> net;
  const PixelFormat format = plain_format(1);
  const PatchEmbedding layer(net.layout, "encoder", format, 4, 2, 3, true);
  net.begin();
  Images black;
  black.add(format, 6, [](int, int, int) { return 0; });
  CHECK_THROWS_WITH_AS(layer(*net.graph, black.ids, black.packed()),
                       "internal: an image of 6 pixels in a training with 4", Error);
  net.graph.emplace(net.device, *net.values);
  const auto value = [&](const char* name) { return (*net.values)[net.layout.find(name)]; };
  const Tensor<double> positions = value("encoder/positions/weight"), bias = value("encoder/patches/bias");
  const Tensor<double> token = value("encoder/class_token");
  for (std::int64_t i = 0; i < 3; ++i) bias[i] = static_cast<double>(i);
  const Variable<double> y = layer(*net.graph, black.ids, black.packed());
  REQUIRE(y.shape() == Shape{10, 3});
  const Tensor<double> grid = resize_grid<double>(net.arena, positions.row_block(1, 4), 2, 3);
  for (std::int64_t i = 0; i < 3; ++i) {
    CHECK(y.value.row(0)[i] == doctest::Approx(token[i] + positions[i]).epsilon(1e-14));
    for (std::int64_t t = 0; t < 9; ++t)
      CHECK(y.value.row(1 + t)[i] == doctest::Approx(bias[i] + grid.row(t)[i]).epsilon(1e-14));
  }
}
