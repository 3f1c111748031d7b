#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/threads.h"
#include "heed/data/parallel_corpus.h"
#include "heed/image/augment.h"
#include "heed/model/model_config.h"

namespace heed {

/// Reads the images of a list for a model: as squares of the model's size, as ids (see nn/patch_embedding.h).
class ImageReader {
 public:
  /// Paths that are not absolute are relative to the folder of `list`, the file that names the images; "-" and "" mean
  /// the current folder.
  ImageReader(const ImageInput& input, const std::string& list);

  /// Returns the path of the file that a line of the list names.
  std::string path_of(const std::string& line) const;
  /// Throws Error where there is no file that a line names.
  void check(const std::string& line) const;
  /// Returns the image of a line, fitted to the model's size. Throws Error if it cannot be read.
  Image read(const std::string& line) const { return fit(read_whole(line)); }
  /// Returns the image of a line in its own size.
  Image read_whole(const std::string& line) const;
  /// Returns an image of the model's size.
  Image fit(const Image& image) const;

  const ImageInput& input() const { return input_; }

  /// Appends the samples of an image to `ids`.
  static void append_ids(const Image& image, std::vector<std::int32_t>& ids);

 private:
  ImageInput input_;
  std::string folder_;
};

/// Returns the class of a label, counted from 0, from its ids in the target vocabulary. Throws Error at the place
/// `where` of the text `label` if it is none of the labels of the model in the file `model`.
std::int32_t class_of_label(std::span<const std::int32_t> ids, const std::string& label, const std::string& model,
                            const Position& where);

/// How training images are changed at random, and mixed. A mixed image has the classes of two images, with shares.
struct ImageMixing {
  AugmentOptions augment;
  /// mixup (Zhang et al. 2018): an image becomes the weighted mean of itself and another one, whose share is drawn from
  /// the distribution Beta(mixup, mixup); 0: no mixup.
  double mixup = 0;
  /// CutMix (Yun et al. 2019): a rectangle of an image is taken from another one. Its area is drawn from Beta(cutmix,
  /// cutmix); 0: no CutMix. With both, each image is mixed in one way, chosen with probability 1/2.
  double cutmix = 0;
  std::uint64_t seed = 1;
};

/// Examples whose sources are images: the sources of `pairs` are the paths of the images, and the targets are labels or
/// sentences. The files are read again whenever a batch is filled, so that the memory does not depend on the number of
/// images.
class ImageExamples final : public Examples {
 public:
  /// The other objects must outlive this one. `tokens` is the number of tokens that the model makes of an image,
  /// and `work` is ExampleSize::work of an image with a short target; `classified` tells whether targets are classes,
  /// `list` names the list of images in errors. `mixing`, if not null, changes the images at random, as a function of
  /// (seed, epoch, line).
  ImageExamples(const ParallelCorpus& pairs, const ImageReader& reader, std::int32_t tokens, std::int32_t work,
                bool classified, std::string list, const ImageMixing* mixing = nullptr)
      : pairs_(&pairs),
        reader_(reader),
        tokens_(tokens),
        work_(work),
        classified_(classified),
        list_(std::move(list)),
        mixing_(mixing) {}

  void set_epoch(const ParallelCorpus& pairs, std::int64_t epoch) {
    pairs_ = &pairs;
    epoch_ = epoch;
  }

  /// Throws Error for the first image whose file is missing, which a training would otherwise find when it has already
  /// learnt from others.
  void check_files(ThreadPool& pool) const;

  std::int64_t size() const override { return pairs_->size(); }
  ExampleSize size_of(std::int64_t example) const override;
  void fill(std::span<const std::int32_t> examples, Batch& batch) const override;
  std::int64_t line(std::int64_t example) const override { return pairs_->line(example); }

 private:
  /// An image and what is mixed into it: another example, with its share.
  struct Mixed {
    Image image;
    std::int64_t other = 0;
    double share = 0;
  };

  template <class Read>
  auto with_line(std::int64_t example, const Read& read) const;
  Image view(std::int64_t example) const;
  Mixed mixed(std::int64_t example) const;
  RandomStream stream(std::int64_t example, std::uint32_t use) const;
  std::int32_t class_of(std::int64_t example) const;

  const ParallelCorpus* pairs_;
  const ImageReader& reader_;
  std::int32_t tokens_, work_;
  bool classified_;
  std::string list_;
  const ImageMixing* mixing_;
  std::int64_t epoch_ = 0;
};

/// The windows of a training on images. The sentence pairs of a ParallelWindows object have the paths of the images as
/// sources.
class ImageWindows final : public ExampleWindows {
 public:
  ImageWindows(ParallelWindows& pairs, ImageExamples& examples) : pairs_(pairs), examples_(examples) {}

  std::int64_t windows() const override { return pairs_.windows(); }
  const ImageExamples& load(std::int64_t epoch, std::int64_t window) override {
    examples_.set_epoch(pairs_.load(epoch, window), epoch);
    return examples_;
  }

 private:
  ParallelWindows& pairs_;
  ImageExamples& examples_;
};

}  // namespace heed
