#include "heed/model/transformer.h"

#include "heed/base/error.h"
#include "heed/model/parallel_transformer.h"
#include "heed/nn/feed_forward.h"
#include "model_test.h"

using namespace heed;
using nlohmann::json;

namespace {

TransformerConfig config_of_case(const json& c) {
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
  if (c.contains("attention")) config.attention = parse<AttentionScoring>(c["attention"]);
  if (c.contains("cross")) config.cross_attention = parse<CrossAttention>(c["cross"]);
  if (c.contains("autoreg")) config.decoder_autoreg = parse<DecoderAutoreg>(c["autoreg"]);
  if (c.contains("dim_aan")) config.dim_aan = c["dim_aan"];
  config.length_range = c.value("length_range", config.length_range);
  config.fixed_length = c.value("fixed_length", 0);
  if (c.contains("tied_layers")) config.tied_layers = c["tied_layers"].get<std::vector<int>>();
  if (c.contains("word_ends")) {
    config.next_word = c.value("next_word", false);
    config.word_positions = c.value("word_positions", false);
    PieceSet ends(config.source_vocabulary);
    for (const std::int32_t id : c["word_ends"]) ends.add(id);
    config.source_word_ends = config.target_word_ends = ends.text();
  }
  config.dropout = 0;
  return config;
}

template <class T>
std::unique_ptr<const Transformer<T>> transformer(const TransformerConfig& config) {
  if (config.is_parallel()) return std::make_unique<ParallelTransformer<T>>(config);
  return std::make_unique<Transformer<T>>(config);
}

/// Returns the configs of all cases of the reference file, and Transformers with batch normalisation, by name.
std::vector<std::pair<std::string, TransformerConfig>> configs(const json& all) {
  std::vector<std::pair<std::string, TransformerConfig>> out;
  for (const auto& [name, c] : all["cases"].items()) out.emplace_back(name, config_of_case(c));
  for (const char* const name : {"post", "pre"}) {
    out.emplace_back(std::string("batch ") + name, config_of_case(all["cases"][name]));
    out.back().second.normalization = Normalization::batch;
  }
  return out;
}

}  // namespace

TEST_CASE_TEMPLATE("transformer: outputs, loss and gradients are PyTorch's", T, float, double) {
  const double tolerance = std::is_same_v<T, float> ? 2e-5 : 1e-9;
  const json all = reference("transformer.json");
  const Batch batch = batch_of(all);
  for (const auto& [name, c] : all["cases"].items()) {
    CAPTURE(name);
    const auto model = transformer<T>(config_of_case(c));
    ParameterValues<T> values(model->layout());
    fill(values);
    Arena arena;
    CpuContext device{arena};
    Graph<T> graph(device, values);
    const EncoderOutput<T> encoded = model->encode(graph, batch.source);
    check_close(encoded.last.value, c["memory"], tolerance);
    check_close(model->hidden(graph, batch).value, c["hidden"], tolerance);
    check_loss_and_gradients<T>(*model, values, batch, c, tolerance);
  }
}

TEST_CASE("transformer: gradients with every kind of dropout are those of finite differences") {
  const json all = reference("transformer.json");
  const Batch batch = batch_of(all);
  for (auto& [name, config] : configs(all)) {
    CAPTURE(name);
    config.dropout = 0.2;
    config.attention_dropout = 0.15;
    config.ffn_dropout = 0.25;
    const auto model = transformer<double>(config);
    ParameterValues<double> values(model->layout());
    fill(values);
    check_finite_differences(*model, values, batch, true);
    if (config.normalization != Normalization::batch) check_dropout_of_parts(*model, values, batch);
  }
}

TEST_CASE("transformer: the gradients of two passes that should agree are those of finite differences") {
  const json all = reference("transformer.json");
  const Batch batch = batch_of(all);
  for (const char* const name : {"post", "guided", "parallel relative guided", "parallel fixed"}) {
    CAPTURE(name);
    TransformerConfig config = config_of_case(all["cases"][name]);
    config.dropout = 0.2;
    const auto model = transformer<double>(config);
    ParameterValues<double> values(model->layout());
    fill(values);
    check_finite_differences(*model, values, batch, true, 4);
    check_dropout_of_parts(*model, values, batch, 4);
  }
}

TEST_CASE("transformer: two passes that should agree differ by their dropout, and only in training") {
  const json all = reference("transformer.json");
  const Batch batch = batch_of(all);
  TransformerConfig config = config_of_case(all["cases"]["post"]);
  const auto losses = [&](double dropout) {
    config.dropout = dropout;
    const auto model = transformer<double>(config);
    ParameterValues<double> values(model->layout()), gradients(model->layout());
    fill(values);
    Arena arena, other_arena;
    CpuContext device{arena}, other_device{other_arena};
    Graph<double> training(device, values, gradients), inference(other_device, values);
    std::vector<double> out;
    for (const double consistency : {0.0, 4.0}) {
      training.reset();
      out.push_back(model->loss(training, batch, {.consistency = consistency}, nullptr).value[0]);
      inference.reset();
      out.push_back(model->loss(inference, batch, {.consistency = consistency}, nullptr).value[0]);
    }
    return out;
  };
  const std::vector<double> without = losses(0), with = losses(0.2);
  for (const double loss : without) CHECK(loss == doctest::Approx(without[0]).epsilon(1e-12));
  CHECK(with[2] > with[0] + 0.01);
  CHECK(with[3] == with[1]);
}

TEST_CASE(
    "transformer: with batch normalisation, training reads the statistics of its batch, and inference the averages") {
  const json all = reference("transformer.json");
  const Batch batch = batch_of(all);
  TransformerConfig config = config_of_case(all["cases"]["pre"]);
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
  PendingSums trained, read, moved;
  training.backward(model.loss(training, batch, {}, &trained));
  for (const ParameterInfo& info : model.layout().running()) {
    CAPTURE(info.name);
    // Behind the sums stands the number of source tokens or of target tokens.
    CHECK(gradients.flat()[static_cast<std::size_t>(info.offset + info.shape.size())] ==
          (info.name.starts_with("encoder") ? batch.source.tokens() : batch.target_in.tokens()));
  }
  inference.reset();
  model.loss(inference, batch, {}, &read);
  CHECK(read.entropy.loss != trained.entropy.loss);
  for (const ParameterInfo& info : model.layout().running())
    if (info.name.ends_with("variance")) values.flat()[static_cast<std::size_t>(info.offset)] = 3;
  inference.reset();
  model.loss(inference, batch, {}, &moved);
  CHECK(moved.entropy.loss != read.entropy.loss);
  PendingSums again;
  training.reset();
  model.loss(training, batch, {}, &again);
  CHECK(again.entropy.loss == trained.entropy.loss);
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
  const json all = reference("transformer.json");
  for (const auto& [name, config] : configs(all)) {
    if (config.is_parallel()) continue;
    CAPTURE(name);
    const Transformer<double> model(config);
    ParameterValues<double> values(model.layout());
    fill(values);
    check_steps<double>(model, values, batch_of(all), 1e-9);
  }
}

TEST_CASE(
    "transformer: decoding step by step counts the words as decoding at once does, past the last source word too") {
  const json all = reference("transformer.json");
  // In both cases 4, 6 and 9 or 5, 6, 8 and 9 end a word. Sentence 0 has fewer words than its target, sentence 1 more.
  Batch batch;
  batch.add(std::vector<std::int32_t>{7, 6, 9}, std::vector<std::int32_t>{9, 6, 9, 6});
  batch.add(std::vector<std::int32_t>{6, 9, 7, 6, 9}, std::vector<std::int32_t>{6, 9, 6, 7});
  for (const char* const name : {"next word", "next word average", "word positions", "next word and positions"}) {
    CAPTURE(name);
    const Transformer<double> model(config_of_case(all["cases"][name]));
    ParameterValues<double> values(model.layout());
    fill(values);
    check_steps<double>(model, values, batch, 1e-9);
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

TEST_CASE("transformer: layerwise cross-attention needs as many encoder layers as decoder layers") {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 8;
  config.dec_depth = 3;
  CHECK_NOTHROW(config.validate());
  config.cross_attention = CrossAttention::layerwise;
  CHECK_THROWS_WITH_AS(
      config.validate(),
      "--cross-attention layerwise needs as many encoder layers as decoder layers, but --enc-depth is 6 "
      "and --dec-depth 3 (give both the same number, or --cross-attention mix)",
      UsageError);
  config.cross_attention = CrossAttention::mix;
  CHECK_NOTHROW(config.validate());
}

TEST_CASE("transformer: tied layers have one set of parameters and are products of their own") {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 8;
  config.enc_depth = config.dec_depth = 4;
  const auto plain = Transformer<float>(config).layout().all().size();
  config.tied_layers = {1, 2, 1, 2};
  const Transformer<float> model(config);
  CHECK(model.layout().all().size() < plain * 6 / 10);
  CHECK(model.layout().find("decoder/layers/1/cross_attention/query/weight"));
  CHECK(!model.layout().find("decoder/layers/2/cross_attention/query/weight"));
  const std::vector<Product> products = model.products();
  REQUIRE(products.size() == 4 * 4 + 4 * 7);
  for (int i = 0; i < 4; ++i)
    for (std::size_t p = 0; p < 4; ++p) {
      CHECK(products[4 * static_cast<std::size_t>(i) + p].layer == i);
      CHECK(products[4 * static_cast<std::size_t>(i) + p].weight ==
            products[4 * static_cast<std::size_t>(i % 2) + p].weight);
    }
}

TEST_CASE("transformer: --tied-layers that do not fit the layers are an error that says so") {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 8;
  config.enc_depth = config.dec_depth = 3;
  const auto message = [&](const std::vector<int>& layers) -> std::string {
    config.tied_layers = layers;
    try {
      config.validate();
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  };
  for (const std::vector<int>& good : {std::vector<int>{}, {1, 2, 3}, {1, 1, 1}, {1, 1, 3}, {1, 2, 1}})
    CHECK(message(good).empty());
  CHECK(message({1, 2}) ==
        "--tied-layers has 2 numbers, but --enc-depth is 3 and --dec-depth 3 (give one number for each layer; encoder "
        "and decoder need the same depth)");
  CHECK(
      message({1, 3, 3}) ==
      "--tied-layers: layer 2 cannot have the parameters of layer 3 (give 2, for parameters of its own, or the number "
      "of an earlier layer that has its own)");
  CHECK(message({1, 1, 2}).starts_with("--tied-layers: layer 3 cannot have the parameters of layer 2 (give 3"));
  CHECK(message({0, 1, 2}).starts_with("--tied-layers: layer 1 cannot have the parameters of layer 0"));
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
