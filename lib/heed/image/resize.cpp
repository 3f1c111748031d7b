#include "heed/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "heed/base/error.h"

namespace heed {

namespace {

// Weights are whole numbers, multiples of 2^-22, as in Pillow: a product with an 8-bit sample and the sum of such
// products then fit 32 bits.
constexpr int kWeightBits = 22;

/// The samples along one side of an image, each a weighted sum of source samples: sample i is the sum of the source
/// samples first[i] .. first[i] + count[i] - 1, multiplied by weights[i * stride] and the weights after it.
struct Taps {
  std::vector<int> first, count;
  std::vector<std::int32_t> weights;
  std::size_t stride = 0;

  const std::int32_t* weights_of(int i) const { return weights.data() + static_cast<std::size_t>(i) * stride; }
};

/// A side of the scaled image: `full` is the length of the whole side, of which `length` samples from `begin` on are
/// computed.
struct Side {
  std::int64_t full, begin;
  int length;
};

/// Computes the weights that scale `source` samples to side.full samples. The triangle is 2 source samples wide, or 2
/// samples of the result if that is more.
Taps make_taps(int source, const Side& side) {
  const double scale = static_cast<double>(source) / static_cast<double>(side.full);
  const double support = std::max(scale, 1.0);
  Taps taps;
  taps.stride = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  taps.first.resize(static_cast<std::size_t>(side.length));
  taps.count.resize(taps.first.size());
  taps.weights.resize(taps.first.size() * taps.stride);
  std::vector<double> exact(taps.stride);
  for (std::size_t i = 0; i < taps.first.size(); ++i) {
    const double center = (static_cast<double>(side.begin + static_cast<std::int64_t>(i)) + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int count = std::min(static_cast<int>(center + support + 0.5), source) - first;
    const double inverse = 1.0 / support;
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      const double distance = std::abs((k + first - center + 0.5) * inverse);
      sum += exact[static_cast<std::size_t>(k)] = distance < 1 ? 1 - distance : 0;
    }
    taps.first[i] = first;
    for (int k = 0; k < count; ++k) {
      const double weight = exact[static_cast<std::size_t>(k)] / sum;
      const auto whole = static_cast<std::int32_t>(0.5 + weight * (1 << kWeightBits));
      taps.weights[i * taps.stride + static_cast<std::size_t>(k)] = whole;
      if (whole != 0 || k == 0) taps.count[i] = k + 1;  // weights of 0 at the end are left out
    }
  }
  return taps;
}

std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::min(sum >> kWeightBits, 255));
}
constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

/// Scales a row of pixels with `channels` channels horizontally.
template <int channels>
void scale_row(const std::uint8_t* from, const Taps& taps, std::uint8_t* to) {
  const int length = static_cast<int>(taps.first.size());
  for (int i = 0; i < length; ++i) {
    const std::uint8_t* pixel = from + static_cast<std::ptrdiff_t>(taps.first[static_cast<std::size_t>(i)]) * channels;
    const std::int32_t* weights = taps.weights_of(i);
    const int count = taps.count[static_cast<std::size_t>(i)];
    std::int32_t sums[channels];
    for (std::int32_t& sum : sums) sum = kHalf;
    for (int k = 0; k < count; ++k, pixel += channels)
      for (int c = 0; c < channels; ++c) sums[c] += pixel[c] * weights[k];
    for (const std::int32_t sum : sums) *to++ = rounded(sum);
  }
}

/// Computes one row of the result from the rows `from`, of `size` samples each, that lie one after the other.
void blend_rows(const std::uint8_t* from, std::size_t size, const std::int32_t* weights, int count, std::uint8_t* to) {
  constexpr std::size_t kSamples = 64;  // few enough that the sums stay in a near cache
  std::int32_t sums[kSamples];
  for (std::size_t begin = 0; begin < size; begin += kSamples) {
    const std::size_t length = std::min(kSamples, size - begin);
    std::fill_n(sums, length, kHalf);
    const std::uint8_t* row = from + begin;
    for (int k = 0; k < count; ++k, row += size)
      for (std::size_t i = 0; i < length; ++i) sums[i] += row[i] * weights[k];
    for (std::size_t i = 0; i < length; ++i) to[begin + i] = rounded(sums[i]);
  }
}

/// Scales the part `box` of the image to across.full x down.full pixels and returns the part of the result that
/// `across` and `down` choose. The rows of the box are scaled horizontally first, as in Pillow; of these rows, the
/// memory holds as many as one row of the result is computed from.
Image scale_part(const Image& image, const ImageBox& box, const Side& across, const Side& down) {
  if (box.width < 1 || box.height < 1 || box.left < 0 || box.top < 0 || box.left > image.width - box.width ||
      box.top > image.height - box.height || across.length < 1 || down.length < 1)
    throw Error("internal: an image is scaled to or from nothing");
  const Taps columns = make_taps(box.width, across), rows = make_taps(box.height, down);
  Image result = Image::black(across.length, down.length, image.channels);
  const auto scale_box_row = [&](int y, std::uint8_t* to) {
    const std::uint8_t* const from = image.pixel(box.left, box.top + y);
    if (box.width == across.full)  // weights of 1
      std::copy_n(from + across.begin * image.channels, result.row_size(), to);
    else if (image.channels == 3)
      scale_row<3>(from, columns, to);
    else
      scale_row<1>(from, columns, to);
  };
  if (box.height == down.full) {  // weights of 1
    for (int y = 0; y < result.height; ++y) scale_box_row(rows.first[static_cast<std::size_t>(y)], result.row(y));
    return result;
  }
  // The scaled rows begin ... end - 1 of the box. What the next row of the result does not read is overwritten.
  Image band = Image::black(across.length, *std::max_element(rows.count.begin(), rows.count.end()), image.channels);
  int begin = rows.first.front(), end = begin;
  for (int y = 0; y < result.height; ++y) {
    const int first = rows.first[static_cast<std::size_t>(y)], count = rows.count[static_cast<std::size_t>(y)];
    if (first + count > begin + band.height) {
      if (first < end) std::copy(band.row(first - begin), band.row(end - begin), band.row(0));
      begin = first;
      end = std::max(end, first);
    }
    for (; end < first + count; ++end) scale_box_row(end, band.row(end - begin));
    blend_rows(band.row(first - begin), band.row_size(), rows.weights_of(y), count, result.row(y));
  }
  return result;
}

/// Returns half of an even or odd number, rounded half to even, as Python's round() does.
std::int64_t half_to_even(std::int64_t number) {
  const std::int64_t half = number / 2;
  return half + (number % 2 != 0 && half % 2 != 0 ? 1 : 0);
}

}  // namespace

Image resize(const Image& image, int width, int height) {
  return resize_box(image, {0, 0, image.width, image.height}, width, height);
}

Image resize_box(const Image& image, const ImageBox& box, int width, int height) {
  if (box.width == image.width && box.height == image.height && width == image.width && height == image.height)
    return image;
  return scale_part(image, box, {width, 0, width}, {height, 0, height});
}

Image fit_image(const Image& image, int size, ImageFit fit, double crop_fraction) {
  if (fit == ImageFit::stretch || (image.width == size && image.height == size)) return resize(image, size, size);
  if (!(crop_fraction > 0 && crop_fraction <= 1)) throw Error("internal: a crop fraction is not in 0..1");
  const std::int64_t shorter = std::llround(size / crop_fraction), smallest = std::min(image.width, image.height);
  const std::int64_t width = shorter * image.width / smallest, height = shorter * image.height / smallest;
  // Only the centre is computed: the whole of a very long image would not fit the memory.
  return scale_part(image, {0, 0, image.width, image.height}, {width, half_to_even(width - size), size},
                    {height, half_to_even(height - size), size});
}

}  // namespace heed
