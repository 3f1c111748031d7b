// Checks that a model that is read from a file, whose weights exist in packed form only, gives the bits of the model in
// memory. A weight that a model lists in products() and reads unpacked would be zeros in the first.

#include "heed/decode/translator.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "../checkpoint/random_checkpoint.h"
#include "heed/decode/decoder.h"
#include "heed/decode/force.h"
#include "random_model.h"
#include "same_hypotheses.h"

using namespace heed;

namespace {

Decoder decoder_of(Translator& translator) {
  return translator.is_parallel() ? Decoder(translator.parallel_model()) : Decoder(translator.step_model());
}

}  // namespace

TEST_CASE("a model of any task from a file gives the bits of the model in memory") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("heed_translator_test_" + std::to_string(::getpid()))).string();
  std::vector<ModelConfig> configs;
  for (const auto& [task, name] : EnumNames<Task>::values)
    if (!image_input(preset(task))) configs.push_back(tiny_config(task));
  // The embedding, which is read unpacked, may also be the packed weight of the output layer.
  TransformerConfig transformer = tiny_config();
  transformer.norm = NormPlacement::pre;
  transformer.tied_embeddings = TiedEmbeddings::decoder;
  RnnConfig rnn = std::get<RnnConfig>(tiny_config(Task::rnn));
  rnn.context = RnnContext::every_step;
  rnn.cell = RecurrentCell::lstm;
  rnn.tied_embeddings = TiedEmbeddings::decoder;
  RnnAttentionConfig dot = std::get<RnnAttentionConfig>(tiny_config(Task::rnn_attention));
  dot.attention = AttentionScoring::dot;
  dot.encoder = RnnEncoder::forward;
  TransformerConfig fixed = tiny_config();
  fixed.decoder_autoreg = DecoderAutoreg::none;
  fixed.fixed_length = 13;
  configs.insert(configs.end(), {transformer, rnn, dot, fixed});
  for (const auto& [name, choose] : kinds_of_transformer) {
    if (kTestsBriefly) break;
    TransformerConfig kind = tiny_config();
    kind.enc_depth = kind.dec_depth = 2;
    choose(kind);
    configs.push_back(kind);
  }
  for (const ModelConfig& config : configs) {
    CAPTURE(architecture(config));
    Checkpoint memory = random_checkpoint(config, numbered_pieces(83), numbered_pieces(90), 3);
    save_checkpoint(path, memory);
    PackedIds source;
    Batch pairs;
    for (int seed = 1; seed < (kTestsBriefly ? 3 : 6); ++seed) {
      const std::vector<std::int32_t> sentence = random_sentence(seed);
      source.append(sentence);
      pairs.add(std::span(sentence).first(sentence.size() - 1), std::vector<std::int32_t>{7, 8, 9, seed + 4});
    }
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      CAPTURE(static_cast<int>(precision));
      Translator translator({{path}}, precision, 1, test_gpu());
      const int longest = kTestsBriefly ? 4 : 12;
      const SearchOptions options{.beam_size = 3, .max_output_length = longest};
      const auto parameters = test_parameters(memory.parameters);
      Decoder in_memory(*memory.model, memory.parameters, precision, parameters), from_file = decoder_of(translator);
      const auto found = from_file.translate(source, options), wanted = in_memory.translate(source, options);
      for (std::size_t s = 0; s < wanted.size(); ++s) check_same(found[s], wanted[s]);
      CHECK(translator.target_log_probabilities(pairs) ==
            ForcedDecoder(*memory.model, memory.parameters, precision, parameters).scores(pairs));
      // A sentence alone gives the same, and so does a draft model of the same task.
      for (int s = 0; s < source.sequences(); ++s) {
        PackedIds one;
        one.append(source.sequence(s));
        const auto alone = from_file.translate(one, options);
        check_same(alone.front(), wanted[static_cast<std::size_t>(s)]);
      }
      if (translator.is_parallel()) continue;
      const SearchOptions greedy{.beam_size = 1, .max_output_length = longest};
      Translator with_draft({{path}, {}, path}, precision, 1, test_gpu());
      const std::unique_ptr<SpeculativeStepModel> speculative = with_draft.speculative_step_model(3);
      for (int s = 0; s < source.sequences(); ++s) {
        PackedIds one;
        one.append(source.sequence(s));
        check_same(search(*speculative, one, greedy).front(), in_memory.translate(one, greedy).front());
      }
    }
  }
  std::filesystem::remove(path);
}

TEST_CASE("models of different tasks form an ensemble") {
  const std::string folder =
      (std::filesystem::temp_directory_path() / "heed_ensemble_test").string() + "_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  std::vector<std::string> paths;
  for (const Task task : {Task::transformer_tiny, Task::rnn, Task::rnn_attention}) {
    paths.push_back(folder + "/" + std::string(enum_name(task)) + ".h5");
    save_checkpoint(paths.back(), random_checkpoint(tiny_config(task), numbered_pieces(83), numbered_pieces(90), 5));
  }
  Translator translator({paths}, Precision::float32, 1, test_gpu());
  Batch pair;
  pair.add(std::vector<std::int32_t>{5, 6, 7}, std::vector<std::int32_t>{8, 9});
  std::vector<double> mean(3);
  for (const std::string& path : paths) {
    const auto alone = Translator({{path}}, Precision::float32, 1, test_gpu()).target_log_probabilities(pair);
    for (std::size_t t = 0; t < 3; ++t) mean[t] += std::exp(static_cast<double>(alone[0][t])) / 3;
  }
  const auto together = translator.target_log_probabilities(pair);
  for (std::size_t t = 0; t < 3; ++t) CHECK(together[0][t] == doctest::Approx(std::log(mean[t])).epsilon(1e-5));
  CHECK(search(*translator.step_model(), pair.source, {.beam_size = 2, .max_output_length = 5}).size() == 1);
  std::filesystem::remove_all(folder);
}
