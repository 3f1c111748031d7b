#pragma once

#include <string_view>
#include <utility>

#include "heed/config/fields.h"
#include "heed/image/image.h"

namespace heed {

/// The operations of RandAugment, in the order of torchvision's list.
enum class ImageOperation {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize
};

template <>
struct EnumNames<ImageOperation> {
  static constexpr std::pair<ImageOperation, std::string_view> values[] = {
      {ImageOperation::identity, "identity"},
      {ImageOperation::shear_x, "shear-x"},
      {ImageOperation::shear_y, "shear-y"},
      {ImageOperation::translate_x, "translate-x"},
      {ImageOperation::translate_y, "translate-y"},
      {ImageOperation::rotate, "rotate"},
      {ImageOperation::brightness, "brightness"},
      {ImageOperation::color, "color"},
      {ImageOperation::contrast, "contrast"},
      {ImageOperation::sharpness, "sharpness"},
      {ImageOperation::posterize, "posterize"},
      {ImageOperation::solarize, "solarize"},
      {ImageOperation::auto_contrast, "auto-contrast"},
      {ImageOperation::equalize, "equalize"}};
};

/// Number of values of ImageOperation.
inline constexpr int kImageOperations = 14;
/// The greatest magnitude of RandAugment: torchvision divides the range of each operation's amount into 31 bins.
inline constexpr int kMostMagnitude = 30;

/// The amount of an operation, in the operation's own unit, and whether RandAugment may change the amount's sign.
struct OperationAmount {
  double amount = 0;
  bool takes_sign = false;
};

/// Returns the amount that an operation has for a magnitude, 0..30, on an image of width x height pixels, as in
/// torchvision's RandAugment.
OperationAmount operation_amount(ImageOperation operation, int magnitude, int width, int height);

/// Applies one operation to the image. The amount is the tangent of the angle for shears, whole pixels for translations
/// (a fraction is cut off), degrees for rotations (counter-clockwise), the change of the factor 1 for brightness,
/// color, contrast and sharpness, the number of bits that are kept for posterize, and the threshold for solarize.
/// Pixels from outside the image are black; positions are rounded to the nearest pixel. The bytes equal those of
/// torchvision's functions on images of Pillow.
Image apply_operation(const Image& image, ImageOperation operation, double amount);

/// Returns the image with left and right exchanged.
Image flip_image(const Image& image);

}  // namespace heed
