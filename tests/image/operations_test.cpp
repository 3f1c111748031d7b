#include "heed/image/operations.h"

#include "image_test.h"

namespace heed {
namespace {

ImageOperation operation_named(const std::string& name) {
  for (const auto& [operation, known] : EnumNames<ImageOperation>::values)
    if (known == name) return operation;
  throw Error("no operation " + name);
}

TEST_CASE("the operations and their amounts equal those of torchvision's RandAugment") {
  static_assert(std::size(EnumNames<ImageOperation>::values) == kImageOperations);
  for (const auto& entry : reference_entries("operations.json")) {
    CAPTURE(entry.dump());
    const Image image = source_image(entry["file"]);
    const ImageOperation operation = operation_named(entry["operation"]);
    const OperationAmount strength = operation_amount(operation, entry["magnitude"], image.width, image.height);
    CHECK(strength.amount == entry["amount"].get<double>());
    CHECK(strength.takes_sign == entry["signed"].get<bool>());
    CHECK(hash_of(apply_operation(image, operation, strength.amount)) == entry["hash"]);
    if (strength.takes_sign) CHECK(hash_of(apply_operation(image, operation, -strength.amount)) == entry["negative"]);
  }
}

TEST_CASE("the operations take images of any size") {
  for (const auto& [operation, name] : EnumNames<ImageOperation>::values) {
    CAPTURE(name);
    for (const auto& [width, height] : {std::pair{1, 1}, {2, 1}, {1, 5}, {2, 2}, {3, 2}, {70, 1}}) {
      for (const int channels : {1, 3}) {
        const Image image = random_image(width, height, channels);
        const Image changed = apply_operation(image, operation, operation_amount(operation, 30, width, height).amount);
        CHECK(changed.width == width);
        CHECK(changed.height == height);
        CHECK(changed.samples.size() == image.samples.size());
      }
    }
  }
}

TEST_CASE("a flipped image has left and right exchanged") {
  const Image image = random_image(5, 3, 3), flipped = flip_image(image);
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 5; ++x) CHECK(std::equal(image.pixel(x, y), image.pixel(x, y) + 3, flipped.pixel(4 - x, y)));
  CHECK(flip_image(flipped) == image);
}

TEST_CASE("a magnitude outside 0..30 is an error") {
  CHECK_THROWS_AS(operation_amount(ImageOperation::rotate, 31, 8, 8), Error);
  CHECK_THROWS_AS(operation_amount(ImageOperation::rotate, -1, 8, 8), Error);
}

}  // namespace
}  // namespace heed
