#include "heed/nn/multi_head_attention.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "heed/nn/padded_attention.h"
#include "heed/ops/arithmetic.h"
#include "heed/ops/decode_attention.h"
#include "network.h"

using namespace heed;

namespace {

using Offsets = std::vector<std::int32_t>;

/// A trace that keeps the attention weights.
struct KeptWeights : Trace<float> {
  std::vector<float> weights;
  bool wants(AttentionKind, int) const override { return true; }
  void attention(AttentionKind, int, int heads, PackedOffsets queries, PackedOffsets keys,
                 const Variable<float>& numbers) override {
    weights.assign(numbers.value.data(), numbers.value.data() + attention_weights_size(queries, keys, heads));
  }
};

/// Returns the values of the parameter `name`.
template <class T>
Tensor<T> parameter(Network<T>& net, const std::string& name) {
  const ParameterId id = net.layout.find(name);
  REQUIRE(id);
  return (*net.values)[id];
}

}  // namespace

TEST_CASE("MultiHeadAttention: additive scores add one parameter, dot products none") {
  ParameterLayout layout;
  const MultiHeadAttention dot(layout, "dot", 6, 3, 0),
      additive(layout, "additive", 6, 3, 0, AttentionScoring::additive);
  CHECK(dot.scoring() == AttentionScoring::dot);
  CHECK(additive.scoring() == AttentionScoring::additive);
  CHECK_FALSE(layout.find("dot/scorer/weight"));
  REQUIRE(layout.find("additive/scorer/weight"));
  CHECK(layout[layout.find("additive/scorer/weight")].shape == Shape{6});
  CHECK(layout.all().size() == 17);
}

TEST_CASE("MultiHeadAttention: additive scores as AdditiveAttention between the projections") {
  // With one head and identity projections, the layer is AdditiveAttention with identity matrices for W_q and W_k.
  Network<float> net;
  const MultiHeadAttention layer(net.layout, "layer", 5, 1, 0, AttentionScoring::additive);
  const AdditiveAttention plain(net.layout, "plain", 5, 5, 5, 0);
  net.begin();
  for (const char* name : {"layer/query", "layer/key", "layer/value", "layer/output", "plain/query", "plain/key"})
    for (std::int64_t i = 0; i < 25; ++i) parameter(net, std::string(name) + "/weight")[i] = i % 6 == 0 ? 1.0F : 0.0F;
  std::copy_n(parameter(net, "layer/scorer/weight").data(), 5, parameter(net, "plain/scorer/weight").data());
  const auto x = net.input({2, 4, 5}), memory = net.input({2, 3, 5});
  const Variable<float> rows = net.graph->input(Tensor<float>(x.value.data(), {8, 5})),
                        memory_rows = net.graph->input(Tensor<float>(memory.value.data(), {6, 5}));
  const Offsets queries{0, 4, 8}, keys{0, 3, 6};
  KeptWeights trace;
  const auto close = [](const Tensor<float>& a, const float* b) {
    for (std::int64_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
  };
  {
    const auto y = layer.cross_attention(*net.graph, rows, layer.project_memory(*net.graph, memory_rows), {queries},
                                         {keys}, {&trace});
    const auto expected = plain(*net.graph, x, memory, memory);
    close(expected.output.value, y.value.data());
    close(expected.weights.value, trace.weights.data());
  }
  const Offsets causal_lengths{1, 2, 3, 4, 1, 2, 3, 4};
  const auto y = layer.self_attention(*net.graph, rows, {queries}, true, {&trace});
  const auto expected = plain(*net.graph, x, x, x, causal_lengths);
  close(expected.output.value, y.value.data());
  close(expected.weights.value, trace.weights.data());
}

TEST_CASE("MultiHeadAttention: gradients of all parameters with additive scores as finite differences") {
  Network<double> net;
  const MultiHeadAttention layer(net.layout, "layer", 4, 2, 0, AttentionScoring::additive);
  net.begin();
  const Variable<double> x = net.input({5, 4});
  const Offsets offsets{0, 3, 5};
  const auto loss = [&] {
    const auto memory = layer.project_memory(*net.graph, layer.self_attention(*net.graph, x, {offsets}, true));
    const auto y = layer.cross_attention(*net.graph, x, memory, {offsets}, {offsets});
    return sum(*net.graph, multiply(*net.graph, y, y));
  };
  check_parameter_gradients(net, loss);
}

TEST_CASE("MultiHeadAttention: with additive scores, step by step with a cache as the whole sequence") {
  Network<float> net;
  const MultiHeadAttention layer(net.layout, "layer", 8, 2, 0, AttentionScoring::additive);
  net.begin(false);
  const Variable<float> x = net.input({6, 8});
  const Offsets offsets{0, 6};
  const auto whole = layer.self_attention(*net.graph, x, {offsets}, true);
  const Tensor<float> all = layer.project_all(*net.graph, x).value;  // [6, 24]
  const auto column = [&](std::int64_t first) {
    return CachedRows<float>{reinterpret_cast<const std::byte*>(all.data() + first), 24 * sizeof(float)};
  };
  const Offsets slots{0, 1, 2, 3, 4, 5};
  for (std::int32_t t = 0; t < 6; ++t) {
    const Tensor<float> out = net.arena.tensor<float>({1, 8});
    const Offsets lengths{t + 1};
    additive_cached_attention<float>(net.device, {all.row(t), 24}, layer.scorer(*net.graph).value.data(), column(8),
                                     column(16), slots, 6, lengths, 2, 8, out.data());
    const auto y = layer.output(*net.graph, net.graph->input(out));
    for (std::int64_t c = 0; c < 8; ++c) CHECK(std::abs(y.value[c] - whole.value.row(t)[c]) < 1e-5F);
  }
}
