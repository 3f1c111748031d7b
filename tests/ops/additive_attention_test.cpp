#include "heed/ops/additive_attention.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "attention_case.h"
#include "heed/base/error.h"
#include "heed/ops/arithmetic.h"
#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

namespace {

/// Checks the output and the attention weights of additive attention against its definition, one query at a time, in
/// double.
template <class T>
void require_definition(Tensor<T> query, Tensor<T> key, Tensor<T> value, Tensor<T> scorer, const Offsets& queries,
                        const Offsets& keys, int heads, bool causal, Tensor<T> out, const T* weights) {
  const double bound = sizeof(T) == 4 ? 2e-5 : 1e-12;
  const std::int64_t width = query.columns(), d = width / heads;
  double worst = 0;
  for (std::size_t b = 0; b + 1 < queries.size(); ++b)
    for (int h = 0; h < heads; ++h)
      for (std::int64_t i = queries[b]; i < queries[b + 1]; ++i) {
        std::vector<double> p;
        for (std::int64_t j = keys[b]; j < keys[b + 1]; ++j) {
          double s = 0;
          for (std::int64_t c = h * d; c < (h + 1) * d; ++c)
            s += double(scorer[c]) * std::tanh(double(query.row(i)[c]) + double(key.row(j)[c]));
          p.push_back(!causal || j - keys[b] <= i - queries[b] ? std::exp(s) : 0);
        }
        const double sum = std::accumulate(p.begin(), p.end(), 0.0);
        for (double& x : p) worst = std::max(worst, std::abs((x /= sum) - double(*weights++)));
        for (std::int64_t c = h * d; c < (h + 1) * d; ++c) {
          double y = 0;
          for (std::size_t j = 0; j < p.size(); ++j)
            y += p[j] * double(value.row(keys[b] + static_cast<std::int64_t>(j))[c]);
          worst = std::max(worst, std::abs(y - double(out.row(i)[c])));
        }
      }
  CHECK(worst < bound);
}

/// Multiplies the rows first, first + step, ... of a matrix by `factor`.
template <class T>
void scale_rows(Tensor<T> matrix, std::int64_t first, std::int64_t step, T factor) {
  for (std::int64_t r = first; r < matrix.rows(); r += step)
    for (std::int64_t c = 0; c < matrix.columns(); ++c) matrix.row(r)[c] *= factor;
}

}  // namespace

TEST_CASE("additive_attention: gradients of a fused self-attention, with and without the causal mask and dropout") {
  static const Offsets offsets{0, 3, 3, 4, 9};
  for (const int heads : {1, 2, 3})
    for (const bool causal : {false, true})
      for (const double dropout : {0.0, 0.4})
        require_gradients({{9, 18}, {6}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
          return additive_attention<double>(graph, {in[0], 0}, {in[0], 6}, {in[0], 12}, in[1], 6, {offsets}, {offsets},
                                            {heads, causal, dropout});
        });
}

TEST_CASE("additive_attention: gradients of a cross-attention, other columns around the slices, an empty source") {
  static const Offsets queries{0, 4, 5, 7}, keys{0, 2, 2, 7};
  require_gradients({{7, 9}, {7, 10}, {7, 8}, {8}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
    return additive_attention<double>(graph, {in[0], 1}, {in[1], 2}, {in[2], 0}, in[3], 8, {queries}, {keys},
                                      {4, false, 0.3});
  });
}

TEST_CASE("additive_attention: gradients of sequences longer than a block of queries") {
  static const Offsets offsets = ends({50, 1});
  for (const bool causal : {false, true})
    require_gradients(
        {{51, 6}, {2}},
        [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
          return additive_attention<double>(graph, {in[0], 0}, {in[0], 2}, {in[0], 4}, in[1], 2, {offsets}, {offsets},
                                            {1, causal, 0.2});
        },
        1e-7);
}

TEST_CASE("additive_attention: gradients where queries, or keys, are too large for their exponentials") {
  static const Offsets queries = ends({3}), keys = ends({4});
  for (const double of_query : {1.0, 25.0})
    for (const double of_key : {1.0, 25.0})
      require_gradients(
          {{3, 8}, {4, 8}, {4, 8}, {8}},
          [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
            const auto q = multiply(graph, in[0], of_query), k = multiply(graph, in[1], of_key);
            return additive_attention<double>(graph, {q}, {k}, {in[2]}, in[3], 8, {queries}, {keys}, {2});
          },
          1e-6);
}

TEST_CASE("additive_attention: gradients of attention weights that another op reads") {
  static const Offsets queries{0, 4, 5, 7}, keys{0, 2, 2, 7};
  require_gradients({{7, 8}, {7, 8}, {7, 8}, {8}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
    const auto weights = attention_weights<double>(graph, {queries}, {keys}, 4);
    const auto y = additive_attention<double>(graph, {in[0]}, {in[1]}, {in[2]}, in[3], 8, {queries}, {keys},
                                              {4, false, 0.3}, weights);
    return add(graph, sum(graph, multiply(graph, y, y)), sum(graph, multiply(graph, weights, weights)));
  });
}

TEST_CASE("additive_attention: as PyTorch") {
  for_each_torch_case("additive_attention", [](auto& test, const auto& data) {
    const auto& options = data["options"];
    const auto queries = options["queries"].template get<Offsets>(), keys = options["keys"].template get<Offsets>();
    const auto query = test.input("query"), key = test.input("key"), value = test.input("value");
    test.check(additive_attention(test.graph(), {query}, {key}, {value}, test.input("scorer"), query.value.columns(),
                                  {queries}, {keys},
                                  {options["heads"].template get<int>(), options["causal"].template get<bool>()}));
  });
}

TEST_CASE_TEMPLATE("additive_attention: the definition, every instruction set, head sizes and lengths", T, float,
                   double) {
  for (const int d : {1, 3, 5, 8, 16, 24, 64})
    for (const bool causal : {false, true}) {
      CAPTURE(d);
      CAPTURE(causal);
      const Offsets offsets = ends({14, 1, 0, 17, 7, 60, 16, 49});
      const int heads = d < 64 ? 3 : 1;
      Training<T> t;
      const auto q = t.normal({offsets.back(), heads * d}), k = t.normal(q.shape()), v = t.normal(q.shape());
      const auto scorer = t.normal({heads * d});
      const Variable<T> weights = attention_weights(t.graph, {offsets}, {offsets}, heads);
      const auto y = additive_attention<T>(t.graph, {q}, {k}, {v}, scorer, heads * d, {offsets}, {offsets},
                                           {heads, causal}, weights);
      require_definition(q.value, k.value, v.value, scorer.value, offsets, offsets, heads, causal, y.value,
                         weights.value.data());
    }
}

TEST_CASE_TEMPLATE("additive_attention: the definition for large queries and keys that nearly cancel", T, float,
                   double) {
  const Offsets queries = ends({12, 12, 12}), keys = ends({9, 9, 9});
  Training<T> t;
  const auto q = t.normal({36, 16}), k = t.normal({27, 16}), v = t.normal({27, 16}), scorer = t.normal({16});
  scale_rows(q.value, 1, 3, T(40));
  scale_rows(k.value, 9, 2, T(40));
  // In the last sequence, q + k is small although q is near 30 and k near -30.
  for (std::int64_t i = 24; i < 36; ++i) std::fill_n(q.value.row(i), 16, T(30) + static_cast<T>(i) / 8);
  for (std::int64_t j = 18; j < 27; ++j)
    for (std::int64_t c = 0; c < 16; ++c) k.value.row(j)[c] = T(-34) + static_cast<T>(j + c) / 8;
  const Variable<T> weights = attention_weights(t.graph, {queries}, {keys}, 2);
  const auto y = additive_attention<T>(t.graph, {q}, {k}, {v}, scorer, 16, {queries}, {keys}, {2}, weights);
  require_definition(q.value, k.value, v.value, scorer.value, queries, keys, 2, false, y.value, weights.value.data());
}

TEST_CASE_TEMPLATE("additive_attention: a sequence by itself has the bits it has in a batch, forward and back", T,
                   float, double) {
  const Offsets queries = ends({5, 30, 1, 14}), keys = ends({9, 2, 3, 60});
  Training<T> t;
  const std::int64_t width = 32;
  const auto q = t.normal({queries.back(), width}), k = t.normal({keys.back(), width}), v = t.normal(k.shape());
  const auto scorer = t.normal({width});
  scale_rows(q.value, 2, 4, T(30));
  const Tensor<T> dy = t.normal(q.shape()).value;
  t.backward(additive_attention<T>(t.graph, {q}, {k}, {v}, scorer, width, {queries}, {keys}, {4}), dy);
  for (std::size_t b = 0; b + 1 < queries.size(); ++b) {
    CAPTURE(b);
    const std::int64_t nq = queries[b + 1] - queries[b], nk = keys[b + 1] - keys[b];
    Training<T> one;
    const auto q1 = one.graph.input(q.value.row_block(queries[b], nq), true);
    const auto k1 = one.graph.input(k.value.row_block(keys[b], nk), true);
    const auto v1 = one.graph.input(v.value.row_block(keys[b], nk), true);
    const Offsets q_end = ends({static_cast<std::int32_t>(nq)}), k_end = ends({static_cast<std::int32_t>(nk)});
    one.backward(
        additive_attention<T>(one.graph, {q1}, {k1}, {v1}, one.graph.input(scorer.value), width, {q_end}, {k_end}, {4}),
        dy.row_block(queries[b], nq));
    CHECK(largest_difference(q1.gradient.sum(), q.gradient.sum().row_block(queries[b], nq)) == 0);
    CHECK(largest_difference(k1.gradient.sum(), k.gradient.sum().row_block(keys[b], nk)) == 0);
    CHECK(largest_difference(v1.gradient.sum(), v.gradient.sum().row_block(keys[b], nk)) == 0);
  }
}

TEST_CASE_TEMPLATE("additive_attention: a query's result does not depend on the other queries, bit for bit", T, float,
                   double) {
  for (const int d : {3, 16}) {
    const Offsets queries = ends({52}), keys = ends({21}), single = ends({1});
    const std::int64_t width = 2 * d;
    Training<T> t;
    const auto q = t.normal({52, width}), k = t.normal({21, width}), v = t.normal(k.shape());
    const auto scorer = t.normal({width});
    scale_rows(q.value, 5, 7, T(30));  // these rows take another path
    const auto y = additive_attention<T>(t.graph, {q}, {k}, {v}, scorer, width, {queries}, {keys}, {2});
    for (std::int64_t i = 0; i < 52; ++i) {
      const auto alone = additive_attention<T>(t.graph, {t.graph.input(q.value.row_block(i, 1))}, {k}, {v}, scorer,
                                               width, {single}, {keys}, {2});
      CHECK(std::memcmp(alone.value.data(), y.value.row(i), static_cast<std::size_t>(width) * sizeof(T)) == 0);
    }
  }
}

TEST_CASE_TEMPLATE("additive_attention: tanh from its formula to 1e-7, over all sizes of queries and keys", T, float,
                   double) {
  // With two keys, a score of tanh(x) and a score of tanh(0) = 0, log(p / (1 - p)) is tanh(x).
  const Offsets queries = ends({1}), keys = ends({2});
  const double bound = sizeof(T) == 4 ? 4e-7 : 1e-15;
  for (const double of_query : {0.0, 0.7, -3.0, 12.0, 45.0})
    for (double x = -25; x <= 25; x += 0.37) {
      CAPTURE(x);
      Training<T> t;
      const T numbers[] = {static_cast<T>(of_query), static_cast<T>(x - of_query), static_cast<T>(-of_query), 1};
      T* const at = std::copy_n(numbers, 4, t.arena.template tensor<T>({4}).data()) - 4;
      const Variable<T> weights = attention_weights(t.graph, {queries}, {keys}, 1);
      const auto k = t.graph.input(Tensor<T>(at + 1, {2, 1}));
      additive_attention<T>(t.graph, {t.graph.input(Tensor<T>(at, {1, 1}))}, {k}, {k},
                            t.graph.input(Tensor<T>(at + 3, {1})), 1, {queries}, {keys}, {1}, weights);
      const double sum = double(numbers[0]) + double(numbers[1]);
      CHECK(std::abs(std::log(double(weights.value[0]) / double(weights.value[1])) - std::tanh(sum)) < bound);
    }
}

TEST_CASE("additive_attention: a query or a key that is not a number gives no number") {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const Offsets offsets = ends({3});
  for (const bool of_query : {false, true}) {
    Training<float> t;
    const auto q = t.normal({3, 4}), k = t.normal({3, 4}), scorer = t.normal({4});
    (of_query ? q : k).value.row(1)[2] = kNaN;
    const auto y = additive_attention<float>(t.graph, {q}, {k}, {k}, scorer, 4, {offsets}, {offsets}, {1});
    for (std::int64_t i = 0; i < 3; ++i) CHECK(std::isnan(y.value.row(i)[0]) == (!of_query || i == 1));
  }
}

TEST_CASE("additive_attention: dropout as in attention, and not in the weights that are traced") {
  const Offsets offsets = ends({20});
  // The value of key j is the unit vector number j, so that the output is the row of attention weights after dropout.
  Training<float> t, other;
  const auto q = t.normal({20, 20}), k = t.normal({20, 20}), scorer = t.normal({20});
  const Tensor<float> one_hot = t.arena.zeros<float>({20, 20});
  for (std::int64_t j = 0; j < 20; ++j) one_hot.row(j)[j] = 1;
  const auto v = t.graph.input(one_hot);
  const Variable<float> weights = attention_weights(t.graph, {offsets}, {offsets}, 1);
  const auto y =
      additive_attention<float>(t.graph, {q}, {k}, {v}, scorer, 20, {offsets}, {offsets}, {1, false, 0.25}, weights);
  const auto dot = attention<float>(other.graph, {q}, {k}, {v}, 20, {offsets}, {offsets}, {1, false, 0.25});
  for (std::int64_t i = 0; i < 400; ++i) {
    const float weight = weights.value[i];
    CHECK(weight > 0);
    CHECK(y.value[i] == doctest::Approx(dot.value[i] == 0 ? 0 : weight / 0.75).epsilon(1e-5));
  }
}

TEST_CASE("additive_attention: queries without keys give zeros, an empty batch nothing") {
  Training<float> t;
  const Offsets queries = ends({3}), keys = ends({0}), none = ends({});
  const auto q = t.normal({3, 8}), k = t.normal({0, 8}), scorer = t.normal({8});
  const auto y = additive_attention<float>(t.graph, {q}, {k}, {k}, scorer, 8, {queries}, {keys}, {2});
  for (const float x : y.value.span()) CHECK(x == 0);
  CHECK(additive_attention<float>(t.graph, {k}, {k}, {k}, scorer, 8, {none}, {none}, {2}).value.size() == 0);
}

TEST_CASE("additive_attention: wrong arguments are named") {
  Training<float> t;
  const Offsets four = ends({1, 3});
  const auto x = t.normal({4, 6}), short_one = t.normal({5}), scorer = t.normal({6});
  const auto call = [&](const Variable<float>& key, const Variable<float>& v, AttentionOptions options) {
    additive_attention<float>(t.graph, {x}, {key}, {key}, v, 6, {four}, {four}, options);
  };
  CHECK_THROWS_WITH_AS(call(x, short_one, {2}), "internal: additive_attention: scorer has shape [5], expected [6]",
                       Error);
  CHECK_THROWS_WITH_AS(call(x, scorer, {4}), "internal: additive_attention: 4 heads do not divide a width of 6", Error);
  CHECK_THROWS_WITH_AS(call(t.normal({5, 6}), scorer, {2}),
                       "internal: additive_attention: key has shape [5, 6], expected [4, 6]", Error);
}
