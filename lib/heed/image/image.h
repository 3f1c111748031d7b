#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heed {

/// An image of 8-bit samples. The rows follow each other from top to bottom, and the pixels of a row from left to
/// right; the channels of a pixel lie side by side: one channel is grey, three channels are red, green and blue.
struct Image {
  int width = 0, height = 0, channels = 3;
  std::vector<std::uint8_t> samples;  ///< height * width * channels samples

  /// Returns an image of zeros, that is, a black image.
  static Image black(int width, int height, int channels) {
    Image image{width, height, channels, {}};
    image.samples.resize(image.row_size() * static_cast<std::size_t>(height));
    return image;
  }

  /// Returns the number of samples in a row.
  std::size_t row_size() const { return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels); }
  /// Returns the samples of row y, 0 <= y < height.
  std::uint8_t* row(int y) { return samples.data() + static_cast<std::size_t>(y) * row_size(); }
  const std::uint8_t* row(int y) const { return samples.data() + static_cast<std::size_t>(y) * row_size(); }
  /// Returns the channels of the pixel in column x of row y.
  std::uint8_t* pixel(int x, int y) {
    return row(y) + static_cast<std::size_t>(x) * static_cast<std::size_t>(channels);
  }
  const std::uint8_t* pixel(int x, int y) const {
    return row(y) + static_cast<std::size_t>(x) * static_cast<std::size_t>(channels);
  }

  bool operator==(const Image&) const = default;
};

/// Returns the brightness of a colour by ITU-R BT.601, (299 red + 587 green + 114 blue) / 1000, in 16-bit fixed-point
/// arithmetic as Pillow's convert("L") computes it.
inline std::uint8_t grey_of(std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  return static_cast<std::uint8_t>((red * 19595u + green * 38470u + blue * 7471u + 0x8000u) >> 16);
}

}  // namespace heed
