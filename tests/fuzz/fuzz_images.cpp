// Images: any bytes are refused with a message or decoded to a whole image; the image in grey is the grey version of
// the image in colour; and what is decoded can be scaled and augmented.
#include <zlib.h>

#include "fuzz.h"
#include "heed/base/error.h"
#include "heed/image/augment.h"
#include "heed/image/read_image.h"

namespace {

using namespace heed;

/// Returns a PNG file with the right CRC of each chunk, so that changed bytes reach the decoder.
std::string with_checksums(std::string bytes) {
  constexpr std::size_t kSignature = 8, kLength = 4, kName = 4, kCrc = 4;
  for (std::size_t at = kSignature; at + kLength + kName + kCrc <= bytes.size();) {
    const auto byte = [&](std::size_t i) {
      return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + i]));
    };
    const std::size_t length = byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
    if (length > bytes.size() - at - kLength - kName - kCrc) break;
    const std::size_t end = at + kLength + kName + length;
    const auto crc =
        ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()) + at + kLength, static_cast<uInt>(kName + length));
    for (std::size_t i = 0; i < kCrc; ++i) bytes[end + i] = static_cast<char>(crc >> (24 - 8 * i) & 0xFF);
    at = end + kCrc;
  }
  return bytes;
}

Image decode(std::string_view bytes, int channels) {
  try {
    Image image = decode_image(bytes, channels, "f");
    fuzz::require(image.width > 0 && image.height > 0 && image.channels == channels, "an image has pixels");
    fuzz::require(image.samples.size() == image.row_size() * static_cast<std::size_t>(image.height), "a whole image");
    return image;
  } catch (const Error& error) {
    fuzz::require(std::string(error.what()).starts_with("f: "), "a message names the file");
    return {};
  }
}

void check(std::string_view bytes, const AugmentOptions& options, const RandomStream& stream) {
  const Image colored = decode(bytes, 3), grey = decode(bytes, 1);
  fuzz::require(colored.width == grey.width && colored.height == grey.height, "the size in grey");
  for (std::size_t i = 0; i < grey.samples.size(); ++i)
    fuzz::require(
        grey.samples[i] == grey_of(colored.samples[3 * i], colored.samples[3 * i + 1], colored.samples[3 * i + 2]),
        "the same image in grey");
  if (grey.samples.empty() || grey.samples.size() > 100'000) return;
  for (const Image* image : {&colored, &grey}) {
    const Image view = augment(*image, options, stream);
    fuzz::require(view.width == options.size && view.height == options.size, "the size of a view");
    fuzz::require(view.samples.size() == view.row_size() * static_cast<std::size_t>(options.size), "a whole view");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  // The choices depend on the bytes, and take none of them, so that seeds are image files.
  const auto hash = static_cast<std::uint64_t>(::crc32(0, data, static_cast<uInt>(size)));
  AugmentOptions options;
  options.augment = EnumNames<Augmentation>::values[hash % 3].first;
  options.fit = hash & 8 ? ImageFit::crop : ImageFit::stretch;
  options.size = 1 + static_cast<int>(hash / 16 % 40);
  options.magnitude = static_cast<int>(hash / 1024 % 31);
  const RandomStream stream(hash, RandomUse::images);
  check(bytes, options, stream);
  if (bytes.starts_with("\x89PNG")) check(with_checksums(bytes), options, stream);
  return 0;
}
