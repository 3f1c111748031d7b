#include "heed/ops/attention.h"

#include "kernel_check.h"

namespace heed {
namespace {

/// What an attention of a test has.
struct Case {
  std::vector<std::int32_t> queries, keys;  ///< offsets
  std::int64_t heads = 2, head_width = 8;
  bool causal = false, dropout = false, weights = false, bfloat16 = false;
  /// 0: no positions; 1: a bias of distances; 2: relative vectors; 3: a bias of windows
  int positions = 0;
};

/// Compares forward and backward pass of an attention on a GPU with those on a CPU.
template <class T>
void check_attention(const Case& test) {
  const std::int64_t width = test.heads * test.head_width, stride = 3 * width, nq = test.queries.back(),
                     nk = test.keys.back(), distance = 3;
  const PackedOffsets queries{test.queries}, keys{test.keys};
  const std::int64_t size = attention_weights_size(queries, keys, static_cast<int>(test.heads)) + kAttentionSlack;
  // Query, key and value lie side by side in a matrix, as a projection computes them.
  TestTensor<T> query = normal<T>({nq, stride}, 1), key = normal<T>({nk, stride}, 2),
                arrived = normal<T>({nq, width}, 3), weights_gradient = normal<T>({size}, 4);
  std::vector<std::uint8_t> kept(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = i * 7 % 5 != 0;

  const std::int64_t longest = keys.longest();
  const std::vector<WindowMatrix> matrices{{0, 16}, {160, 16}};
  std::vector<std::int32_t> shape_of;
  for (int b = 0; b < queries.sequences(); ++b) shape_of.push_back(b % 2);
  const std::int64_t bias_columns =
      test.positions == 3 ? 160 + 16 * longest + kPositionBiasSlack : position_bias_columns(longest, test.causal);
  TestTensor<T> bias = normal<T>({test.heads, bias_columns}, 5),
                relative_keys = normal<T>({2 * distance + 1, test.head_width}, 6),
                relative_values = normal<T>({2 * distance + 1, test.head_width}, 7);
  for (const bool adds : {true, false}) {
    CAPTURE(adds);
    check_kernels<T>(
        {normal<T>({nq, width}, 8), normal<T>({size}, 9), normal<T>({nq, stride}, 10), normal<T>({nk, stride}, 11),
         normal<T>({test.heads, bias_columns}, 12), normal<T>({2 * distance + 1, test.head_width}, 13),
         normal<T>({2 * distance + 1, test.head_width}, 14)},
        [&](auto& device, std::span<const Tensor<T>> to) {
          const ArenaScope scope(device.arena);
          if (test.bfloat16) device.precision = Precision::bfloat16;
          AttentionArrays<T> a{};
          a.query = query.values.data();
          a.key = key.values.data() + width;
          a.value = key.values.data() + 2 * width;
          a.query_stride = a.key_stride = a.value_stride = stride;
          a.width = width;
          a.heads = static_cast<int>(test.heads);
          a.causal = test.causal;
          a.queries = queries;
          a.keys = keys;
          if (test.dropout) a.mask = {kept.data(), T(1.25)};
          if (test.weights) a.weights = to[1].data();
          if (test.positions == 1 || test.positions == 3) {
            a.positions.bias = bias.values.data();
            a.positions.bias_stride = bias_columns;
            a.positions.longest = longest;
          }
          if (test.positions == 3) {
            a.positions.matrices = matrices.data();
            a.positions.shape_of = shape_of.data();
          }
          if (test.positions == 2) {
            a.positions.relative_keys = relative_keys.values.data();
            a.positions.relative_values = relative_values.values.data();
            a.positions.distance = distance;
          }
          T* const softmaxes = attention_kept(device, a, true);
          attention_forward(device, a, softmaxes, {to[0]});
          a.query_gradient = to[2].data();
          a.key_gradient = to[3].data() + width;
          a.value_gradient = to[3].data() + 2 * width;
          a.overwrite_query_gradient = a.overwrite_key_gradient = a.overwrite_value_gradient = !adds;
          if (test.weights) a.weights_gradient = weights_gradient.values.data();
          if (a.positions.bias) a.positions.bias_gradient = to[4].data();
          if (a.positions.relative_keys) a.positions.relative_keys_gradient = to[5].data();
          if (a.positions.relative_keys) a.positions.relative_values_gradient = to[6].data();
          attention_backward(device, a, softmaxes, {to[0]}, {arrived.view()});
        },
        test.bfloat16                ? 0.03
        : sizeof(T) == sizeof(float) ? 1e-5
                                     : 1e-13);
  }
}

TEST_CASE_TEMPLATE("attention on a GPU: lengths around the sizes of tiles", T, float, double) {
  check_attention<T>({.queries = {0, 1, 1, 17, 50}, .keys = {0, 33, 34, 34, 67}});
  check_attention<T>({.queries = {0, 16, 48}, .keys = {0, 32, 96}, .heads = 1, .head_width = 33});
}

TEST_CASE_TEMPLATE("attention on a GPU: causal, with dropout and with weights that other ops read", T, float, double) {
  const std::vector<std::int32_t> offsets{0, 1, 34, 74};
  check_attention<T>({.queries = offsets, .keys = offsets, .causal = true});
  check_attention<T>({.queries = offsets, .keys = offsets, .causal = true, .dropout = true, .weights = true});
  check_attention<T>({.queries = offsets, .keys = {0, 5, 10, 50}, .dropout = true});
  check_attention<T>({.queries = offsets, .keys = {0, 5, 10, 50}, .heads = 3, .head_width = 5, .weights = true});
}

TEST_CASE_TEMPLATE("attention on a GPU: terms of positions", T, float, double) {
  const std::vector<std::int32_t> offsets{0, 1, 3, 38, 40},
      many{0, 9, 18, 27, 36, 45, 54, 63, 72, 81, 90, 99, 108, 117, 126, 135, 144, 153, 162};
  for (const bool causal : {false, true})
    for (const bool dropout : {false, true}) {
      CAPTURE(causal);
      CAPTURE(dropout);
      for (const int positions : {1, 2}) {
        CAPTURE(positions);
        check_attention<T>(
            {.queries = offsets, .keys = offsets, .causal = causal, .dropout = dropout, .positions = positions});
      }
    }
  check_attention<T>({.queries = many, .keys = many, .dropout = true, .positions = 3});
  check_attention<T>({.queries = many, .keys = many, .weights = true, .positions = 1});
}

TEST_CASE("attention on a GPU: a key that is not a number makes the results of all its queries NaN") {
  // 70 keys: the warp that reads number 40 has seen 32 others, so that its sums are scaled when the maximum changes.
  constexpr std::int64_t kTokens = 70, kWidth = 8, kDistance = 3;
  TestTensor<float> query = normal<float>({kTokens, kWidth}, 1), key = normal<float>({kTokens, kWidth}, 2),
                    vectors = normal<float>({2 * kDistance + 1, kWidth}, 3), out = normal<float>({kTokens, kWidth}, 4);
  key.values[40 * kWidth + 1] = NAN;
  const std::vector<std::int32_t> offsets{0, kTokens};
  for (const bool relative : {false, true}) {
    CAPTURE(relative);
    Arena arena(kAlignedMemory), host_arena;
    CudaContext device{arena, host_arena};
    AttentionArrays<float> a{};
    a.query = query.values.data();
    a.key = a.value = key.values.data();
    a.query_stride = a.key_stride = a.value_stride = a.width = kWidth;
    a.heads = 1;
    a.queries = a.keys = PackedOffsets{offsets};
    if (relative) {
      a.positions.relative_keys = a.positions.relative_values = vectors.values.data();
      a.positions.distance = kDistance;
    }
    attention_forward(device, a, attention_kept(device, a, true), {out.view()});
    for (const float x : out.values) CHECK(std::isnan(x));
  }
}

TEST_CASE("attention on a GPU: by tensor cores, in bfloat16") {
  const std::vector<std::int32_t> offsets{0, 1, 34, 104, 233}, many{0, 9, 18, 27, 36, 45, 54, 63, 72};
  for (const std::int64_t head_width : {5, 32, 33, 64, 128}) {
    CAPTURE(head_width);
    check_attention<float>(
        {.queries = offsets, .keys = {0, 33, 34, 34, 130}, .head_width = head_width, .bfloat16 = true});
    if (head_width != 5 && head_width != 64) continue;
    // Sequences that fit into the smaller tile, without queries, without keys, and some that fit into the larger one.
    check_attention<float>({.queries = {0, 20, 20, 52, 60, 100, 164},
                            .keys = {0, 31, 47, 47, 50, 114, 130},
                            .head_width = head_width,
                            .bfloat16 = true});
  }
  for (const bool dropout : {false, true}) {
    CAPTURE(dropout);
    check_attention<float>({.queries = offsets, .keys = offsets, .causal = true, .dropout = dropout, .bfloat16 = true});
    check_attention<float>(
        {.queries = offsets, .keys = offsets, .causal = true, .dropout = dropout, .bfloat16 = true, .positions = 1});
    check_attention<float>({.queries = many, .keys = many, .dropout = dropout, .bfloat16 = true, .positions = 3});
  }
}

TEST_CASE("attention on a GPU: operands, results and gradients that are stored as bfloat16") {
  // The keys begin in the fifth column of rows of a multiple of eight numbers, so that they are not aligned to eight,
  // or in the ninth. Sequences of all sizes of tiles, some without queries or keys.
  const std::vector<std::int32_t> offsets{0, 1, 34, 74, 74, 94, 94, 174}, key_offsets{0, 5, 10, 50, 60, 60, 160, 190};
  for (const auto& [head_width, first] :
       {std::pair<std::int64_t, std::int64_t>{5, 4}, {8, 4}, {33, 4}, {64, 4}, {8, 8}, {64, 8}, {128, 8}})
    for (const bool weights : {false, true}) {  // by tensor cores, and not
      CAPTURE(head_width);
      CAPTURE(first);
      CAPTURE(weights);
      if (weights && first == 8) continue;
      const std::int64_t width = 2 * head_width, nq = offsets.back(), nk = key_offsets.back();
      const std::int64_t stride = 2 * width + 8;
      TestTensor<Bfloat16> query = rounded(normal<float>({nq, width}, 1)),
                           memory = rounded(normal<float>({nk, stride}, 2)),
                           arrived = rounded(normal<float>({nq, width}, 3));
      TestTensor<float> full_query = in_full(query), full_memory = in_full(memory), full_arrived = in_full(arrived);
      AttentionArrays<float> stored{};
      stored.query_stride = stored.width = width;
      stored.key_stride = stored.value_stride = stride;
      stored.heads = 2;
      stored.queries = {offsets};
      stored.keys = {key_offsets};
      stored.overwrite_query_gradient = stored.overwrite_key_gradient = stored.overwrite_value_gradient = true;
      const std::int64_t size = attention_weights_size(stored.queries, stored.keys, 2) + kAttentionSlack;
      TestTensor<float> attention_weights = normal<float>({size}, 4);
      if (weights) stored.weights = attention_weights.values.data();
      AttentionArrays<float> full = stored;
      full.query = full_query.values.data();
      full.key = full_memory.values.data() + first;
      full.value = full_memory.values.data() + first + width;
      stored.rounded.query = query.values.data();
      stored.rounded.key = memory.values.data() + first;
      stored.rounded.value = memory.values.data() + first + width;

      Arena arena, host_arena;
      CudaContext device{arena, host_arena};
      device.precision = Precision::bfloat16;
      REQUIRE(attends_in_bfloat16(device, stored) == !weights);
      TestTensor<float> out = normal<float>({nq, width}, 5), out_of_stored = out;
      float* const kept = attention_kept(device, full, true);
      attention_forward<float>(device, full, kept, {out.view()});
      attention_forward<float>(device, stored, kept, {out_of_stored.view()});
      CHECK(out_of_stored.values == out.values);
      TestTensor<Bfloat16> out_rounded = rounded(out);
      if (!weights) {
        std::ranges::fill(out_rounded.values, Bfloat16{});
        attention_forward<float>(device, stored, kept, {{}, out_rounded.view()});
        CHECK(out_rounded.values == rounded(out).values);
        out = in_full(out_rounded);
      }

      TestTensor<float> dq = normal<float>({nq, width}, 6), dm = normal<float>({nk, stride}, 7), dq_of_stored = dq,
                        dm_of_stored = dm;
      const auto set_gradients = [width, first = first](AttentionArrays<float>& a, TestTensor<float>& q,
                                                        TestTensor<float>& m) {
        a.query_gradient = q.values.data();
        a.key_gradient = m.values.data() + first;
        a.value_gradient = m.values.data() + first + width;
      };
      set_gradients(full, dq, dm);
      attention_backward<float>(device, full, kept, {out.view()}, {full_arrived.view()});
      const MaybeRounded<float> out_stored =
          weights ? MaybeRounded<float>{out.view()} : MaybeRounded<float>{{}, out_rounded.view()};
      set_gradients(stored, dq_of_stored, dm_of_stored);
      attention_backward<float>(
          device, stored, kept, out_stored,
          weights ? MaybeRounded<float>{full_arrived.view()} : MaybeRounded<float>{{}, arrived.view()});
      CHECK(dq_of_stored.values == dq.values);
      CHECK(dm_of_stored.values == dm.values);
      if (weights) continue;
      TestTensor<Bfloat16> dq_rounded = rounded(dq), dm_rounded = rounded(dm);
      for (Bfloat16& value : dq_rounded.values) value = Bfloat16{};
      for (std::size_t i = 0; i < dm_rounded.values.size(); ++i)
        if (const std::size_t c = i % static_cast<std::size_t>(stride);
            c >= static_cast<std::size_t>(first) && c < static_cast<std::size_t>(first + 2 * width))
          dm_rounded.values[i] = Bfloat16{};
      stored.query_gradient = stored.key_gradient = stored.value_gradient = nullptr;
      stored.rounded.query_gradient = dq_rounded.values.data();
      stored.rounded.key_gradient = dm_rounded.values.data() + first;
      stored.rounded.value_gradient = dm_rounded.values.data() + first + width;
      attention_backward<float>(device, stored, kept, out_stored, {{}, arrived.view()});
      CHECK(dq_rounded.values == rounded(dq).values);
      CHECK(dm_rounded.values == rounded(dm).values);
    }
}

}  // namespace
}  // namespace heed
