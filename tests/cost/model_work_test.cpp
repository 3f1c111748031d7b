#include "heed/cost/model_work.h"

#include <doctest/doctest.h>

#include "heed/model/transformer.h"

using namespace heed;

namespace {

TransformerConfig some_config() {
  TransformerConfig c;
  c.source_vocabulary = 50;
  c.target_vocabulary = 70;
  c.dim_emb = 24;
  c.dim_ffn = 40;
  c.enc_depth = 3;
  c.dec_depth = 2;
  c.heads = 4;
  return c;
}

}  // namespace

TEST_CASE("every matrix of the layers multiplies one source or one target token once") {
  for (const auto activation : {FeedForwardActivation::relu, FeedForwardActivation::swiglu}) {
    TransformerConfig config = some_config();
    config.ffn_activation = activation;
    const Transformer<float> model(config);
    std::int64_t matrices = 0;
    for (const ParameterInfo& info : model.layout().all())
      if (info.name.find("/layers/") != std::string::npos && info.shape.rank() == 2) matrices += info.shape.size();
    TokenCounts counts;
    counts.add({1, 1});
    CHECK(forward_work(model, counts).layers == matrices);
    CHECK(model.products().size() == 3 * 4 + 2 * 7);
  }
}

TEST_CASE("the product of a gated linear unit computes gate and value") {
  TransformerConfig config = some_config();
  config.ffn_activation = FeedForwardActivation::geglu;
  const Transformer<float> model(config);
  int gated = 0;
  for (const Product& product : model.products()) {
    if (!product.gated) continue;
    ++gated;
    CHECK(product.outputs == 2 * config.dim_ffn);
    CHECK(product.activation == Activation::gelu);
    CHECK(model.layout()[product.weight].name.ends_with("/gate/weight"));
  }
  CHECK(gated == 5);
  CHECK(model.products().size() == 3 * 4 + 2 * 7);
}

TEST_CASE("work follows the formulas of the paper") {
  const Transformer<float> model(some_config());
  const std::int64_t d = 24, f = 40, source = 7 + 11, target = 5 + 60;
  TokenCounts counts, second;
  counts.add({7, 5});
  second.add({11, 60});
  counts += second;
  CHECK(counts.source == source);
  CHECK(counts.target == target);
  CHECK(counts.encoder_pairs == 7 * 7 + 11 * 11);
  CHECK(counts.cross_pairs == 7 * 5 + 11 * 60);
  CHECK(counts.decoder_pairs == 5 * 5 + 60 * (60 + 48) / 2);
  const ModelWork work = forward_work(model, counts);
  // Per source token, an encoder layer has 4 D^2 + 2 D F multiply-adds; per target token, a decoder layer has the same
  // and 2 D^2 for cross-attention's query and output; per source token, a decoder layer has 2 D^2 for cross-attention's
  // keys and values.
  const std::int64_t layer = 4 * d * d + 2 * d * f;
  CHECK(work.layers == 3 * layer * source + 2 * ((layer + 2 * d * d) * target + 2 * d * d * source));
  CHECK(work.attention == 2 * d * (3 * counts.encoder_pairs + 2 * (counts.decoder_pairs + counts.cross_pairs)));
  CHECK(work.output == 70 * d * target);
}

TEST_CASE("products of source tokens in the decoder are of the memory's keys and values") {
  const Transformer<float> model(some_config());
  int memory = 0, activated = 0;
  for (const Product& product : model.products()) {
    CHECK(model.layout()[product.weight].shape[1] == product.inputs);
    CHECK(product.bias);
    activated += product.activation != Activation::none;
    if (product.in_encoder || product.side == TokenSide::target) continue;
    ++memory;
    CHECK(product.outputs == 48);
    CHECK(model.layout()[product.weight].name.find("cross_attention/key/weight") != std::string::npos);
  }
  CHECK(memory == 2);
  CHECK(activated == 5);
}
