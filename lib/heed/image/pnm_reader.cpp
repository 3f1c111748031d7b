#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "heed/base/ascii.h"
#include "heed/image/readers.h"

namespace heed {

namespace {

/// Reads the parts of a PNM file one after the other.
class PnmCursor {
 public:
  PnmCursor(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  /// Returns the next number in decimal digits. White space and comments (from # to the end of the line) before the
  /// number are skipped.
  std::uint64_t number(const char* what) {
    skip_space();
    const std::size_t start = at_;
    std::uint64_t value = 0;
    for (; at_ < bytes_.size() && bytes_[at_] >= '0' && bytes_[at_] <= '9'; ++at_) {
      if (at_ - start == kMostDigits) fail_damaged(name_, std::string(what) + " has too many digits");
      value = 10 * value + static_cast<std::uint64_t>(bytes_[at_] - '0');
    }
    if (at_ == start) fail_damaged(name_, std::string(what) + " is not a number");
    return value;
  }
  /// Returns the next bit of a plain PBM file: the character 0 or 1. Bits may follow each other without white space.
  bool bit() {
    skip_space();
    const char c = bytes_[at_];
    if (c != '0' && c != '1') fail_damaged(name_, "a pixel is neither 0 nor 1");
    ++at_;
    return c == '1';
  }
  /// Takes the one white-space character between the header and the pixels.
  void end_header() {
    if (at_ == bytes_.size()) fail_truncated(name_);
    if (!is_ascii_space(bytes_[at_])) fail_damaged(name_, "no white space follows the header");
    ++at_;
  }
  /// Returns the rest of the file. Throws Error when the rest has fewer than `count` bytes.
  const std::uint8_t* rest(std::uint64_t count) const {
    if (bytes_.size() - at_ < count) fail_truncated(name_);
    return reinterpret_cast<const std::uint8_t*>(bytes_.data()) + at_;
  }

 private:
  static constexpr std::size_t kMostDigits = 10;

  void skip_space() {
    for (; at_ < bytes_.size(); ++at_) {
      if (bytes_[at_] == '#') {
        at_ = std::min(bytes_.find_first_of("\r\n", at_), bytes_.size() - 1);
      } else if (!is_ascii_space(bytes_[at_])) {
        return;
      }
    }
    fail_truncated(name_);
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_ = 2;  // after the magic number
};

/// What the header of a PNM file says.
struct PnmHeader {
  bool plain = false, bits = false;  ///< numbers as text; a PBM file, whose pixels are black (1) or white (0)
  int channels = 1;
  std::uint64_t width = 0, height = 0, maximum = 1;

  /// Returns the size in bytes of a row of a raw file.
  std::uint64_t row_bytes() const {
    if (bits) return (width + 7) / 8;
    return width * static_cast<std::uint64_t>(channels) * (maximum > 255 ? 2 : 1);
  }
};

PnmHeader read_header(char type, PnmCursor& cursor, const std::string& name) {
  PnmHeader header;
  header.plain = type <= '3';
  header.bits = type == '1' || type == '4';
  header.channels = type == '3' || type == '6' ? 3 : 1;
  header.width = cursor.number("the width");
  header.height = cursor.number("the height");
  check_image_size(header.width, header.height, name);
  if (!header.bits) header.maximum = cursor.number("the greatest sample value");
  if (header.maximum == 0 || header.maximum > 65535) fail_damaged(name, "the greatest sample value is not in 1..65535");
  cursor.end_header();
  return header;
}

/// Returns a sample of 0..maximum scaled to 0..255. A maximum of up to 255 rounds as Pillow does, half to even; a
/// greater one scales to 0..65535, and the upper 8 bits remain.
std::uint8_t scaled(std::uint64_t sample, std::uint64_t maximum) {
  if (maximum == 255) return static_cast<std::uint8_t>(sample);
  if (maximum > 255) return static_cast<std::uint8_t>(((sample * 65535 + maximum / 2) / maximum) >> 8);
  return static_cast<std::uint8_t>(std::nearbyint(static_cast<double>(sample) / static_cast<double>(maximum) * 255));
}

/// Reads rows of 8-bit samples.
class PnmRows {
 public:
  PnmRows(const PnmHeader& header, PnmCursor& cursor, const std::string& name)
      : header_(header), cursor_(cursor), name_(name) {
    const std::uint64_t samples = header.width * header.height * static_cast<std::uint64_t>(header.channels);
    // A plain sample takes a character, and white space separates it from the next sample, except between bits.
    if (header.plain)
      cursor.rest(header.bits ? samples : 2 * samples - 1);
    else
      raw_ = cursor.rest(header.row_bytes() * header.height);
    for (std::uint64_t v = 0; v <= header.maximum && header.maximum < 256; ++v)
      table_.push_back(scaled(v, header.maximum));
  }

  /// Reads the next row, of width * channels samples.
  void next(std::uint8_t* to) {
    const std::size_t count = header_.width * static_cast<std::uint64_t>(header_.channels);
    if (header_.plain) {
      for (std::size_t i = 0; i < count; ++i)
        to[i] = header_.bits ? static_cast<std::uint8_t>(cursor_.bit() ? 0 : 255) : sample(cursor_.number("a sample"));
      return;
    }
    if (header_.bits) {
      for (std::size_t i = 0; i < count; ++i) to[i] = (raw_[i / 8] >> (7 - i % 8)) & 1 ? 0 : 255;
    } else if (header_.maximum == 255) {
      std::copy_n(raw_, count, to);
    } else if (header_.maximum < 256) {
      for (std::size_t i = 0; i < count; ++i) to[i] = sample(raw_[i]);
    } else {
      for (std::size_t i = 0; i < count; ++i)
        to[i] = sample(static_cast<std::uint64_t>(raw_[2 * i]) << 8 | raw_[2 * i + 1]);
    }
    raw_ += header_.row_bytes();
  }

 private:
  std::uint8_t sample(std::uint64_t value) const {
    if (value > header_.maximum) fail_damaged(name_, "a sample is above the greatest sample value of the header");
    return table_.empty() ? scaled(value, header_.maximum) : table_[value];
  }

  const PnmHeader& header_;
  PnmCursor& cursor_;
  const std::string& name_;
  const std::uint8_t* raw_ = nullptr;
  std::vector<std::uint8_t> table_;
};

}  // namespace

Image read_pnm(std::string_view bytes, int channels, const std::string& name) {
  PnmCursor cursor(bytes, name);
  const PnmHeader header = read_header(bytes[1], cursor, name);
  PnmRows rows(header, cursor, name);
  const auto width = static_cast<std::size_t>(header.width);
  Image image = Image::black(static_cast<int>(header.width), static_cast<int>(header.height), channels);
  std::vector<std::uint8_t> line(header.channels == channels ? 0 : width * static_cast<std::size_t>(header.channels));
  for (int y = 0; y < image.height; ++y) {
    std::uint8_t* const row = image.row(y);
    if (header.channels == channels) {
      rows.next(row);
      continue;
    }
    rows.next(line.data());
    for (std::size_t x = 0; x < width; ++x) {
      if (channels == 1)
        row[x] = grey_of(line[3 * x], line[3 * x + 1], line[3 * x + 2]);
      else
        std::fill_n(row + 3 * x, 3, line[x]);
    }
  }
  return image;
}

}  // namespace heed
