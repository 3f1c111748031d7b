#include "heed/decode/classify.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "../checkpoint/random_checkpoint.h"
#include "heed/decode/decoder.h"
#include "heed/decode/translator.h"
#include "test_device.h"

using namespace heed;

namespace {

VitConfig small_vit() {
  VitConfig config;
  config.image.size = 8;
  config.dim_emb = 16;
  config.enc_depth = 2;
  config.heads = 2;
  config.dim_ffn = 24;
  return config;
}

/// Returns the ids of an 8 x 8 image in colours, and </s>.
std::vector<std::int32_t> some_image(int seed) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 8 * 8 * 3; ++i) ids.push_back(kReservedIds + (i * (31 + 2 * seed) + 17 * seed) % 256);
  ids.push_back(kEndId);
  return ids;
}

}  // namespace

TEST_CASE(
    "a model that classifies: labels from a file as from memory, in any batch, with probabilities that add up to 1") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("heed_classify_test_" + std::to_string(::getpid()))).string();
  const TextModel labels = TextModel::of_labels({"cat", "dog", "polar bear"});
  Checkpoint memory = random_checkpoint(small_vit(), TextModel::of_images(), labels, 7);
  save_checkpoint(path, memory);
  PackedIds source;
  Batch classified;
  for (int seed = 1; seed < 5; ++seed) {
    const std::vector<std::int32_t> image = some_image(seed);
    source.append(image);
    classified.add_classified(std::span(image).first(image.size() - 1), seed % 3);
  }
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
    CAPTURE(static_cast<int>(precision));
    Translator translator({{path}}, precision, 1, test_gpu());
    CHECK(translator.classifies());
    CHECK(translator.target().decode(std::vector<std::int32_t>{kReservedIds + 2}) == "polar bear");
    const SearchOptions all{.n_best = 10};
    Decoder from_file(translator.step_model(), true),
        in_memory(*memory.model, memory.parameters, precision, test_parameters(memory.parameters));
    const auto found = from_file.translate(source, all), wanted = in_memory.translate(source, all);
    const auto scores = translator.target_log_probabilities(classified);
    for (std::size_t s = 0; s < 4; ++s) {
      REQUIRE(found[s].size() == 3);
      double sum = 0;
      for (std::size_t k = 0; k < 3; ++k) {
        CHECK(found[s][k].ids == wanted[s][k].ids);
        CHECK(found[s][k].score == wanted[s][k].score);
        CHECK((k == 0 || found[s][k].score <= found[s][k - 1].score));
        sum += std::exp(found[s][k].score);
        // The output layer of forced decoding is float32 in any precision.
        if (precision == Precision::float32 && found[s][k].ids.front() == kReservedIds + classified.target_out[s])
          CHECK(static_cast<double>(scores[s].front()) == doctest::Approx(found[s][k].score).epsilon(1e-5));
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-5));
      PackedIds one;
      one.append(source.sequence(static_cast<int>(s)));
      CHECK(from_file.translate(one, all)[0][0].score == found[s][0].score);
    }
  }
  // An ensemble takes the mean of the probabilities.
  const std::string other = path + "_other";
  save_checkpoint(other, random_checkpoint(small_vit(), TextModel::of_images(), labels, 8));
  const auto translator_of = [](const std::vector<std::string>& paths) {
    return std::make_unique<Translator>(TranslatorFiles{paths}, Precision::float32, 1, test_gpu());
  };
  const auto one = translator_of({path}), two = translator_of({other}), both = translator_of({path, other});
  const auto probability = [&](Translator& translator) {
    Decoder decoder(translator.step_model(), true);
    const auto found = decoder.translate(source, {.n_best = 3});
    for (const Hypothesis& each : found[0])
      if (each.ids.front() == kReservedIds) return std::exp(each.score);
    return -1.0;
  };
  CHECK(probability(*both) == doctest::Approx((probability(*one) + probability(*two)) / 2).epsilon(1e-5));
  VitConfig grey = small_vit();
  grey.image.channels = 1;
  save_checkpoint(other, random_checkpoint(grey, TextModel::of_images(), labels, 8));
  const std::string message =
      other +
      ": reads other images than the first model (models of an ensemble need the same size, channels "
      "and normalisation)";
  CHECK_THROWS_WITH_AS(Translator({{path, other}}, Precision::float32), message.c_str(), Error);
  // A model that reads images has neither pieces for a shortlist nor steps for a draft model.
  for (const auto& [files, option] : {std::pair(TranslatorFiles{{path}, path, {}}, "--shortlist"),
                                      {TranslatorFiles{{path}, {}, path}, "--draft-model"}}) {
    const std::string refused =
        option + std::string(": has no use with ") + path + ", which reads images and gives labels";
    CHECK_THROWS_WITH_AS(Translator(files, Precision::float32), refused.c_str(), UsageError);
  }
  std::filesystem::remove(path);
  std::filesystem::remove(other);
}
