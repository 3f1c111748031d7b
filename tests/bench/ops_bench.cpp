// Measures the time of the row kernels and of the optimiser's loops. An item is an element, so 1e9 / items_per_second
// is the number of nanoseconds for each element. Run by hand: build/release/bin/heed_ops_bench
#include <benchmark/benchmark.h>

#include <vector>

#include "../ops/training.h"
#include "heed/nn/position_encoding.h"
#include "heed/ops/attention.h"
#include "heed/ops/decode_attention.h"
#include "heed/ops/dropout.h"
#include "heed/ops/embedding.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/linear.h"
#include "heed/ops/optimizer_kernels.h"
#include "heed/ops/recurrence.h"
#include "heed/ops/residual_norm.h"
#include "heed/ops/rotary.h"
#include "heed/ops/softmax.h"

using namespace heed;

namespace {

constexpr std::int64_t kElements = 1 << 17;

/// The inputs and outputs of the row kernels: kElements numbers in rows of `width` numbers (the width of a model).
struct Rows : Training<float> {
  explicit Rows(std::int64_t d) : width(d), rows(kElements / d), kept(kElements) {
    for (Variable<float>* x : {&a, &b, &y, &z, &dy}) *x = normal({rows, width});
    for (Variable<float>* x : {&scale, &bias}) *x = normal({width});
    statistics = normal({rows, 2});
    const RandomStream stream(1, RandomUse::dropout);
    fill_dropout_mask(stream, dropout_threshold(0.1), kElements, kept.data());
    mask = {kept.data(), 1 / 0.9f};
  }

  std::int64_t width, rows;
  Variable<float> a, b, y, z, dy, scale, bias, statistics;
  std::vector<std::uint8_t> kept;
  DropoutMask<float> mask;
};

/// Measures body(rows), where `rows` has the width that the benchmark's argument gives.
template <class Body>
void measure(benchmark::State& state, Body body) {
  Rows r(state.range(0));
  for (auto _ : state) {
    body(r);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kElements);
}

void dropout_mask(benchmark::State& state) {
  measure(state, [](Rows& r) {
    fill_dropout_mask(RandomStream(1, RandomUse::dropout), dropout_threshold(0.1), kElements, r.kept.data());
  });
}

void dropout_both_ways(benchmark::State& state) {
  measure(state, [](Rows& r) {
    dropout_forward(r.device, r.a.value, r.mask, r.y.value);
    dropout_backward(r.device, r.dy.value, r.mask, r.a.gradient.sum());
  });
}

void layer_norm_forward(benchmark::State& state) {
  measure(state, [](Rows& r) {
    row_norm_forward(r.device, RowNorm::layer, r.a.value, r.scale.value, r.bias.value, 1e-5, {r.y.value},
                     r.statistics.value);
  });
}

template <RowNorm kind>
void residual_norm_forward(benchmark::State& state) {
  measure(state, [](Rows& r) {
    residual_norm_forward(r.device, kind, r.a.value, {r.b.value}, r.mask, r.scale.value, r.bias.value, 1e-5, r.y.value,
                          {r.z.value}, r.statistics.value);
  });
}

template <RowNorm kind>
void residual_norm_backward(benchmark::State& state) {
  measure(state, [](Rows& r) {
    residual_norm_backward(r.device, kind, r.y.value, r.mask, r.scale.value, r.statistics.value, r.dy.value, r.z.value,
                           r.a.gradient.sum(), true, {r.b.gradient.sum()}, true, r.scale.gradient.sum(),
                           kind == RowNorm::layer ? r.bias.gradient.sum() : Tensor<float>());
  });
}

void softmax_forward(benchmark::State& state) {
  measure(state, [](Rows& r) { softmax_forward(r.device, r.a.value, r.y.value); });
}

void log_softmax_forward(benchmark::State& state) {
  measure(state, [](Rows& r) { log_softmax_forward(r.device, r.a.value, r.y.value); });
}

/// Measures a linear layer y = f(x W^T + b) with each activation function f. The time of an activation function is the
/// difference from activation 0 (none).
void linear_forward(benchmark::State& state) {
  Rows r(state.range(0));
  const auto weight = r.normal({r.width, r.width});
  for (auto _ : state)
    linear_forward<float>(r.device, {r.a.value}, {weight.value}, {r.bias.value},
                          static_cast<Activation>(state.range(1)), {}, {r.y.value});
  state.SetItemsProcessed(state.iterations() * kElements);
}

/// Measures a recurrent layer in training, forward and backward, with the products of its inputs: 64 sequences, of 18
/// to 22 or of 1 to 39 tokens (20 on average). An item is a token.
void recurrent_layer(benchmark::State& state) {
  const auto cell = static_cast<RecurrentCell>(state.range(0));
  const std::int64_t width = state.range(1), gates = gate_count(cell) * width;
  Training<float> t;
  t.device.precision = static_cast<Precision>(state.range(2));
  std::vector<std::int32_t> offsets = {0};
  for (int i = 0; i < 64; ++i)
    offsets.push_back(offsets.back() + (state.range(3) ? 1 + (i * 37 + 11) % 39 : 18 + i % 5));
  ParameterLayout layout;
  const auto add = [&](const char* name, const Shape& shape) { return layout.add(name, shape, Initialiser::xavier()); };
  const ParameterId ids[] = {add("input", {gates, width}), add("input_bias", {gates}), add("hidden", {gates, width}),
                             add("hidden_bias", {gates})};
  ParameterValues<float> values(layout), gradients(layout);
  values.initialise(1);
  const Tensor<float> x = t.normal({offsets.back(), width}).value, dy = t.normal({offsets.back(), width}).value;
  Arena arena;
  CpuContext device{arena, t.device.precision};
  Graph<float> graph(device, values, gradients);
  for (auto _ : state) {
    graph.reset();
    const auto input = graph.input(x, true);
    const auto projected = linear(graph, input, graph.parameter(ids[0]), graph.parameter(ids[1]));
    const auto y = recurrence<float>(graph, cell, Direction::forward, projected, {}, graph.parameter(ids[2]),
                                     graph.parameter(ids[3]), {}, {offsets});
    const auto loss = graph.result({});
    graph.record([y, dy](auto&) { std::copy_n(dy.data(), dy.size(), y.hidden.gradient.begin_writing().data()); });
    graph.backward(loss);
  }
  state.SetItemsProcessed(state.iterations() * offsets.back());
}

/// Measures self-attention in training, forward and backward, with positions of each kind (PositionEncoding; 3 is
/// none). The batch has about 1000 tokens, in sequences of T - 2 to T + 2. An item is a token.
void attention_both_ways(benchmark::State& state) {
  const auto kind = static_cast<PositionEncoding>(state.range(0));
  const int heads = static_cast<int>(state.range(1));
  const std::int64_t d = state.range(2), width = heads * d, length = state.range(3), longest = length + 2;
  const bool causal = state.range(4) != 0;
  std::vector<std::int32_t> offsets{0};
  for (std::int64_t i = 0; i < 1000 / length; ++i)
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(length - 2 + i % 5));
  Training<float> t;
  const Tensor<float> x = t.normal({offsets.back(), 3 * width}).value, dy = t.normal({offsets.back(), width}).value;
  const Tensor<float> table = t.normal({32, heads}).value, vectors = t.normal({33, d}).value;
  const Tensor<float> rotations = t.normal({longest, 2 * d}).value;
  fill_sinusoids(PositionEncoding::rotary, rotations);
  Arena arena;
  CpuContext device{arena};
  Graph<float> graph(device, t.values, t.gradients);
  for (auto _ : state) {
    graph.reset();
    const auto qkv = graph.input(x, true);
    PositionBias<float> positions;
    if (kind == PositionEncoding::alibi) positions = alibi_bias(graph, heads, longest, causal);
    if (kind == PositionEncoding::t5) positions = t5_bias(graph, graph.input(table, true), longest, causal);
    if (kind == PositionEncoding::relative)
      positions = {.relative_keys = graph.input(vectors, true), .relative_values = graph.input(vectors, true)};
    if (kind == PositionEncoding::rotary) rotary(graph, qkv, 2 * width, {offsets}, rotations);
    const auto y = attention<float>(graph, {qkv, 0}, {qkv, width}, {qkv, 2 * width}, width, {offsets}, {offsets},
                                    {heads, causal, 0.1}, {}, positions);
    const auto loss = graph.result({});
    graph.record([y, dy](auto&) { std::copy_n(dy.data(), dy.size(), y.gradient.begin_writing().data()); });
    graph.backward(loss);
  }
  state.SetItemsProcessed(state.iterations() * offsets.back());
}

/// Measures the self-attention of a decoding step over a cache of float32, with positions of each kind (3 is none), for
/// 64 rows of about T / 2 positions, as they are on average in a sentence of T tokens. An item is a row.
void cached_attention_step(benchmark::State& state) {
  const auto kind = static_cast<PositionEncoding>(state.range(0));
  const int heads = static_cast<int>(state.range(1));
  const std::int64_t rows = 64, d = state.range(2), width = heads * d, capacity = state.range(3), stride = 3 * width;
  Training<float> t;
  ParameterValues<float> none(t.layout);
  Graph<float> graph(t.device, none);
  const Variable<float> qkv = t.normal({rows * capacity, stride}), table = t.normal({32, heads}),
                        vectors = t.normal({33, d});
  const Tensor<float> out = t.normal({rows, width}).value, rotations = t.normal({capacity, 2 * d}).value;
  fill_sinusoids(PositionEncoding::rotary, rotations);
  std::vector<std::int32_t> slots, lengths;
  for (std::int64_t i = 0; i < rows * capacity; ++i)
    slots.push_back(static_cast<std::int32_t>(i * 7 % (rows * capacity)));
  for (std::int64_t r = 0; r < rows; ++r)
    lengths.push_back(static_cast<std::int32_t>(capacity / 2 - capacity / 4 + r % (capacity / 2)));
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const auto at = [&](std::int64_t column) {
    return CachedRows<float>{reinterpret_cast<const std::byte*>(qkv.value.data() + column),
                             stride * static_cast<std::int64_t>(sizeof(float))};
  };
  for (auto _ : state) {
    const ArenaScope scope(t.arena);
    PositionBias<float> positions;
    if (kind == PositionEncoding::alibi) positions = alibi_bias(graph, heads, longest, true);
    if (kind == PositionEncoding::t5) positions = t5_bias(graph, table, longest, true);
    if (kind == PositionEncoding::relative) positions = {.relative_keys = vectors, .relative_values = vectors};
    if (kind == PositionEncoding::rotary)
      rotary_step(t.device, qkv.value.row_block(0, rows), 2 * width, lengths, rotations);
    cached_attention<float>(t.device, {qkv.value.data(), stride}, at(width), at(2 * width), slots, capacity, lengths,
                            heads, width, out.data(), positions);
  }
  state.SetItemsProcessed(state.iterations() * rows);
}

/// Measures an Adam update of n parameters, which reads four arrays of n numbers. With n = 2^23 the arrays do not fit
/// into any cache.
void adam(benchmark::State& state) {
  const auto n = static_cast<std::size_t>(state.range(0));
  std::vector<float> value(n, 1), gradient(n, 0.1f), first(n), second(n);
  for (auto _ : state) adam_update(std::span(value), gradient, first, second, {.learning_rate = 1e-3});
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void gradient_norm(benchmark::State& state) {
  const std::vector<float> gradient(static_cast<std::size_t>(state.range(0)), 0.1f);
  for (auto _ : state) benchmark::DoNotOptimize(squared_norm(std::span<const float>(gradient)));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(dropout_mask)->Arg(512);
BENCHMARK(dropout_both_ways)->Arg(512);
BENCHMARK(layer_norm_forward)->Arg(128)->Arg(512);
BENCHMARK(residual_norm_forward<RowNorm::layer>)->Arg(128)->Arg(512);
BENCHMARK(residual_norm_forward<RowNorm::rms>)->Arg(128)->Arg(512);
BENCHMARK(residual_norm_backward<RowNorm::layer>)->Arg(128)->Arg(512);
BENCHMARK(residual_norm_backward<RowNorm::rms>)->Arg(128)->Arg(512);
BENCHMARK(softmax_forward)->Arg(32)->Arg(512);
BENCHMARK(log_softmax_forward)->Arg(8192);
BENCHMARK(linear_forward)->ArgsProduct({{128}, {0, 1, 2, 3}});
BENCHMARK(recurrent_layer)
    ->ArgNames({"lstm", "width", "bfloat16", "mixed"})
    ->ArgsProduct({{0, 1}, {256, 512}, {0, 1}, {0, 1}});
BENCHMARK(attention_both_ways)
    ->ArgNames({"kind", "heads", "d", "T", "causal"})
    ->ArgsProduct({{3, 4, 5, 6, 7}, {8}, {64}, {27, 100}, {0, 1}})
    ->ArgsProduct({{3, 4, 5, 6, 7}, {4}, {16}, {27, 100}, {0, 1}});
BENCHMARK(cached_attention_step)
    ->ArgNames({"kind", "heads", "d", "T"})
    ->ArgsProduct({{3, 4, 5, 6, 7}, {8}, {64}, {27, 100}})
    ->ArgsProduct({{3, 4, 5, 6, 7}, {4}, {16}, {27, 100}});
BENCHMARK(adam)->Arg(1 << 16)->Arg(1 << 23);
BENCHMARK(gradient_norm)->Arg(1 << 16)->Arg(1 << 23);

}  // namespace

BENCHMARK_MAIN();
