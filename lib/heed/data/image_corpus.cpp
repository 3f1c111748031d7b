#include "heed/data/image_corpus.h"

#include <algorithm>
#include <cmath>

#include "heed/image/read_image.h"

namespace heed {
namespace {

/// Returns a number of the distribution Gamma(shape, 1), by the method of Marsaglia and Tsang 2000. Takes elements of
/// `stream` from number `first` on.
double gamma(double shape, const RandomStream& stream, std::uint64_t first) {
  const double boost = shape < 1 ? std::pow(1 - stream.uniform(first), 1 / shape) : 1;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (std::uint64_t i = first + 1;; i += 2) {
    const double x = stream.normal(i), root = 1 + c * x, v = root * root * root;
    if (root > 0 && std::log(1 - stream.uniform(i + 1)) < 0.5 * x * x + d - d * v + d * std::log(v))
      return boost * d * v;
  }
}

/// Returns a number of the distribution Beta(alpha, alpha).
double beta(double alpha, const RandomStream& stream) {
  const double x = gamma(alpha, stream, 1000), y = gamma(alpha, stream, 2000);
  return x + y > 0 ? x / (x + y) : 0.5;
}

/// Makes `image` the mean of itself and `other`, which has the given share.
void mix(Image& image, const Image& other, double share) {
  for (std::size_t i = 0; i < image.samples.size(); ++i)
    image.samples[i] =
        static_cast<std::uint8_t>(std::lround((1 - share) * image.samples[i] + share * other.samples[i]));
}

/// Takes a rectangle around a random place, of about `share` of the area, from `other`. Returns the share of the pixels
/// that were taken: less where the rectangle is cut off at an edge.
double cut(Image& image, const Image& other, double share, const RandomStream& stream) {
  const double ratio = std::sqrt(share);
  const auto range = [&](int size, std::uint64_t element) {
    const int centre = static_cast<int>(stream.below(static_cast<std::uint64_t>(size), element));
    const int half = static_cast<int>(std::lround(ratio * size / 2));
    return std::pair(std::max(0, centre - half), std::min(size, centre + half));
  };
  const auto [left, right] = range(image.width, 10);
  const auto [top, bottom] = range(image.height, 11);
  for (int y = top; y < bottom; ++y)
    std::copy(other.pixel(left, y), other.pixel(left, y) + (right - left) * image.channels, image.pixel(left, y));
  return static_cast<double>((right - left) * (bottom - top)) / (image.width * image.height);
}

}  // namespace

ImageReader::ImageReader(const ImageInput& input, const std::string& list) : input_(input) {
  if (list.empty() || list == "-") return;
  const std::size_t slash = list.rfind('/');
  if (slash != std::string::npos) folder_ = list.substr(0, slash + 1);
}

std::string ImageReader::path_of(const std::string& line) const {
  return line.starts_with('/') ? line : folder_ + line;
}

void ImageReader::check(const std::string& line) const {
  check_image_path(path_of(line));
}

Image ImageReader::read_whole(const std::string& line) const {
  return read_image(path_of(line), input_.channels);
}

Image ImageReader::fit(const Image& image) const {
  return fit_image(image, input_.size, input_.fit, input_.crop_fraction);
}

void ImageReader::append_ids(const Image& image, std::vector<std::int32_t>& ids) {
  for (const std::uint8_t sample : image.samples) ids.push_back(kReservedIds + sample);
}

std::int32_t class_of_label(std::span<const std::int32_t> ids, const std::string& label, const std::string& model,
                            const Position& where) {
  if (ids.size() != 1 || ids.front() < kReservedIds) throw Error(where, "'" + label + "' is no label of " + model);
  return ids.front() - kReservedIds;
}

ExampleSize ImageExamples::size_of(std::int64_t example) const {
  const std::int32_t target = classified_ ? 1 : pairs_->target_tokens(example);
  return {tokens_, target, std::max(work_, target)};
}

/// Returns the random numbers of an example in this epoch, for one of several uses.
RandomStream ImageExamples::stream(std::int64_t example, std::uint32_t use) const {
  const std::uint64_t which =
      static_cast<std::uint64_t>(epoch_) << 32 | static_cast<std::uint64_t>(pairs_->line(example));
  return {mixing_->seed, RandomUse::images, which, use};
}

/// Returns read(line), where `line` is the line of the list that names the example's image. Errors name its place.
template <class Read>
auto ImageExamples::with_line(std::int64_t example, const Read& read) const {
  std::string line;
  for (const std::int32_t id : pairs_->source(example)) line += static_cast<char>(id - kReservedIds);
  try {
    return read(line);
  } catch (const Error& error) {
    throw Error(Position{list_, pairs_->line(example)}, error.what());
  }
}

/// Returns an example's image as the model is to see it, before it is mixed with another one.
Image ImageExamples::view(std::int64_t example) const {
  return with_line(example, [&](const std::string& line) {
    const Image whole = reader_.read_whole(line);
    return mixing_ ? augment(whole, mixing_->augment, stream(example, 0)) : reader_.fit(whole);
  });
}

void ImageExamples::check_files(ThreadPool& pool) const {
  // The exception of the lowest thread is thrown, which has the first images.
  pool.run([&](int thread) {
    for (std::int64_t i = size() * thread / pool.size(); i < size() * (thread + 1) / pool.size(); ++i)
      with_line(i, [&](const std::string& line) { reader_.check(line); });
  });
}

ImageExamples::Mixed ImageExamples::mixed(std::int64_t example) const {
  Mixed out{view(example), example, 0};
  if (!mixing_ || (mixing_->mixup == 0 && mixing_->cutmix == 0)) return out;
  const RandomStream random = stream(example, 1);
  const bool cuts = mixing_->mixup == 0 || (mixing_->cutmix > 0 && random.uniform(0) < 0.5);
  out.other = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(pairs_->size()), 1));
  out.share = 1 - beta(cuts ? mixing_->cutmix : mixing_->mixup, random);
  const Image other = view(out.other);
  if (cuts)
    out.share = cut(out.image, other, out.share, random);
  else
    mix(out.image, other, out.share);
  return out;
}

std::int32_t ImageExamples::class_of(std::int64_t example) const {
  return pairs_->target(example).front() - kReservedIds;
}

void ImageExamples::fill(std::span<const std::int32_t> examples, Batch& batch) const {
  batch.clear();
  const bool mixes = mixing_ && (mixing_->mixup > 0 || mixing_->cutmix > 0);
  std::vector<std::int32_t> ids;
  for (const std::int32_t example : examples) {
    const Mixed found = mixed(example);
    ids.clear();
    ImageReader::append_ids(found.image, ids);
    if (!classified_) {
      batch.add(ids, pairs_->target(example));
      continue;
    }
    batch.add_classified(ids, class_of(example));
    if (!mixes) continue;
    batch.second_targets.push_back(class_of(found.other));
    batch.second_shares.push_back(static_cast<float>(found.share));
  }
}

}  // namespace heed
