#include "heed/nn/self_attention_positions.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "heed/base/random.h"
#include "heed/nn/multi_head_attention.h"
#include "heed/nn/token_embedding.h"
#include "heed/ops/decode_attention.h"
#include "training.h"

using namespace heed;

namespace {

using Offsets = std::vector<std::int32_t>;

constexpr PositionEncoding kWithin[] = {PositionEncoding::relative, PositionEncoding::alibi, PositionEncoding::rotary,
                                        PositionEncoding::t5};

/// A stack of two self-attention layers with 2 heads of 6 columns, and the values and gradients of their parameters.
template <class T>
struct Stack {
  static constexpr std::int64_t kWidth = 12;
  static constexpr int kHeads = 2;

  Stack(PositionEncoding kind, bool is_causal)
      : causal(is_causal), positions(layout, "decoder", kind, kWidth, kHeads, causal) {
    for (const char* name : {"first", "second"})
      layers.emplace_back(layout, name, kWidth, kHeads, 0.0, AttentionScoring::dot, positions.relative_distance());
    values = std::make_unique<ParameterValues<T>>(layout);
    gradients = std::make_unique<ParameterValues<T>>(layout);
    values->initialise(3);
  }

  Variable<T> operator()(Graph<T>& graph, const Variable<T>& x, PackedOffsets packed, std::int64_t longest) const {
    const StackPositions<T> shared = positions.shared(graph, longest);
    Variable<T> y = x;
    for (const MultiHeadAttention& layer : layers) y = layer.self_attention(graph, y, packed, causal, {}, shared);
    return y;
  }

  /// Computes the stack for one step of decoding: x [R, D] are the last tokens of the rows.
  Variable<T> step(Graph<T>& graph, const Variable<T>& x, std::span<const std::int32_t> slots, std::int64_t capacity,
                   std::span<const std::int32_t> lengths, std::vector<Tensor<T>>& pools) const {
    const StackPositions<T> shared = positions.shared(graph, *std::max_element(lengths.begin(), lengths.end()));
    Variable<T> y = x;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const Variable<T> qkv = layers[i].project_step(graph, y, lengths, shared);
      for (std::int64_t r = 0; r < std::ssize(lengths); ++r)
        std::copy_n(
            qkv.value.row(r) + kWidth, 2 * kWidth,
            pools[i].row(slots[static_cast<std::size_t>(r * capacity + lengths[static_cast<std::size_t>(r)] - 1)]));
      const auto stride = static_cast<std::int64_t>(2 * kWidth * sizeof(T));
      const CachedRows<T> keys{reinterpret_cast<const std::byte*>(pools[i].data()), stride},
          cached_values{reinterpret_cast<const std::byte*>(pools[i].data() + kWidth), stride};
      const Variable<T> out = graph.result(y.shape());
      cached_attention<T>(graph.device().cpu(), {qkv.value.data(), 3 * kWidth}, keys, cached_values, slots, capacity,
                          lengths, kHeads, kWidth, out.value.data(), layers[i].position_terms(graph, shared));
      y = layers[i].output(graph, out);
    }
    return y;
  }

  bool causal;
  ParameterLayout layout;
  SelfAttentionPositions positions;
  std::vector<MultiHeadAttention> layers;
  std::unique_ptr<ParameterValues<T>> values, gradients;
};

}  // namespace

TEST_CASE("positions within attention: the parameters, shared by a stack or one for each layer") {
  const Stack<float> t5(PositionEncoding::t5, true), relative(PositionEncoding::relative, true),
      none(PositionEncoding::none, true), rotary(PositionEncoding::rotary, true);
  CHECK(t5.layout[t5.layout.find("decoder/position_bias/weight")].shape == Shape{32, 2});
  CHECK(t5.layout.all().size() == none.layout.all().size() + 1);
  for (const char* name : {"first/relative_keys/weight", "first/relative_values/weight", "second/relative_keys/weight",
                           "second/relative_values/weight"})
    CHECK(relative.layout[relative.layout.find(name)].shape == Shape{33, 6});
  CHECK(relative.layout.all().size() == none.layout.all().size() + 4);
  CHECK(rotary.layout.all().size() == none.layout.all().size());
}

TEST_CASE("positions within attention: gradients of all parameters of a stack") {
  const Offsets offsets{0, 3, 4, 24};
  for (const PositionEncoding kind : kWithin)
    for (const bool causal : {false, true}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(causal);
      Stack<double> stack(kind, causal);
      Training<double> inputs;
      const Tensor<double> x = inputs.normal({24, Stack<double>::kWidth}).value, dy = inputs.normal(x.shape()).value;
      Arena arena;
      CpuContext device{arena};
      Graph<double> graph(device, *stack.values, *stack.gradients);
      const auto loss = [&](bool backward) {
        graph.reset();
        const Variable<double> y = stack(graph, graph.input(x), {offsets}, 20), sum = graph.result({});
        sum.value[0] = 0;
        for (std::int64_t i = 0; i < dy.size(); ++i) sum.value[0] += dy[i] * y.value[i];
        graph.record([y, dy](auto&) { std::copy_n(dy.data(), dy.size(), y.gradient.begin_writing().data()); });
        const double value = sum.value[0];
        if (backward) graph.backward(sum);
        return value;
      };
      loss(true);
      double worst = 0;
      for (const ParameterInfo& parameter : stack.layout.all()) {
        const ParameterId id = stack.layout.find(parameter.name);
        const Tensor<double> value = (*stack.values)[id], gradient = (*stack.gradients)[id];
        for (std::int64_t i = 0; i < value.size(); i += 1 + value.size() / 40) {
          const double kept = value[i], step = 1e-5;
          value[i] = kept + step;
          const double above = loss(false);
          value[i] = kept - step;
          const double below = loss(false);
          value[i] = kept;
          const double numeric = (above - below) / (2 * step), error = std::abs(gradient[i] - numeric);
          if (!(error / std::max(1.0, std::abs(numeric)) <= worst)) worst = error / std::max(1.0, std::abs(numeric));
        }
      }
      CHECK(worst < 1e-7);
    }
}

TEST_CASE_TEMPLATE("positions within attention: step by step as the whole sequence; a row alone, the same bits", T,
                   float, double) {
  const int length = 40;  // the last tokens are further from the first than the distance at which vectors are clipped
  const Offsets offsets{0, length};
  Training<T> inputs;
  const Tensor<T> x = inputs.normal({length, Stack<T>::kWidth}).value;
  std::vector<Tensor<T>> results;
  for (const PositionEncoding kind : {PositionEncoding::none, PositionEncoding::relative, PositionEncoding::alibi,
                                      PositionEncoding::rotary, PositionEncoding::t5}) {
    CAPTURE(static_cast<int>(kind));
    Stack<T> stack(kind, true);
    Arena arena;
    CpuContext device{arena};
    Graph<T> graph(device, *stack.values);
    const Tensor<T> whole = inputs.arena.template tensor<T>(x.shape());
    std::copy_n(stack(graph, graph.input(x), {offsets}, length).value.data(), x.size(), whole.data());
    for (const Tensor<T>& other : results) CHECK(largest_difference(other, whole) > 1e-3);
    results.push_back(whole);

    // Two rows: the sequence, and the sequence from its token 9 on, which is 10 tokens behind.
    const std::int64_t capacity = length;
    Offsets slots(static_cast<std::size_t>(2 * capacity));
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::int32_t>((i * 7) % slots.size());
    std::vector<Tensor<T>> pools, pools_alone;
    for (int layer = 0; layer < 2; ++layer) {
      pools.push_back(inputs.arena.template tensor<T>({2 * length, 2 * Stack<T>::kWidth}));
      pools_alone.push_back(inputs.arena.template tensor<T>({2 * length, 2 * Stack<T>::kWidth}));
    }
    double worst = 0;
    for (int t = 0; t < length; ++t) {
      graph.reset();
      const bool two = t >= 10;
      Offsets lengths{t + 1};
      if (two) lengths.push_back(t - 9);
      const Tensor<T> tokens = arena.template tensor<T>({std::ssize(lengths), Stack<T>::kWidth});
      std::copy_n(x.row(t), Stack<T>::kWidth, tokens.row(0));
      if (two) std::copy_n(x.row(t - 1), Stack<T>::kWidth, tokens.row(1));
      const auto y = stack.step(graph, graph.input(tokens), slots, capacity, lengths, pools).value;
      const auto alone = stack
                             .step(graph, graph.input(tokens.row_block(0, 1)), slots, capacity,
                                   std::span(lengths).first(1), pools_alone)
                             .value;
      CHECK(std::memcmp(y.data(), alone.data(), static_cast<std::size_t>(alone.size()) * sizeof(T)) == 0);
      worst = std::max(worst, largest_difference(y.row_block(0, 1), whole.row_block(t, 1)));
    }
    CHECK(worst < (sizeof(T) == 4 ? 1e-5 : 1e-13));
  }
}

TEST_CASE("token embedding: without a vector for the position") {
  ParameterLayout layout;
  const ParameterId weight = layout.add("weight", {5, 4}, Initialiser::normal(1));
  ParameterValues<float> values(layout);
  values.initialise(1);
  Arena arena;
  CpuContext device{arena};
  Graph<float> graph(device, values);
  const TokenEmbedding<float> embedding(weight, {}, nullptr, 4, 0.1);
  const Offsets ids{3, 0}, positions{0, 1};
  const auto y = embedding(graph, ids, positions, 2).value;
  for (std::int64_t c = 0; c < 4; ++c) {
    CHECK(y.row(0)[c] == 2 * values[weight].row(3)[c]);
    CHECK(y.row(1)[c] == 2 * values[weight].row(0)[c]);
  }
}
