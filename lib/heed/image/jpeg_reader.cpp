#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <string>

// jpeglib.h needs the declarations of <cstddef> and <cstdio>.
#include <jpeglib.h>

#include <jerror.h>

#include "heed/base/error.h"
#include "heed/image/readers.h"

namespace heed {

namespace {

// libjpeg reports errors by a call of a function that must not return. As in png_reader.cpp, this function jumps back
// to the setjmp() in the function of JpegDecoder that has called libjpeg, where only plain variables may live.

/// Why a JPEG file could not be decoded.
enum class Failure { none, truncated, damaged, unsupported, empty, memory };

/// The state of error handling. libjpeg's own struct is the first member, so that a pointer to that struct is also a
/// pointer to the ErrorState.
struct ErrorState {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  Failure failure;
  bool in_pixels;  ///< whether the header has been read
  char message[JMSG_LENGTH_MAX];
};

ErrorState& errors_of(j_common_ptr info) {
  return *reinterpret_cast<ErrorState*>(info->err);
}

Failure failure_of(int code) {
  switch (code) {
    case JWRN_JPEG_EOF:
    case JERR_INPUT_EOF:
    case JERR_INPUT_EMPTY:
      return Failure::truncated;
    case JERR_EMPTY_IMAGE:
      return Failure::empty;
    case JERR_OUT_OF_MEMORY:
      return Failure::memory;
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_BAD_J_COLORSPACE:
    case JERR_CCIR601_NOTIMPL:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
      return Failure::unsupported;
    default:
      return Failure::damaged;
  }
}

[[noreturn]] void on_error(j_common_ptr info) {
  ErrorState& errors = errors_of(info);
  errors.failure = failure_of(errors.manager.msg_code);
  errors.manager.format_message(info, errors.message);
  std::longjmp(errors.jump, 1);
}

/// Turns libjpeg's warnings (level -1) about the pixels into errors: after such a warning, libjpeg would invent the
/// missing pixels. A warning about the header has no effect, because the pixels are whole, unless the file is
/// truncated.
void on_message(j_common_ptr info, int level) {
  const ErrorState& errors = errors_of(info);
  const int code = errors.manager.msg_code;
  if (level < 0 && (errors.in_pixels || failure_of(code) == Failure::truncated)) on_error(info);
}

// A real file has about ten scans. Files with thousands of empty scans are made to keep a decoder busy for hours.
constexpr int kMostScans = 200;

void on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  ErrorState& errors = errors_of(info);
  errors.failure = Failure::damaged;
  std::snprintf(errors.message, sizeof errors.message, "more than %d scans", kMostScans);
  std::longjmp(errors.jump, 1);
}

/// Returns the product of two samples, 0..255, divided by 255 and rounded to the nearest whole number.
unsigned product_255(unsigned a, unsigned b) {
  return (a * b + 127) / 255;
}

/// Converts the CMYK pixels of a row to RGB. The file has the inverted inks, 255 - ink.
void convert_cmyk(const std::uint8_t* from, std::size_t count, std::uint8_t* to) {
  for (std::size_t i = 0; i < count; ++i, from += 4)
    for (int c = 0; c < 3; ++c) *to++ = static_cast<std::uint8_t>(from[3] - product_255(255u - from[c], from[3]));
}

/// A JPEG file that is being decoded. The caller checks the result of each member function and ends after `false`.
class JpegDecoder {
 public:
  JpegDecoder() = default;
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Reads everything before the pixels.
  bool read_header(std::string_view bytes);
  /// Chooses the colours of the decoded rows. Returns the number of samples of a pixel, or 0 when the file has colours
  /// of another kind.
  int choose_colors(int channels);
  /// Reads the pixels into the image, and the rest of the file. `line` has room for a row as the file has it.
  bool read_pixels(Image& image, std::uint8_t* line);

  std::uint32_t width() const { return info_.image_width; }
  std::uint32_t height() const { return info_.image_height; }
  bool arithmetic() const { return info_.arith_code; }
  Failure failure() const { return errors_.failure; }
  const char* message() const { return errors_.message; }

 private:
  jpeg_decompress_struct info_{};
  jpeg_progress_mgr progress_{};
  ErrorState errors_{};
};

bool JpegDecoder::read_header(std::string_view bytes) {
  info_.err = jpeg_std_error(&errors_.manager);
  errors_.manager.error_exit = on_error;
  errors_.manager.emit_message = on_message;
  if (setjmp(errors_.jump) != 0) return false;
  jpeg_create_decompress(&info_);
  progress_.progress_monitor = on_progress;
  info_.progress = &progress_;
  jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&info_, TRUE);
  errors_.in_pixels = true;
  return true;
}

int JpegDecoder::choose_colors(int channels) {
  switch (info_.jpeg_color_space) {
    case JCS_GRAYSCALE:
      info_.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
      return channels;
    case JCS_RGB:
    case JCS_YCbCr:
      info_.out_color_space = JCS_RGB;
      return 3;
    case JCS_CMYK:
    case JCS_YCCK:
      info_.out_color_space = JCS_CMYK;
      return 4;
    default:
      return 0;
  }
}

bool JpegDecoder::read_pixels(Image& image, std::uint8_t* line) {
  if (setjmp(errors_.jump) != 0) return false;
  jpeg_start_decompress(&info_);
  const int samples = info_.output_components, channels = image.channels;
  const std::size_t width = info_.output_width;
  while (info_.output_scanline < info_.output_height) {
    std::uint8_t* const row = image.row(static_cast<int>(info_.output_scanline));
    JSAMPROW target = samples == channels ? row : line;
    if (jpeg_read_scanlines(&info_, &target, 1) != 1) return false;  // not with all bytes in memory
    if (samples == channels) continue;
    if (samples == 4) convert_cmyk(line, width, channels == 3 ? row : line);
    if (channels == 1)
      for (std::size_t i = 0; i < width; ++i) row[i] = grey_of(line[3 * i], line[3 * i + 1], line[3 * i + 2]);
  }
  jpeg_finish_decompress(&info_);
  return true;
}

[[noreturn]] void fail(const JpegDecoder& decoder, const std::string& name) {
  switch (decoder.failure()) {
    case Failure::truncated:
      fail_truncated(name);
    case Failure::empty:
      throw Error(Position{name}, "has no pixels: its width or height is 0 (make the image again)");
    case Failure::memory:
      throw Error(Position{name}, "cannot be decoded: out of memory");
    case Failure::unsupported:
      throw Error(Position{name}, "is a JPEG image of a rare kind, which heed does not read: " +
                                      std::string(decoder.message()) + " (make it PNG or a usual JPEG)");
    default:
      fail_damaged(name, decoder.message());
  }
}

}  // namespace

Image read_jpeg(std::string_view bytes, int channels, const std::string& name) {
  JpegDecoder decoder;
  if (!decoder.read_header(bytes)) fail(decoder, name);
  check_image_size(decoder.width(), decoder.height(), name);
  const int samples = decoder.choose_colors(channels);
  if (samples == 0)
    throw Error(Position{name}, "is a JPEG image with two channels or an unknown kind of colours (make it PNG)");
  // A Huffman code has at least one bit, and each 128 pixels have one. A small file that promises a large image is
  // therefore known to be truncated before memory for the image is allocated.
  const std::uint64_t pixels = std::uint64_t{decoder.width()} * decoder.height();
  if (!decoder.arithmetic() && pixels / (8 * 128) > bytes.size()) fail_truncated(name);
  Image image = Image::black(static_cast<int>(decoder.width()), static_cast<int>(decoder.height()), channels);
  std::vector<std::uint8_t> line;
  if (samples != channels) line.resize(std::size_t{decoder.width()} * static_cast<std::size_t>(samples));
  if (!decoder.read_pixels(image, line.data())) fail(decoder, name);
  return image;
}

}  // namespace heed
