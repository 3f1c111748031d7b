#pragma once

#include <string>
#include <string_view>

#include "heed/image/image.h"

namespace heed {

/// Reads an image file: PNG, JPEG, or PNM in its six plain and raw forms (PBM, PGM, PPM). The content of the file
/// decides the format, not the name of the file. The result has `channels` channels, 1 or 3:
///
/// - A grey image becomes three equal channels; a colour image becomes grey as by Pillow's convert("L") (grey_of()).
/// - Palettes and samples of 1, 2 and 4 bits are expanded. Of 16-bit samples the upper 8 bits are kept. The samples of
///   a PNM file with another greatest value than 255 are scaled to 0..255.
/// - Transparent pixels are laid over white, and so are the colours that a PNG file declares transparent.
/// - CMYK and YCCK JPEG files become RGB as in Pillow, which takes all of them to be inverted, as Adobe's programs
///   write them. Colour profiles and gamma values have no effect.
/// - EXIF data is ignored. A photograph that EXIF says to turn is therefore not turned.
///
/// An animated PNG gives its default image, and a PNM file with several images gives the first one.
///
/// Throws Error, with the path and advice, when the file cannot be read, has another format, is truncated or damaged
/// (also where libjpeg would only warn and fill the gap with grey), has no pixels, or has more than kMostPixels pixels.
Image read_image(const std::string& path, int channels);
/// Throws Error, as read_image() does, where there is no file with this path that may be read.
void check_image_path(const std::string& path);
/// Decodes the bytes of an image file, as read_image() does. Error messages call the file `name`.
Image decode_image(std::string_view bytes, int channels, const std::string& name);

/// The greatest number of pixels of an image that heed reads.
inline constexpr long long kMostPixels = 100'000'000;

}  // namespace heed
