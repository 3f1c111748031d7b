#include "heed/inspect/terminal_image.h"

#include <doctest/doctest.h>

#include <sstream>

#include "heed/base/utf8.h"
#include "heed/inspect/image_panels.h"

using namespace heed;

namespace {

/// Returns the section of an image with 2 x 2 patches, one of which is bright and has all weight.
ImageSection small_section() {
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

/// Returns the 24-bit colours of all pixels that a text draws with half blocks, row by row, without the columns between
/// pictures.
std::vector<std::vector<std::string>> pixels(const std::string& text) {
  std::vector<std::vector<std::string>> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("▀") == std::string::npos || line.find("weight") != std::string::npos) continue;
    std::vector<std::string> above, below;
    std::string front, back;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\x1b') {
        const std::string code = line.substr(i + 2, line.find('m', i) - i - 2);
        i += code.size() + 2;
        std::size_t middle = 0;  // of "38;2;R;G;B;48;2;R;G;B"
        for (int separators = 0; separators < 5 && middle != std::string::npos; ++separators)
          middle = code.find(';', middle + 1);
        if (middle != std::string::npos) {
          front = code.substr(3, middle - 3);
          back = code.substr(middle + 4);
        }
      } else if (line.compare(i, 3, "▀") == 0) {
        above.push_back(front);
        below.push_back(back);
        i += 2;
      }
    }
    out.push_back(above);
    out.push_back(below);
  }
  return out;
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
  const std::string got = terminal_image(small_section(), {Shading::ascii, 80});
  CHECK(got.starts_with(title + "image                             head 1\n"));
  CHECK(got.ends_with("\n\nweight 0 [  ..::--==++**##%%@@] 1\n"));
  // The image is smoothed when it grows, the weights are not.
  CHECK(got.find("  " + std::string(16, ' ') + std::string(16, '@') + '\n') != std::string::npos);
  const std::string narrow = terminal_image(small_section(), {Shading::ascii, 30});
  CHECK(narrow.find("image\n") != std::string::npos);
  CHECK(narrow.find("head 1\n") != std::string::npos);
}

TEST_CASE("in 24-bit colours the weights lie over the image in grey, in 256 colours they stand alone") {
  const auto code = [](Rgb c) {
    return "2;" + std::to_string(c.red) + ';' + std::to_string(c.green) + ';' + std::to_string(c.blue);
  };
  const Image grey = grey_image(small_section().picture);
  const std::string full = terminal_image(small_section(), {Shading::truecolor, 80});
  CHECK(full.find("\x1b[1mencoder attention of all patches on average, layer 1\x1b[0m\n") == 0);
  // The upper right corner is bright and has the weight 1, the lower left corner is dark and has the weight 0.
  CHECK(full.find("38;" + code(overlay_color(1, grey.samples[1]))) != std::string::npos);
  CHECK(full.find("48;" + code(overlay_color(0, grey.samples[2]))) != std::string::npos);
  const std::string palette = terminal_image(small_section(), {Shading::palette, 80});
  CHECK(palette.find("38;5;" + std::to_string(palette_index(1.0F)) + ';') != std::string::npos);
  CHECK(palette.find("[38;2;") == std::string::npos);
}

TEST_CASE("an image with more patches than the terminal has columns") {
  ImageSection section = small_section();
  section.maps[0].grid = whole_grid({40, 40}, false);
  section.maps[0].map.columns = patch_labels(section.maps[0].grid);
  section.maps[0].map.weights.assign(1600, 1 / 1600.F);
  const std::string text = terminal_image(section, {Shading::blocks, 20});
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    CHECK(display_width(text.substr(at, end - at)) <= 20);
}

TEST_CASE("in colours, the query has a frame, and windows have borders") {
  const GridSize size{4, 4};
  ImageSection section = small_section();
  PatchMap& map = section.maps[0];
  map.grid = windows_grid(size, window_partition(size, 2, 0));
  map.map.columns = patch_labels(map.grid);
  map.map.rows = {"1,0"};
  map.map.weights.assign(16, 0);
  map.query = 1;
  const std::string red = "2;220;30;60", white = "2;255;255;255";
  // The image and the panel have 32 x 32 pixels each, and a patch has 8 x 8.
  const auto found = pixels(terminal_image(section, {Shading::truecolor, 80}));
  REQUIRE(found.size() == 32);
  for (std::size_t y = 0; y < 32; ++y) {
    REQUIRE(found[y].size() == 64);
    for (std::size_t x = 0; x < 32; ++x) {
      const bool frame = x >= 8 && x < 16 && y < 8 && (x == 8 || x == 15 || y == 0 || y == 7);
      CHECK((found[y][x] == red) == frame);
      CHECK((found[y][32 + x] == red) == frame);
      CHECK((found[y][32 + x] == white) == (x == 16 || y == 16));
    }
  }
  // With 2 x 2 pixels, a patch has no room for a frame around its weight, and is marked in the image alone.
  map.grid = windows_grid({8, 8}, window_partition({8, 8}, 4, 2));
  map.map.columns = patch_labels(map.grid);
  map.map.weights.assign(64, 0);
  map.query = 9;
  const auto small = pixels(terminal_image(section, {Shading::truecolor, 34}));
  REQUIRE(small.size() == 16);
  for (std::size_t y = 0; y < 16; ++y) {
    REQUIRE(small[y].size() == 32);
    for (std::size_t x = 0; x < 16; ++x) {
      CHECK((small[y][x] == red) == (x / 2 == 1 && y / 2 == 1));
      CHECK(small[y][16 + x] != red);
      CHECK((small[y][16 + x] == white) == (x == 4 || x == 12 || y == 4 || y == 12));
    }
  }
  const std::string palette = terminal_image(section, {Shading::palette, 34});
  CHECK(palette.find("5;" + std::to_string(palette_index(kQueryColor))) != std::string::npos);
  // Patches of one pixel have no borders.
  map.grid = windows_grid({32, 32}, window_partition({32, 32}, 4, 0));
  map.map.columns = patch_labels(map.grid);
  map.map.weights.assign(1024, 0);
  for (const auto& row : pixels(terminal_image(section, {Shading::truecolor, 66})))
    for (std::size_t x = 32; x < row.size(); ++x) CHECK(row[x] != white);
}
