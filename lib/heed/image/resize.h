#pragma once

#include <string_view>
#include <utility>

#include "heed/config/fields.h"
#include "heed/image/image.h"

namespace heed {

/// How an image of any size becomes a square: `crop` keeps the proportions and cuts off the ends of the longer side;
/// `stretch` changes the proportions and keeps the whole image.
enum class ImageFit { crop, stretch };

template <>
struct EnumNames<ImageFit> {
  static constexpr std::pair<ImageFit, std::string_view> values[] = {{ImageFit::crop, "crop"},
                                                                     {ImageFit::stretch, "stretch"}};
};

/// A rectangle of an image, in pixels: `left` and `top` are the column and the row of the first pixel.
struct ImageBox {
  int left = 0, top = 0, width = 0, height = 0;
};

/// Scales the image to width x height with the triangle filter, which is made wider when the image shrinks, so that
/// every pixel counts (antialiasing): a horizontal pass and then a vertical pass, each in 8-bit fixed-point arithmetic.
/// The bytes equal those of Image.resize((width, height), BILINEAR) of Pillow up to version 12. (Pillow 13 begins with
/// the vertical pass where the height shrinks much more than the width, which changes some samples by 1.)
Image resize(const Image& image, int width, int height);
/// Cuts the rectangle `box` out of the image and scales it to width x height, as resize() scales an image. Pixels
/// outside the rectangle have no effect. The rectangle must lie within the image.
Image resize_box(const Image& image, const ImageBox& box, int width, int height);

/// Makes a square image of size x size. `crop` scales the shorter side to round(size / crop_fraction) pixels and cuts
/// out the centre, as torchvision's Resize and CenterCrop do; crop_fraction, 0 < crop_fraction <= 1, has the usual
/// value 0.875, which is 224 of 256 pixels. `stretch` scales both sides to `size`. An image that has the size already
/// stays as it is.
Image fit_image(const Image& image, int size, ImageFit fit, double crop_fraction);

}  // namespace heed
