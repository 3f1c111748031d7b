#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "heed/image/image.h"

namespace heed {

// The readers of the single formats, for decode_image(), which describes their results and errors. `bytes` is a whole
// file, which begins as image_format() has found; `channels` is 1 or 3; messages call the file `name`.

Image read_png(std::string_view bytes, int channels, const std::string& name);
Image read_jpeg(std::string_view bytes, int channels, const std::string& name);
Image read_pnm(std::string_view bytes, int channels, const std::string& name);

/// Throws Error when an image of this size is empty or has more than kMostPixels pixels. Each reader calls the function
/// before it allocates the image.
void check_image_size(std::uint64_t width, std::uint64_t height, const std::string& name);

/// Throws the error about a file that ends too early.
[[noreturn]] void fail_truncated(const std::string& name);
/// Throws the error about a damaged file. `what` says what is wrong, such as "IDAT: CRC error".
[[noreturn]] void fail_damaged(const std::string& name, const std::string& what);

}  // namespace heed
