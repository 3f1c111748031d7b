#pragma once

#include "heed/data/image_corpus.h"

namespace heed {

/// The options of `train` that say how training images are changed at random, for models that read images.
struct ImageTrainingOptions {
  Augmentation augment = Augmentation::crop_flip;
  int randaugment_operations = 2, randaugment_magnitude = 9;
  double mixup = 0, cutmix = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Images");
    visit(augment,
          {.name = "augment",
           .help = "how training images are changed anew in each epoch: not at all; cropped and flipped; also by "
                   "RandAugment",
           .preset = true});
    visit(randaugment_operations, {.name = "randaugment-operations",
                                   .help = "number of RandAugment's operations for an image",
                                   .value = "N",
                                   .min = 0,
                                   .max = 20});
    visit(randaugment_magnitude, {.name = "randaugment-magnitude",
                                  .help = "strength of RandAugment's operations",
                                  .value = "M",
                                  .min = 0,
                                  .max = 30});
    visit(mixup, {.name = "mixup",
                  .help = "mix each image with another one, with a share drawn from Beta(A, A); 0: off",
                  .value = "A",
                  .min = 0,
                  .max = 100,
                  .implicit = "0.8"});
    visit(cutmix, {.name = "cutmix",
                   .help = "take a rectangle of each image from another one, its area drawn from Beta(A, A); 0: off",
                   .value = "A",
                   .min = 0,
                   .max = 100,
                   .implicit = "1"});
  }

  /// Returns how the images of a model are changed and mixed.
  ImageMixing mixing(const ImageInput& input, std::uint64_t seed) const {
    return {.augment = {.augment = augment,
                        .size = input.size,
                        .fit = input.fit,
                        .crop_fraction = input.crop_fraction,
                        .operations = randaugment_operations,
                        .magnitude = randaugment_magnitude},
            .mixup = mixup,
            .cutmix = cutmix,
            .seed = seed};
  }
};

}  // namespace heed
