#include "heed/image/operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "heed/base/error.h"

namespace heed {

namespace {

using Table = std::array<std::uint8_t, 256>;

/// Replaces each sample s of the image by table[s]; with three tables, each channel has its own table.
Image look_up(const Image& image, const std::array<Table, 3>& tables) {
  Image result = image;
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t i = 0; i < result.samples.size(); i += channels)
    for (std::size_t c = 0; c < channels; ++c) result.samples[i + c] = tables[c][result.samples[i + c]];
  return result;
}

template <class Function>
Image map_samples(const Image& image, const Function& function) {
  Table table;
  for (int s = 0; s < 256; ++s) table[static_cast<std::size_t>(s)] = static_cast<std::uint8_t>(function(s));
  return look_up(image, {table, table, table});
}

using Histogram = std::array<std::int64_t, 256>;

std::array<Histogram, 3> histograms(const Image& image) {
  std::array<Histogram, 3> counts{};
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t i = 0; i < image.samples.size(); i += channels)
    for (std::size_t c = 0; c < channels; ++c) ++counts[c][image.samples[i + c]];
  return counts;
}

/// Moves pixels: the pixel (x, y) of the result is the image's pixel that contains the point (a0 x' + a1 y' + a2, a3 x'
/// + a4 y' + a5), where (x', y') is the centre of the pixel (x, y); it is black where this point is outside the image.
/// Computes with 16 bits after the point, like Pillow's transform() with NEAREST.
Image move_pixels(const Image& image, const std::array<double, 6>& a) {
  const auto fixed = [](double v) { return static_cast<std::int64_t>(std::floor(v * 65536 + 0.5)); };
  const std::int64_t x_by_column = fixed(a[0]), x_by_row = fixed(a[1]), y_by_column = fixed(a[3]),
                     y_by_row = fixed(a[4]);
  std::int64_t row_x = fixed(a[2] + a[0] * 0.5 + a[1] * 0.5), row_y = fixed(a[5] + a[3] * 0.5 + a[4] * 0.5);
  Image result = Image::black(image.width, image.height, image.channels);
  for (int y = 0; y < image.height; ++y, row_x += x_by_row, row_y += y_by_row) {
    std::int64_t point_x = row_x, point_y = row_y;
    for (int x = 0; x < image.width; ++x, point_x += x_by_column, point_y += y_by_column) {
      const std::int64_t from_x = point_x >> 16, from_y = point_y >> 16;
      if (from_x < 0 || from_x >= image.width || from_y < 0 || from_y >= image.height) continue;
      std::copy_n(image.pixel(static_cast<int>(from_x), static_cast<int>(from_y)), image.channels, result.pixel(x, y));
    }
  }
  return result;
}

/// Moves the image by whole pixels, to the right and downwards.
Image translate(const Image& image, double x, double y) {
  return move_pixels(image, {1, 0, -std::trunc(x), 0, 1, -std::trunc(y)});
}

/// Turns the image around its centre, like Pillow's rotate().
Image rotate(const Image& image, double degrees) {
  const auto rounded = [](double v) { return std::nearbyint(v * 1e15) / 1e15; };
  const double angle = -degrees * std::numbers::pi / 180;
  const double cosine = rounded(std::cos(angle)), sine = rounded(std::sin(angle));
  const double x = image.width / 2.0, y = image.height / 2.0;
  return move_pixels(image, {cosine, sine, cosine * -x + sine * -y + x, -sine, cosine, -sine * -x + cosine * -y + y});
}

/// Returns from + factor * (to - from), cut off to 0..255 and rounded down, like Pillow's blend().
std::uint8_t blended(int from, int to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  const float positive = value > 0 ? value : 0;
  return static_cast<std::uint8_t>(static_cast<int>(positive < 255 ? positive : 255));
}

/// Changes the contrast to an image that has the sample `middle` everywhere.
Image blend_with(const Image& image, int middle, float factor) {
  return map_samples(image, [&](int s) { return blended(middle, s, factor); });
}

std::uint8_t grey_at(const std::uint8_t* pixel) {
  return grey_of(pixel[0], pixel[1], pixel[2]);
}

/// Returns the mean of the image's grey version, rounded to a whole number.
int mean_grey(const Image& image) {
  std::int64_t sum = 0;
  const std::size_t pixels = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
  for (std::size_t i = 0; i < pixels; ++i)
    sum += image.channels == 1 ? image.samples[i] : grey_at(&image.samples[3 * i]);
  return static_cast<int>(static_cast<double>(sum) / static_cast<double>(pixels) + 0.5);
}

Image change_color(const Image& image, float factor) {
  Image result = image;
  if (image.channels == 1) return result;
  for (std::size_t i = 0; i < result.samples.size(); i += 3) {
    const int grey = grey_at(&image.samples[i]);
    for (std::size_t c = 0; c < 3; ++c) result.samples[i + c] = blended(grey, image.samples[i + c], factor);
  }
  return result;
}

/// Returns the image that is smoothed by a square of 3 x 3 weights, 5 in the middle and 1 around it, divided by 13 and
/// rounded. The pixels at the border stay as they are. Pillow's filter() adds up in floating-point numbers, whose
/// errors are too small to change a result: a sum of whole numbers divided by 13 is never near a half.
Image smooth(const Image& image) {
  Image result = image;
  const std::size_t size = image.row_size(), channels = static_cast<std::size_t>(image.channels);
  std::vector<std::uint16_t> columns(size);  // the sums of three samples, one above the other
  for (int y = 1; y < image.height - 1; ++y) {
    const std::uint8_t *above = image.row(y - 1), *row = image.row(y), *below = image.row(y + 1);
    std::uint8_t* const to = result.row(y);
    for (std::size_t i = 0; i < size; ++i) columns[i] = static_cast<std::uint16_t>(above[i] + row[i] + below[i]);
    for (std::size_t i = channels; i + channels < size; ++i) {
      const int sum = columns[i - channels] + columns[i] + columns[i + channels] + 4 * row[i];
      to[i] = static_cast<std::uint8_t>((2 * sum + 13) / 26);
    }
  }
  return result;
}

Image change_sharpness(const Image& image, float factor) {
  Image result = smooth(image);
  std::uint8_t* const to = result.samples.data();
  const std::uint8_t* const sharp = image.samples.data();
  for (std::size_t i = 0, count = result.samples.size(); i < count; ++i) to[i] = blended(to[i], sharp[i], factor);
  return result;
}

/// Stretches each channel so that its least sample becomes 0 and its greatest sample 255.
Table contrast_table(const Histogram& counts) {
  const auto lit = [](std::int64_t count) { return count > 0; };
  const auto low = std::find_if(counts.begin(), counts.end(), lit) - counts.begin();
  const auto high = counts.rend() - std::find_if(counts.rbegin(), counts.rend(), lit) - 1;
  const double scale = high > low ? 255.0 / static_cast<double>(high - low) : 1;
  const double offset = high > low ? static_cast<double>(-low) * scale : 0;
  Table table;
  for (int s = 0; s < 256; ++s)
    table[static_cast<std::size_t>(s)] =
        static_cast<std::uint8_t>(std::clamp(static_cast<int>(s * scale + offset), 0, 255));
  return table;
}

/// Spreads the samples of a channel so that about equally many pixels have each value.
Table equalizing_table(const Histogram& counts) {
  std::int64_t total = 0, last = 0;
  for (const std::int64_t count : counts) {
    total += count;
    if (count > 0) last = count;
  }
  const std::int64_t step = (total - last) / 255;
  std::int64_t before = step / 2;
  Table table;
  for (std::size_t s = 0; s < 256; ++s) {
    table[s] = static_cast<std::uint8_t>(step == 0 ? static_cast<std::int64_t>(s)
                                                   : std::min<std::int64_t>(before / step, 255));
    before += counts[s];
  }
  return table;
}

template <class MakeTable>
Image by_histogram(const Image& image, const MakeTable& make_table) {
  const auto counts = histograms(image);
  return look_up(image, {make_table(counts[0]), make_table(counts[1]), make_table(counts[2])});
}

/// Returns number `magnitude` of kMostMagnitude + 1 numbers from `first` to `last` at equal distances, as a 32-bit
/// number like that of torch.linspace(), which multiplies and adds with one rounding.
double spaced(double first, double last, int magnitude) {
  const auto begin = static_cast<float>(first), end = static_cast<float>(last);
  const double step = (end - begin) / static_cast<float>(kMostMagnitude);
  return static_cast<float>(magnitude < (kMostMagnitude + 1) / 2 ? begin + step * magnitude
                                                                 : end - step * (kMostMagnitude - magnitude));
}

}  // namespace

OperationAmount operation_amount(ImageOperation operation, int magnitude, int width, int height) {
  if (magnitude < 0 || magnitude > kMostMagnitude) throw Error("internal: a magnitude of RandAugment is not in 0..30");
  switch (operation) {
    case ImageOperation::shear_x:
    case ImageOperation::shear_y:
      return {spaced(0, 0.3, magnitude), true};
    case ImageOperation::translate_x:
      return {spaced(0, 150.0 / 331.0 * width, magnitude), true};
    case ImageOperation::translate_y:
      return {spaced(0, 150.0 / 331.0 * height, magnitude), true};
    case ImageOperation::rotate:
      return {spaced(0, 30, magnitude), true};
    case ImageOperation::brightness:
    case ImageOperation::color:
    case ImageOperation::contrast:
    case ImageOperation::sharpness:
      return {spaced(0, 0.9, magnitude), true};
    case ImageOperation::posterize:
      return {8 - std::nearbyint(magnitude / (kMostMagnitude / 4.0)), false};
    case ImageOperation::solarize:
      return {spaced(255, 0, magnitude), false};
    case ImageOperation::identity:
    case ImageOperation::auto_contrast:
    case ImageOperation::equalize:
      break;
  }
  return {};
}

Image apply_operation(const Image& image, ImageOperation operation, double amount) {
  const auto factor = static_cast<float>(1 + amount);
  switch (operation) {
    case ImageOperation::identity:
      return image;
    case ImageOperation::shear_x:
      return move_pixels(image, {1, amount, 0, 0, 1, 0});
    case ImageOperation::shear_y:
      return move_pixels(image, {1, 0, 0, amount, 1, 0});
    case ImageOperation::translate_x:
      return translate(image, amount, 0);
    case ImageOperation::translate_y:
      return translate(image, 0, amount);
    case ImageOperation::rotate:
      return rotate(image, amount);
    case ImageOperation::brightness:
      return blend_with(image, 0, factor);
    case ImageOperation::color:
      return change_color(image, factor);
    case ImageOperation::contrast:
      return blend_with(image, mean_grey(image), factor);
    case ImageOperation::sharpness:
      return change_sharpness(image, factor);
    case ImageOperation::posterize:
      return map_samples(image, [&](int s) { return s & ~((1 << (8 - static_cast<int>(amount))) - 1); });
    case ImageOperation::solarize:
      return map_samples(image, [&](int s) { return s < amount ? s : 255 - s; });
    case ImageOperation::auto_contrast:
      return by_histogram(image, contrast_table);
    case ImageOperation::equalize:
      return by_histogram(image, equalizing_table);
  }
  throw Error("internal: an image operation that is none of the list");
}

Image flip_image(const Image& image) {
  Image result = Image::black(image.width, image.height, image.channels);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x)
      std::copy_n(image.pixel(x, y), image.channels, result.pixel(image.width - 1 - x, y));
  return result;
}

}  // namespace heed
