#include "heed/model/vit.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "heed/base/error.h"
#include "heed/checkpoint/h5.h"
#include "heed/model/make_model.h"
#include "heed/ops/linear.h"
#include "model_test.h"

using namespace heed;
using nlohmann::json;

namespace {

/// Returns the ids of image `b` of scripts/reference/make_vision_reference.py, without </s>.
std::vector<std::int32_t> image(int b, int size, int channels) {
  std::vector<std::int32_t> out;
  for (int i = 0; i < size * size * channels; ++i)
    out.push_back(kReservedIds + (13 + 97 * b + 31 * i + 7 * i * i) % 256);
  return out;
}

VitConfig vit_of_case(const json& c) {
  VitConfig config;
  config.source_vocabulary = kImageVocabulary;
  config.target_vocabulary = kReservedIds + c["classes"].get<int>();
  config.image.size = c["size"];
  config.image.channels = c["channels"];
  config.image.mean = c.value("mean", std::vector<double>());
  config.image.deviation = c.value("deviation", std::vector<double>());
  config.patch = c["patch"];
  config.dim_emb = c["dim"];
  config.enc_depth = c["layers"];
  config.heads = c["heads"];
  config.dim_ffn = c["ffn"];
  config.pooling = parse<ImagePooling>(c["pooling"]);
  return config;
}

/// Returns the images of a case, in the given size, with their targets.
Batch batch_of_case(const json& all, const json& c, int size) {
  Batch batch;
  for (int b = 0; b < static_cast<int>(all["targets"].size()); ++b)
    batch.add_classified(image(b, size, c["channels"]), all["targets"][static_cast<std::size_t>(b)]);
  batch.second_targets = c.value("second_targets", std::vector<std::int32_t>());
  batch.second_shares = c.value("second_shares", std::vector<float>());
  return batch;
}
Batch batch_of_case(const json& all, const json& c) {
  return batch_of_case(all, c, c["size"]);
}

/// Returns a config with every kind of dropout.
template <class Config>
Config with_dropout(Config config) {
  config.dropout = 0.2;
  config.attention_dropout = 0.15;
  config.ffn_dropout = 0.25;
  config.stochastic_depth = 0.4;
  return config;
}

template <class T>
Tensor<T> logits_of(Graph<T>& graph, const Model<T>& model, const Variable<T>& features) {
  return linear(graph, features, model.output_weight(graph), model.output_bias(graph)).value;
}

/// Returns a model that describes images, of the sizes of the case "mean".
VitCaptionConfig caption_config() {
  VitCaptionConfig config;
  config.source_vocabulary = kImageVocabulary;
  config.target_vocabulary = 11;
  config.image.size = 12;
  // Small numbers, with which the loss curves little, so that finite differences are exact enough.
  config.image.deviation = {1, 1, 1};
  config.patch = 4;
  config.dim_emb = 8;
  config.heads = 2;
  config.dim_ffn = 12;
  config.enc_depth = config.dec_depth = 2;
  config.dropout = 0;
  return config;
}

/// Returns three images with sentences.
Batch caption_batch() {
  Batch batch;
  const std::vector<std::vector<std::int32_t>> sentences = {{6, 7}, {9, 4, 5, 8}, {}};
  for (int b = 0; b < 3; ++b) batch.add(image(b, 12, 3), sentences[static_cast<std::size_t>(b)]);
  return batch;
}

/// Checks that the rows of a sequence in hidden() have the bits that they have in a batch of one, in each precision.
void check_independence(const Model<float>& model, const Batch& batch) {
  ParameterValues<float> values(model.layout());
  fill(values);
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
    CAPTURE(static_cast<int>(precision));
    Arena arena, arena_of_one;
    CpuContext device{arena, precision}, device_of_one{arena_of_one, precision};
    Graph<float> graph(device, values);
    const Tensor<float> together = model.hidden(graph, batch).value;
    for (int b = 0; b < batch.sequences(); ++b) {
      CAPTURE(b);
      Graph<float> graph_of_one(device_of_one, values);
      const Tensor<float> alone = model.hidden(graph_of_one, part_of(batch, b, b + 1)).value;
      REQUIRE(alone.rows() == batch.target_in.packed().length(b));
      CHECK(std::equal(alone.data(), alone.data() + alone.size(), together.row(batch.target_in.packed().begin(b))));
    }
  }
}

/// Checks that every product that a model lists can be computed, and that its weight and bias are the model's.
void check_products(const Model<double>& model, std::size_t number) {
  ParameterValues<double> values(model.layout());
  fill(values);
  Arena arena;
  CpuContext device{arena};
  Graph<double> graph(device, values);
  const std::vector<Product> products = model.products();
  CHECK(products.size() == number);
  for (const Product& product : products) {
    CAPTURE(model.layout()[product.weight].name);
    const Variable<double> y = product(graph, graph.input(arena.zeros<double>({2, product.inputs})));
    CHECK(y.shape() == Shape{2, product.outputs});
    CHECK(y.value[0] != 0);  // the product of zeros is the bias
  }
}

/// Copies the parameters that two layouts have in common.
void copy_parameters(ParameterValues<double>& from, ParameterValues<double>& to) {
  for (const ParameterInfo& info : to.layout().all())
    if (const ParameterId id = from.layout().find(info.name))
      std::copy_n(from[id].data(), info.shape.size(), to[to.layout().find(info.name)].data());
}

/// Returns the message of the UsageError that a config causes when a model is made.
template <class Config>
std::string message_of(const Config& config) {
  try {
    make_model<float>(config);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE_TEMPLATE("vision Transformers: features, logits, loss and gradients are torchvision's", T, float, double) {
  const double tolerance = std::is_same_v<T, float> ? 2e-5 : 1e-10;
  const json all = reference("vision.json");
  CHECK(all["cases"].size() == 4);
  for (const auto& [name, c] : all["cases"].items()) {
    CAPTURE(name);
    const Vit<T> model(vit_of_case(c));
    const Batch batch = batch_of_case(all, c);
    ParameterValues<T> values(model.layout());
    fill(values);
    Arena arena;
    CpuContext device{arena};
    Graph<T> graph(device, values);
    const Variable<T> features = model.hidden(graph, batch);
    check_close(features.value, c["features"], tolerance);
    check_close(logits_of(graph, model, features), c["logits"], tolerance);
    check_loss_and_gradients<T>(model, values, batch, c, tolerance);
  }
}

TEST_CASE_TEMPLATE("vision Transformers: images of another size have interpolated positions", T, float, double) {
  const double tolerance = std::is_same_v<T, float> ? 2e-5 : 1e-10;
  const json all = reference("vision.json");
  int cases = 0;
  for (const auto& [name, c] : all["cases"].items()) {
    if (!c.contains("other_size")) continue;
    CAPTURE(name);
    ++cases;
    const Vit<T> model(vit_of_case(c));
    const Batch batch = batch_of_case(all, c, c["other_size"]);
    ParameterValues<T> values(model.layout()), gradients(model.layout());
    fill(values);
    Arena arena;
    CpuContext device{arena};
    Graph<T> graph(device, values), training(device, values, gradients);
    const Variable<T> features = model.hidden(graph, batch);
    check_close(features.value, c["other_features"], tolerance);
    check_close(logits_of(graph, model, features), c["other_logits"], tolerance);
    const std::string message =
        "internal: an image of " + c["other_size"].dump() + " pixels in a training with " + c["size"].dump();
    CHECK_THROWS_WITH_AS(model.hidden(training, batch), message.c_str(), Error);
  }
  CHECK(cases == 3);
}

TEST_CASE("vision Transformers: gradients with every kind of dropout are those of finite differences") {
  const json all = reference("vision.json");
  for (const auto& [name, c] : all["cases"].items())
    for (const double consistency : {0.0, 4.0}) {
      CAPTURE(name);
      CAPTURE(consistency);
      const Batch batch = batch_of_case(all, c);
      if (consistency > 0 && !batch.second_targets.empty()) continue;  // an error of projection_cross_entropy
      const Vit<double> model(with_dropout(vit_of_case(c)));
      ParameterValues<double> values(model.layout());
      fill(values);
      check_finite_differences(model, values, batch, true, consistency);
      check_dropout_of_parts(model, values, batch, consistency);
    }
}

TEST_CASE("vision Transformers: stochastic depth leaves out more sublayers of later layers, and only in training") {
  const json c = reference("vision.json")["cases"]["grey"];
  VitConfig config = vit_of_case(c);
  config.stochastic_depth = 0.4;
  const TransformerConfig layers = config.layers();
  for (int i = 0; i < 3; ++i) CHECK(layers.left_out(i, config.enc_depth) == doctest::Approx(0.2 * i));

  // With a probability of 0.99, the last of three layers changes almost no image, and the second one three quarters of
  // them: the features of the other images are those of a model with the first layer alone.
  config.stochastic_depth = 0.99;
  const Vit<double> model(config);
  config.enc_depth = 1;
  config.stochastic_depth = 0;
  const Vit<double> first_layer(config);
  ParameterValues<double> values(model.layout()), gradients(model.layout()), of_first(first_layer.layout()),
      no_gradients(first_layer.layout());
  fill(values);
  copy_parameters(values, of_first);
  Batch batch;
  constexpr int kImages = 200;
  for (int b = 0; b < kImages; ++b) batch.add_classified(image(b, 9, 1), 0);
  Arena arena, other_arena;
  CpuContext device{arena}, other_device{other_arena};
  Graph<double> training(device, values, gradients), other(other_device, of_first, no_gradients);
  training.set_dropout({.seed = 5, .update = 2});
  const Tensor<double> actual = model.hidden(training, batch).value, expected = first_layer.hidden(other, batch).value;
  int same = 0;
  for (int b = 0; b < kImages; ++b)
    same += std::abs(actual.row(b)[0] - expected.row(b)[0]) < 1e-12 &&
            std::abs(actual.row(b)[5] - expected.row(b)[5]) < 1e-12;
  // An image leaves out both sublayers of the second layer and both of the third one with a probability of 0.495^2 *
  // 0.99^2: 48 of 200 images, with a standard deviation of 6.
  CHECK(same > 20);
  CHECK(same < 80);

  Graph<double> inference(device, values);
  const Tensor<double> whole = model.hidden(inference, batch).value;
  config.enc_depth = c["layers"];
  const Vit<double> without(config);
  Graph<double> plain(device, values);
  const Tensor<double> as_without = without.hidden(plain, batch).value;
  CHECK(std::equal(whole.data(), whole.data() + whole.size(), as_without.data()));
}

TEST_CASE("vision Transformers: the features of an image do not depend on the other images, bit for bit") {
  const json all = reference("vision.json");
  for (const auto& [name, c] : all["cases"].items()) {
    CAPTURE(name);
    check_independence(Vit<float>(vit_of_case(c)), batch_of_case(all, c));
  }
}

TEST_CASE("vision Transformers: the first step returns the features, and there is no second one") {
  const json all = reference("vision.json");
  const json& c = all["cases"]["class token"];
  const Batch batch = batch_of_case(all, c);
  const Vit<float> model(vit_of_case(c));
  ParameterValues<float> values(model.layout());
  fill(values);
  Arena arena, step_arena;
  CpuContext device{arena}, step_device{step_arena};
  Graph<float> graph(device, values), step_graph(step_device, values);
  const Tensor<float> expected = model.hidden(graph, batch).value;
  const auto state = model.make_state(step_device);
  state->start(step_graph, batch.source);
  step_graph.reset();
  const Tensor<float> actual = state->step(step_graph, batch.target_in.ids).value;
  REQUIRE(actual.shape() == expected.shape());
  CHECK(std::equal(actual.data(), actual.data() + actual.size(), expected.data()));
  const std::vector<std::int32_t> two = {kStartId, kStartId}, one = {2};
  CHECK_THROWS_WITH_AS(state->step(step_graph, two), "internal: a class for each image is one step", Error);
  CHECK_THROWS_WITH_AS(state->select(two), "internal: a class is no sequence", Error);
  CHECK_THROWS_WITH_AS(state->step_chains(step_graph, two, one), "internal: a class is no sequence", Error);
  CHECK_THROWS_WITH_AS(state->truncate(one), "internal: a class is no sequence", Error);
}

TEST_CASE("vision Transformers: attention weights reach the trace, of all tokens of an image") {
  struct Sizes : Trace<float> {
    int layers = 0;
    std::int64_t tokens = 0;
    bool wants(AttentionKind, int) const override { return true; }
    void attention(AttentionKind kind, int layer, int heads, PackedOffsets queries, PackedOffsets keys,
                   const Variable<float>& variable) override {
      CHECK(kind == AttentionKind::encoder);
      CHECK(layer == layers++);
      CHECK(heads == 2);
      CHECK(queries.sequences() == 3);
      tokens = keys.length(2);
      const float* weights = variable.value.data();
      for (int row = 0; row < 3 * heads * queries.length(0); ++row, weights += tokens)
        CHECK(std::accumulate(weights, weights + tokens, 0.0F) == doctest::Approx(1).epsilon(1e-5));
    }
  };
  const json all = reference("vision.json");
  for (const auto& [name, tokens] : {std::pair("class token", 5), {"mean", 9}}) {
    const json& c = all["cases"][name];
    const Vit<float> model(vit_of_case(c));
    ParameterValues<float> values(model.layout());
    fill(values);
    Arena arena;
    CpuContext device{arena};
    Graph<float> graph(device, values);
    Sizes sizes;
    model.hidden(graph, batch_of_case(all, c), &sizes);
    CHECK(sizes.layers == 2);
    CHECK(sizes.tokens == tokens);
    const std::vector<AttentionLayers> layers = model.attention_layers();
    REQUIRE(layers.size() == 1);
    CHECK(layers[0].kind == AttentionKind::encoder);
    CHECK(layers[0].layers == 2);
    const std::vector<PositionTable> tables = model.position_tables(graph, 3);
    REQUIRE(tables.size() == 1);
    CHECK(tables[0].rows == tokens);
    CHECK(tables[0].columns == 8);
  }
}

TEST_CASE("vision Transformers: every product that a model lists can be computed") {
  // One product of the patches, four of each encoder layer and seven of each decoder layer.
  check_products(Vit<double>(vit_of_case(reference("vision.json")["cases"]["class token"])), 1 + 2 * 4);
  check_products(VitCaption<double>(caption_config()), 1 + 2 * 4 + 2 * 7);
}

TEST_CASE("vision Transformers: the named sizes have the numbers of parameters of the literature") {
  // Numbers of torchvision's vit_b_16 and vit_l_16, and of timm's vit_small_patch16_224.
  for (const auto& [size, parameters] : {std::pair(VitSize::base_16, std::int64_t{86567656}),
                                         {VitSize::large_16, 304326632},
                                         {VitSize::small_16, 22050664}}) {
    VitConfig config(size);
    config.source_vocabulary = kImageVocabulary;
    config.target_vocabulary = kReservedIds + 1000;
    CHECK(Vit<float>(config).layout().parameter_count() == parameters);
  }
}

TEST_CASE("vision Transformers: options that do not fit together are named") {
  const auto message = [](auto change) {
    VitConfig config;
    config.source_vocabulary = kImageVocabulary;
    config.target_vocabulary = kReservedIds + 2;
    change(config);
    VitCaptionConfig caption = caption_config();
    caption.image.size = 32;
    change(caption);
    const std::string text = message_of(config);
    CHECK(message_of(caption) == text);
    return text;
  };
  CHECK(message([](auto&) {}) == "");
  CHECK(message([](auto& config) { config.image.size = 30; }) == "--image-size 30 is no multiple of --patch-size 4");
  CHECK(message([](auto& config) { config.patch = 64; }) == "--image-size 32 is no multiple of --patch-size 64");
  CHECK(message([](auto& config) {
          config.dim_emb = 10;
          config.heads = 4;
        }) == "--dim-emb 10 is not a multiple of --transformer-heads 4");
  CHECK(message([](auto& config) { config.image.mean = {0.5}; }) ==
        "--image-mean: needs 3 numbers, one for each channel");
  CHECK(message([](auto& config) {
          config.image.channels = 1;
          config.image.deviation = {0.5, 0.5, 0.5};
        }) == "--image-deviation: needs 1 number, one for each channel");
  CHECK(message([](auto& config) { config.image.channels = 2; }) ==
        "--image-channels: must be 1 (grey) or 3 (red, green and blue)");

  VitConfig config;
  config.target_vocabulary = kReservedIds;
  CHECK(message_of(config) == "the target vocabulary has no labels");
  // The same vocabulary on both sides is no excuse.
  for (const std::int64_t pieces : {std::int64_t{11}, kImageVocabulary}) {
    VitCaptionConfig caption = caption_config();
    caption.target_vocabulary = pieces;
    caption.tied_embeddings = TiedEmbeddings::all;
    CHECK(message_of(caption) ==
          "--tied-embeddings all: an image has no embedding to share (decoder shares the others)");
  }
}

TEST_CASE("captions: the encoder is that of a vision Transformer, the decoder that of a Transformer") {
  const json all = reference("vision.json");
  VitConfig vit_config = vit_of_case(all["cases"]["mean"]);
  const VitCaptionConfig config = caption_config();
  vit_config.image.deviation = config.image.deviation;
  TransformerConfig text_config = config.transformer();
  text_config.source_vocabulary = 5;
  const VitCaption<double> model(config);
  const Vit<double> vit(vit_config);
  const Transformer<double> text(text_config);
  ParameterValues<double> values(model.layout()), vit_values(vit.layout()), text_values(text.layout());
  fill(values);
  copy_parameters(values, vit_values);
  copy_parameters(values, text_values);
  const Batch batch = caption_batch();
  Arena arena;
  CpuContext device{arena};
  Graph<double> graph(device, values), vit_graph(device, vit_values), text_graph(device, text_values);
  const EncoderOutput<double> encoded = model.encode(graph, batch.source);
  REQUIRE(encoded.last.shape() == Shape{3 * 9, 8});
  CHECK(encoded.tokens.tokens() == 3 * 9);
  const Tensor<double> features = vit.features(vit_graph, batch.source).value;
  for (int b = 0; b < 3; ++b)
    for (std::int64_t i = 0; i < 8; ++i) {
      double sum = 0;
      for (int token = 0; token < 9; ++token) sum += encoded.last.value.row(9 * b + token)[i];
      CHECK(sum / 9 == doctest::Approx(features.row(b)[i]).epsilon(1e-12).scale(1));
    }
  const PackedOffsets target = batch.target_in.packed();
  const Tensor<double> expected =
      text.decode(text_graph, encoded, batch.target_in.ids, {target, target, encoded.tokens}).value;
  const Tensor<double> actual = model.hidden(graph, batch).value;
  REQUIRE(actual.shape() == expected.shape());
  for (std::int64_t i = 0; i < actual.size(); ++i) CHECK(actual[i] == doctest::Approx(expected[i]).epsilon(1e-12));
}

TEST_CASE("captions: gradients with every kind of dropout are those of finite differences") {
  const Batch batch = caption_batch();
  for (const double consistency : {0.0, 4.0}) {
    CAPTURE(consistency);
    const VitCaption<double> model(with_dropout(caption_config()));
    ParameterValues<double> values(model.layout());
    fill(values);
    check_finite_differences(model, values, batch, true, consistency);
    check_dropout_of_parts(model, values, batch, consistency);
  }
}

TEST_CASE_TEMPLATE("captions: decoding step by step gives what decoding at once gives", T, float, double) {
  VitCaptionConfig config = caption_config();
  for (const TiedEmbeddings tied : {TiedEmbeddings::decoder, TiedEmbeddings::none}) {
    config.tied_embeddings = tied;
    const VitCaption<T> model(config);
    ParameterValues<T> values(model.layout());
    fill(values);
    check_steps<T>(model, values, caption_batch(), std::is_same_v<T, float> ? 1e-5 : 1e-9);
  }
}

TEST_CASE("captions: the positions are learned ones of patches, and the decoder's sinusoids") {
  const VitCaption<float> model(caption_config());
  ParameterValues<float> values(model.layout());
  fill(values);
  Arena arena;
  CpuContext device{arena};
  Graph<float> graph(device, values);
  const std::vector<PositionTable> tables = model.position_tables(graph, 5);
  REQUIRE(tables.size() == 2);
  CHECK(tables[0].stack == PositionTable::Stack::encoder);
  CHECK(tables[0].term == PositionTable::Term::learned);
  CHECK(tables[0].rows == 9);
  CHECK(tables[1].stack == PositionTable::Stack::decoder);
  CHECK(tables[1].term == PositionTable::Term::sinusoid);
  CHECK(tables[1].rows == 5);
  for (const PositionTable& table : tables) CHECK(table.columns == 8);
}

TEST_CASE("captions: the hidden states of a sentence do not depend on the other images, bit for bit") {
  check_independence(VitCaption<float>(caption_config()), caption_batch());
}

TEST_CASE("vision Transformers: torchvision's vit_b_16 in full size, from the file of HEED_VIT_FULL") {
  const char* const path = std::getenv("HEED_VIT_FULL");
  if (!path) {
    MESSAGE("skipped: HEED_VIT_FULL names no file of make_vision_reference.py --full");
    return;
  }
  VitConfig config(VitSize::base_16);
  config.source_vocabulary = kImageVocabulary;
  config.target_vocabulary = kReservedIds + 1000;
  const Vit<float> model(config);
  ParameterValues<float> values(model.layout());
  const h5::File file = h5::File::open(path);
  CHECK(file.datasets("/parameters").size() == model.layout().all().size());
  for (const ParameterInfo& info : model.layout().all()) {
    CAPTURE(info.name);
    const h5::Dataset dataset = file.dataset("/parameters/" + info.name);
    REQUIRE(Shape(dataset.shape) == info.shape);
    dataset.read(values[model.layout().find(info.name)].span());
  }
  const h5::Dataset images = file.dataset("/images"), logits = file.dataset("/logits");
  const auto samples_of_image = static_cast<std::size_t>(224 * 224 * 3);
  std::vector<char> samples(static_cast<std::size_t>(images.shape.at(0)) * samples_of_image);
  images.read(samples);
  std::vector<float> expected(static_cast<std::size_t>(logits.shape.at(0) * 1000));
  logits.read(expected);
  Batch batch;
  for (auto at = samples.begin(); at != samples.end(); at += samples_of_image) {
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < samples_of_image; ++i)
      ids.push_back(kReservedIds + static_cast<unsigned char>(at[static_cast<std::ptrdiff_t>(i)]));
    batch.add_classified(ids, 0);
  }
  Arena arena;
  CpuContext device{arena};
  Graph<float> graph(device, values);
  const Tensor<float> actual = logits_of(graph, model, model.hidden(graph, batch));
  REQUIRE(actual.size() == std::ssize(expected));
  float worst = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(actual[static_cast<std::int64_t>(i)] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  MESSAGE("the greatest difference is ", worst, "; the largest logit is ", largest);
  CHECK(largest > 1);
  CHECK(worst < 1e-4F);
}
