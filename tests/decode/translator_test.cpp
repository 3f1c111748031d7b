// Checks that a model that is read from a file, whose weights exist in packed form only, gives the bits of the model in
// memory. A weight that a model lists in products() and reads unpacked would be zeros in the first.

#include "heed/decode/translator.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "../checkpoint/random_checkpoint.h"
#include "heed/decode/force.h"
#include "random_model.h"
#include "same_hypotheses.h"

using namespace heed;

namespace {

/// Returns a text model with `size` pieces.
TextModel pieces(int size) {
  TextSteps steps;
  steps.mode = TokenMode::none;
  std::vector<std::string> pieces = {"<pad>", "<unk>", "<s>", "</s>"};
  for (int i = 4; i < size; ++i) pieces.push_back("p" + std::to_string(i));
  return TextModel(steps, Subwords(), std::make_shared<const Vocabulary>(pieces));
}

}  // namespace

TEST_CASE("a model from a file gives the bits of the model in memory") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("heed_translator_test_" + std::to_string(::getpid()))).string();
  TransformerConfig config = tiny_config();
  for (const NormPlacement norm : {NormPlacement::post, NormPlacement::pre}) {
    config.norm = norm;
    config.enc_depth = 2;
    // The embedding, which is read unpacked, may also be the packed weight of the output layer.
    config.tied_embeddings = norm == NormPlacement::pre ? TiedEmbeddings::decoder : TiedEmbeddings::none;
    Checkpoint memory = random_checkpoint(config, pieces(83), pieces(90), 3);
    save_checkpoint(path, memory);
    PackedIds source;
    Batch pairs;
    for (int seed = 1; seed < 6; ++seed) {
      const std::vector<std::int32_t> sentence = random_sentence(seed);
      source.append(sentence);
      pairs.add(std::span(sentence).first(sentence.size() - 1), std::vector<std::int32_t>{7, 8, 9, seed + 4});
    }
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      CAPTURE(static_cast<int>(precision));
      Translator translator({path}, precision);
      NetworkStepModel expected(*memory.model, memory.parameters, precision);
      const SearchOptions options{.beam_size = 3, .max_output_length = 12};
      const auto found = search(*translator.step_model(), source, options), wanted = search(expected, source, options);
      for (std::size_t s = 0; s < wanted.size(); ++s) check_same(found[s], wanted[s]);
      CHECK(translator.force(pairs) == force_decode(*memory.model, memory.parameters, precision, pairs));
    }
  }
  std::filesystem::remove(path);
}
