// Compares what searches find on a GPU with what they find on the CPU.

#include <doctest/doctest.h>

#include <cmath>

#include "../checkpoint/random_checkpoint.h"
#include "heed/decode/decoder.h"
#include "heed/decode/force.h"
#include "heed/decode/output_on_gpu.h"
#include "random_model.h"
#include "random_shortlist.h"

namespace heed {
namespace {

constexpr int kSentences = 3;

PackedIds sentences() {
  PackedIds out;
  for (int s = 0; s < kSentences; ++s) out.append(random_sentence(s + 3));
  return out;
}

using Found = std::vector<std::vector<Hypothesis>>;

/// Checks that two searches found the same tokens, with nearly the same log-probabilities.
void check_near(const Found& found, const Found& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t s = 0; s < found.size(); ++s) {
    REQUIRE(found[s].size() == expected[s].size());
    for (std::size_t i = 0; i < found[s].size(); ++i) {
      CAPTURE(s);
      CAPTURE(i);
      CHECK(found[s][i].ids == expected[s][i].ids);
      REQUIRE(found[s][i].log_probabilities.size() == expected[s][i].log_probabilities.size());
      double worst = 0;
      for (std::size_t t = 0; t < found[s][i].log_probabilities.size(); ++t)
        worst = std::max(worst, std::abs(static_cast<double>(found[s][i].log_probabilities[t]) -
                                         static_cast<double>(expected[s][i].log_probabilities[t])));
      CHECK(worst <= 3e-4);
    }
  }
}

/// Translates with a model on the GPU and on the CPU.
void check_search(const Model<float>& model, ParameterValues<float>& parameters, const SearchOptions& options) {
  Decoder gpu(model, parameters, Precision::float32, test_parameters(parameters)),
      cpu(model, parameters, Precision::float32);
  check_near(gpu.translate(sentences(), options), cpu.translate(sentences(), options));
}

SearchOptions beam(int size) {
  return {.beam_size = size, .n_best = std::min(size, 3), .max_output_length = 8};
}

TEST_CASE("a GPU finds what the CPU finds: every search") {
  const RandomModel f(83, 2, 5);
  SearchOptions sampling = beam(4), diverse = beam(4), exhaustive = beam(1), ruled = beam(4);
  sampling.search = SearchKind::sample;
  diverse.beam_groups = 2;
  exhaustive.search = SearchKind::exhaustive;
  exhaustive.max_output_length = 2;
  ruled.no_repeat_ngram_size = 2;
  for (const SearchOptions& options : {beam(1), beam(4), beam(20), sampling, diverse, exhaustive, ruled})
    check_search(*f.model, *f.parameters, options);
}

TEST_CASE("a GPU finds what the CPU finds: every kind of Transformer") {
  for (const auto& [name, choose] : kinds_of_transformer) {
    CAPTURE(name);
    const RandomModel f(83, 2, 5, 40, choose);
    check_search(*f.model, *f.parameters, beam(4));
  }
}

TEST_CASE("a GPU finds what the CPU finds: every task") {
  const auto check = [](const ModelConfig& config) {
    Checkpoint one = random_checkpoint(config, numbered_pieces(83), numbered_pieces(90), 3);
    SearchOptions options = beam(3);
    options.iterations = 3;
    options.length_candidates = 2;
    check_search(*one.model, one.parameters, options);
  };
  for (const auto& [task, name] : EnumNames<Task>::values) {
    if (image_input(preset(task))) continue;
    CAPTURE(name);
    check(tiny_config(task));
  }
  RnnConfig every_step = std::get<RnnConfig>(tiny_config(Task::rnn));
  every_step.context = RnnContext::every_step;
  every_step.cell = RecurrentCell::lstm;
  check(every_step);
  RnnAttentionConfig dot = std::get<RnnAttentionConfig>(tiny_config(Task::rnn_attention));
  dot.attention = AttentionScoring::dot;
  check(dot);
}

/// Returns the scores of all tokens after each of some steps with the same tokens for each model.
std::vector<float> scores_of_steps(const RandomModel& f, Precision precision, bool gpu) {
  NetworkStepModel model(*f.model, *f.parameters, precision, gpu ? f.packed() : nullptr);
  model.start(sentences());
  std::vector<float> out;
  for (std::int32_t t = 0; t < 6; ++t) {
    const Tensor<float> scores = model.step(std::vector<std::int32_t>(kSentences, t == 0 ? kStartId : 4 + 7 * t));
    out.insert(out.end(), scores.data(), scores.data() + scores.size());
  }
  return out;
}

TEST_CASE("a GPU is as near the exact scores as the CPU: low precisions, with a cache of 16 and of 8 bits") {
  const RandomModel narrow(83, 2, 5), wide(83, 1, 6, 512);
  for (const RandomModel* f : {&narrow, &wide}) {
    const std::vector<float> exact = scores_of_steps(*f, Precision::float32, false);
    const auto error = [&](Precision precision, bool gpu) {
      const std::vector<float> scores = scores_of_steps(*f, precision, gpu);
      double sum = 0;
      for (std::size_t i = 0; i < exact.size(); ++i)
        sum += std::abs(static_cast<double>(scores[i]) - static_cast<double>(exact[i]));
      return sum / static_cast<double>(exact.size());
    };
    for (const Precision precision : {Precision::bfloat16, Precision::int8}) {
      CAPTURE(static_cast<int>(precision));
      CAPTURE(f->config.dim_emb);
      const double of_cpu = error(precision, false), of_gpu = error(precision, true);
      CHECK(of_gpu > of_cpu / 2);
      CHECK(of_gpu < of_cpu * 2);
    }
  }
}

TEST_CASE("a GPU finds what the CPU finds: a shortlist, an ensemble, and scores of given targets") {
  const RandomModel f(700, 1, 5), g(700, 1, 9);
  const auto list = random_shortlist(700, 20, 30);
  const auto search_with = [&](bool gpu, bool ensemble) {
    std::vector<std::unique_ptr<StepModel>> models;
    for (const RandomModel* each : {&f, &g})
      models.push_back(std::make_unique<NetworkStepModel>(*each->model, *each->parameters, Precision::float32,
                                                          gpu ? each->packed() : nullptr, list));
    if (!ensemble) return search(*models.front(), sentences(), beam(4));
    EnsembleStepModel both(std::move(models));
    return search(both, sentences(), beam(4));
  };
  for (const bool ensemble : {false, true}) {
    CAPTURE(ensemble);
    check_near(search_with(true, ensemble), search_with(false, ensemble));
  }
  Batch pairs;
  for (int s = 0; s < kSentences; ++s) {
    const std::vector<std::int32_t> source = random_sentence(s);
    pairs.add(std::span(source).first(source.size() - 1), std::vector<std::int32_t>{7, 100 + s, 9});
  }
  ForcedDecoder gpu(*f.model, *f.parameters, Precision::float32, f.packed()),
      cpu(*f.model, *f.parameters, Precision::float32);
  const auto found = gpu.scores(pairs), expected = cpu.scores(pairs);
  for (std::size_t s = 0; s < expected.size(); ++s)
    for (std::size_t t = 0; t < expected[s].size(); ++t)
      CHECK(found[s][t] == doctest::Approx(expected[s][t]).epsilon(1e-5));
}

TEST_CASE("the output layer on a GPU: the same bits for all rows at once and for a few at a time") {
  constexpr std::int64_t kRows = 5, kWidth = 24, kPieces = 90, kBest = 7;
  TestDevice test_device;
  const Device device = test_device;
  ParameterLayout layout;
  const ParameterId weight = layout.add("weight", {kPieces, kWidth}, Initialiser::xavier()),
                    bias = layout.add("bias", {kPieces}, Initialiser::normal(0.3)),
                    hidden = layout.add("hidden", {kRows, kWidth}, Initialiser::normal(2));
  ParameterValues<float> values(layout);
  values.initialise(4);
  const DeviceParameters<float> on_device(device, values);
  Graph<float> graph(device, on_device.view());
  const auto best = [&](std::int64_t most) {
    std::pair<std::vector<float>, std::vector<std::int32_t>> out(kRows * kBest, kRows * kBest);
    std::vector<std::int64_t> changed;
    graph.reset();
    output_top_k_on_gpu(
        graph, graph.parameter(hidden).value, graph.parameter(weight).value, graph.parameter(bias).value, kBest,
        out.first.data(), out.second.data(),
        [&](Tensor<float> scores, std::int64_t first) {
          CHECK(first == std::ssize(changed));
          for (std::int64_t r = 0; r < scores.rows(); ++r) changed.push_back(first + r);
        },
        most);
    CHECK(std::ssize(changed) == kRows);
    return out;
  };
  const auto all = best(kRows * kPieces);
  for (const std::int64_t most : {std::int64_t{1}, kPieces, 2 * kPieces, 4 * kPieces + 1}) CHECK(best(most) == all);
}

TEST_CASE("a GPU gives the attention weights of the CPU to a trace, in the memory of the host") {
  struct Copy : Trace<float> {
    std::vector<float> weights;
    bool wants(AttentionKind, int) const override { return true; }
    void attention(AttentionKind, int, int heads, PackedOffsets queries, PackedOffsets keys,
                   const Variable<float>& variable) override {
      std::int64_t size = 0;
      for (int b = 0; b < queries.sequences(); ++b) size += std::int64_t{heads} * queries.length(b) * keys.length(b);
      weights.insert(weights.end(), variable.value.data(), variable.value.data() + size);
    }
  };
  const RandomModel f(83, 2, 5);
  Batch pairs;
  pairs.add(std::vector<std::int32_t>{5, 6, 7}, std::vector<std::int32_t>{8, 9});
  pairs.add(std::vector<std::int32_t>{10}, std::vector<std::int32_t>{11, 12, 13});
  Copy found, expected;
  ForcedDecoder(*f.model, *f.parameters, Precision::float32, f.packed()).attention(pairs, found);
  ForcedDecoder(*f.model, *f.parameters, Precision::float32).attention(pairs, expected);
  REQUIRE(found.weights.size() == expected.weights.size());
  for (std::size_t i = 0; i < expected.weights.size(); ++i)
    CHECK(found.weights[i] == doctest::Approx(expected.weights[i]).epsilon(1e-5));
}

}  // namespace
}  // namespace heed
