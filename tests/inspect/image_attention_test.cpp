#include "heed/inspect/image_attention.h"

#include <doctest/doctest.h>

#include "heed/base/error.h"
#include "heed/inspect/attention_text.h"
#include "heed/inspect/image_panels.h"
#include "heed/inspect/image_picture.h"
#include "inspect/count.h"

using namespace heed;

namespace {

std::vector<float> floats(std::initializer_list<double> values) {
  return {values.begin(), values.end()};
}

/// Returns the map of the class token's attention to the patches of an image of 2 x 1 patches.
PatchMap class_map(int head, std::vector<float> weights) {
  const ImageGrid grid = whole_grid({1, 2}, true);
  AttentionMap map{.kind = "encoder",
                   .layer = 2,
                   .head = head,
                   .reduction = head == 0 ? "mean" : "",
                   .rows = {kClassTokenLabel},
                   .columns = patch_labels(grid),
                   .weights = std::move(weights)};
  return {std::move(map), grid};
}

Image black_and_white() {
  Image image = Image::black(2, 1, 1);
  *image.pixel(1, 0) = 255;
  return image;
}

}  // namespace

TEST_CASE("the grid of a whole image: labels, patches and the class token") {
  const ImageGrid grid = whole_grid({2, 3}, true);
  CHECK(grid.tokens() == 7);
  CHECK(grid.has_class_token());
  CHECK_FALSE(grid.has_windows());
  CHECK(patch_labels(grid) == std::vector<std::string>{"<class>", "0,0", "1,0", "2,0", "0,1", "1,1", "2,1"});
  CHECK_FALSE(whole_grid({2, 3}, false).has_class_token());
  CHECK(patch_labels(whole_grid({1, 2}, false)) == std::vector<std::string>{"0,0", "1,0"});
  // An image of 12 x 12 pixels has patches of 4 x 6 pixels.
  CHECK(patch_at(grid, 0, 0, 12) == 0);
  CHECK(patch_at(grid, 3, 5, 12) == 0);
  CHECK(patch_at(grid, 4, 5, 12) == 1);
  CHECK(patch_at(grid, 11, 11, 12) == 5);
}

TEST_CASE("the weights of a query: the class token, a patch, or the mean of all") {
  // Two heads of three tokens.
  const std::vector<float> weights = floats({0.2, 0.3, 0.5, 0.1, 0.1, 0.8, 0.6, 0.4, 0,  // head 1
                                             1, 0, 0, 0, 1, 0, 0, 0, 1});
  const std::vector<std::int32_t> offsets{0, 3};
  const ImageGrid with = whole_grid({1, 2}, true), without = whole_grid({1, 3}, false);
  const LayerWeights layer{with, 2, {offsets}, {offsets}, weights};
  CHECK(query_weights(layer, 0, {}) == floats({0.2, 0.3, 0.5}));
  CHECK(query_weights(layer, 0, 1) == floats({0.6, 0.4, 0}));
  CHECK(query_weights(layer, 1, 0) == floats({0, 1, 0}));
  CHECK(self_attention_weights(layer, 0) == std::vector<float>(weights.begin(), weights.begin() + 9));
  const std::vector<float> mean = query_weights({without, 2, {offsets}, {offsets}, weights}, 0, {});
  CHECK(mean[0] == doctest::Approx(0.3));
  CHECK(mean[1] == doctest::Approx(0.8 / 3));
  CHECK(mean[2] == doctest::Approx(1.3 / 3));
}

TEST_CASE("windows: the weights come back to the places of their patches") {
  // 2 x 4 patches in two windows of 2 x 2, whose tokens are 0 1 4 5 and 2 3 6 7.
  const GridSize size{2, 4};
  const ImageGrid grid = windows_grid(size, window_partition(size, 2, 0));
  CHECK(grid.patches == std::vector<std::int32_t>{0, 1, 4, 5, 2, 3, 6, 7});
  CHECK(grid.offsets == std::vector<std::int32_t>{0, 4, 8});
  CHECK(grid.windows() == std::vector<std::int32_t>{0, 0, 1, 1, 0, 0, 1, 1});
  CHECK(grid.has_windows());
  std::vector<float> weights(32, 0.25F);
  const std::vector<float> row = floats({0.1, 0.2, 0.3, 0.4});
  std::copy(row.begin(), row.end(), weights.begin() + 16 + 4);  // of token 5 of the layer, which is patch 3
  const LayerWeights layer{grid, 1, {grid.offsets}, {grid.offsets}, weights};
  CHECK(query_weights(layer, 0, 3) == floats({0, 0, 0.1, 0.2, 0, 0, 0.3, 0.4}));
  CHECK(query_weights(layer, 0, 0) == floats({0.25, 0.25, 0, 0, 0.25, 0.25, 0, 0}));
  double sum = 0;
  for (const float weight : query_weights(layer, 0, {})) sum += static_cast<double>(weight);
  CHECK(sum == doctest::Approx(1));
  const std::vector<float> all = self_attention_weights(layer, 0);
  CHECK(std::vector<float>(all.begin() + 24, all.begin() + 32) == floats({0, 0, 0.1, 0.2, 0, 0, 0.3, 0.4}));
  CHECK(window_borders(grid) == std::vector<GridLine>{{{2, 0}, {2, 2}}});
  CHECK(window_borders(whole_grid(size, false)).empty());
  // Shifted windows are cut at the borders of the image: one border between the columns 0 and 1, one between 2 and 3.
  const ImageGrid shifted = windows_grid(size, window_partition(size, 2, 1));
  CHECK(window_borders(shifted) == std::vector<GridLine>{{{1, 0}, {1, 2}}, {{3, 0}, {3, 2}}});
  const std::vector<std::int32_t> whole{0, 8};
  CHECK_THROWS_AS(query_weights({grid, 1, {whole}, {whole}, std::vector<float>(64)}, 0, 3), Error);
}

TEST_CASE("cross attention from words to patches") {
  const ImageGrid grid = whole_grid({1, 2}, false);
  const std::vector<std::int32_t> words{0, 3}, patches{0, 2};
  const std::vector<float> weights = floats({1, 0, 0.5, 0.5, 0.25, 0.75, 0, 1, 0, 1, 0, 1});
  CHECK(cross_attention_weights({grid, 2, {words}, {patches}, weights}, 0) == floats({1, 0, 0.5, 0.5, 0.25, 0.75}));
  CHECK(cross_attention_weights({grid, 2, {words}, {patches}, weights}, 1) == floats({0, 1, 0, 1, 0, 1}));
}

TEST_CASE("panels: heads of a layer side by side, or words; each group has a colour scale") {
  const std::vector<PatchMap> heads{class_map(1, floats({0.9, 0.06, 0.04})), class_map(0, floats({0.5, 0.3, 0.2}))};
  const std::vector<PanelGroup> groups = image_panels(heads);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].title == "encoder attention of the class token, layer 2");
  REQUIRE(groups[0].panels.size() == 2);
  CHECK(groups[0].panels[0].label == "head 1");
  CHECK(groups[0].panels[1].label == "mean of heads");
  // The class token's own weight is no patch's, and no part of the scale.
  CHECK(groups[0].panels[0].weights.size() == 2);
  CHECK(groups[0].scale.high == doctest::Approx(0.3));
  CHECK(attention_table(percent_map(groups[0], groups[0].panels[1]), 0) ==
        "encoder attention of the class token, layer 2: mean of heads, in percent\n"
        "       0      1\n"
        "0  30.00  20.00\n");

  PatchMap words = class_map(1, floats({1, 0, 0.5, 0.5}));
  words.grid = whole_grid({1, 2}, false);
  words.map.kind = "cross";
  words.map.rows = {"red", "</s>"};
  words.map.columns = patch_labels(words.grid);
  const std::vector<PanelGroup> one = image_panels({&words, 1});
  REQUIRE(one.size() == 1);
  CHECK(one[0].title == "cross attention, layer 2, head 1");
  CHECK(one[0].panels[1].label == "</s>");
  CHECK(one[0].panels[1].weights[0] == 0.5F);

  // The only word of a sentence may look like the label of a query that is no word.
  for (const char* word : {kMeanLabel, kClassTokenLabel}) {
    PatchMap single = class_map(1, floats({1, 0, 0}));
    single.map.kind = "cross";
    single.map.rows = {word};
    CHECK(image_panels({&single, 1})[0].title == "cross attention of \"" + std::string(word) + "\", layer 2");
  }

  PatchMap rollout = class_map(0, floats({0.5, 0.3, 0.2}));
  rollout.map.reduction = kRolloutReduction;
  CHECK(rollout.map.title() == "attention rollout, layers 1-2");
  CHECK(image_panels({&rollout, 1})[0].title == "attention rollout of the class token, layers 1-2");
  rollout.query = 1;
  rollout.map.rows = {"1,0"};
  CHECK(image_panels({&rollout, 1})[0].title == "attention rollout of patch 1,0, layers 1-2");
}

TEST_CASE("the colour of a weight lies over grey, of which a part shows through") {
  CHECK(overlay_color(1, 0).red < overlay_color(1, 200).red);
  CHECK(overlay_color(0, 128) != overlay_color(1, 128));
  const Image grey = grey_image(black_and_white());
  CHECK(grey.channels == 1);
  CHECK(grey.samples[0] < kMiddleGrey);
  CHECK(grey.samples[1] > kMiddleGrey);
}

TEST_CASE("a picture has the heat of each patch over its place in the image") {
  std::vector<PatchMap> maps{class_map(1, floats({0.9, 0.1, 0})), class_map(2, floats({0, 0.4, 0.6}))};
  const std::vector<ImageSection> sections{{"line 1: a.png → cross", black_and_white(), maps}};
  const std::string svg = image_attention_svg(sections);
  CHECK(count(svg, ">line 1: a.png → cross</text>") == 1);
  CHECK(count(svg, ">head 1</text>") == 1);
  CHECK(count(svg, ">image</text>") == 1);
  // The image and the grey image are stored once; the grey one is used for both heads.
  CHECK(count(svg, "<image id=") == 2);
  CHECK(count(svg, "<use xlink:href=\"#picture-2\"") == 2);
  // Patches have 72 x 72 pixels; the second one of a panel lies 72 pixels to the right of the first one.
  const std::string first = "x=\"192\" y=\"90\" width=\"72\" height=\"72\" fill=\"" + hex_text(color_of(0.1F / 0.6F)) +
                            "\" fill-opacity=\"0.65\"><title>0,0: 0.1000</title>";
  const std::string second = "x=\"264\" y=\"90\" width=\"72\" height=\"72\" fill=\"" + hex_text(color_of(0)) +
                             "\" fill-opacity=\"0.65\"><title>1,0: 0.0000</title>";
  CHECK(count(svg, first) == 1);
  CHECK(count(svg, second) == 1);
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(image_attention_png(sections).starts_with("\x89PNG"));
  // A frame marks the patch that is the query, in the image and in each panel.
  CHECK(count(svg, "#dc1e3c") == 0);
  for (PatchMap& map : maps) map.query = 1;
  CHECK(count(image_attention_svg(std::vector<ImageSection>{{"", black_and_white(), maps}}), "#dc1e3c") == 3);
  // An empty line has a heading and no image.
  CHECK(count(image_attention_svg(std::vector<ImageSection>{{"line 2", {.samples = {}}, {}}}), "<use ") == 0);
}
