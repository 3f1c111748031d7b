#include "heed/nn/padded_attention.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "heed/base/error.h"
#include "heed/nn/multi_head_attention.h"
#include "heed/ops/arithmetic.h"
#include "network.h"
#include "op_test.h"

using namespace heed;
using nlohmann::json;

namespace {

/// The numbers of scripts/reference/make_attention_reference.py: element i of the tensor `name`.
class Formula {
 public:
  explicit Formula(const json& reference) : names_(reference.at("tensors").get<std::vector<std::string>>()) {}

  template <class T>
  void fill(const std::string& name, Tensor<T> tensor) const {
    const auto j = std::find(names_.begin(), names_.end(), name) - names_.begin();
    REQUIRE(j < std::ssize(names_));
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      tensor[i] = static_cast<T>(0.8 * std::sin(1 + 0.7 * static_cast<double>(j) + 0.91 * static_cast<double>(i)));
  }

 private:
  std::vector<std::string> names_;
};

/// Checks numbers against the integers of the reference, which are the numbers times 1e8.
template <class T>
void check_close(const std::string& what, Tensor<T> actual, const json& expected) {
  INFO(what);
  REQUIRE(actual.size() == static_cast<std::int64_t>(expected.size()));
  double worst = 0;
  for (std::int64_t i = 0; i < actual.size(); ++i)
    worst = std::max(
        worst, std::abs(static_cast<double>(actual[i]) - expected[static_cast<std::size_t>(i)].get<double>() * 1e-8));
  CHECK(worst < (sizeof(T) == 4 ? 5e-6 : 1e-8));
}

/// Computes one case of the reference and checks output, weights and all gradients.
template <class T>
void check_case(const json& reference, const json& test) {
  const auto chosen = test.at("options").get<std::set<std::string>>();
  const auto has = [&](const char* option) { return chosen.contains(option); };
  const Formula formula(reference);
  const json& sizes = reference.at("sizes");
  const std::int64_t B = sizes["B"], T_ = sizes["T"], S = sizes["S"], E = sizes["E"], H = sizes["H"];
  const std::int64_t key_width = has("widths") ? sizes["key"].get<std::int64_t>() : E;
  const std::int64_t value_width = has("widths") ? sizes["value"].get<std::int64_t>() : E;

  Network<T> net;
  PaddedAttentionOptions options{.width = E, .heads = static_cast<int>(H), .bias = !has("no_bias")};
  options.appended_bias = has("appended_bias");
  options.appended_zeros = has("appended_zeros");
  if (has("widths")) {
    options.key_width = key_width;
    options.value_width = value_width;
  }
  const PaddedMultiHeadAttention layer(net.layout, "layer", options);
  net.begin();
  Graph<T>& graph = *net.graph;
  const std::string prefix = "layer/";
  for (int j = 0; j < std::ssize(net.layout.all()); ++j)
    formula.fill(net.layout[{j}].name.substr(prefix.size()), (*net.values)[{j}]);
  std::map<std::string, Variable<T>> inputs;
  for (const auto& [name, shape] : {std::pair<std::string, Shape>{"query", {B, T_, E}},
                                    {"key", {B, S, key_width}},
                                    {"value", {B, S, value_width}}}) {
    inputs[name] = graph.input(net.arena.template tensor<T>(shape), true);
    formula.fill(name, inputs[name].value);
  }

  PaddedAttentionMasks<T> masks;
  std::vector<std::uint8_t> padding(static_cast<std::size_t>(B * S)), hidden;
  padding.back() = 1;
  const bool per_head = has("hidden_per_head") || has("additive_per_head");
  const Shape shape = per_head ? Shape{B * H, T_, S} : Shape{T_, S};
  for (std::int64_t i = 0; i < shape.size(); ++i) hidden.push_back(i % 5 == 1);
  const Tensor<T> additive = net.arena.template tensor<T>(shape), key_additive = net.arena.template tensor<T>({B, S});
  formula.fill("additive", additive);
  formula.fill("additive_key_padding", key_additive);
  for (std::int64_t i = 0; i < shape.size(); ++i)
    if (i % 5 == 1) additive[i] = -std::numeric_limits<T>::infinity();
  if (has("key_padding")) masks.key_padding = {padding.data(), {B, S}};
  if (has("additive_key_padding")) masks.additive_key_padding = {key_additive.data(), {B, S}};
  if (has("hidden") || has("hidden_per_head")) masks.hidden = {hidden.data(), shape};
  if (has("additive") || has("additive_per_head")) masks.additive = {additive.data(), shape};
  masks.causal = has("causal");

  const auto result = layer(graph, inputs["query"], inputs["key"], inputs["value"], masks,
                            has("per_head") ? WantedWeights::per_head : WantedWeights::averaged);
  CHECK(result.output.shape() == Shape{B, T_, E});
  const std::int64_t all_keys = S + has("appended_bias") + has("appended_zeros");
  CHECK(result.weights.shape() == (has("per_head") ? Shape{B, H, T_, all_keys} : Shape{B, T_, all_keys}));
  check_close("output", result.output.value, test.at("output"));
  check_close("weights", result.weights.value, test.at("weights"));

  const auto dot_formula = [&](const Variable<T>& x, const char* name) {
    const Variable<T> factors = graph.input(net.arena.template tensor<T>(x.shape()));
    formula.fill(name, factors.value);
    return sum(graph, multiply(graph, x, factors));
  };
  graph.backward(
      add(graph, dot_formula(result.output, "output gradient"), dot_formula(result.weights, "weights gradient")));
  std::size_t compared = 0;
  for (const auto& [name, expected] : test.at("gradients").items()) {
    ++compared;
    if (inputs.contains(name)) {
      check_close(name, inputs[name].gradient.sum(), expected);
    } else {
      const ParameterId id = net.layout.find(prefix + name);
      INFO(name);
      REQUIRE(id);
      check_close(name, (*net.gradients)[id], expected);
    }
  }
  CHECK(compared == inputs.size() + net.layout.all().size());
}

/// Returns the numbers of a tensor.
template <class T>
std::vector<T> tensor_numbers(const Tensor<T>& x) {
  return {x.span().begin(), x.span().end()};
}

}  // namespace

TEST_CASE("PaddedMultiHeadAttention: each option and each pair of options as torch.nn.MultiheadAttention") {
  std::ifstream in(std::string(HEED_TEST_DATA) + "/nn/reference/multihead_attention.json");
  const json reference = json::parse(in);
  CHECK(reference.at("cases").size() == 68);
  for (const json& test : reference.at("cases")) {
    INFO("options ", test.at("options").dump());
    check_case<double>(reference, test);
    check_case<float>(reference, test);
  }
}

TEST_CASE("PaddedMultiHeadAttention: without padding as MultiHeadAttention, whose batches are packed") {
  Network<double> net;
  const MultiHeadAttention packed(net.layout, "packed", 6, 3, 0);
  const PaddedMultiHeadAttention padded(net.layout, "padded", {.width = 6, .heads = 3});
  net.begin();
  for (const char* name : {"query/weight", "key/weight", "value/weight", "output/weight"}) {
    const Tensor<double> from = (*net.values)[net.layout.find(std::string("packed/") + name)];
    std::copy_n(from.data(), from.size(), (*net.values)[net.layout.find(std::string("padded/") + name)].data());
  }
  const auto x = net.input({2, 4, 6});
  const std::vector<std::int32_t> offsets{0, 4, 8};
  for (const bool causal : {false, true}) {
    const auto a = packed.self_attention(*net.graph, {Tensor<double>(x.value.data(), {8, 6}), {}}, {offsets}, causal);
    const auto b = padded(*net.graph, x, x, x, {.causal = causal}).output;
    for (std::int64_t i = 0; i < 48; ++i) CHECK(a.value[i] == doctest::Approx(b.value[i]).epsilon(1e-12));
  }
}

TEST_CASE("PaddedMultiHeadAttention: a query that sees no key gets zeros; valid lengths hide as key padding does") {
  Network<double> net;
  const PaddedMultiHeadAttention layer(net.layout, "layer", {.width = 4, .heads = 2});
  net.begin();
  for (double& x : (*net.values)[net.layout.find("layer/output/bias")].span()) x = 0.5;
  const auto q = net.input({2, 3, 4}), k = net.input({2, 5, 4});
  const std::vector<std::int32_t> lengths{0, 4};
  const auto result = layer(*net.graph, q, k, k, {.valid_lengths = lengths});
  for (std::int64_t i = 0; i < 15; ++i) CHECK(result.weights.value[i] == 0);
  for (std::int64_t i = 0; i < 12; ++i) CHECK(result.output.value[i] == 0.5);
  const std::vector<std::uint8_t> padding{1, 1, 1, 1, 1, 0, 0, 0, 0, 1};
  const auto padded = layer(*net.graph, q, k, k, {.key_padding = {padding.data(), {2, 5}}});
  CHECK(tensor_numbers(padded.output.value) == tensor_numbers(result.output.value));
  CHECK(result.weights.value.row(5)[4] == 0);
  CHECK(result.weights.value.row(5)[3] > 0);
  // One length for each query.
  const std::vector<std::int32_t> of_queries{5, 1, 5, 5, 5, 2};
  const auto single = layer(*net.graph, q, k, k, {.valid_lengths = of_queries}, WantedWeights::per_head);
  CHECK(single.weights.value.row(1)[0] == 1);
  CHECK(single.weights.value.row(4)[0] == 1);
  CHECK(single.weights.value.row(0)[4] > 0);
  CHECK(single.weights.value.row(11)[2] == 0);
}

TEST_CASE("PaddedMultiHeadAttention: dropout in training alone, and in the weights that the caller gets") {
  for (const bool training : {true, false}) {
    Network<float> net;
    const PaddedMultiHeadAttention layer(net.layout, "layer", {.width = 8, .heads = 4, .dropout = 0.25});
    const PaddedMultiHeadAttention without(net.layout, "without", {.width = 8, .heads = 4});
    net.begin(training);
    for (int j = 0; j < 8; ++j)
      std::copy_n((*net.values)[{j}].data(), (*net.values)[{j}].size(), (*net.values)[{j + 8}].data());
    const auto x = net.input({3, 16, 8});
    const auto dropped = layer(*net.graph, x, x, x, {}, WantedWeights::per_head).weights.value;
    const auto whole = without(*net.graph, x, x, x, {}, WantedWeights::per_head).weights.value;
    int zeros = 0;
    for (std::int64_t i = 0; i < whole.size(); ++i) {
      if (dropped[i] == 0)
        ++zeros;
      else
        CHECK(dropped[i] == doctest::Approx(whole[i] / (training ? 0.75F : 1)).epsilon(1e-5));
    }
    CHECK(whole.size() == 3072);
    CHECK(zeros > (training ? 600 : -1));
    CHECK(zeros < (training ? 940 : 1));
  }
}

TEST_CASE("PaddedMultiHeadAttention: no weights where the caller wants none") {
  Network<float> net;
  const PaddedMultiHeadAttention layer(net.layout, "layer", {.width = 4, .heads = 2});
  net.begin();
  const auto x = net.input({1, 3, 4});
  CHECK_FALSE(layer(*net.graph, x, x, x, {}, WantedWeights::none).weights);
}

TEST_CASE("DotProductAttention: the example of d2l, where equal keys share the weight of the valid keys") {
  Network<double> net;
  net.begin();
  const DotProductAttention attention(0.5);
  Graph<double> graph(net.device, *net.values);  // for inference: no dropout
  const auto queries = net.input({2, 1, 2});
  const Tensor<double> keys = net.arena.tensor<double>({2, 10, 2}), values = net.arena.tensor<double>({2, 10, 4});
  for (double& x : keys.span()) x = 1;
  for (std::int64_t i = 0; i < 80; ++i) values[i] = static_cast<double>(i % 40);
  const std::vector<std::int32_t> valid{2, 6};
  const auto result = attention(graph, queries, graph.input(keys), graph.input(values), valid);
  const std::vector<double> expected{2, 3, 4, 5, 10, 11, 12, 13};
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(result.output.value[static_cast<std::int64_t>(i)] == doctest::Approx(expected[i]));
  CHECK(result.weights.value.row(0)[1] == doctest::Approx(0.5));
  CHECK(result.weights.value.row(0)[2] == 0);
  CHECK(result.weights.value.row(1)[5] == doctest::Approx(1.0 / 6));
}

TEST_CASE("DotProductAttention: gradients with valid lengths and dropout, of outputs and weights") {
  static const std::vector<std::int32_t> of_sequences{2, 4}, of_queries{1, 4, 3, 0, 2, 4};
  for (const auto& lengths : {std::span<const std::int32_t>(of_sequences), std::span<const std::int32_t>(of_queries)}) {
    require_gradients({{2, 3, 5}, {2, 4, 5}, {2, 4, 6}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      const auto y = DotProductAttention(0.3)(graph, in[0], in[1], in[2], lengths);
      return add(graph, sum(graph, y.output), sum(graph, multiply(graph, y.weights, y.weights)));
    });
  }
}

TEST_CASE("AdditiveAttention: its formula, with queries and keys of different widths") {
  Network<double> net;
  const AdditiveAttention attention(net.layout, "attention", 5, 3, 4, 0);
  net.begin(false);
  const auto q = net.input({2, 3, 5}), k = net.input({2, 4, 3}), v = net.input({2, 4, 6});
  const std::vector<std::int32_t> valid{4, 2};
  const auto result = attention(*net.graph, q, k, v, valid);
  CHECK(result.output.shape() == Shape{2, 3, 6});
  const auto parameter = [&](const char* name) { return (*net.values)[net.layout.find(name)]; };
  const auto wq = parameter("attention/query/weight"), wk = parameter("attention/key/weight"),
             scorer = parameter("attention/scorer/weight");
  CHECK(wq.shape() == Shape{4, 5});
  CHECK(wk.shape() == Shape{4, 3});
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t i = 0; i < 3; ++i) {
      std::vector<double> p;
      double sum = 0;
      for (std::int64_t j = 0; j < valid[static_cast<std::size_t>(b)]; ++j) {
        double score = 0;
        for (std::int64_t h = 0; h < 4; ++h) {
          double z = 0;
          for (std::int64_t c = 0; c < 5; ++c) z += wq.row(h)[c] * q.value.row(b * 3 + i)[c];
          for (std::int64_t c = 0; c < 3; ++c) z += wk.row(h)[c] * k.value.row(b * 4 + j)[c];
          score += scorer[h] * std::tanh(z);
        }
        p.push_back(std::exp(score));
        sum += p.back();
      }
      for (std::int64_t c = 0; c < 6; ++c) {
        double expected = 0;
        for (std::size_t j = 0; j < p.size(); ++j)
          expected += p[j] / sum * v.value.row(b * 4 + static_cast<std::int64_t>(j))[c];
        CHECK(result.output.value.row(b * 3 + i)[c] == doctest::Approx(expected).epsilon(1e-12));
      }
    }
}

TEST_CASE("AdditiveAttention: gradients of the parameters as finite differences") {
  Network<double> net;
  const AdditiveAttention attention(net.layout, "attention", 5, 3, 4, 0);
  net.begin();
  const auto q = net.input({2, 3, 5}), k = net.input({2, 4, 3}), v = net.input({2, 4, 6});
  const std::vector<std::int32_t> valid{4, 2};
  const auto loss = [&] {
    const auto y = attention(*net.graph, q, k, v, valid).output;
    return sum(*net.graph, multiply(*net.graph, y, y));
  };
  check_parameter_gradients(net, loss);
}

TEST_CASE("padded attention: wrong sizes are named, with what to do") {
  ParameterLayout layout;
  const auto create = [&](const PaddedAttentionOptions& options) {
    PaddedMultiHeadAttention(layout, "layer", options);
  };
  CHECK_THROWS_WITH_AS(
      create({.width = 6, .heads = 4}),
      "layer: 4 heads do not divide the width of 6 (choose a width that is a multiple of the number of "
      "heads)",
      Error);
  CHECK_THROWS_WITH_AS(
      create({.width = 6, .heads = 0}),
      "layer: 0 heads do not divide the width of 6 (choose a width that is a multiple of the number of "
      "heads)",
      Error);
  CHECK_THROWS_WITH_AS(create({.heads = 1}), "layer: the width is 0 (choose a width of 1 or more)", Error);
  CHECK_THROWS_WITH_AS(create({.width = 6, .heads = 2, .dropout = 1.5}),
                       "layer: a dropout of 1.500000 is not a probability (choose one from 0 to 1)", Error);
  CHECK_THROWS_WITH_AS(create({.width = 6, .key_width = -2}),
                       "layer: the width of the keys is -2 (choose a width of 1 or more)", Error);
  CHECK_THROWS_WITH_AS(AdditiveAttention(layout, "additive", 3, 4, 0, 0),
                       "additive: the width of the hidden layer is 0 (choose a width of 1 or more)", Error);
  CHECK_THROWS_WITH_AS(DotProductAttention(-0.1),
                       "DotProductAttention: a dropout of -0.100000 is not a probability (choose one from 0 to 1)",
                       Error);
  CHECK(layout.all().empty());  // a wrong layer adds no parameters
}

TEST_CASE("padded attention: wrong shapes are named, with what to do") {
  Network<float> net;
  const PaddedMultiHeadAttention layer(net.layout, "layer", {.width = 4, .heads = 2, .key_width = 6});
  const AdditiveAttention additive(net.layout, "additive", 4, 6, 3, 0);
  net.begin();
  Graph<float>& graph = *net.graph;
  const auto q = net.input({2, 3, 4}), k = net.input({2, 5, 6}), v = net.input({2, 5, 4});
  const auto multi_head = [&](const Variable<float>& query, const Variable<float>& key, const Variable<float>& value,
                              const PaddedAttentionMasks<float>& masks = {}) {
    layer(graph, query, key, value, masks);
  };
  CHECK_THROWS_WITH_AS(
      multi_head(k, k, v),
      "PaddedMultiHeadAttention: the argument `query` has shape [2, 5, 6] but must have shape [B, T, 4] "
      "(sequences are the first dimension, positions the second)",
      Error);
  CHECK_THROWS_WITH_AS(
      multi_head(q, v, v),
      "PaddedMultiHeadAttention: the argument `key` has shape [2, 5, 4] but must have shape [2, S, 6], "
      "because `query` has shape [2, 3, 4] (sequences are the first dimension, positions the second)",
      Error);
  CHECK_THROWS_WITH_AS(
      multi_head(q, k, q),
      "PaddedMultiHeadAttention: the argument `value` has shape [2, 3, 4] but must have shape [2, 5, 4], "
      "because `key` has shape [2, 5, 6] (sequences are the first dimension, positions the second)",
      Error);
  CHECK_THROWS_WITH_AS(
      DotProductAttention(0)(graph, q, k, v),
      "DotProductAttention: the argument `keys` has shape [2, 5, 6] but must have shape [2, S, 4], "
      "because `queries` has shape [2, 3, 4] (sequences are the first dimension, positions the second)",
      Error);
  CHECK_THROWS_WITH_AS(DotProductAttention(0)(graph, q, v, q),
                       "DotProductAttention: the argument `values` has shape [2, 3, 4] but must have shape [2, 5, "
                       "width], because `keys` has shape [2, 5, 4] (sequences are the first dimension, positions the "
                       "second)",
                       Error);
  CHECK_THROWS_WITH_AS(
      additive(graph, v, v, v),
      "AdditiveAttention: the argument `keys` has shape [2, 5, 4] but must have shape [2, S, 6], "
      "because `queries` has shape [2, 5, 4] (sequences are the first dimension, positions the second)",
      Error);

  const std::vector<std::uint8_t> bytes(100);
  const std::vector<float> floats(100);
  CHECK_THROWS_WITH_AS(multi_head(q, k, v, {.key_padding = {bytes.data(), {2, 3}}}),
                       "PaddedMultiHeadAttention: the mask `key_padding` has shape [2, 3] but must have shape [2, 5] "
                       "(sequences, keys)",
                       Error);
  CHECK_THROWS_WITH_AS(multi_head(q, k, v, {.additive_key_padding = {floats.data(), {5, 2}}}),
                       "PaddedMultiHeadAttention: the mask `additive_key_padding` has shape [5, 2] but must have shape "
                       "[2, 5] (sequences, keys)",
                       Error);
  CHECK_THROWS_WITH_AS(multi_head(q, k, v, {.hidden = {bytes.data(), {5, 3}}}),
                       "PaddedMultiHeadAttention: the mask `hidden` has shape [5, 3] but must have shape [3, 5] "
                       "(queries, keys) or [4, 3, 5] (sequences times heads, queries, keys)",
                       Error);
  CHECK_THROWS_WITH_AS(multi_head(q, k, v, {.additive = {floats.data(), {2, 3, 5}}}),
                       "PaddedMultiHeadAttention: the mask `additive` has shape [2, 3, 5] but must have shape [3, 5] "
                       "(queries, keys) or [4, 3, 5] (sequences times heads, queries, keys)",
                       Error);
  const std::vector<std::int32_t> three{1, 2, 3}, long_one{1, 6};
  CHECK_THROWS_WITH_AS(DotProductAttention(0)(graph, q, v, v, three),
                       "DotProductAttention: the argument `valid_lengths` has 3 numbers for 2 sequences of 3 queries "
                       "(give 2, one for each sequence, or 6, one for each query)",
                       Error);
  CHECK_THROWS_WITH_AS(multi_head(q, k, v, {.valid_lengths = long_one}),
                       "PaddedMultiHeadAttention: `valid_lengths` has the number 6, but a sequence has 5 keys (give "
                       "numbers from 0 to 5)",
                       Error);
}
