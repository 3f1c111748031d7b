#pragma once

#include <string_view>
#include <utility>

#include "heed/base/random.h"
#include "heed/config/fields.h"
#include "heed/image/image.h"
#include "heed/image/resize.h"

namespace heed {

/// How training images are changed at random: not at all; by cropping and flipping; or by cropping, flipping and
/// RandAugment (Cubuk et al. 2020, "RandAugment: Practical automated data augmentation with a reduced search space").
enum class Augmentation { none, crop_flip, randaugment };

template <>
struct EnumNames<Augmentation> {
  static constexpr std::pair<Augmentation, std::string_view> values[] = {
      {Augmentation::none, "none"}, {Augmentation::crop_flip, "crop-flip"}, {Augmentation::randaugment, "randaugment"}};
};

struct AugmentOptions {
  Augmentation augment = Augmentation::crop_flip;
  int size = 32;                  ///< width and height of the result
  ImageFit fit = ImageFit::crop;  ///< for Augmentation::none, as in fit_image()
  double crop_fraction = 0.875;   ///< for Augmentation::none, as in fit_image()
  int operations = 2;             ///< number of RandAugment's operations for an image
  int magnitude = 9;              ///< strength of RandAugment's operations, 0..30
};

/// Returns a random view of the image for training, of size x size pixels, which depends on the image, the options and
/// `stream` only.
///
/// - `none` calls fit_image(); nothing is random.
/// - `crop_flip` pads an image that has the size already with size / 8 black pixels on each side and cuts out a random
///   square of size x size (the usual recipe for CIFAR); of another image, it cuts a random rectangle
///   (random_crop_box()) and scales the rectangle to the size. Then it flips the image left to right with probability
///   1/2.
/// - `randaugment` does the same, and then applies `operations` random operations of the list ImageOperation.
Image augment(const Image& image, const AugmentOptions& options, const RandomStream& stream);

/// Returns a random rectangle of a width x height image, as torchvision's RandomResizedCrop chooses it: 8 % to 100 % of
/// the image's area, with sides in a ratio between 3 to 4 and 4 to 3. If ten attempts give no rectangle that lies
/// within the image, the rectangle is the largest one in the centre with an allowed ratio. Uses the elements of
/// `stream` from number `first` on, at most 40 of them.
ImageBox random_crop_box(int width, int height, const RandomStream& stream, std::uint64_t first = 0);

}  // namespace heed
