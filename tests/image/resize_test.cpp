#include "heed/image/resize.h"

#include <sys/resource.h>

#include "heed/image/operations.h"
#include "image_test.h"

namespace heed {
namespace {

TEST_CASE("scaled images equal Pillow's") {
  for (const auto& entry : reference_entries("resize.json")) {
    CAPTURE(entry.dump());
    const Image image = source_image(entry["file"]);
    const auto box = entry["box"].get<std::vector<int>>(), size = entry["size"].get<std::vector<int>>();
    const Image scaled = resize_box(image, {box[0], box[1], box[2], box[3]}, size[0], size[1]);
    CHECK(scaled.width == size[0]);
    CHECK(scaled.height == size[1]);
    CHECK(hash_of(scaled) == entry["hash"]);
    if (box[2] == image.width && box[3] == image.height) CHECK(resize(image, size[0], size[1]) == scaled);
  }
}

/// Returns the image turned by 90 degrees counter-clockwise.
Image turn(const Image& image) {
  Image turned = Image::black(image.height, image.width, image.channels);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x)
      std::copy_n(image.pixel(x, y), image.channels, turned.pixel(y, image.width - 1 - x));
  return turned;
}

TEST_CASE("fitted images equal those of torchvision's Resize and CenterCrop") {
  for (const auto& entry : reference_entries("fit.json")) {
    CAPTURE(entry.dump());
    const Image image = source_image(entry["file"]);
    const Image whole = entry["turned"].get<bool>() ? turn(image) : image;
    const int size = entry["size"];
    CHECK(hash_of(fit_image(whole, size, ImageFit::crop, entry["fraction"])) == entry["crop"]);
    CHECK(hash_of(fit_image(whole, size, ImageFit::stretch, entry["fraction"])) == entry["stretch"]);
  }
}

TEST_CASE("an image that has the size already stays as it is") {
  const Image image = random_image(24, 24, 3);
  CHECK(fit_image(image, 24, ImageFit::crop, 0.5) == image);
  CHECK(fit_image(image, 24, ImageFit::stretch, 0.5) == image);
  CHECK(resize(image, 24, 24) == image);
}

TEST_CASE("an image of one colour keeps the colour at any size") {
  Image image = Image::black(17, 5, 3);
  for (std::size_t i = 0; i < image.samples.size(); ++i)
    image.samples[i] = static_cast<std::uint8_t>(100 + 70 * (i % 3));
  for (const int size : {1, 2, 5, 17, 100}) {
    const Image scaled = resize(image, size, 7);
    for (int x = 0; x < size; ++x) CHECK(std::equal(image.pixel(0, 0), image.pixel(1, 0), scaled.pixel(x, 6)));
  }
}

TEST_CASE("a long image is cropped without making a larger one") {
  // The whole scaled image would have 100 million x 256 pixels.
  const Image image = random_image(400'000, 1, 1);
  const Image square = fit_image(image, 224, ImageFit::crop, 0.875);
  CHECK(square.width == 224);
  CHECK(square.height == 224);
  // A pixel of the image covers 256 columns, so that few different samples are in the centre.
  CHECK(square.row(0)[0] == square.row(223)[0]);
  CHECK(resize(image, 3, 3).samples.size() == 9);
}

TEST_CASE("a tall image is stretched without a wide copy of all its rows") {
  const auto peak = [] {  // of the memory of this process, in bytes
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss * std::int64_t{1024};
  };
  // All rows at the width of the result would be 256 million samples.
  const Image image = random_image(1, 1'000'000, 1);
  const std::int64_t before = peak();
  const Image square = fit_image(image, 256, ImageFit::stretch, 0.875);
  CHECK(peak() - before < 100'000'000);
  CHECK(square.width == 256);
  CHECK(square.height == 256);
  // The columns of the result are the same, and all that they are computed from is in the image.
  for (int y = 0; y < 256; ++y) CHECK(square.row(y)[0] == square.row(y)[255]);
  CHECK(square.row(100)[0] == resize_box(image, {0, 375'000, 1, 31'250}, 1, 8).row(4)[0]);
}

TEST_CASE("a size without pixels, or a box outside the image, is an error") {
  const Image image = random_image(4, 4, 3);
  CHECK_THROWS_AS(resize(image, 0, 3), Error);
  CHECK_THROWS_AS(resize_box(image, {2, 0, 3, 1}, 2, 2), Error);
  CHECK_THROWS_AS(resize_box(image, {-1, 0, 3, 1}, 2, 2), Error);
  CHECK_THROWS_AS(fit_image(image, 8, ImageFit::crop, 0), Error);
}

}  // namespace
}  // namespace heed
