#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/config/fields.h"
#include "heed/image/resize.h"
#include "heed/model/config_fields.h"
#include "heed/nn/patch_embedding.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {

/// The images that a model reads, and how any image becomes one of them: part of the configs of image models, and thus
/// stored in their checkpoints.
struct ImageInput {
  int size = 224;  ///< width and height in pixels
  int channels = 3;
  /// For each channel, the mean and the standard deviation by which samples are normalised, of numbers in 0 ... 1.
  /// Empty: those of ImageNet, or 0.5 for grey images.
  std::vector<double> mean, deviation;
  ImageFit fit = ImageFit::crop;
  double crop_fraction = 0.875;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(size, {.name = "image-size",
                 .help = "width and height of the images that the model reads, in pixels; others are scaled",
                 .value = "N",
                 .min = 1,
                 .max = 4096,
                 .preset = true});
    visit(channels, {.name = "image-channels",
                     .help = "3: read images as red, green and blue; 1: as grey",
                     .value = "N",
                     .min = 1,
                     .max = 3});
    visit(mean, {.name = "image-mean",
                 .help = "mean of each channel, 0..1, which is subtracted (if not given: that of ImageNet, grey 0.5)",
                 .value = "X",
                 .min = -10,
                 .max = 10});
    visit(deviation, {.name = "image-deviation",
                      .help = "standard deviation of each channel, by which the difference is divided "
                              "(if not given: that of ImageNet, grey 0.5)",
                      .value = "X",
                      .min = 1e-6,
                      .max = 10});
    visit(fit, {.name = "image-fit",
                .help = "other images: scale the shorter side and crop the centre; or stretch both sides"});
    visit(crop_fraction, {.name = "image-crop",
                          .help = "part of the shorter side that --image-fit crop keeps",
                          .value = "F",
                          .min = 0.05,
                          .max = 1});
  }

  bool operator==(const ImageInput&) const = default;
  /// Throws UsageError where a number of channels is impossible, or a mean or deviation does not fit the channels.
  void validate() const;
  /// Returns the number of samples of an image.
  std::int64_t samples() const { return std::int64_t{size} * size * channels; }
  /// Describes the images: "images of 32 x 32".
  std::string describe() const;
  /// Returns how the images are stored in a batch: sample v is the id kReservedIds + v, which is a piece of
  /// TextModel::of_images().
  PixelFormat format() const;
};

/// What the configs of all models that read images have in common.
struct ImageModelFields : VocabularySizes {
  ImageInput image;
  int patch = 16;  ///< width and height of a patch in pixels
  /// The probability that an image leaves a sublayer of the last layer out; it rises linearly from 0 at the first
  /// layer.
  double stochastic_depth = 0;
  double norm_epsilon = 1e-6;

  /// Lists the options of images, which come first.
  template <class Visitor>
  void image_fields(Visitor& visit) {
    image.fields(visit);
    visit(patch, {.name = "patch-size",
                  .help = "width and height of the patches into which an image is cut, in pixels",
                  .value = "N",
                  .min = 1,
                  .max = 1024,
                  .preset = true});
  }
  /// Lists the option of stochastic depth.
  template <class Visitor>
  void stochastic_depth_field(Visitor& visit) {
    visit(stochastic_depth,
          dropping_field("stochastic-depth", "probability that a sublayer of the last layer is left out for an image"));
  }
  /// Lists what a checkpoint stores of `config`, which is derived from this struct.
  template <class Config, class Visitor>
  static void stored_fields(Config& config, Visitor& visit) {
    visit.section("Model");
    config.VocabularySizes::fields(visit);
    config.option_fields(visit);
    visit(config.norm_epsilon,
          {.name = "norm-epsilon", .help = "added to the variance in normalisation", .min = 0, .max = 1});
  }

  std::optional<int> longest_sequence() const { return {}; }
  bool is_parallel() const { return false; }
  std::string unmet_need(std::string_view option) const;
  /// Throws UsageError where the images are impossible, or cannot be cut into patches.
  void validate_images() const;
  /// Returns the number of classes of a model that classifies, in words.
  std::string describe_classes() const;
};

/// The number of source pieces of every image model: the reserved ones, and one for each value of a byte.
constexpr std::int64_t kImageVocabulary = kReservedIds + 256;

}  // namespace heed
