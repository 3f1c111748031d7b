#pragma once

#include <string>
#include <string_view>

namespace heed {

/// The formats of image files that heed reads; `pnm` is PBM, PGM and PPM.
enum class ImageFormat { png, jpeg, pnm };

/// Returns the format of an image file from the bytes at its start; kFormatBytes bytes are enough. Throws Error, with
/// advice, when the bytes are not the start of such a file; the message says what the file is instead, where the bytes
/// tell. Error messages call the file `name`.
ImageFormat image_format(std::string_view start, const std::string& name);
inline constexpr int kFormatBytes = 512;

}  // namespace heed
