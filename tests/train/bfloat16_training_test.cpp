// Training with bfloat16 products, compared with float32. On a CPU without bfloat16 instructions the same numbers are
// computed by float32 products of rounded numbers, so that the tests hold for every CPU.
#include <cmath>

#include "small_run.h"

using namespace heed;

namespace {

/// A model whose products have incomplete tiles and several tiles in each dimension.
TransformerConfig wider_config(double dropout) {
  TransformerConfig config = small_config(dropout);
  config.dim_emb = 72;
  config.heads = 4;
  config.dim_ffn = 200;
  config.enc_depth = config.dec_depth = 2;
  config.attention_dropout = config.ffn_dropout = dropout;
  return config;
}

struct Gradients {
  ParameterValues<float> values;
  double norm = 0, loss = 0;
};

/// Computes the gradient of one batch of 40 sentence pairs. The dropout masks depend on `update` alone.
Gradients gradients_of(const Transformer<float>& model, Precision precision, std::uint64_t update = 9) {
  ParameterValues<float> parameters(model.layout());
  parameters.initialise(3);
  const ParallelCorpus corpus = mirrored(40);
  const auto batches = batches_in_order(corpus, {.target_tokens = INT64_MAX});
  ThreadPool pool(1);
  GradientWorkers workers(model.layout(), loss_of(model), precision, pool);
  const std::vector<Shard> shards{{batches[0], corpus.target_tokens()}};
  const LossSums sums = workers.compute(
      parameters, corpus, shards, {.label_smoothing = 0.1, .scale = 1.0 / static_cast<double>(corpus.target_tokens())},
      {.seed = 5, .update = update});
  const double norm = workers.reduce();
  return {workers.gradient(), norm, sums.loss / static_cast<double>(sums.tokens)};
}

/// The difference of two gradients of one parameter.
struct Difference {
  double norm = 0;      ///< Euclidean norm of the first gradient
  double distance = 0;  ///< Euclidean norm of the difference
  double cosine = 0;    ///< cosine of the angle between the gradients
};

Difference difference(std::span<const float> a, std::span<const float> b) {
  double aa = 0, bb = 0, ab = 0, squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    aa += x * x;
    bb += y * y;
    ab += x * y;
    squares += (x - y) * (x - y);
  }
  return {std::sqrt(aa), std::sqrt(squares), ab / std::sqrt(aa * bb)};
}

}  // namespace

TEST_CASE("bfloat16: the gradients of a whole model are float32's up to the rounding, with and without dropout") {
  // Without dropout, the inner results of the feed-forward layers are stored as bfloat16; with dropout they are not.
  for (const double dropout : {0.0, 0.2}) {
    CAPTURE(dropout);
    const Transformer<float> model(wider_config(dropout));
    Gradients exact = gradients_of(model, Precision::float32), rounded = gradients_of(model, Precision::bfloat16);
    CHECK(rounded.loss == doctest::Approx(exact.loss).epsilon(0.002));
    CHECK(rounded.norm == doctest::Approx(exact.norm).epsilon(0.005));
    const Difference all = difference(exact.values.flat(), rounded.values.flat());
    CHECK(all.distance < 0.04 * all.norm);
    CHECK(all.distance > 0.001 * all.norm);  // otherwise nothing was rounded
    for (int j = 0; j < static_cast<int>(model.layout().all().size()); ++j) {
      const ParameterId id{j};
      const std::string& name = model.layout()[id].name;
      CAPTURE(name);
      const Difference d = difference(exact.values[id].span(), rounded.values[id].span());
      if (name.ends_with("/key/bias")) {
        // The bias adds the same number to all scores of a query, and the softmax does not change: the gradient is 0.
        CHECK(d.norm + d.distance < 1e-6 * exact.norm);
        continue;
      }
      // Rounding changes each number by 0.2 % at most. A chain of products changes the gradients more, and most of all
      // the few elements of ReLU that the rounding switches on or off.
      CHECK(d.distance < 0.1 * d.norm);
      CHECK(d.cosine > 0.996);
    }
    if (dropout == 0) continue;
    Gradients other_masks = gradients_of(model, Precision::float32, 10);
    CHECK(difference(exact.values.flat(), other_masks.values.flat()).distance > 0.3 * exact.norm);
  }
}

TEST_CASE("bfloat16: training learns as much as in float32") {
  const TemporaryFolder folder("heed_bfloat16_training");
  SmallRun exact(folder / "float32.h5"), rounded(folder / "bfloat16.h5");
  rounded.precision = Precision::bfloat16;
  for (SmallRun* run : {&exact, &rounded}) {
    run->run.after = "60u";
    run->run.valid_freq = "20u";
    run->go();
  }
  const std::vector<ValidationPoint>&exact_points = exact.state->state.validations,
        &rounded_points = rounded.state->state.validations;
  REQUIRE(exact_points.size() == 3);
  REQUIRE(rounded_points.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    const double perplexity = exact_points[i].scores[0];
    CHECK(rounded_points[i].scores[0] == doctest::Approx(perplexity).epsilon(0.05));
    CHECK(rounded_points[i].scores[0] != perplexity);
  }
  // A model that has learnt nothing would have a perplexity of about 9: eight letters and </s>.
  CHECK(exact_points[2].scores[0] < 4.5);
  CHECK(rounded.state->state.skipped_updates == 0);
}
