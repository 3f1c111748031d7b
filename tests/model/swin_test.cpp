#include "heed/model/swin.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <tuple>

#include "heed/base/error.h"
#include "heed/cost/model_work.h"
#include "heed/model/make_model.h"
#include "heed/ops/linear.h"
#include "model_test.h"

using namespace heed;
using nlohmann::json;

namespace {

/// Returns the config of a case of tests/model/reference/swin.json.
SwinConfig swin_of_case(const json& all, const json& c) {
  SwinConfig config;
  config.source_vocabulary = kImageVocabulary;
  config.target_vocabulary = kReservedIds + all["classes"].get<std::int64_t>();
  config.image.size = c["image"];
  config.image.mean = all["mean"].get<std::vector<double>>();
  config.image.deviation = all["deviation"].get<std::vector<double>>();
  config.patch = c["patch"];
  config.dim_emb = c["width"];
  config.depths = c["depths"].get<std::vector<int>>();
  config.heads = c["heads"].get<std::vector<int>>();
  config.window = c["window"];
  config.mlp_ratio = c["ratio"];
  return config;
}

/// Returns a small config with windows of 4 x 4 tokens in stages of 8 x 8 and 4 x 4 tokens, and three classes.
SwinConfig small_swin() {
  SwinConfig config;
  config.source_vocabulary = kImageVocabulary;
  config.target_vocabulary = kReservedIds + 3;
  config.image.size = 16;
  config.dim_emb = 8;
  config.depths = {2, 1};
  config.heads = {2, 4};
  config.mlp_ratio = 2;
  return config;
}

/// Returns images by the formula of scripts/reference/make_swin_reference.py, with a label each.
Batch images_of(int size, const std::vector<std::int32_t>& labels) {
  Batch batch;
  for (const std::int32_t label : labels) {
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < std::int64_t{3} * size * size; ++i)
      ids.push_back(kReservedIds + static_cast<std::int32_t>((7 * i * i + 31 * i + 57 * batch.sequences()) % 251));
    batch.add_classified(ids, label);
  }
  return batch;
}

template <class T>
Tensor<T> logits_of(const Model<T>& model, Graph<T>& graph, const Batch& batch) {
  return linear(graph, model.hidden(graph, batch), model.output_weight(graph), model.output_bias(graph)).value;
}

}  // namespace

TEST_CASE_TEMPLATE("swin: logits, loss and gradients are torchvision's", T, float, double) {
  const double tolerance = std::is_same_v<T, float> ? 1e-4 : 1e-10;
  const json all = reference("swin.json");
  REQUIRE(all["cases"].size() == 3);
  for (const auto& [name, c] : all["cases"].items()) {
    CAPTURE(name);
    const SwinConfig config = swin_of_case(all, c);
    const auto model = make_model<T>(config);
    ParameterValues<T> values(model->layout());
    fill(values);
    const Batch batch = images_of(config.image.size, all["labels"].get<std::vector<std::int32_t>>());
    Arena arena;
    CpuContext device{arena};
    Graph<T> graph(device, values);
    check_close(logits_of(*model, graph, batch), c["logits"], tolerance);
    check_loss_and_gradients(*model, values, batch, c, tolerance);
  }
}

TEST_CASE("swin: gradients with dropout and stochastic depth are those of finite differences") {
  SwinConfig config = small_swin();
  config.dropout = 0.2;
  config.attention_dropout = 0.2;
  config.ffn_dropout = 0.1;
  config.stochastic_depth = 0.5;
  for (const int window : {2, 4, 7}) {  // the grid of the last stage has several windows, is a window, is smaller
    CAPTURE(window);
    config.window = window;
    if (window == 7) config.depths = {1}, config.heads = {2}, config.patch = 4;
    const auto model = make_model<double>(config);
    ParameterValues<double> values(model->layout());
    fill(values);
    const Batch batch = images_of(config.image.size, {2, 0, 1});
    check_finite_differences(*model, values, batch, true);
    check_dropout_of_parts(*model, values, batch);
  }
}

TEST_CASE("swin: the features of an image do not depend on the other images, bit for bit") {
  const Batch batch = images_of(16, {2, 0, 1});
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
    CAPTURE(static_cast<int>(precision));
    const auto model = make_model<float>(small_swin());
    ParameterValues<float> values(model->layout());
    fill(values);
    Arena arena, arena_of_one;
    CpuContext device{arena, precision}, device_of_one{arena_of_one, precision};
    Graph<float> graph(device, values);
    const Tensor<float> together = model->hidden(graph, batch).value;
    for (int b = 0; b < batch.sequences(); ++b) {
      Graph<float> graph_of_one(device_of_one, values);
      const Tensor<float> alone = model->hidden(graph_of_one, part_of(batch, b, b + 1)).value;
      CHECK(std::equal(alone.data(), alone.data() + alone.size(), together.row(b)));
    }
  }
}

TEST_CASE("swin: attention weights reach the trace, window by window") {
  struct Sums : Trace<double> {
    std::vector<int> layers, heads, windows, tokens;
    double worst = 0;
    bool wants(AttentionKind, int) const override { return true; }
    void attention(AttentionKind kind, int layer, int count, PackedOffsets queries, PackedOffsets keys,
                   const Variable<double>& variable) override {
      CHECK(kind == AttentionKind::encoder);
      layers.push_back(layer);
      heads.push_back(count);
      windows.push_back(queries.sequences());
      tokens.push_back(queries.tokens());
      const double* weight = variable.value.data();
      for (int b = 0; b < queries.sequences(); ++b)
        for (int row = 0; row < count * queries.length(b); ++row) {
          double sum = 0;
          for (int k = 0; k < keys.length(b); ++k) sum += *weight++;
          worst = std::max(worst, std::abs(sum - 1));
        }
    }
  };
  const SwinConfig config = small_swin();
  const auto model = make_model<double>(config);
  ParameterValues<double> values(model->layout());
  fill(values);
  Arena arena;
  CpuContext device{arena};
  Graph<double> graph(device, values);
  Sums trace;
  model->hidden(graph, images_of(16, {0, 1}), &trace);
  CHECK(trace.layers == std::vector{0, 1, 2});
  CHECK(trace.heads == std::vector{2, 2, 4});
  CHECK(trace.windows == std::vector{8, 18, 2});
  CHECK(trace.tokens == std::vector{128, 128, 32});
  // The grid of a layer says where the tokens of each image lie.
  for (int layer = 0; layer < 3; ++layer) {
    const auto number = static_cast<std::size_t>(layer);
    const std::optional<ImageGrid> grid = model->image_grid(AttentionKind::encoder, layer);
    REQUIRE(grid);
    CHECK(2 * (std::ssize(grid->offsets) - 1) == trace.windows[number]);
    CHECK(2 * grid->tokens() == trace.tokens[number]);
    CHECK_FALSE(grid->has_class_token());
  }
  CHECK_FALSE(model->image_grid(AttentionKind::encoder, 3));
  CHECK(trace.worst < 1e-14);
}

TEST_CASE("swin: products and attention layers tell how much work an image is") {
  SwinConfig config(SwinSize::tiny);
  config.source_vocabulary = kImageVocabulary;
  config.target_vocabulary = kReservedIds + 1000;
  const auto model = make_model<float>(config);
  CHECK(model->layout().parameter_count() == 28288354);  // as torchvision says of swin_t
  CHECK(model->products().size() == 1 + 12 * 4 + 3);
  const ModelWork work = forward_work(*model, {.source = config.tokens(), .target = 1});
  // torchvision says 4.491 billion multiply-adds, including those of masked pairs.
  double products = static_cast<double>(work.layers + work.output), attention = 0, pairs = 0;
  int layers = 0;
  for (const AttentionLayers& each : model->attention_layers()) {
    const double queries = config.tokens() / each.tokens_per_query;
    layers += each.layers;
    attention += 2 * static_cast<double>(each.width) * each.layers * each.window * queries;
    products += 2 * static_cast<double>(each.width) * each.layers * 49 * queries;
    pairs += each.layers * each.window * queries;
  }
  CHECK(products == doctest::Approx(4.491e9).epsilon(1e-3));
  CHECK(static_cast<double>(work.attention) == doctest::Approx(attention));
  CHECK(layers == 12);
  // Of each pair of layers over g x g windows, the first has g^2 windows of 49 tokens. The second has along a side g -
  // 1 windows of 7 tokens, one of 3 and one of 4: (49 (g - 1) + 9 + 16)^2 pairs.
  double expected = 0;
  for (const double g : {8, 4, 2, 2, 2}) expected += g * g * 49 * 49 + (49 * (g - 1) + 25) * (49 * (g - 1) + 25);
  CHECK(pairs == doctest::Approx(expected + 2 * 49 * 49));
}

TEST_CASE("swin: what an image counts for is the mean number of tokens of a weight") {
  for (const auto& [size, tokens, work] : {std::tuple(SwinSize::tiny_2, 256, 44), {SwinSize::tiny, 3136, 161}}) {
    const SwinConfig config(size);
    CHECK(image_tokens(config) == tokens);
    CHECK(image_work(config) == work);
  }
  CHECK(image_work(VitConfig()) == image_tokens(VitConfig()));
  CHECK(image_work(TransformerConfig()) == 0);
  // An image of 3,145,728 samples, but five tokens.
  VitConfig coarse;
  coarse.image.size = 1024;
  coarse.patch = 512;
  CHECK(image_work(coarse) == 192);
}

TEST_CASE("swin: what does not fit is named") {
  const auto check = [](auto change, const std::string& message) {
    SwinConfig config = small_swin();
    change(config);
    CHECK_THROWS_WITH_AS(config.validate(), message.c_str(), UsageError);
  };
  check([](SwinConfig& c) { c.image.size = 17; }, "--image-size 17 is no multiple of --patch-size 2");
  check([](SwinConfig& c) { c.image.size = 20; },
        "--image-size 20 does not fit --patch-size 2, --window-size 4 and 2 stages (16 and 32 fit)");
  check([](SwinConfig& c) { c.image.size = 2; },
        "--image-size 2 does not fit --patch-size 2, --window-size 4 and 2 stages (4 fits)");
  check([](SwinConfig& c) { c.patch = 16; },
        "--image-size 16 does not fit --patch-size 16, --window-size 4 and 2 stages (32 fits)");
  check([](SwinConfig& c) { c.image.size = 30, c.depths = {1}, c.heads = {1}; },
        "--image-size 30 does not fit --patch-size 2, --window-size 4 and 1 stage (24 and 32 fit)");
  check([](SwinConfig& c) { c = SwinConfig(SwinSize::tiny), c.image.size = 256; },
        "--image-size 256 does not fit --patch-size 4, --window-size 7 and 4 stages (224 and 448 fit)");
  check([](SwinConfig& c) { c.heads = {2}; },
        "--swin-heads: has 1 number, but --swin-depths has 2 (each has a number for each stage)");
  check([](SwinConfig& c) { c.depths.clear(), c.heads.clear(); }, "--swin-depths: needs a number for each stage");
  check(
      [](SwinConfig& c) {
        c.heads = {2, 3};
      },
      "--swin-heads: stage 2 has a width of 16, which is not divisible by 3 heads");
  check([](SwinConfig& c) { c.depths.assign(20, 1), c.heads.assign(20, 1); },
        "--swin-depths: 20 stages are too many with --dim-emb 8 (each stage doubles the width)");
  for (const Task task : {Task::swin_tiny_2, Task::swin_tiny, Task::swin_small, Task::swin_base})
    CHECK_NOTHROW(validate(preset(task)));
  SwinConfig config(SwinSize::tiny);
  config.target_vocabulary = kReservedIds + 10;
  CHECK(config.describe() ==
        "images of 224 x 224, patches of 4 x 4, windows of 7 x 7, 2 + 2 + 6 + 2 layers, width 96 to 768, 3 + 6 + 12 + "
        "24 heads, 10 classes");
}

TEST_CASE("swin: swin_t in full size has torchvision's logits") {
  const char* const path = std::getenv("HEED_SWIN_FULL");
  if (!path) {
    MESSAGE("skipped: set HEED_SWIN_FULL to the file of scripts/reference/make_swin_reference.py --full FILE");
    return;
  }
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  const auto read = [&](auto* to, std::int64_t count) {
    in.read(reinterpret_cast<char*>(to), count * static_cast<std::int64_t>(sizeof(*to)));
    REQUIRE(in.good());
  };
  std::int64_t sizes[3];
  read(sizes, 3);
  const auto [images, parameters, classes] = sizes;
  SwinConfig config(SwinSize::tiny);
  config.source_vocabulary = kImageVocabulary;
  config.target_vocabulary = kReservedIds + classes;
  const auto model = make_model<float>(config);
  REQUIRE(model->layout().parameter_count() == parameters);
  Batch batch;
  std::vector<std::uint8_t> samples(static_cast<std::size_t>(3 * config.image.size * config.image.size));
  for (std::int64_t b = 0; b < images; ++b) {
    read(samples.data(), std::ssize(samples));
    std::vector<std::int32_t> ids;
    for (const std::uint8_t sample : samples) ids.push_back(kReservedIds + sample);
    batch.add_classified(ids, 0);
  }
  ParameterValues<float> values(model->layout());
  for (int j = 0; j < static_cast<int>(model->layout().all().size()); ++j) {
    const Tensor<float> value = values[ParameterId{j}];
    read(value.data(), value.size());
  }
  std::vector<float> expected(static_cast<std::size_t>(images * classes));
  read(expected.data(), std::ssize(expected));
  Arena arena;
  CpuContext device{arena};
  Graph<float> graph(device, values);
  const Tensor<float> logits = logits_of(*model, graph, batch);
  REQUIRE(logits.size() == std::ssize(expected));
  double worst = 0;
  for (std::int64_t i = 0; i < logits.size(); ++i)
    worst = std::max(worst, std::abs(double(logits[i]) - double(expected[static_cast<std::size_t>(i)])));
  MESSAGE("swin_t: logits differ by at most ", worst);
  CHECK(worst < 1e-4);
}
