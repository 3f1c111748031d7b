#include "heed/image/image_format.h"

#include <algorithm>

#include "heed/base/error.h"

namespace heed {

namespace {

/// How the files of a format begin: the bytes `magic` at the place `at`.
struct Magic {
  std::string_view magic;
  std::size_t at;
  std::string_view name;
};

constexpr std::string_view bytes(const char* text, std::size_t size) {
  return {text, size};
}

// Formats that heed does not read, and that people may take for images that heed reads.
const Magic kOthers[] = {{"GIF8", 0, "a GIF image"},
                         {"BM", 0, "a BMP image"},
                         {"WEBP", 8, "a WebP image"},
                         {bytes("II*\0", 4), 0, "a TIFF image"},
                         {bytes("MM\0*", 4), 0, "a TIFF image"},
                         {bytes("II+\0", 4), 0, "a TIFF image"},
                         {bytes("MM\0+", 4), 0, "a TIFF image"},
                         {"ftypavi", 4, "an AVIF image"},
                         {"ftyphei", 4, "a HEIC image"},
                         {"ftypmif1", 4, "a HEIC or AVIF image"},
                         {bytes("\0\0\0\x0CjP  ", 8), 0, "a JPEG 2000 image"},
                         {"\xFF\x4F\xFF\x51", 0, "a JPEG 2000 image"},
                         {"\xFF\x0A", 0, "a JPEG XL image"},
                         {bytes("\0\0\0\x0CJXL ", 8), 0, "a JPEG XL image"},
                         {bytes("\0\0\1\0", 4), 0, "an ICO image"},
                         {"8BPS", 0, "a Photoshop image"},
                         {"qoif", 0, "a QOI image"},
                         {"P7\n", 0, "a PAM image"},
                         {"PF\n", 0, "a PFM image"},
                         {"Pf\n", 0, "a PFM image"},
                         {"%PDF", 0, "a PDF document"},
                         {"\x1F\x8B", 0, "gzip data"},
                         {"PK\x03\x04", 0, "a ZIP archive"}};

bool is_pnm(std::string_view start) {
  return start.size() >= 3 && start[0] == 'P' && start[1] >= '1' && start[1] <= '6' &&
         (start[2] == '#' || std::string_view(" \t\n\v\f\r").find(start[2]) != std::string_view::npos);
}

/// Returns whether the bytes look like text: no control characters but white space. Bytes of letters beyond ASCII count
/// as text.
bool is_text(std::string_view start) {
  return std::none_of(start.begin(), start.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0x7F || (byte < 0x20 && !(byte >= '\t' && byte <= '\r'));
  });
}

}  // namespace

ImageFormat image_format(std::string_view start, const std::string& name) {
  if (start.starts_with("\x89PNG\r\n\x1A\n")) return ImageFormat::png;
  if (start.starts_with("\xFF\xD8\xFF")) return ImageFormat::jpeg;
  if (is_pnm(start)) return ImageFormat::pnm;
  if (start.empty()) throw Error(Position{name}, "is empty (copy the image again)");
  start = start.substr(0, kFormatBytes);
  for (const Magic& other : kOthers)
    if (start.size() > other.at && start.substr(other.at).starts_with(other.magic))
      throw Error(Position{name},
                  "is " + std::string(other.name) + ", which heed does not read (make it PNG, JPEG or PPM)");
  if (std::string_view("\x89PNG\r\n\x1A\n").starts_with(start) || std::string_view("\xFF\xD8\xFF").starts_with(start))
    throw Error(Position{name}, "is truncated: only the start of an image (copy the image again)");
  if (is_text(start)) throw Error(Position{name}, "is text, not an image (name a PNG, JPEG, PBM, PGM or PPM file)");
  throw Error(Position{name}, "is not an image that heed reads (name a PNG, JPEG, PBM, PGM or PPM file)");
}

}  // namespace heed
