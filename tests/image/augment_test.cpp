#include "heed/image/augment.h"

#include <cmath>
#include <map>
#include <set>

#include "heed/image/operations.h"
#include "image_test.h"

namespace heed {
namespace {

RandomStream stream_of(std::uint64_t number) {
  return RandomStream(7, RandomUse::images, number);
}

TEST_CASE("a view depends on the stream only, and has the size") {
  for (const int width : {32, 50}) {
    const Image image = random_image(width, 32, 3);
    for (const Augmentation how : {Augmentation::none, Augmentation::crop_flip, Augmentation::randaugment}) {
      const AugmentOptions options{.augment = how, .size = 32};
      std::set<std::string> views;
      for (std::uint64_t i = 0; i < 50; ++i) {
        const Image view = augment(image, options, stream_of(i));
        CHECK(view.width == 32);
        CHECK(view.height == 32);
        CHECK(view.channels == 3);
        CHECK(view == augment(image, options, stream_of(i)));
        views.insert(hash_of(view));
      }
      if (how == Augmentation::none)
        CHECK(views.size() == 1);
      else
        CHECK(views.size() > 40);
    }
  }
}

TEST_CASE("without augmentation, an image is only fitted") {
  const Image image = random_image(40, 30, 1);
  const AugmentOptions options{.augment = Augmentation::none, .size = 16, .crop_fraction = 0.8};
  CHECK(augment(image, options, stream_of(1)) == fit_image(image, 16, ImageFit::crop, 0.8));
}

/// Returns the image moved to the right and downwards, with black where nothing is.
Image moved(const Image& image, int right, int down) {
  return apply_operation(apply_operation(image, ImageOperation::translate_x, right), ImageOperation::translate_y, down);
}

TEST_CASE("an image of the right size is moved by up to an eighth and flipped") {
  const Image image = random_image(16, 16, 3);
  std::map<std::string, int> possible;  // the hash of each view, and its number
  for (int right = -2; right <= 2; ++right) {
    for (int down = -2; down <= 2; ++down) {
      const Image view = moved(image, right, down);
      possible.emplace(hash_of(view), static_cast<int>(possible.size()));
      possible.emplace(hash_of(flip_image(view)), static_cast<int>(possible.size()));
    }
  }
  REQUIRE(possible.size() == 50);
  std::vector<int> counts(50);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const Image view = augment(image, {.size = 16}, stream_of(i));
    REQUIRE(possible.count(hash_of(view)) == 1);
    ++counts[static_cast<std::size_t>(possible.at(hash_of(view)))];
  }
  // Each view is expected 100 times; 50 is five standard deviations away.
  for (const int count : counts) CHECK(std::abs(count - 100) < 50);
}

TEST_CASE("random rectangles have torchvision's areas and ratios, and are anywhere") {
  double areas = 0, ratios = 0, lefts = 0;
  int at_left = 0, at_right = 0;
  constexpr int kCount = 10'000, kWidth = 120, kHeight = 100;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const ImageBox box = random_crop_box(kWidth, kHeight, stream_of(i));
    REQUIRE((box.width > 0 && box.height > 0 && box.left >= 0 && box.top >= 0));
    REQUIRE((box.left + box.width <= kWidth && box.top + box.height <= kHeight));
    const double area = static_cast<double>(box.width) * box.height / (kWidth * kHeight);
    const double ratio = static_cast<double>(box.width) / box.height;
    CHECK(area >= 0.08 * 0.95);
    CHECK(ratio >= 3.0 / 4 * 0.95);
    CHECK(ratio <= 4.0 / 3 * 1.05);
    areas += area / kCount;
    ratios += std::log(ratio) / kCount;
    lefts += (box.left + box.width / 2.0) / kCount;
    at_left += box.left == 0;
    at_right += box.left + box.width == kWidth;
  }
  // torchvision's algorithm gives these means for an image of this size, measured on 200,000 rectangles.
  CHECK(areas == doctest::Approx(0.465).epsilon(0.02));
  CHECK(std::abs(ratios - 0.024) < 0.01);
  CHECK(lefts == doctest::Approx(kWidth / 2.0).epsilon(0.01));
  CHECK(at_left == doctest::Approx(0.0376 * kCount).epsilon(0.2));
  CHECK(at_right == doctest::Approx(0.0376 * kCount).epsilon(0.2));
}

TEST_CASE("an image too long for any rectangle gives its centre") {
  const ImageBox wide = random_crop_box(1000, 3, stream_of(1)), high = random_crop_box(3, 1000, stream_of(1));
  CHECK(wide.width == 4);
  CHECK(wide.height == 3);
  CHECK(wide.left == 498);
  CHECK(wide.top == 0);
  CHECK(high.width == 3);
  CHECK(high.height == 4);
  CHECK(high.top == 498);
}

TEST_CASE("another image than one of the right size is cropped and scaled") {
  const Image image = random_image(60, 45, 3);
  int flips = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Image scaled = resize_box(image, random_crop_box(60, 45, stream_of(i)), 32, 32);
    const Image view = augment(image, {}, stream_of(i));
    const bool flipped = view != scaled;
    if (flipped) CHECK(view == flip_image(scaled));
    flips += flipped;
  }
  CHECK(flips > 65);
  CHECK(flips < 135);
}

TEST_CASE("RandAugment applies the given number of operations, and uses all of them") {
  const Image image = random_image(32, 32, 3);
  std::vector<int> counts(kImageOperations);
  for (std::uint64_t i = 0; i < 700; ++i) {
    const AugmentOptions none{.augment = Augmentation::randaugment, .operations = 0},
        one{.augment = Augmentation::randaugment, .operations = 1, .magnitude = 12};
    const Image cropped = augment(image, {}, stream_of(i)), view = augment(image, one, stream_of(i));
    CHECK(augment(image, none, stream_of(i)) == cropped);
    int found = -1;
    for (int op = 0; op < kImageOperations && found < 0; ++op) {
      const auto operation = static_cast<ImageOperation>(op);
      const OperationAmount strength = operation_amount(operation, 12, 32, 32);
      for (const double sign : {1.0, -1.0})
        if (apply_operation(cropped, operation, sign * strength.amount) == view) found = op;
    }
    REQUIRE(found >= 0);
    ++counts[static_cast<std::size_t>(found)];
  }
  // Each operation is expected 50 times. On random samples, auto-contrast changes nothing, as identity does.
  for (std::size_t op = 1; op < counts.size(); ++op)
    if (static_cast<ImageOperation>(op) != ImageOperation::auto_contrast) CHECK(counts[op] > 20);
}

}  // namespace
}  // namespace heed
