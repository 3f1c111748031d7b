#include "heed/model/rnn.h"

#include <algorithm>

#include "heed/base/error.h"
#include "heed/model/make_model.h"
#include "model_test.h"

using namespace heed;
using nlohmann::json;

namespace {

/// Returns the config of a case of tests/model/reference/rnn.json.
ModelConfig rnn_of_case(const json& c, double dropout = 0) {
  const auto set = [&](auto config) {
    config.source_vocabulary = config.target_vocabulary = c["vocabulary"];
    config.dim_emb = c["emb"];
    config.dim_rnn = c["dim"];
    config.enc_depth = config.dec_depth = c["layers"];
    config.cell = parse<RecurrentCell>(c["cell"]);
    config.encoder = parse<RnnEncoder>(c["encoder"]);
    config.tied_embeddings = parse<TiedEmbeddings>(c["tied"]);
    config.output_bias = c["output_bias"];
    config.dropout = dropout;
    return config;
  };
  if (c["task"] == "rnn") {
    RnnConfig config = set(RnnConfig());
    config.context = parse<RnnContext>(c["context"]);
    return config;
  }
  RnnAttentionConfig config = set(RnnAttentionConfig());
  config.attention = parse<AttentionScoring>(c["attention"]);
  config.attention_dropout = dropout;
  return config;
}

}  // namespace

TEST_CASE_TEMPLATE("recurrent models: outputs, loss and gradients are PyTorch's", T, float, double) {
  const double tolerance = std::is_same_v<T, float> ? 2e-5 : 1e-9;
  const json all = reference("rnn.json");
  const Batch batch = batch_of(all);
  for (const auto& [name, c] : all["cases"].items()) {
    CAPTURE(name);
    const auto model = make_model<T>(rnn_of_case(c));
    ParameterValues<T> values(model->layout());
    fill(values);
    Arena arena;
    CpuContext device{arena};
    Graph<T> graph(device, values);
    check_close(model->hidden(graph, batch).value, c["hidden"], tolerance);
    check_loss_and_gradients(*model, values, batch, c, tolerance);
  }
}

TEST_CASE("recurrent models: gradients with dropout are those of finite differences") {
  const json all = reference("rnn.json");
  for (const auto& [name, c] : all["cases"].items()) {
    CAPTURE(name);
    const auto model = make_model<double>(rnn_of_case(c, 0.2));
    ParameterValues<double> values(model->layout());
    fill(values);
    Batch batch = batch_of(all);
    if (last_cross_attention(*model) >= 0)
      batch.alignment = {{0, 0, 1, 0.5F}, {0, 0, 0, 0.5F}, {1, 0, 0, 1}, {1, 3, 1, 1}, {2, 0, 1, 1}};
    check_finite_differences(*model, values, batch, true);
    check_dropout_of_parts(*model, values, batch);
  }
}

TEST_CASE_TEMPLATE("recurrent models: decoding step by step gives what decoding at once gives", T, float, double) {
  const json all = reference("rnn.json");
  for (const auto& [name, c] : all["cases"].items()) {
    CAPTURE(name);
    const auto model = make_model<T>(rnn_of_case(c));
    ParameterValues<T> values(model->layout());
    fill(values);
    check_steps(*model, values, batch_of(all), std::is_same_v<T, float> ? 1e-5 : 1e-9);
  }
}

TEST_CASE("recurrent models: a sentence's hidden states do not depend on the other sentences, bit for bit") {
  const json all = reference("rnn.json");
  const Batch batch = batch_of(all);
  for (const auto& [name, c] : all["cases"].items()) {
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      CAPTURE(name);
      CAPTURE(static_cast<int>(precision));
      const auto model = make_model<float>(rnn_of_case(c));
      ParameterValues<float> values(model->layout());
      fill(values);
      Arena arena, arena_of_one;
      CpuContext device{arena, precision}, device_of_one{arena_of_one, precision};
      Graph<float> graph(device, values);
      const Tensor<float> together = model->hidden(graph, batch).value;
      for (int b = 0; b < batch.sequences(); ++b) {
        Batch one;
        one.source.append(batch.source.sequence(b));
        one.target_in.append(batch.target_in.sequence(b));
        Graph<float> graph_of_one(device_of_one, values);
        const Tensor<float> alone = model->hidden(graph_of_one, one).value;
        const float* const row = together.row(batch.target_in.packed().begin(b));
        CHECK(std::equal(alone.data(), alone.data() + alone.size(), row));
      }
    }
  }
}

TEST_CASE("recurrent models: attention weights reach the trace in the places of their sentences") {
  struct Copy : Trace<float> {
    std::vector<std::vector<float>> maps;
    bool wants(AttentionKind, int) const override { return true; }
    void attention(AttentionKind kind, int layer, int heads, PackedOffsets queries, PackedOffsets keys,
                   const Variable<float>& variable) override {
      const float* weights = variable.value.data();
      CHECK(kind == AttentionKind::cross);
      CHECK(layer == 0);
      CHECK(heads == 1);
      for (int b = 0; b < queries.sequences(); ++b) {
        const auto size = static_cast<std::size_t>(queries.length(b) * keys.length(b));
        maps.emplace_back(weights, weights + size);
        weights += size;
      }
    }
  };
  const json all = reference("rnn.json");
  const Batch batch = batch_of(all);
  for (const char* name : {"additive", "dot"}) {
    CAPTURE(name);
    const auto model = make_model<float>(rnn_of_case(all["cases"][name]));
    ParameterValues<float> values(model->layout());
    fill(values);
    Arena arena;
    CpuContext device{arena};
    Graph<float> graph(device, values);
    Copy together;
    model->hidden(graph, batch, &together);
    REQUIRE(together.maps.size() == 3);
    for (int b = 0; b < 3; ++b) {
      const auto index = static_cast<std::size_t>(b);
      Batch one;
      one.source.append(batch.source.sequence(b));
      one.target_in.append(batch.target_in.sequence(b));
      graph.reset();
      Copy alone;
      model->hidden(graph, one, &alone);
      CHECK(alone.maps.at(0) == together.maps[index]);
      const auto keys = static_cast<std::ptrdiff_t>(batch.source.sequence(b).size());
      for (auto row = alone.maps[0].begin(); row != alone.maps[0].end(); row += keys) {
        float sum = 0;
        for (auto weight = row; weight != row + keys; ++weight) sum += *weight;
        CHECK(sum == doctest::Approx(1).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("recurrent models: every product that a model lists can be computed, with and without bias") {
  const json all = reference("rnn.json");
  int without_bias = 0;
  for (const auto& [name, c] : all["cases"].items()) {
    CAPTURE(name);
    const auto model = make_model<double>(rnn_of_case(c));
    ParameterValues<double> values(model->layout());
    fill(values);
    Arena arena;
    CpuContext device{arena};
    Graph<double> graph(device, values);
    for (const Product& product : model->products()) {
      CAPTURE(model->layout()[product.weight].name);
      const Variable<double> x = graph.input(arena.zeros<double>({2, product.inputs}));
      const Variable<double> y = product(graph, x);
      CHECK(y.shape() == Shape{2, product.outputs});
      // The product of zeros is the bias.
      CHECK((y.value[0] == 0) == !product.bias);
      without_bias += product.bias ? 0 : 1;
    }
  }
  CHECK(without_bias > 0);
}

TEST_CASE("recurrent models: options that do not fit together are named") {
  RnnConfig config;
  config.source_vocabulary = 10;
  config.target_vocabulary = 11;
  config.dim_rnn = 7;
  CHECK_THROWS_WITH_AS(
      make_model<float>(config),
      "--dim-rnn 7 is odd: each direction of a bidirectional encoder has half of the width (--rnn-encoder "
      "forward reads one direction)",
      UsageError);
  config.encoder = RnnEncoder::forward;
  make_model<float>(config);
  config.tied_embeddings = TiedEmbeddings::all;
  CHECK_THROWS_WITH_AS(
      make_model<float>(config),
      "--tied-embeddings-all needs one vocabulary for both sides, but the source has 10 pieces and the "
      "target 11 (give -v one file)",
      UsageError);
}
