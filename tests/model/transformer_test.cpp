#include "heed/model/transformer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "heed/base/error.h"
#include "heed/nn/feed_forward.h"

using namespace heed;
using nlohmann::json;

namespace {

/// Fills the parameters with the formula of scripts/reference/make_transformer_reference.py, so that the reference file
/// needs no weights.
template <class T>
void fill(ParameterValues<T>& values) {
  const auto& all = values.layout().all();
  for (int j = 0; j < static_cast<int>(all.size()); ++j) {
    const Tensor<T> value = values[{j}];
    const std::string& name = all[static_cast<std::size_t>(j)].name;
    const bool scale = name.ends_with("/scale") || name.ends_with("/running_variance");  // these must be positive
    for (std::int64_t i = 0; i < value.size(); ++i)
      value[i] = static_cast<T>(0.3 * std::sin(1 + 0.7 * j + 0.91 * static_cast<double>(i)) + (scale ? 1 : 0));
  }
}

PackedIds pack(const json& sequences) {
  PackedIds out;
  for (const auto& sequence : sequences) out.append(sequence.get<std::vector<std::int32_t>>());
  return out;
}

template <class Enum>
Enum parse(const json& name) {
  for (const auto& [value, text] : EnumNames<Enum>::values)
    if (text == name.get<std::string>()) return value;
  FAIL("unknown name ", name.dump());
  return {};
}

TransformerConfig config_of(const json& c) {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = c["vocabulary"];
  config.dim_emb = c["dim"];
  config.heads = c["heads"];
  config.dim_ffn = c["ffn"];
  config.enc_depth = config.dec_depth = c["layers"];
  config.max_positions = c["max_positions"];
  config.norm = parse<NormPlacement>(c["norm"]);
  config.normalization = parse<Normalization>(c.value("normalization", "layer"));
  config.positions = parse<PositionEncoding>(c["positions"]);
  config.ffn_activation = parse<FeedForwardActivation>(c["activation"]);
  config.tied_embeddings = parse<TiedEmbeddings>(c["tied"]);
  config.output_bias = c["output_bias"];
  config.dropout = 0;
  return config;
}

double number(const json& value) {
  return value.get<double>();
}

json reference() {
  std::ifstream in(std::string(HEED_TEST_DATA) + "/model/reference/transformer.json");
  return json::parse(in);
}

/// Returns the configs of all cases of the reference file, and Transformers with batch normalisation, by name.
std::vector<std::pair<std::string, TransformerConfig>> configs(const json& all) {
  std::vector<std::pair<std::string, TransformerConfig>> out;
  for (const auto& [name, c] : all["cases"].items()) out.emplace_back(name, config_of(c));
  for (const char* const name : {"post", "pre"}) {
    out.emplace_back(std::string("batch ") + name, config_of(all["cases"][name]));
    out.back().second.normalization = Normalization::batch;
  }
  return out;
}

template <class T>
void check_close(Tensor<T> actual, const json& expected, double tolerance) {
  REQUIRE(actual.size() == static_cast<std::int64_t>(expected.size()));
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    INFO("element ", i);
    CHECK(actual[i] ==
          doctest::Approx(expected[static_cast<std::size_t>(i)].get<double>()).epsilon(tolerance).scale(1));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("transformer: outputs, loss and gradients are PyTorch's", T, float, double) {
  const double tolerance = std::is_same_v<T, float> ? 2e-5 : 1e-9;
  const json all = reference();
  const Batch batch{pack(all["source"]), pack(all["target_in"]), pack(all["target_out"]).ids};
  for (const auto& [name, c] : all["cases"].items()) {
    CAPTURE(name);
    const Transformer<T> model(config_of(c));
    ParameterValues<T> values(model.layout()), gradients(model.layout());
    fill(values);
    Arena arena;
    CpuContext device{arena};
    Graph<T> graph(device, values, gradients);
    const Variable<T> memory = model.encode(graph, batch.source);
    check_close(memory.value, c["memory"], tolerance);
    check_close(model.decode(graph, memory, batch.source.packed(), batch.target_in).value, c["hidden"], tolerance);
    graph.reset();
    CrossEntropySums sums;
    const Variable<T> loss = model.loss(graph, batch, {.label_smoothing = 0.1}, &sums);
    CHECK(loss.value[0] == doctest::Approx(number(c["loss"])).epsilon(tolerance));
    CHECK(sums.negative_log_likelihood == doctest::Approx(number(c["nll"])).epsilon(tolerance));
    CHECK(sums.tokens == 9);
    graph.backward(loss);
    CHECK(model.layout().all().size() == c["gradients"].size());
    for (const auto& [parameter, expected] : c["gradients"].items()) {
      CAPTURE(parameter);
      const ParameterId id = model.layout().find(parameter);
      REQUIRE(id);
      double squares = 0;
      for (const T g : gradients[id].span()) squares += static_cast<double>(g) * static_cast<double>(g);
      CHECK(std::sqrt(squares) == doctest::Approx(number(expected["norm"])).epsilon(10 * tolerance).scale(1));
      for (std::size_t i = 0; i < expected["first"].size(); ++i)
        CHECK(gradients[id][static_cast<std::int64_t>(i)] ==
              doctest::Approx(number(expected["first"][i])).epsilon(10 * tolerance).scale(1));
    }
  }
}

TEST_CASE("transformer: gradients with every kind of dropout are those of finite differences") {
  const json all = reference();
  const Batch batch{pack(all["source"]), pack(all["target_in"]), pack(all["target_out"]).ids};
  for (auto& [name, config] : configs(all)) {
    CAPTURE(name);
    config.dropout = 0.2;
    config.attention_dropout = 0.15;
    config.ffn_dropout = 0.25;
    const Transformer<double> model(config);
    ParameterValues<double> values(model.layout()), gradients(model.layout());
    fill(values);
    Arena arena;
    CpuContext device{arena};
    Graph<double> graph(device, values, gradients);
    // Computes the loss with the dropout masks of one key, and on demand the gradients.
    const auto loss_of = [&](const DropoutKey& key, bool backward) {
      graph.reset();
      graph.set_dropout(key);
      CrossEntropySums sums;
      const Variable<double> loss = model.loss(graph, batch, {.label_smoothing = 0.1, .scale = 0.5}, &sums);
      const double value = loss.value[0];
      if (backward) graph.backward(loss);
      return value;
    };
    const DropoutKey key{.seed = 11, .update = 3, .shard = 2};
    const double loss = loss_of(key, true);
    // A copy, because the loss adds to the gradient of the output layer in every forward pass.
    ParameterValues<double> analytic = gradients;
    CHECK(loss_of(key, false) == loss);
    CHECK(std::abs(loss_of({.seed = 11, .update = 4, .shard = 2}, false) - loss) > 1e-3);

    const auto check_element = [&](ParameterId id, std::int64_t i) {
      CAPTURE(i);
      constexpr double kStep = 1e-5;
      double& element = values[id][i];
      const double before = element;
      element = before + kStep;
      const double above = loss_of(key, false);
      element = before - kStep;
      const double below = loss_of(key, false);
      element = before;
      CHECK(analytic[id][i] == doctest::Approx((above - below) / (2 * kStep)).epsilon(1e-7).scale(1));
    };
    const std::size_t trained = model.layout().all().size() - model.layout().running().size();
    for (int j = 0; j < static_cast<int>(trained); ++j) {
      const ParameterId id{j};
      CAPTURE(model.layout()[id].name);
      const auto gradient = analytic[id].span();
      const auto largest = std::max_element(gradient.begin(), gradient.end(),
                                            [](double a, double b) { return std::abs(a) < std::abs(b); });
      check_element(id, largest - gradient.begin());
      const RandomStream stream(static_cast<std::uint64_t>(j), RandomUse::sampling);
      for (std::uint64_t draw = 0; draw < 4; ++draw)
        check_element(id, static_cast<std::int64_t>(stream.below(gradient.size(), draw)));
    }
  }
}

TEST_CASE(
    "transformer: with batch normalisation, training reads the statistics of its batch, and inference the averages") {
  const json all = reference();
  const Batch batch{pack(all["source"]), pack(all["target_in"]), pack(all["target_out"]).ids};
  TransformerConfig config = config_of(all["cases"]["pre"]);
  config.normalization = Normalization::batch;
  const Transformer<float> model(config);
  // Each of 2 layers has 2 norms in the encoder and 3 in the decoder, and pre-norm has one at the end of either.
  CHECK(model.layout().running().size() == 2 * (2 * 5 + 2));
  REQUIRE(model.layout().find("encoder/layers/1/feed_forward_norm/running_variance"));
  ParameterValues<float> values(model.layout()), gradients(model.layout());
  values.initialise(1);
  Arena arena;
  CpuContext device{arena};
  Graph<float> training(device, values, gradients), inference(device, values);
  CrossEntropySums trained, read, moved;
  training.backward(model.loss(training, batch, {}, &trained));
  for (const ParameterInfo& info : model.layout().running()) {
    CAPTURE(info.name);
    // Behind the sums stands the number of source tokens or of target tokens.
    CHECK(gradients.flat()[static_cast<std::size_t>(info.offset + info.shape.size())] ==
          (info.name.starts_with("encoder") ? batch.source.tokens() : batch.target_in.tokens()));
  }
  inference.reset();
  model.loss(inference, batch, {}, &read);
  CHECK(read.loss != trained.loss);
  for (const ParameterInfo& info : model.layout().running())
    if (info.name.ends_with("variance")) values.flat()[static_cast<std::size_t>(info.offset)] = 3;
  inference.reset();
  model.loss(inference, batch, {}, &moved);
  CHECK(moved.loss != read.loss);
  CrossEntropySums again;
  training.reset();
  model.loss(training, batch, {}, &again);
  CHECK(again.loss == trained.loss);
}

TEST_CASE("feed-forward: where products round it, the inner result is kept rounded") {
  for (const auto& [precision, activation] : {std::pair(Precision::float32, FeedForwardActivation::relu),
                                              {Precision::bfloat16, FeedForwardActivation::relu},
                                              {Precision::bfloat16, FeedForwardActivation::swiglu}}) {
    CAPTURE(static_cast<int>(precision));
    CAPTURE(static_cast<int>(activation));
    constexpr std::int64_t rows = 64, width = 16, inner = 4096;
    ParameterLayout layout;
    const FeedForward layer(layout, "layer", width, inner, activation, 0);
    ParameterValues<float> values(layout), gradients(layout);
    Arena arena;
    CpuContext device{arena, precision};
    Graph<float> graph(device, values, gradients);
    const Variable<float> x = graph.input(arena.zeros<float>({rows, width}), true);
    const std::size_t before = arena.used();
    layer(graph, x);
    const std::size_t kept = arena.used() - before, of_inner = rows * inner * (takes_bfloat16(precision) ? 2 : 4);
    // A gated linear unit also keeps its input, which holds gate and value.
    const std::size_t of_input = activation == FeedForwardActivation::swiglu ? rows * 2 * inner * sizeof(float) : 0;
    CHECK(kept >= of_input + of_inner);
    CHECK(kept < of_input + of_inner + rows * inner);
  }
}

TEST_CASE("feed-forward: a gated linear unit in inference gives a row the bits that the row has alone") {
  constexpr std::int64_t rows = 5, width = 32, inner = 48;
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8})
    for (const auto activation : {FeedForwardActivation::swiglu, FeedForwardActivation::geglu}) {
      CAPTURE(static_cast<int>(precision));
      ParameterLayout layout;
      const FeedForward layer(layout, "layer", width, inner, activation, 0);
      CHECK(layout.find("layer/gate/weight"));
      ParameterValues<float> values(layout);
      fill(values);
      Arena arena;
      CpuContext device{arena, precision}, exact_device{arena};
      Graph<float> graph(device, values), exact(exact_device, values);
      const Variable<float> x = graph.input(arena.tensor<float>({rows, width}));
      for (std::int64_t i = 0; i < x.value.size(); ++i)
        x.value[i] = static_cast<float>(std::sin(0.3 * static_cast<double>(i)));
      const Tensor<float> y = layer(graph, x).value, expected = layer(exact, x).value;
      for (std::int64_t r = 0; r < rows; ++r) {
        const Tensor<float> alone = layer(graph, graph.input(x.value.row_block(r, 1))).value;
        for (std::int64_t i = 0; i < width; ++i) {
          CHECK(y.row(r)[i] == alone[i]);
          CHECK(y.row(r)[i] == doctest::Approx(expected.row(r)[i]).epsilon(0.05).scale(3));
        }
      }
    }
}

TEST_CASE("transformer: decoding step by step gives what decoding at once gives, also with reordered rows") {
  const json all = reference();
  const PackedIds source = pack(all["source"]), target = pack(all["target_in"]);
  for (const auto& [name, config] : configs(all)) {
    CAPTURE(name);
    const Transformer<double> model(config);
    ParameterValues<double> values(model.layout());
    fill(values);
    Arena arena, step_arena;
    CpuContext device{arena}, step_device{step_arena};
    Graph<double> graph(device, values), step_graph(step_device, values);
    const auto memory = model.encode(graph, source);
    DecoderCache<double> cache = model.make_cache();
    model.start(graph, memory, source.packed(), cache);
    // The rows of the cache are sentence 1 and sentence 0 in step 0; from step 1 on, sentence 1 twice and sentence 0.
    cache.select(std::vector<std::int32_t>{1, 0});
    std::vector<std::int32_t> sentence_of_row{1, 0};
    PackedIds prefixes;
    prefixes.append(target.sequence(0));
    prefixes.append(target.sequence(1));
    prefixes.append(target.sequence(2));
    const auto expected = model.decode(graph, memory, source.packed(), target);
    const PackedOffsets offsets = target.packed();
    for (int t = 0; t < 3; ++t) {
      if (t == 1) {
        cache.select(std::vector<std::int32_t>{0, 0, 1});
        sentence_of_row = {1, 1, 0};
      }
      std::vector<std::int32_t> tokens;
      for (const int s : sentence_of_row) tokens.push_back(target.sequence(s)[static_cast<std::size_t>(t)]);
      step_graph.reset();
      const auto hidden = model.step(step_graph, tokens, cache);
      REQUIRE(hidden.value.rows() == static_cast<std::int64_t>(tokens.size()));
      for (std::size_t r = 0; r < tokens.size(); ++r)
        for (std::int64_t i = 0; i < hidden.value.columns(); ++i)
          CHECK(hidden.value.row(static_cast<std::int64_t>(r))[i] ==
                doctest::Approx(expected.value.row(offsets.begin(sentence_of_row[r]) + t)[i]).epsilon(1e-9).scale(1));
    }
  }
}

TEST_CASE("transformer: the base model has the number of parameters of the literature") {
  TransformerConfig config(TransformerSize::base);
  config.source_vocabulary = config.target_vocabulary = 37000;
  config.tied_embeddings = TiedEmbeddings::all;
  // Vaswani et al. 2017 say 65 million parameters for the base model with 37,000 shared pieces. The exact number, with
  // biases and layer normalisations, is this one.
  CHECK(Transformer<float>(config).layout().parameter_count() == 63082496);
}

TEST_CASE("transformer: a sequence past the learned positions is an error that says so") {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 8;
  config.dim_emb = 4;
  config.heads = 2;
  config.dim_ffn = 4;
  config.enc_depth = config.dec_depth = 1;
  config.positions = PositionEncoding::learned;
  config.max_positions = 3;
  const Transformer<float> model(config);
  ParameterValues<float> values(model.layout());
  values.initialise(1);
  Arena arena;
  CpuContext device{arena};
  Graph<float> graph(device, values);
  PackedIds source;
  source.append(std::vector<std::int32_t>{4, 5, 6, 3});
  CHECK_THROWS_WITH_AS(
      model.encode(graph, source),
      "a sequence of 4 tokens is longer than the model's 3 learned positions (cut it with --max-length)", Error);
}
