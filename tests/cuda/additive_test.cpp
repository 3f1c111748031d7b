#include "heed/ops/additive_attention.h"
#include "heed/ops/additive_scores.h"
#include "kernel_check.h"

namespace heed {
namespace {

TEST_CASE_TEMPLATE("additive scores on a GPU", T, float, double) {
  const std::vector<std::vector<std::int64_t>> sizes{{3, 7, 5, 33},  {1, 1, 1, 1}, {2, 11, 3, 32}, {1, 2, 33, 31},
                                                     {4, 20, 1, 10}, {2, 3, 0, 4}, {0, 3, 2, 4},   {2, 0, 3, 4}};
  for (const auto& size : sizes) {
    const std::int64_t b = size[0], queries = size[1], keys = size[2], width = size[3];
    CAPTURE(b);
    CAPTURE(queries);
    CAPTURE(keys);
    CAPTURE(width);
    TestTensor<T> query = normal<T>({b, queries, width}, 1), key = normal<T>({b, keys, width}, 2);
    TestTensor<T> scorer = normal<T>({width}, 3), dy = normal<T>({b, queries, keys}, 4);
    if (!query.values.empty()) query.values.back() = 30;  // the tanh is 1
    check_kernels<T>(
        {normal<T>({b, queries, keys}, 5), normal<T>(query.shape, 6), normal<T>(key.shape, 7), normal<T>({width}, 8),
         normal<T>(query.shape, 9), normal<T>(key.shape, 10), normal<T>({width}, 11)},
        [&](auto& device, std::span<const Tensor<T>> to) {
          const auto backward = [&](Tensor<T> dquery, Tensor<T> dkey, Tensor<T> dscorer) {
            additive_scores_backward(device, query.view(), key.view(), scorer.view(), dy.view(), dquery, dkey, dscorer);
          };
          additive_scores_forward(device, query.view(), key.view(), scorer.view(), to[0]);
          backward(to[1], to[2], to[3]);
          backward(to[4], {}, {});
          backward({}, to[5], {});
          backward({}, {}, to[6]);
        });
  }
}

/// The sequences of a packed batch of a test, by their numbers of queries and keys.
struct Batch {
  std::vector<std::int32_t> queries{0}, keys{0};

  explicit Batch(const std::vector<std::pair<std::int32_t, std::int32_t>>& lengths) {
    for (const auto& [of_queries, of_keys] : lengths) {
      queries.push_back(queries.back() + of_queries);
      keys.push_back(keys.back() + of_keys);
    }
  }
};

/// What an additive attention of a test reads. Query, key and value lie within wider matrices.
template <class T>
struct Attention {
  std::int64_t width, size;
  TestTensor<T> query, keys_and_values, scorer, out_gradient, weights, weights_gradient;
  std::vector<std::uint8_t> kept;
  AdditiveAttentionArrays<T> arrays;

  Attention(const Batch& batch, int heads, std::int64_t depth, bool causal, bool dropout) : width(heads * depth) {
    const PackedOffsets queries{batch.queries}, keys{batch.keys};
    size = attention_weights_size(queries, keys, heads);
    query = normal<T>({queries.tokens(), width + 3}, 1);
    keys_and_values = normal<T>({keys.tokens(), 2 * width}, 2);
    scorer = normal<T>({width}, 3);
    out_gradient = normal<T>({queries.tokens(), width}, 4);
    weights_gradient = normal<T>({size + kAttentionSlack}, 5);
    if (!query.values.empty()) query.values[query.values.size() / 2] = 30;
    kept.resize(static_cast<std::size_t>(size + kAttentionSlack));
    fill_dropout_mask(RandomStream(1, RandomUse::dropout), dropout_threshold(0.4), size, kept.data());
    arrays = {.attention = {.query = query.values.data() + 2,
                            .key = keys_and_values.values.data(),
                            .value = keys_and_values.values.data() + width,
                            .query_gradient = nullptr,
                            .key_gradient = nullptr,
                            .value_gradient = nullptr,
                            .overwrite_query_gradient = false,
                            .overwrite_key_gradient = false,
                            .overwrite_value_gradient = false,
                            .query_stride = width + 3,
                            .key_stride = 2 * width,
                            .value_stride = 2 * width,
                            .width = width,
                            .heads = heads,
                            .causal = causal,
                            .queries = queries,
                            .keys = keys,
                            .mask = dropout ? DropoutMask<T>{kept.data(), T(1 / 0.6)} : DropoutMask<T>{}},
              .scorer = scorer.values.data(),
              .scorer_gradient = nullptr};
    // Attention weights of the backward pass, as the forward pass leaves them.
    weights = normal<T>({size + kAttentionSlack}, 6);
    Arena arena;
    CpuContext cpu{arena};
    TestTensor<T> out = normal<T>({queries.tokens(), width}, 7);
    additive_attention_forward(cpu, arrays, weights.values.data(), out.values.data());
  }
};

/// Calls body(attention) for attentions of several sizes, with a causal mask and without, with a dropout and without.
template <class T, class Body>
void for_each_attention(const Body& body) {
  struct Case {
    Batch batch;
    int heads;
    std::int64_t depth;
    bool causal, dropout;
  };
  const Batch many({{2, 3}, {0, 4}, {2, 0}, {1, 1}, {1, 33}, {0, 0}}), square({{3, 3}, {0, 0}, {1, 1}, {5, 5}});
  for (const auto& [batch, heads, depth, causal, dropout] :
       {Case{many, 1, 1, false, true}, Case{many, 2, 32, false, false}, Case{many, 3, 5, false, true},
        Case{many, 1, 130, false, false}, Case{square, 1, 31, true, false}, Case{square, 2, 33, true, true},
        Case{Batch({{34, 2}}), 1, 3, false, false}, Case{Batch({{34, 34}}), 1, 2, true, true},
        Case{Batch({}), 2, 4, false, true}}) {
    CAPTURE(batch.queries.size());
    CAPTURE(heads);
    CAPTURE(depth);
    body(Attention<T>(batch, heads, depth, causal, dropout));
  }
}

TEST_CASE_TEMPLATE("additive attention on a GPU: with and without the weights", T, float, double) {
  for_each_attention<T>([](const Attention<T>& attention) {
    const Shape out = attention.out_gradient.shape;
    check_kernels<T>({normal<T>(attention.weights.shape, 8), normal<T>(out, 9), normal<T>(out, 10)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       additive_attention_forward<T>(device, attention.arrays, to[0].data(), to[1].data());
                       additive_attention_forward<T>(device, attention.arrays, nullptr, to[2].data());
                     });
  });
}

TEST_CASE_TEMPLATE("additive attention on a GPU: gradients", T, float, double) {
  for_each_attention<T>([](const Attention<T>& attention) {
    const std::int64_t width = attention.width;
    const Shape of_query = attention.query.shape, of_keys = attention.keys_and_values.shape;
    // All gradients and only some, added to and overwritten, with and without a gradient of the weights.
    check_kernels<T>(
        {normal<T>(of_query, 10), normal<T>(of_keys, 11), normal<T>({width}, 12), normal<T>(of_query, 13),
         normal<T>(of_keys, 14), normal<T>(of_keys, 15)},
        [&](auto& device, std::span<const Tensor<T>> to) {
          const T *const weights = attention.weights.values.data(), *const dout = attention.out_gradient.values.data();
          AdditiveAttentionArrays<T> all = attention.arrays;
          all.attention.query_gradient = to[0].data() + 2;
          all.attention.key_gradient = to[1].data();
          all.attention.value_gradient = to[1].data() + width;
          all.attention.weights_gradient = attention.weights_gradient.values.data();
          all.scorer_gradient = to[2].data();
          additive_attention_backward(device, all, weights, dout);
          AdditiveAttentionArrays<T> query_and_key = attention.arrays;
          query_and_key.attention.query_gradient = to[3].data() + 2;
          query_and_key.attention.overwrite_query_gradient = true;
          query_and_key.attention.key_gradient = to[4].data();
          query_and_key.attention.overwrite_key_gradient = true;
          additive_attention_backward(device, query_and_key, weights, dout);
          AdditiveAttentionArrays<T> value = attention.arrays;
          value.attention.value_gradient = to[5].data() + width;
          value.attention.overwrite_value_gradient = true;
          additive_attention_backward(device, value, weights, dout);
        });
  });
}

}  // namespace
}  // namespace heed
