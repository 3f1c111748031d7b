#include "heed/data/image_corpus.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "heed/base/error.h"

using namespace heed;

namespace {

const std::string kShapes = std::string(HEED_TEST_DATA) + "/../data/shapes/";

ImageInput small_images() {
  ImageInput input;
  input.size = 32;
  return input;
}

/// Returns pairs of the first `count` pictures of data/shapes with labels 0, 1, 2, 0, ...
ParallelCorpus some_pairs(int count) {
  ParallelCorpus pairs;
  for (int i = 1; i <= count; ++i) {
    char path[32];
    std::snprintf(path, sizeof path, "images/%04d.png", i);
    std::vector<std::int32_t> ids;
    for (const char* c = path; *c != '\0'; ++c) ids.push_back(kReservedIds + *c);
    pairs.add(ids, std::vector<std::int32_t>{kReservedIds + (i - 1) % 3}, i);
  }
  return pairs;
}

Batch filled(const ImageExamples& examples, std::vector<std::int32_t> which) {
  Batch batch;
  examples.fill(which, batch);
  return batch;
}

}  // namespace

TEST_CASE("image examples: sizes, ids and classes") {
  const ParallelCorpus pairs = some_pairs(3);
  const ImageReader reader(small_images(), kShapes + "train.images");
  const ImageExamples examples(pairs, reader, 65, 20, true, "list");
  CHECK(examples.size() == 3);
  CHECK(examples.size_of(1).source == 65);
  CHECK(examples.size_of(1).target == 1);
  CHECK(examples.size_of(1).work == 20);
  const Batch batch = filled(examples, {2, 0});
  CHECK(batch.sequences() == 2);
  CHECK(batch.target_out == std::vector<std::int32_t>{2, 0});
  CHECK(batch.second_targets.empty());
  const Image image = reader.read("images/0003.png");
  REQUIRE(batch.source.packed().length(0) == 32 * 32 * 3 + 1);
  CHECK(batch.source.ids[0] == kReservedIds + image.samples[0]);
  CHECK(batch.source.ids[32 * 32 * 3 - 1] == kReservedIds + image.samples.back());
  CHECK(batch.source.ids[32 * 32 * 3] == kEndId);
}

TEST_CASE("image examples: what is random is a function of seed, epoch and line") {
  const ParallelCorpus pairs = some_pairs(8);
  const ImageReader reader(small_images(), kShapes + "train.images");
  ImageMixing mixing;
  mixing.augment.augment = Augmentation::randaugment;
  mixing.mixup = 0.8;
  mixing.cutmix = 1;
  ImageExamples examples(pairs, reader, 65, 20, true, "list", &mixing);
  examples.set_epoch(pairs, 3);
  const Batch all = filled(examples, {0, 1, 2, 3, 4, 5, 6, 7}), again = filled(examples, {5, 0});
  const auto image = [](const Batch& batch, int i) {
    const auto ids = batch.source.sequence(i);
    return std::vector<std::int32_t>(ids.begin(), ids.end());
  };
  CHECK(image(again, 0) == image(all, 5));
  CHECK(again.second_targets[0] == all.second_targets[5]);
  CHECK(again.second_shares[0] == all.second_shares[5]);
  std::set<float> shares;
  for (const float share : all.second_shares) {
    CHECK(share >= 0);
    CHECK(share <= 1);
    shares.insert(share);
  }
  CHECK(shares.size() > 5);
  examples.set_epoch(pairs, 4);
  CHECK(image(filled(examples, {5}), 0) != image(all, 5));
  ImageMixing other = mixing;
  other.seed = 2;
  ImageExamples of_other_seed(pairs, reader, 65, 20, true, "list", &other);
  of_other_seed.set_epoch(pairs, 3);
  CHECK(image(filled(of_other_seed, {5}), 0) != image(all, 5));
}

TEST_CASE("image examples: mixed images give the second label the share of what comes from the other image") {
  // A black and a white image, so that the samples tell where they come from.
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("heed_image_corpus_test_" + std::to_string(::getpid()))).string() +
      "/";
  std::filesystem::create_directories(folder);
  ParallelCorpus pairs;
  for (const auto& [name, sample] : {std::pair("black.pgm", '\0'), {"white.pgm", '\xFF'}}) {
    std::ofstream(folder + name, std::ios::binary) << "P5 32 32 255\n" << std::string(32 * 32, sample);
    std::vector<std::int32_t> ids;
    for (const char* c = name; *c != '\0'; ++c) ids.push_back(kReservedIds + *c);
    pairs.add(ids, std::vector<std::int32_t>{kReservedIds + static_cast<std::int32_t>(pairs.size())}, pairs.size() + 1);
  }
  const ImageReader reader(small_images(), folder + "list");
  for (const bool cuts : {true, false}) {
    ImageMixing mixing;
    mixing.augment.augment = Augmentation::none;
    (cuts ? mixing.cutmix : mixing.mixup) = 1;
    ImageExamples examples(pairs, reader, 65, 65, true, "list", &mixing);
    int mixed = 0, cut_off = 0;
    for (int epoch = 0; epoch < 80; ++epoch) {
      examples.set_epoch(pairs, epoch);
      const std::int32_t own = epoch % 2;  // 0 is black, 1 is white
      const Batch batch = filled(examples, {own});
      double white = 0;
      for (std::size_t i = 0; i + 1 < batch.source.ids.size(); ++i) {
        const int sample = batch.source.ids[i] - kReservedIds;
        if (cuts) CHECK((sample == 0 || sample == 255));
        white += sample / 255.0;
      }
      const auto share = static_cast<double>(batch.second_shares[0]), found = white / (32 * 32 * 3);
      if (batch.second_targets[0] == own) {
        CHECK(found == own);
        continue;
      }
      ++mixed;
      // Mixed samples are rounded to 8 bits.
      CHECK(found == doctest::Approx(own == 0 ? share : 1 - share).epsilon(cuts ? 1e-6 : 0.5 / 255).scale(1));
      const double side = std::sqrt(share * 32 * 32);
      cut_off += cuts && std::abs(side - std::round(side)) > 1e-3;
    }
    CHECK(mixed > 20);
    if (cuts) CHECK(cut_off > 5);  // the rectangle is no square where an edge of the image cuts it off
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("image examples: an image that cannot be read is named with its list and line") {
  ParallelCorpus pairs = some_pairs(1);
  std::vector<std::int32_t> ids;
  for (const char c : std::string("images/none.png")) ids.push_back(kReservedIds + c);
  pairs.add(ids, std::vector<std::int32_t>{kReservedIds}, 17);
  const ImageReader reader(small_images(), kShapes + "train.images");
  const ImageExamples examples(pairs, reader, 65, 20, true, "list");
  const std::string message = "list:17: " + kShapes + "images/none.png: cannot open: No such file or directory";
  CHECK_THROWS_WITH_AS(filled(examples, {0, 1}), message.c_str(), Error);
}

TEST_CASE("image reader: paths are relative to the list") {
  CHECK(ImageReader(small_images(), "a/b/list").path_of("c.png") == "a/b/c.png");
  CHECK(ImageReader(small_images(), "a/b/list").path_of("/c.png") == "/c.png");
  CHECK(ImageReader(small_images(), "list").path_of("c.png") == "c.png");
  CHECK(ImageReader(small_images(), "-").path_of("x/c.png") == "x/c.png");
}
