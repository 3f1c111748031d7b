// Tests of the terms that positions add to an attention: their bias, and attention() and cached_attention() with them.
#include "heed/ops/position_bias.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>

#include "attention_case.h"
#include "heed/base/error.h"
#include "heed/ops/attention.h"
#include "heed/ops/decode_attention.h"
#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

namespace {

/// The kinds of terms.
enum class Term { alibi, t5, relative };
constexpr Term kTerms[] = {Term::alibi, Term::t5, Term::relative};

/// The learned parameters of the terms, of which each kind takes its own: the table of T5, and relative vectors.
template <class T>
struct Learned {
  Variable<T> table, keys, values;
};

/// Returns random parameters for `heads` heads of d columns: 8 buckets, and distances clipped at `most`.
template <class T>
Learned<T> learned(Training<T>& t, int heads, std::int64_t d, std::int64_t most) {
  return {t.normal({8, heads}), t.normal({2 * most + 1, d}), t.normal({2 * most + 1, d})};
}

template <class T>
PositionBias<T> make(Graph<T>& graph, Term kind, const Learned<T>& learned, int heads, std::int64_t longest,
                     bool causal) {
  if (kind == Term::alibi) return alibi_bias(graph, heads, longest, causal);
  if (kind == Term::t5) return t5_bias(graph, learned.table, longest, causal);
  return {.relative_keys = learned.keys, .relative_values = learned.values};
}

/// Computes self-attention with the terms by its definition, one query at a time, in double: the result [N, D].
template <class T>
std::vector<double> plain_attention(Term kind, const Learned<T>& learned, Tensor<T> query, Tensor<T> key,
                                    Tensor<T> value, const Offsets& offsets, int heads, bool causal,
                                    std::vector<double>& weights) {
  const std::int64_t width = query.columns(), d = width / heads;
  std::vector<double> out(static_cast<std::size_t>(query.size()));
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b)
    for (int h = 0; h < heads; ++h)
      for (std::int64_t i = offsets[b]; i < offsets[b + 1]; ++i) {
        const auto clipped = [&](std::int64_t j) {
          const std::int64_t most = learned.keys.value.rows() / 2;
          return std::clamp(j - i, -most, most) + most;
        };
        std::vector<double> p;
        for (std::int64_t j = offsets[b]; j < offsets[b + 1]; ++j) {
          double s = 0;
          for (std::int64_t c = 0; c < d; ++c) {
            double k = double(key.row(j)[h * d + c]);
            if (kind == Term::relative) k += double(learned.keys.value.row(clipped(j))[c]);
            s += double(query.row(i)[h * d + c]) * k;
          }
          s /= std::sqrt(static_cast<double>(d));
          if (kind == Term::alibi) s -= alibi_slope(h, heads) * static_cast<double>(std::abs(j - i));
          if (kind == Term::t5) s += double(learned.table.value.row(t5_bucket(j - i, 8, causal))[h]);
          p.push_back(causal && j > i ? 0 : std::exp(s));
        }
        const double sum = std::accumulate(p.begin(), p.end(), 0.0);
        for (std::size_t at = 0; at < p.size(); ++at) {
          const std::int64_t j = offsets[b] + static_cast<std::int64_t>(at);
          weights.push_back(p[at] / sum);
          for (std::int64_t c = 0; c < d; ++c) {
            double v = double(value.row(j)[h * d + c]);
            if (kind == Term::relative) v += double(learned.values.value.row(clipped(j))[c]);
            out[static_cast<std::size_t>(i * width + h * d + c)] += p[at] / sum * v;
          }
        }
      }
  return out;
}

}  // namespace

TEST_CASE("position bias: the slopes of ALiBi, also where the heads are not a power of two") {
  for (int h = 0; h < 8; ++h) CHECK(alibi_slope(h, 8) == std::pow(0.5, h + 1));
  for (int h = 0; h < 4; ++h) CHECK(alibi_slope(h, 4) == std::pow(0.25, h + 1));
  CHECK(alibi_slope(0, 1) == std::pow(0.5, 8));
  // As get_slopes(12) of the authors' program.
  const double twelve[] = {0.5,       0.25,       0.125,         0.0625,        0.03125,       0.015625,
                           0.0078125, 0.00390625, 0.70710678118, 0.35355339059, 0.17677669529, 0.08838834764};
  for (int h = 0; h < 12; ++h) CHECK(alibi_slope(h, 12) == doctest::Approx(twelve[h]));
}

TEST_CASE("position bias: T5's buckets are those of Hugging Face") {
  const nlohmann::json reference = torch_reference("position_bias");
  int compared = 0;
  for (const auto& data : reference.at("cases")) {
    if (data.at("name") != "buckets") continue;
    const auto& options = data.at("options");
    std::int64_t distance = options.at("first");
    for (const int bucket : data.at("expected")) {
      CAPTURE(distance);
      CHECK(t5_bucket(distance, options.at("buckets"), options.at("causal")) == bucket);
      ++distance;
      ++compared;
    }
  }
  CHECK(compared == 4 * 301);
}

TEST_CASE("position bias: gradients of attention with each kind of terms, with dropout, in sequences of any length") {
  // Clipped at 2, a sequence of 9 has distances that share a vector on both sides, and one of 3 has none.
  static const Offsets offsets = ends({3, 0, 1, 9});
  for (const bool causal : {false, true})
    for (const double dropout : {0.0, 0.3}) {
      const auto attend = [&](Graph<double>& graph, const Variable<double>& qkv,
                              const PositionBias<double>& positions) {
        return attention<double>(graph, {qkv, 0}, {qkv, 6}, {qkv, 12}, 6, {offsets}, {offsets}, {2, causal, dropout},
                                 {}, positions);
      };
      require_gradients({{13, 18}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
        return attend(graph, in[0], alibi_bias(graph, 2, 12, causal));
      });
      require_gradients({{13, 18}, {8, 2}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
        const PositionBias<double> bias = t5_bias(graph, in[1], 9, causal);
        // Two layers share the bias.
        const Variable<double> y = attend(graph, in[0], bias);
        return attention<double>(graph, {in[0], 0}, {in[0], 6}, {y}, 6, {offsets}, {offsets}, {2, causal, dropout}, {},
                                 bias);
      });
      require_gradients({{13, 18}, {5, 3}, {5, 3}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
        return attend(graph, in[0], {.relative_keys = in[1], .relative_values = in[2]});
      });
    }
}

TEST_CASE("position bias: gradients of sequences longer than a block of queries") {
  static const Offsets offsets = ends({50});
  for (const Term kind : kTerms)
    for (const bool causal : {false, true})
      require_gradients(
          {{50, 6}, {8, 1}, {7, 2}, {7, 2}},
          [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
            return attention<double>(graph, {in[0], 0}, {in[0], 2}, {in[0], 4}, 2, {offsets}, {offsets},
                                     {1, causal, 0.2}, {},
                                     make<double>(graph, kind, {in[1], in[2], in[3]}, 1, 50, causal));
          },
          1e-7);
}

TEST_CASE("position bias: attention as PyTorch") {
  for_each_torch_case("position_bias", [](auto& test, const auto& data) {
    const std::string name = data["name"];
    if (name == "buckets") return;
    const auto& options = data["options"];
    const auto offsets = options["offsets"].template get<Offsets>();
    const int heads = options["heads"];
    const bool causal = options["causal"];
    const auto query = test.input("query"), key = test.input("key"), value = test.input("value");
    using T = std::remove_reference_t<decltype(query.value[0])>;
    PositionBias<T> positions;
    if (name == "alibi") positions = alibi_bias(test.graph(), heads, 7, causal);
    if (name == "t5") positions = t5_bias(test.graph(), test.input("table"), 7, causal);
    if (name == "relative") positions = {.relative_keys = test.input("keys"), .relative_values = test.input("values")};
    test.check(
        attention<T>(test.graph(), {query}, {key}, {value}, 6, {offsets}, {offsets}, {heads, causal}, {}, positions));
  });
}

TEST_CASE_TEMPLATE("position bias: the definition, every instruction set, head sizes, lengths and distances", T, float,
                   double) {
  for (const Term kind : kTerms)
    for (const int most : {1, 7, 16})
      for (const int d : {1, 5, 8, 16, 33, 64})
        for (const bool causal : {false, true}) {
          if (kind != Term::relative && most > 1) continue;
          CAPTURE(static_cast<int>(kind));
          CAPTURE(most);
          CAPTURE(d);
          CAPTURE(causal);
          const Offsets offsets = ends({14, 1, 0, 15, 17, 7, 100, 16, 49});
          const int heads = d < 33 ? 3 : 1;
          Training<T> t;
          const auto q = t.normal({offsets.back(), heads * d}), k = t.normal(q.shape()), v = t.normal(q.shape());
          const Learned<T> parameters = learned(t, heads, d, most);
          const Variable<T> weights = attention_weights(t.graph, {offsets}, {offsets}, heads);
          const auto y = attention<T>(t.graph, {q}, {k}, {v}, heads * d, {offsets}, {offsets}, {heads, causal}, weights,
                                      make(t.graph, kind, parameters, heads, 100, causal));
          std::vector<double> expected;
          const std::vector<double> out =
              plain_attention(kind, parameters, q.value, k.value, v.value, offsets, heads, causal, expected);
          const double bound = sizeof(T) == 4 ? 3e-5 : 1e-12;
          CHECK(worst_difference(y.value, out) < bound);
          CHECK(worst_difference(Tensor<T>(weights.value.data(), {std::ssize(expected)}), expected) < bound);
        }
}

TEST_CASE_TEMPLATE("position bias: a sequence by itself has the bits it has in a batch, forward and back", T, float,
                   double) {
  const Offsets offsets = ends({5, 30, 1, 60});
  const std::int64_t width = 32;
  for (const Term kind : kTerms) {
    CAPTURE(static_cast<int>(kind));
    Training<T> t;
    const auto x = t.normal({offsets.back(), 3 * width});
    const Learned<T> parameters = learned(t, 4, width / 4, 9);
    const Tensor<T> dy = t.normal({offsets.back(), width}).value;
    const auto y = attention<T>(t.graph, {x, 0}, {x, width}, {x, 2 * width}, width, {offsets}, {offsets}, {4}, {},
                                make(t.graph, kind, parameters, 4, 60, false));
    std::vector<T> values(y.value.data(), y.value.data() + y.value.size());
    t.backward(y, dy);
    for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
      CAPTURE(b);
      const std::int64_t n = offsets[b + 1] - offsets[b];
      Training<T> one;
      const auto x1 = one.graph.input(x.value.row_block(offsets[b], n), true);
      const Offsets end = ends({static_cast<std::int32_t>(n)});
      const auto y1 = attention<T>(one.graph, {x1, 0}, {x1, width}, {x1, 2 * width}, width, {end}, {end}, {4}, {},
                                   make(one.graph, kind, parameters, 4, n, false));
      CHECK(std::memcmp(y1.value.data(), values.data() + offsets[b] * width,
                        static_cast<std::size_t>(n * width) * sizeof(T)) == 0);
      one.backward(y1, dy.row_block(offsets[b], n));
      CHECK(largest_difference(x1.gradient.sum(), x.gradient.sum().row_block(offsets[b], n)) == 0);
    }
  }
}

TEST_CASE_TEMPLATE("position bias: step by step over the cache as over the whole sequence; a row alone, the same bits",
                   T, float, double) {
  for (const Term kind : kTerms)
    for (const int d : {5, 16, 64}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(d);
      const int heads = 2, length = 21;
      const std::int64_t width = d * heads, capacity = 24;
      Training<T> t;
      const auto x = t.normal({length, 3 * width});
      const Learned<T> parameters = learned(t, heads, d, 6);
      const Offsets offsets{0, length};
      const Tensor<T> expected = attention<T>(t.graph, {x, 0}, {x, width}, {x, 2 * width}, width, {offsets}, {offsets},
                                              {heads, true}, {}, make(t.graph, kind, parameters, heads, length, true))
                                     .value;
      // Row r of the cache is the first r + 1 tokens. Token t is in slot 20 - t.
      Offsets slots(static_cast<std::size_t>(length * capacity), -1), lengths;
      const Tensor<T> pool = t.arena.template tensor<T>({length, 2 * width});
      for (int r = 0; r < length; ++r) {
        lengths.push_back(r + 1);
        std::copy_n(x.value.row(r) + width, 2 * width, pool.row(length - 1 - r));
        for (int i = 0; i <= r; ++i)
          slots[static_cast<std::size_t>(r) * static_cast<std::size_t>(capacity) + static_cast<std::size_t>(i)] =
              length - 1 - i;
      }
      const auto stride = static_cast<std::int64_t>(2 * width) * static_cast<std::int64_t>(sizeof(T));
      const CachedRows<T> keys{reinterpret_cast<const std::byte*>(pool.data()), stride},
          values{reinterpret_cast<const std::byte*>(pool.data() + width), stride};
      const Tensor<T> out = t.arena.template tensor<T>({length, width}), alone = t.arena.template tensor<T>({width});
      cached_attention<T>(t.device, {x.value.data(), 3 * width}, keys, values, slots, capacity, lengths, heads, width,
                          out.data(), make(t.graph, kind, parameters, heads, length, true));
      CHECK(largest_difference(out, expected) < (sizeof(T) == 4 ? 1e-5 : 1e-12));
      for (int r = 0; r < length; ++r) {
        // Alone, the bias is made for r + 1 tokens only.
        cached_attention<T>(t.device, {x.value.row(r), 3 * width}, keys, values,
                            std::span(slots).subspan(static_cast<std::size_t>(r * capacity)), capacity,
                            std::span(lengths).subspan(static_cast<std::size_t>(r), 1), heads, width, alone.data(),
                            make(t.graph, kind, parameters, heads, r + 1, true));
        CHECK(std::memcmp(alone.data(), out.row(r), static_cast<std::size_t>(width) * sizeof(T)) == 0);
      }
      lengths.assign(1, 0);
      cached_attention<T>(t.device, {x.value.data(), 3 * width}, keys, values, slots, capacity, lengths, heads, width,
                          alone.data(), make(t.graph, kind, parameters, heads, 1, true));
      CHECK(std::all_of(alone.data(), alone.data() + width, [](T y) { return y == 0; }));
    }
}

TEST_CASE("position bias: wrong arguments are named") {
  Training<float> t;
  const Offsets four = ends({1, 3}), other = ends({2, 2});
  const auto x = t.normal({4, 6}), odd = t.normal({4, 3}), three = t.normal({3, 3});
  const auto call = [&](const PositionBias<float>& positions, const Offsets& keys) {
    attention<float>(t.graph, {x}, {x}, {x}, 6, {four}, {keys}, {2}, {}, positions);
  };
  CHECK_THROWS_WITH_AS(call(alibi_bias(t.graph, 2, 3, false), other),
                       "internal: attention: positions, but sequence 0 has 1 queries and 2 keys", Error);
  CHECK_THROWS_WITH_AS(call(alibi_bias(t.graph, 2, 2, false), four),
                       "internal: attention: a sequence of 3 tokens, but a bias for at most 2", Error);
  CHECK_THROWS_WITH_AS(call(alibi_bias(t.graph, 2, 3, true), four),
                       "internal: attention: bias has shape [2, 19], expected [2, 21]", Error);
  CHECK_THROWS_WITH_AS(call({.relative_keys = odd, .relative_values = odd}, four),
                       "internal: attention: 4 relative vectors, expected an odd number from 3 on", Error);
  CHECK_THROWS_WITH_AS(call({.relative_keys = three, .relative_values = odd}, four),
                       "internal: attention: relative_values has shape [4, 3], expected [3, 3]", Error);
  PositionBias<float> both = alibi_bias(t.graph, 2, 3, false);
  both.relative_keys = both.relative_values = three;
  CHECK_THROWS_WITH_AS(call(both, four), "internal: attention: a bias and relative vectors at the same time", Error);
}
