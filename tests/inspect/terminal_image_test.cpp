#include "heed/inspect/terminal_image.h"

#include <doctest/doctest.h>

#include "heed/base/utf8.h"
#include "heed/inspect/image_panels.h"

using namespace heed;

namespace {

/// Returns the section of an image with 2 x 2 patches, one of which is bright and has all weight.
ImageSection example() {
  const ImageGrid grid = whole_grid({2, 2}, false);
  AttentionMap map{.kind = "encoder",
                   .layer = 1,
                   .head = 1,
                   .rows = {kMeanLabel},
                   .columns = patch_labels(grid),
                   .weights = {0, 1, 0, 0}};
  Image image = Image::black(2, 2, 3);
  for (int c = 0; c < 3; ++c) image.pixel(1, 0)[c] = 255;
  return {"", image, {{std::move(map), grid}}};
}

}  // namespace

TEST_CASE("half blocks: the upper pixel is the foreground, the lower one the background") {
  const std::vector<std::string> colors{"2;1;2;3", "2;1;2;3", "2;4;5;6", "2;7;8;9"};
  CHECK(half_blocks(colors, 2) ==
        std::vector<std::string>{"\x1b[38;2;1;2;3;48;2;4;5;6m▀\x1b[38;2;1;2;3;48;2;7;8;9m▀\x1b[0m"});
  // Equal colours side by side need one escape sequence. The last of an odd number of rows has no lower half.
  const std::vector<std::string> odd{"5;16", "5;16", "5;20", "5;20", "5;30", "5;31"};
  CHECK(half_blocks(odd, 2) ==
        std::vector<std::string>{"\x1b[38;5;16;48;5;20m▀▀\x1b[0m", "\x1b[38;5;30;49m▀\x1b[38;5;31;49m▀\x1b[0m"});
  CHECK(half_blocks({}, 2).empty());
}

TEST_CASE("an image and its attention in ASCII, side by side or below each other") {
  const std::string title = "encoder attention of all patches on average, layer 1\n";
  const std::string got = terminal_image(example(), {Shading::ascii, 80});
  CHECK(got.starts_with(title + "image                             head 1\n"));
  CHECK(got.ends_with("\n\nweight 0 [  ..::--==++**##%%@@] 1\n"));
  // The image is smoothed when it grows, the weights are not.
  CHECK(got.find("  " + std::string(16, ' ') + std::string(16, '@') + '\n') != std::string::npos);
  const std::string narrow = terminal_image(example(), {Shading::ascii, 30});
  CHECK(narrow.find("image\n") != std::string::npos);
  CHECK(narrow.find("head 1\n") != std::string::npos);
}

TEST_CASE("in 24-bit colours the weights lie over the image in grey, in 256 colours they stand alone") {
  const auto code = [](Rgb c) {
    return "2;" + std::to_string(c.red) + ';' + std::to_string(c.green) + ';' + std::to_string(c.blue);
  };
  const Image grey = grey_image(example().picture);
  const std::string full = terminal_image(example(), {Shading::truecolor, 80});
  CHECK(full.find("\x1b[1mencoder attention of all patches on average, layer 1\x1b[0m\n") == 0);
  // The upper right corner is bright and has the weight 1, the lower left corner is dark and has the weight 0.
  CHECK(full.find("38;" + code(overlay_color(1, grey.samples[1]))) != std::string::npos);
  CHECK(full.find("48;" + code(overlay_color(0, grey.samples[2]))) != std::string::npos);
  const std::string palette = terminal_image(example(), {Shading::palette, 80});
  CHECK(palette.find("38;5;" + std::to_string(palette_index(1.0F)) + ';') != std::string::npos);
  CHECK(palette.find("[38;2;") == std::string::npos);
}

TEST_CASE("an image with more patches than the terminal has columns") {
  ImageSection section = example();
  section.maps[0].grid = whole_grid({40, 40}, false);
  section.maps[0].map.columns = patch_labels(section.maps[0].grid);
  section.maps[0].map.weights.assign(1600, 1 / 1600.F);
  const std::string text = terminal_image(section, {Shading::blocks, 20});
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    CHECK(display_width(text.substr(at, end - at)) <= 20);
}
