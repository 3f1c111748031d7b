#include "heed/ops/attention.h"

#include <cmath>
#include <numeric>

#include "attention_case.h"
#include "heed/base/error.h"
#include "heed/ops/arithmetic.h"
#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

namespace {

/// Computes multi-head attention by its definition, one query at a time, in double.
template <class T>
ExpectedAttention plain_attention(Tensor<T> query, Tensor<T> key, Tensor<T> value, const Offsets& queries,
                                  const Offsets& keys, int heads, bool causal) {
  const std::int64_t width = query.columns(), d = width / heads;
  ExpectedAttention e;
  e.out.resize(static_cast<std::size_t>(query.size()));
  for (std::size_t b = 0; b + 1 < queries.size(); ++b)
    for (int h = 0; h < heads; ++h)
      for (std::int64_t i = queries[b]; i < queries[b + 1]; ++i) {
        std::vector<double> p;
        for (std::int64_t j = keys[b]; j < keys[b + 1]; ++j) {
          double s = 0;
          for (std::int64_t c = h * d; c < (h + 1) * d; ++c) s += double(query.row(i)[c]) * double(key.row(j)[c]);
          const bool seen = !causal || j - keys[b] <= i - queries[b];
          p.push_back(seen ? std::exp(s / std::sqrt(static_cast<double>(d))) : 0);
        }
        const double sum = std::accumulate(p.begin(), p.end(), 0.0);
        for (std::size_t j = 0; j < p.size(); ++j) {
          e.weights.push_back(p[j] / sum);
          for (std::int64_t c = h * d; c < (h + 1) * d; ++c)
            e.out[static_cast<std::size_t>(i * width + c)] +=
                p[j] / sum * double(value.row(keys[b] + static_cast<std::int64_t>(j))[c]);
        }
      }
  return e;
}

template <class T>
void require_close(Tensor<T> actual, const std::vector<double>& expected, double bound) {
  REQUIRE(static_cast<std::size_t>(actual.size()) == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::abs(double(actual.data()[i]) - expected[i]));
  CHECK(worst < bound);
}

}  // namespace

TEST_CASE("attention: gradients of a fused self-attention, with and without the causal mask and dropout") {
  static const Offsets offsets{0, 3, 3, 4, 9};
  for (const int heads : {1, 2, 3})
    for (const bool causal : {false, true})
      for (const double dropout : {0.0, 0.4})
        require_gradients({{9, 18}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
          return attention<double>(graph, {in[0], 0}, {in[0], 6}, {in[0], 12}, 6, {offsets}, {offsets},
                                   {heads, causal, dropout});
        });
}

TEST_CASE("attention: gradients of a cross-attention, other columns around the slices, an empty source") {
  static const Offsets queries{0, 4, 5, 7}, keys{0, 2, 2, 7};
  require_gradients({{7, 9}, {7, 10}, {7, 8}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
    return attention<double>(graph, {in[0], 1}, {in[1], 2}, {in[2], 0}, 8, {queries}, {keys}, {4, false, 0.3});
  });
}

TEST_CASE("attention: gradients of sequences longer than a block of queries") {
  static const Offsets offsets = ends({50, 1});
  for (const bool causal : {false, true})
    require_gradients(
        {{51, 6}},
        [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
          return attention<double>(graph, {in[0], 0}, {in[0], 2}, {in[0], 4}, 2, {offsets}, {offsets},
                                   {1, causal, 0.2});
        },
        1e-7);
}

TEST_CASE("attention: gradients of attention weights that another op reads, with and without the causal mask") {
  static const Offsets offsets{0, 3, 3, 4, 9};
  for (const int heads : {1, 2, 3})
    for (const bool causal : {false, true})
      require_gradients({{9, 18}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
        const auto weights = attention_weights<double>(graph, {offsets}, {offsets}, heads);
        const auto y = attention<double>(graph, {in[0], 0}, {in[0], 6}, {in[0], 12}, 6, {offsets}, {offsets},
                                         {heads, causal, 0.4}, weights);
        return add(graph, sum(graph, multiply(graph, y, y)), sum(graph, multiply(graph, weights, weights)));
      });
}

TEST_CASE("attention: as PyTorch") {
  for_each_torch_case("attention", [](auto& test, const auto& data) {
    const auto& options = data["options"];
    const auto queries = options["queries"].template get<Offsets>(), keys = options["keys"].template get<Offsets>();
    const auto query = test.input("query"), key = test.input("key"), value = test.input("value");
    test.check(attention(test.graph(), {query}, {key}, {value}, query.value.columns(), {queries}, {keys},
                         {options["heads"].template get<int>(), options["causal"].template get<bool>()}));
  });
}

TEST_CASE_TEMPLATE("attention: the definition, every instruction set, head sizes and lengths", T, float, double) {
  for (const int d : {1, 5, 8, 12, 16, 24, 32, 64, 100, 128})
    for (const bool causal : {false, true}) {
      CAPTURE(d);
      CAPTURE(causal);
      const Offsets offsets = ends({14, 1, 0, 17, 7, 100, 16, 49});
      const int heads = d < 64 ? 3 : 1;
      Training<T> t;
      const auto q = t.normal({offsets.back(), heads * d}), k = t.normal(q.shape()), v = t.normal(q.shape());
      const std::int64_t size = attention_weights_size({offsets}, {offsets}, heads);
      const Variable<T> weights = attention_weights(t.graph, {offsets}, {offsets}, heads);
      const auto y = attention<T>(t.graph, {q}, {k}, {v}, heads * d, {offsets}, {offsets}, {heads, causal}, weights);
      const ExpectedAttention e = plain_attention(q.value, k.value, v.value, offsets, offsets, heads, causal);
      const double bound = sizeof(T) == 4 ? 2e-5 : 1e-12;
      require_close(y.value, e.out, bound);
      require_close(Tensor<T>(weights.value.data(), {size}), e.weights, bound);
    }
}

TEST_CASE_TEMPLATE("attention: a sequence by itself has the bits it has in a batch, forward and back", T, float,
                   double) {
  const Offsets queries = ends({5, 30, 1, 14}), keys = ends({9, 2, 3, 60});
  Training<T> t;
  const std::int64_t width = 32;
  const auto q = t.normal({queries.back(), width}), k = t.normal({keys.back(), width}), v = t.normal(k.shape());
  const Tensor<T> dy = t.normal(q.shape()).value;
  t.backward(attention<T>(t.graph, {q}, {k}, {v}, width, {queries}, {keys}, {4}), dy);
  for (std::size_t b = 0; b + 1 < queries.size(); ++b) {
    CAPTURE(b);
    const std::int64_t nq = queries[b + 1] - queries[b], nk = keys[b + 1] - keys[b];
    Training<T> one;
    const auto q1 = one.graph.input(q.value.row_block(queries[b], nq), true);
    const auto k1 = one.graph.input(k.value.row_block(keys[b], nk), true);
    const auto v1 = one.graph.input(v.value.row_block(keys[b], nk), true);
    const Offsets q_end = ends({static_cast<std::int32_t>(nq)}), k_end = ends({static_cast<std::int32_t>(nk)});
    one.backward(attention<T>(one.graph, {q1}, {k1}, {v1}, width, {q_end}, {k_end}, {4}), dy.row_block(queries[b], nq));
    CHECK(largest_difference(q1.gradient.sum(), q.gradient.sum().row_block(queries[b], nq)) == 0);
    CHECK(largest_difference(k1.gradient.sum(), k.gradient.sum().row_block(keys[b], nk)) == 0);
    CHECK(largest_difference(v1.gradient.sum(), v.gradient.sum().row_block(keys[b], nk)) == 0);
  }
}

TEST_CASE("attention: dropout drops about its share, scales the rest, and spares what is traced") {
  const Offsets offsets = ends({40, 40});
  Training<float> t;
  const auto q = t.normal({80, 4}), k = t.normal({80, 4});
  // The value of key j is the unit vector number j. The output of an attention with one head is then the row of
  // attention weights after the dropout.
  const Tensor<float> one_hot = t.arena.zeros<float>({80, 40});
  for (std::int64_t j = 0; j < 80; ++j) one_hot.row(j)[j % 40] = 1;
  const Tensor<float> wide_q = t.arena.zeros<float>({80, 40}), wide_k = t.arena.zeros<float>({80, 40});
  for (std::int64_t i = 0; i < 80; ++i)
    for (std::int64_t c = 0; c < 4; ++c) {
      wide_q.row(i)[c] = q.value.row(i)[c];
      wide_k.row(i)[c] = k.value.row(i)[c];
    }
  const std::int64_t size = attention_weights_size({offsets}, {offsets}, 1);
  const Variable<float> weights = attention_weights(t.graph, {offsets}, {offsets}, 1);
  const auto y = attention<float>(t.graph, {t.graph.input(wide_q)}, {t.graph.input(wide_k)}, {t.graph.input(one_hot)},
                                  40, {offsets}, {offsets}, {1, false, 0.25}, weights);
  int dropped = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const float kept = y.value.data()[i];
    CHECK(weights.value[i] > 0);
    if (kept == 0)
      ++dropped;
    else
      CHECK(kept == doctest::Approx(weights.value[i] / 0.75).epsilon(1e-5));
  }
  CHECK(dropped > 700);
  CHECK(dropped < 900);
}

TEST_CASE("attention: where the probabilities of a head begin") {
  const Offsets queries = ends({2, 0, 3}), keys = ends({4, 5, 1});
  CHECK(attention_weights_size({queries}, {keys}, 2) == 22);
  CHECK(attention_weights_offset({queries}, {keys}, 2, 0, 1) == 8);
  CHECK(attention_weights_offset({queries}, {keys}, 2, 1, 1) == 16);
  CHECK(attention_weights_offset({queries}, {keys}, 2, 2, 1) == 19);
}

TEST_CASE("attention: queries without keys give zeros, an empty batch nothing") {
  Training<float> t;
  const Offsets queries = ends({3}), keys = ends({0}), none = ends({});
  const auto q = t.normal({3, 8}), k = t.normal({0, 8});
  const auto y = attention<float>(t.graph, {q}, {k}, {k}, 8, {queries}, {keys}, {2});
  for (const float x : y.value.span()) CHECK(x == 0);
  CHECK(attention<float>(t.graph, {k}, {k}, {k}, 8, {none}, {none}, {2}).value.size() == 0);
}

namespace {

/// An attention in a training with bfloat16 products: its result, its weights and the gradients of its inputs.
struct RoundedCase {
  RoundedCase(ResultUse use, const Offsets& queries, const Offsets& keys, AttentionOptions options, bool relative) {
    options.use = use;
    t.device.precision = Precision::bfloat16;
    const std::int64_t width = 10 * options.heads;
    inputs = {t.normal({queries.back(), width}), t.normal({keys.back(), width}), t.normal({keys.back(), width})};
    PositionBias<float> positions;
    if (relative) positions = {.relative_keys = t.normal({5, 10}), .relative_values = t.normal({5, 10})};
    const auto p = attention_weights(t.graph, {queries}, {keys}, options.heads);
    const auto y = attention<float>(t.graph, {inputs[0]}, {inputs[1]}, {inputs[2]}, width, {queries}, {keys}, options,
                                    p, positions);
    // The backward pass takes the memory of results.
    weights.assign(p.value.data(), p.value.data() + attention_weights_size({queries}, {keys}, options.heads));
    if (y.value) exact.assign(y.value.data(), y.value.data() + y.value.size());
    if (y.rounded) rounded.assign(y.rounded.data(), y.rounded.data() + y.rounded.size());
    t.backward(y, t.normal({queries.back(), width}).value);
  }

  Training<float> t;
  std::vector<Variable<float>> inputs;
  std::vector<float> weights, exact;
  std::vector<Bfloat16> rounded;
};

}  // namespace

TEST_CASE("attention: a result for linear() alone is rounded where products round it; gradients keep their bits") {
  const Offsets queries = ends({5, 0, 2, 60, 1, 49}), keys = ends({7, 3, 0, 17, 1, 50});
  struct Case {
    Offsets keys;
    AttentionOptions options;
    bool relative;
  };
  for (const auto& [of_keys, options, relative] : {Case{keys, {1, false, 0.0}, false},
                                                   {keys, {3, false, 0.3}, false},
                                                   {queries, {3, true, 0.3}, false},
                                                   {queries, {2, false, 0.0}, true},
                                                   {queries, {2, true, 0.3}, true}}) {
    CAPTURE(options.heads);
    CAPTURE(options.causal);
    CAPTURE(relative);
    const RoundedCase any(ResultUse::any, queries, of_keys, options, relative);
    const RoundedCase one(ResultUse::linear, queries, of_keys, options, relative);
    REQUIRE(any.exact.size() == static_cast<std::size_t>(queries.back() * 10 * options.heads));
    if (takes_bfloat16(Precision::bfloat16)) {
      CHECK(one.exact.empty());
      REQUIRE(one.rounded.size() == any.exact.size());
      for (std::size_t i = 0; i < any.exact.size(); ++i)
        REQUIRE(from_bfloat16(one.rounded[i]) == round_to_bfloat16(any.exact[i]));
    } else {
      CHECK(one.exact == any.exact);
    }
    CHECK(one.weights == any.weights);
    for (std::size_t i = 0; i < any.inputs.size(); ++i)
      CHECK(largest_difference(one.inputs[i].gradient.sum(), any.inputs[i].gradient.sum()) == 0);
  }
}

TEST_CASE("attention: wrong arguments are named") {
  Training<float> t;
  const Offsets four = ends({1, 3}), five = ends({2, 3}), one = ends({4});
  const auto x = t.normal({4, 12}), y = t.normal({5, 12});
  const auto call = [&](const Variable<float>& key, std::int64_t column, const Offsets& keys,
                        AttentionOptions options) {
    attention<float>(t.graph, {x}, {key, column}, {key}, 6, {four}, {keys}, options);
  };
  CHECK_THROWS_WITH_AS(call(y, 0, four, {2}), "internal: attention: key has shape [5, 12], expected [4, 12]", Error);
  CHECK_THROWS_WITH_AS(call(x, 7, four, {2}), "internal: attention: key has shape [4, 12], expected columns 7 to 13",
                       Error);
  CHECK_THROWS_WITH_AS(call(x, 0, four, {4}), "internal: attention: 4 heads do not divide a width of 6", Error);
  CHECK_THROWS_WITH_AS(call(x, 0, one, {2}), "internal: attention: queries of 2 sequences, keys of 1", Error);
  CHECK_THROWS_WITH_AS(call(y, 0, five, {2, true}),
                       "internal: attention: causal, but sequence 0 has 1 queries and 2 keys", Error);
}
