#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "heed/base/error.h"
#include "heed/image/readers.h"

namespace heed {

namespace {

// libpng reports errors by a call of a function that must not return. The functions here jump back to the setjmp() in
// the function of PngDecoder that has called libpng. No object with a destructor may live in a function that such a
// jump leaves; therefore the member functions have only plain local variables and return false after an error.

/// A PNG file that is being decoded. The caller checks the result of each member function and ends after `false`.
class PngDecoder {
 public:
  explicit PngDecoder(std::string_view bytes) : bytes_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_) info_ = png_create_info_struct(png_);
    if (!info_) std::snprintf(message_, sizeof message_, "out of memory");
  }
  ~PngDecoder() {
    if (png_) png_destroy_read_struct(&png_, &info_, nullptr);
  }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  /// Reads everything before the pixels. Afterwards, samples() is known; they are 8-bit samples.
  bool read_header(int channels);
  /// Reads the pixels, samples() for each, into the array `pixels`, row by row, and the rest of the file.
  bool read_pixels(std::uint8_t* pixels);

  int samples() const { return png_get_channels(png_, info_); }
  /// Returns the number of bits of a pixel in the file.
  unsigned file_bits() const { return file_bits_; }
  bool truncated() const { return truncated_; }
  const char* message() const { return message_; }

 private:
  static PngDecoder& of(png_structp png) { return *static_cast<PngDecoder*>(png_get_error_ptr(png)); }

  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    std::snprintf(of(png).message_, sizeof message_, "%s", text);
    png_longjmp(png, 1);
  }

  /// libpng only warns when the checksum of all pixels is wrong, which means that the pixels are wrong.
  static void on_warning(png_structp png, png_const_charp text) {
    if (std::strcmp(text, "IDAT: incorrect data check") == 0) on_error(png, text);
  }

  static void on_read(png_structp png, png_bytep to, std::size_t count) {
    PngDecoder& decoder = *static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (count > decoder.bytes_.size() - decoder.at_) {
      decoder.truncated_ = true;
      png_error(png, "the file ends too early");
    }
    std::memcpy(to, decoder.bytes_.data() + decoder.at_, count);
    decoder.at_ += count;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  unsigned file_bits_ = 0;
  bool truncated_ = false;
  char message_[200] = {};
};

// Ancillary chunks without effect on the samples: libpng skips them, and checks only their CRC.
constexpr png_byte kSkippedChunks[] =
    "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0sTER\0tEXt\0tIME\0zTXt";

bool PngDecoder::read_header(int channels) {
  if (!info_) return false;
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  png_set_read_fn(png_, this, on_read);
  png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kSkippedChunks, sizeof kSkippedChunks / 5);
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_image_size() has checked the size
  png_read_info(png_, info_);
  file_bits_ = static_cast<unsigned>(png_get_channels(png_, info_)) * png_get_bit_depth(png_, info_);
  png_set_expand(png_);
  png_set_strip_16(png_);
  if (channels == 3) png_set_gray_to_rgb(png_);
  png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  return true;
}

bool PngDecoder::read_pixels(std::uint8_t* pixels) {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  const std::size_t row_size = png_get_rowbytes(png_, info_);
  const png_uint_32 height = png_get_image_height(png_, info_);
  const int passes = png_get_interlace_type(png_, info_) == PNG_INTERLACE_NONE ? 1 : PNG_INTERLACE_ADAM7_PASSES;
  for (int pass = 0; pass < passes; ++pass)
    for (png_uint_32 y = 0; y < height; ++y) png_read_row(png_, pixels + y * row_size, nullptr);
  png_read_end(png_, nullptr);
  return true;
}

/// Lays a sample with opacity `alpha`, 0..255, over white, and rounds to the nearest whole number.
std::uint8_t over_white(unsigned sample, unsigned alpha) {
  return static_cast<std::uint8_t>((sample * alpha + 255 * (255 - alpha) + 127) / 255);
}

/// Returns the image of pixels with 1 (grey), 2 (grey, alpha), 3 (red, green, blue) or 4 (red, green, blue, alpha)
/// samples.
Image without_alpha(const std::vector<std::uint8_t>& pixels, int samples, int width, int height, int channels) {
  Image image = Image::black(width, height, channels);
  const bool has_alpha = samples % 2 == 0, colored = samples > 2;
  const std::uint8_t* from = pixels.data();
  std::uint8_t* to = image.samples.data();
  const std::uint8_t* const end = to + image.samples.size();
  for (; to != end; from += samples) {
    const unsigned alpha = has_alpha ? from[samples - 1] : 255;
    std::uint8_t color[3];
    for (int c = 0; c < (colored ? 3 : 1); ++c) color[c] = over_white(from[c], alpha);
    if (channels == 1) {
      *to++ = colored ? grey_of(color[0], color[1], color[2]) : color[0];
    } else {
      for (int c = 0; c < 3; ++c) *to++ = color[colored ? c : 0];
    }
  }
  return image;
}

/// Checks the chunk IHDR, with which a PNG file begins, as far as its length and the image's size: libpng has limits of
/// its own and would not name the size.
void check_header(std::string_view bytes, const std::string& name) {
  constexpr std::size_t kWidth = 16, kHeight = 20, kEnd = 24;
  if (bytes.size() < kEnd) fail_truncated(name);
  if (bytes.substr(12, 4) != "IHDR") fail_damaged(name, "the chunk IHDR is missing");
  const auto* header = reinterpret_cast<const png_byte*>(bytes.data());
  check_image_size(png_get_uint_32(header + kWidth), png_get_uint_32(header + kHeight), name);
}

[[noreturn]] void fail(const PngDecoder& decoder, const std::string& name) {
  if (decoder.truncated()) fail_truncated(name);
  fail_damaged(name, decoder.message());
}

}  // namespace

Image read_png(std::string_view bytes, int channels, const std::string& name) {
  check_header(bytes, name);
  PngDecoder decoder(bytes);
  if (!decoder.read_header(channels)) fail(decoder, name);
  const auto* header = reinterpret_cast<const png_byte*>(bytes.data());
  const auto width = static_cast<int>(png_get_uint_32(header + 16));
  const auto height = static_cast<int>(png_get_uint_32(header + 20));
  const std::size_t pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  // A byte of deflated data holds at most 1032 bytes. A small file that promises a large image is therefore known to be
  // truncated before memory for the image is allocated.
  if (pixels * decoder.file_bits() / 8 / 1032 > bytes.size()) fail_truncated(name);
  const int samples = decoder.samples();
  if (samples == channels) {
    Image image = Image::black(width, height, channels);
    if (!decoder.read_pixels(image.samples.data())) fail(decoder, name);
    return image;
  }
  std::vector<std::uint8_t> raw(pixels * static_cast<std::size_t>(samples));
  if (!decoder.read_pixels(raw.data())) fail(decoder, name);
  return without_alpha(raw, samples, width, height, channels);
}

}  // namespace heed
