#include "heed/image/augment.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "heed/image/operations.h"

namespace heed {

namespace {

// The elements of the random stream of a view: the crop uses the first ones, at most kTries * 4. Each of RandAugment's
// operations uses two.
constexpr int kTries = 10;
constexpr std::uint64_t kFlipElement = kTries * 4, kOperationElement = kFlipElement + 1;

constexpr double kLeastArea = 0.08, kMostArea = 1, kLeastRatio = 3.0 / 4, kMostRatio = 4.0 / 3;

/// Returns a rectangle in the centre of the image that is as large as the allowed ratios of its sides permit.
ImageBox central_box(int width, int height) {
  const double ratio = static_cast<double>(width) / height;
  int box_width = width, box_height = height;
  if (ratio < kLeastRatio) box_height = static_cast<int>(std::nearbyint(width / kLeastRatio));
  if (ratio > kMostRatio) box_width = static_cast<int>(std::nearbyint(height * kMostRatio));
  return {(width - box_width) / 2, (height - box_height) / 2, box_width, box_height};
}

/// Pads the image with `size` / 8 black pixels on each side and cuts out a random square of size x size pixels.
Image crop_padded(const Image& image, int size, const RandomStream& stream) {
  const int padding = size / 8;
  const auto places = static_cast<std::uint64_t>(2 * padding + 1);
  const int left = static_cast<int>(stream.below(places, 0)) - padding,
            top = static_cast<int>(stream.below(places, 1)) - padding;
  Image result = Image::black(size, size, image.channels);
  const int begin = std::max(-left, 0), end = std::min(size - left, size);  // columns of the result within the image
  for (int y = std::max(-top, 0); y < std::min(size - top, size); ++y)
    std::copy(image.pixel(left + begin, top + y), image.pixel(left + begin, top + y) + (end - begin) * image.channels,
              result.pixel(begin, y));
  return result;
}

}  // namespace

ImageBox random_crop_box(int width, int height, const RandomStream& stream, std::uint64_t first) {
  const double area = static_cast<double>(width) * height;
  for (std::uint64_t at = first; at < first + kTries * 4; at += 4) {
    const double box_area = area * (kLeastArea + (kMostArea - kLeastArea) * stream.uniform(at));
    const double least = std::log(kLeastRatio), most = std::log(kMostRatio);
    const double ratio = std::exp(least + (most - least) * stream.uniform(at + 1));
    const double box_width = std::nearbyint(std::sqrt(box_area * ratio)),
                 box_height = std::nearbyint(std::sqrt(box_area / ratio));
    if (box_width < 1 || box_width > width || box_height < 1 || box_height > height) continue;
    ImageBox box{0, 0, static_cast<int>(box_width), static_cast<int>(box_height)};
    box.top = static_cast<int>(stream.below(static_cast<std::uint64_t>(height - box.height + 1), at + 2));
    box.left = static_cast<int>(stream.below(static_cast<std::uint64_t>(width - box.width + 1), at + 3));
    return box;
  }
  return central_box(width, height);
}

Image augment(const Image& image, const AugmentOptions& options, const RandomStream& stream) {
  const int size = options.size;
  if (options.augment == Augmentation::none) return fit_image(image, size, options.fit, options.crop_fraction);
  Image view = image.width == size && image.height == size
                   ? crop_padded(image, size, stream)
                   : resize_box(image, random_crop_box(image.width, image.height, stream), size, size);
  if (stream.below(2, kFlipElement) == 1) view = flip_image(view);
  if (options.augment != Augmentation::randaugment) return view;
  for (int i = 0; i < options.operations; ++i) {
    const std::uint64_t at = kOperationElement + 2 * static_cast<std::uint64_t>(i);
    const auto operation = static_cast<ImageOperation>(stream.below(kImageOperations, at));
    const OperationAmount strength = operation_amount(operation, options.magnitude, size, size);
    const bool negative = strength.takes_sign && stream.below(2, at + 1) == 1;
    view = apply_operation(view, operation, negative ? -strength.amount : strength.amount);
  }
  return view;
}

}  // namespace heed
