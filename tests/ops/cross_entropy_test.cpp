#include "heed/ops/cross_entropy.h"

#include <cmath>
#include <cstring>

#include "heed/base/error.h"
#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

namespace {

using Targets = std::vector<std::int32_t>;

Targets some_targets(std::int64_t rows, std::int64_t vocabulary) {
  Targets targets;
  for (std::int64_t i = 0; i < rows; ++i) targets.push_back(static_cast<std::int32_t>((i * 31 + 5) % vocabulary));
  return targets;
}

}  // namespace

TEST_CASE("cross-entropy: gradients, with and without bias and smoothing, an arriving gradient that is not 1") {
  static const Targets targets{3, 0, 6, 3, 1};
  for (const double smoothing : {0.0, 0.1}) {
    const CrossEntropyOptions options{smoothing, 0.25};
    require_gradients({{5, 4}, {7, 4}, {7}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return projection_cross_entropy(graph, in[0], in[1], in[2], targets, options);
    });
    require_gradients({{5, 4}, {7, 4}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return projection_cross_entropy(graph, in[0], in[1], {}, targets, options);
    });
  }
}

TEST_CASE("cross-entropy of mixed targets: gradients; the sum of the losses of both targets by their shares") {
  static const Targets first{3, 0, 6, 3, 1}, second{3, 2, 0, 1, 6};
  static const std::vector<float> shares{0.25F, 0.5F, 0, 1, 0.125F};
  for (const double smoothing : {0.0, 0.1}) {
    const CrossEntropyOptions options{smoothing, 0.25, second, shares};
    require_gradients({{5, 4}, {7, 4}, {7}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return projection_cross_entropy(graph, in[0], in[1], in[2], first, options);
    });
    Training<double> t;
    const auto h = t.normal({5, 4}), w = t.normal({7, 4}), b = t.normal({7});
    CrossEntropySums mixed;
    projection_cross_entropy(t.graph, h, w, b, first, options, &mixed);
    double expected = 0;
    for (int i = 0; i < 5; ++i) {
      const auto row = static_cast<std::size_t>(i);
      CrossEntropySums of_first, of_second;
      const auto one = t.graph.input(h.value.row_block(i, 1));
      projection_cross_entropy<double>(t.graph, one, w, b, {&first[row], 1}, {smoothing, 0.25}, &of_first);
      projection_cross_entropy<double>(t.graph, one, w, b, {&second[row], 1}, {smoothing, 0.25}, &of_second);
      const auto share = static_cast<double>(shares[row]);
      expected += (1 - share) * of_first.loss + share * of_second.loss;
    }
    CHECK(mixed.loss == doctest::Approx(expected).epsilon(1e-13));
    CHECK(mixed.tokens == 5);
  }
}

TEST_CASE("cross-entropy with soft targets: gradients, one teacher and two of other widths") {
  static const Targets first{3, 0, 6, 3, 1}, second{3, 2, 0, 1, 6};
  static const std::vector<float> shares{0.25F, 0.5F, 0, 1, 0.125F};
  Training<double> other;
  const auto teacher = [&](std::int64_t width, bool bias) {
    return TeacherStates<double>{other.normal({5, width}).value, other.normal({7, width}).value,
                                 bias ? other.normal({7}).value : Tensor<double>()};
  };
  const std::vector<TeacherStates<double>> teachers{teacher(4, true), teacher(6, false)};
  for (const std::size_t count : {1, 2})
    for (const bool mixed : {false, true}) {
      CrossEntropyOptions options{.label_smoothing = 0.1, .scale = 0.25};
      if (mixed) options.second_targets = second;
      if (mixed) options.second_shares = shares;
      std::vector<TeacherStates<double>> on_device;  // until the backward pass
      const auto loss = [&](Graph<double>& graph, const std::vector<Variable<double>>& in, Variable<double> bias) {
        on_device.clear();
        for (const TeacherStates<double>& t : std::span(teachers).first(count))
          on_device.push_back({graph.device().upload(t.hidden), graph.device().upload(t.weight),
                               t.bias ? graph.device().upload(t.bias) : Tensor<double>()});
        return projection_cross_entropy(graph, in[0], in[1], bias, first, options, nullptr, {on_device, 0.7});
      };
      require_gradients({{5, 4}, {7, 4}, {7}}, [&](auto& graph, auto& in) { return loss(graph, in, in[2]); });
      require_gradients({{5, 4}, {7, 4}}, [&](auto& graph, auto& in) { return loss(graph, in, {}); });
    }
}

TEST_CASE("cross-entropy with soft targets: as PyTorch") {
  for_each_torch_case("soft_cross_entropy", [](auto& test, const auto& data) {
    const auto targets = data["options"]["targets"].template get<Targets>();
    const auto hidden = test.input("hidden"), weight = test.input("weight"), bias = test.input("bias");
    const auto constant = [&](const char* name) { return test.tensor(data["inputs"][name]); };
    using T = std::remove_cvref_t<decltype(*constant("first").data())>;
    const std::vector<TeacherStates<T>> teachers{{constant("first"), constant("first_weight"), constant("first_bias")},
                                                 {constant("second"), constant("second_weight"), {}}};
    test.check(projection_cross_entropy(test.graph(), hidden, weight, bias, targets,
                                        {data["options"]["label_smoothing"].template get<double>(), 1}, nullptr,
                                        {teachers, data["options"]["share"].template get<double>()}));
  });
}

TEST_CASE_TEMPLATE("cross-entropy with soft targets: the loss by the definition, in several chunks", T, float, double) {
  constexpr std::int64_t kRows = 150, kVocabulary = 53;
  Training<T> t;
  const auto h = t.normal({kRows, 6}), w = t.normal({kVocabulary, 6}), b = t.normal({kVocabulary});
  const std::vector<TeacherStates<T>> teachers{
      {t.normal({kRows, 5}).value, t.normal({kVocabulary, 5}).value, t.normal({kVocabulary}).value},
      {t.normal({kRows, 9}).value, t.normal({kVocabulary, 9}).value, {}}};
  const Targets targets = some_targets(kRows, kVocabulary);
  // Returns log softmax(h W^T + b) of a row.
  const auto log_softmax = [&](Tensor<T> hidden, Tensor<T> weight, Tensor<T> bias, std::int64_t r) {
    std::vector<double> out;
    double sum = 0;
    for (std::int64_t v = 0; v < kVocabulary; ++v) {
      double logit = bias ? double(bias[v]) : 0;
      for (std::int64_t k = 0; k < weight.columns(); ++k) logit += double(hidden.row(r)[k]) * double(weight.row(v)[k]);
      out.push_back(logit);
      sum += std::exp(logit);
    }
    for (double& x : out) x -= std::log(sum);
    return out;
  };
  double hard = 0, soft = 0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    const auto own = log_softmax(h.value, w.value, b.value, r);
    const auto one = log_softmax(teachers[0].hidden, teachers[0].weight, teachers[0].bias, r),
               two = log_softmax(teachers[1].hidden, teachers[1].weight, teachers[1].bias, r);
    hard -= own[static_cast<std::size_t>(targets[static_cast<std::size_t>(r)])];
    for (std::size_t v = 0; v < own.size(); ++v) soft -= (std::exp(one[v]) + std::exp(two[v])) / 2 * own[v];
  }
  CrossEntropySums sums;
  const auto loss = projection_cross_entropy(t.graph, h, w, b, targets, {0, 0.5}, &sums, {teachers, 0.75});
  const double bound = sizeof(T) == 4 ? 1e-5 : 1e-12;
  CHECK(sums.loss == doctest::Approx(0.25 * hard + 0.75 * soft).epsilon(bound));
  CHECK(double(loss.value[0]) == doctest::Approx(0.5 * (0.25 * hard + 0.75 * soft)).epsilon(bound));
  CHECK(sums.negative_log_likelihood == doctest::Approx(hard).epsilon(bound));
}

TEST_CASE("cross-entropy with soft targets: no gradient where the model predicts what its teacher does") {
  Training<double> t;
  const auto h = t.normal({9, 6}), w = t.normal({53, 6}), b = t.normal({53});
  const std::vector<TeacherStates<double>> same{{h.value, w.value, b.value}};
  const auto loss = projection_cross_entropy(t.graph, h, w, b, some_targets(9, 53), {0.1, 0.5}, nullptr, {same, 1});
  t.graph.backward(loss);
  for (const auto& x : {h, w, b})
    for (const double gradient : x.gradient.sum().span()) CHECK(std::abs(gradient) < 1e-14);
}

TEST_CASE("cross-entropy: a teacher of another vocabulary or of other tokens is an error") {
  Training<double> t;
  const auto h = t.normal({5, 4}), w = t.normal({7, 4});
  const Targets targets{3, 0, 6, 3, 1};
  const auto with = [&](const Shape& hidden, const Shape& weight, const Shape& bias) {
    const std::vector<TeacherStates<double>> teachers{
        {t.normal(hidden).value, t.normal(weight).value, t.normal(bias).value}};
    projection_cross_entropy(t.graph, h, w, {}, targets, {}, nullptr, {teachers, 0.5});
  };
  CHECK_THROWS_WITH_AS(with({5, 3}, {8, 3}, {8}), doctest::Contains("a teacher's weight"), Error);
  CHECK_THROWS_WITH_AS(with({4, 3}, {7, 3}, {7}), doctest::Contains("a teacher's hidden states"), Error);
  CHECK_THROWS_WITH_AS(with({5, 3}, {7, 3}, {8}), doctest::Contains("a teacher's bias"), Error);
}

TEST_CASE(
    "consistent cross-entropy: gradients, with and without bias and smoothing, an arriving gradient that is not 1") {
  static const Targets targets{3, 0, 6, 3, 1};
  for (const double smoothing : {0.0, 0.1})
    for (const double consistency : {0.0, 3.0}) {
      const CrossEntropyOptions options{smoothing, 0.25};
      require_gradients({{5, 4}, {5, 4}, {7, 4}, {7}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
        return consistent_cross_entropy(graph, in[0], in[1], in[2], in[3], targets, options, consistency);
      });
      require_gradients({{5, 4}, {5, 4}, {7, 4}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
        return consistent_cross_entropy(graph, in[0], in[1], in[2], {}, targets, options, consistency);
      });
    }
}

TEST_CASE("consistent cross-entropy: as PyTorch") {
  for_each_torch_case("consistent_cross_entropy", [](auto& test, const auto& data) {
    const auto targets = data["options"]["targets"].template get<Targets>();
    const auto first = test.input("first"), second = test.input("second"), weight = test.input("weight"),
               bias = test.input("bias");
    test.check(consistent_cross_entropy(test.graph(), first, second, weight, bias, targets,
                                        {data["options"]["label_smoothing"].template get<double>(), 1},
                                        data["options"]["consistency"].template get<double>()));
  });
}

TEST_CASE_TEMPLATE("consistent cross-entropy: two equal passes are one pass, in several chunks", T, float, double) {
  const std::int64_t rows = 150, width = 6, vocabulary = 53;
  Training<T> t, one;
  const auto h = t.normal({rows, width}), w = t.normal({vocabulary, width}), b = t.normal({vocabulary});
  const auto h1 = one.normal({rows, width}), w1 = one.normal({vocabulary, width}), b1 = one.normal({vocabulary});
  const Targets targets = some_targets(rows, vocabulary);
  CrossEntropySums sums, expected;
  const auto loss = consistent_cross_entropy(t.graph, h, h, w, b, targets, {0.1, 0.5}, 5, &sums);
  t.graph.backward(loss);
  const auto plain = projection_cross_entropy(one.graph, h1, w1, b1, targets, {0.1, 0.5}, &expected);
  one.graph.backward(plain);
  const double bound = sizeof(T) == 4 ? 1e-4 : 1e-12;
  CHECK(double(loss.value[0]) == doctest::Approx(double(plain.value[0])).epsilon(bound));
  CHECK(sums.loss == doctest::Approx(expected.loss).epsilon(bound));
  CHECK(sums.negative_log_likelihood == doctest::Approx(expected.negative_log_likelihood).epsilon(bound));
  CHECK(sums.correct == expected.correct);
  CHECK(sums.tokens == rows);
  const auto same = [&](const Variable<T>& x, const Variable<T>& y) {
    const Tensor<T> dx = x.gradient.sum(), dy = y.gradient.sum();
    for (std::int64_t i = 0; i < dx.size(); ++i)
      CHECK(double(dx[i]) == doctest::Approx(double(dy[i])).epsilon(bound).scale(1));
  };
  same(h, h1);
  same(w, w1);
  same(b, b1);
}

TEST_CASE("cross-entropy: as PyTorch") {
  for_each_torch_case("cross_entropy", [](auto& test, const auto& data) {
    const auto targets = data["options"]["targets"].template get<Targets>();
    const auto hidden = test.input("hidden"), weight = test.input("weight"), bias = test.input("bias");
    test.check(projection_cross_entropy(test.graph(), hidden, weight, bias, targets,
                                        {data["options"]["label_smoothing"].template get<double>(), 1}));
  });
}

TEST_CASE_TEMPLATE("cross-entropy: sums and gradients by the definition, every instruction set, several chunks", T,
                   float, double) {
  const std::int64_t rows = 150, width = 6, vocabulary = 53;
  const double smoothing = 0.1, scale = 0.5;
  Training<T> t;
  const auto h = t.normal({rows, width}), w = t.normal({vocabulary, width}), b = t.normal({vocabulary});
  const Targets targets = some_targets(rows, vocabulary);
  CrossEntropySums sums;
  const auto loss = projection_cross_entropy(t.graph, h, w, b, targets, {smoothing, scale}, &sums);
  t.graph.backward(loss);
  double smooth = 0, plain = 0, correct = 0;
  std::vector<double> dbias(static_cast<std::size_t>(vocabulary));
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<double> x, p;
    double sum = 0;
    for (std::int64_t v = 0; v < vocabulary; ++v) {
      x.push_back(double(b.value[v]));
      for (std::int64_t c = 0; c < width; ++c) x.back() += double(h.value.row(r)[c]) * double(w.value.row(v)[c]);
      sum += std::exp(x.back());
    }
    const auto y = static_cast<std::size_t>(targets[static_cast<std::size_t>(r)]);
    plain += std::log(sum) - x[y];
    smooth += (1 - smoothing) * (std::log(sum) - x[y]);
    correct += std::max_element(x.begin(), x.end()) - x.begin() == static_cast<std::int64_t>(y);
    for (std::size_t v = 0; v < x.size(); ++v) {
      smooth += smoothing / static_cast<double>(vocabulary) * (std::log(sum) - x[v]);
      dbias[v] +=
          scale * (std::exp(x[v]) / sum - smoothing / static_cast<double>(vocabulary) - (v == y ? 1 - smoothing : 0));
    }
  }
  const double bound = sizeof(T) == 4 ? 1e-5 : 1e-12;
  CHECK(sums.tokens == rows);
  CHECK(double(sums.correct) == correct);
  CHECK(sums.negative_log_likelihood == doctest::Approx(plain).epsilon(bound));
  CHECK(sums.loss == doctest::Approx(smooth).epsilon(bound));
  CHECK(double(loss.value[0]) == doctest::Approx(scale * smooth).epsilon(bound));
  for (std::size_t v = 0; v < dbias.size(); ++v)
    CHECK(std::abs(double(b.gradient.sum().data()[v]) - dbias[v]) < 10 * bound);
}

TEST_CASE("cross-entropy: of equal logits the first is the prediction; extreme logits stay finite") {
  Training<float> t;
  const auto h = t.graph.input(t.arena.zeros<float>({2, 1}), true), w = t.graph.input(t.arena.zeros<float>({3, 1}));
  h.value[1] = 1;
  w.value[0] = -1e4f;
  w.value[1] = 1e4f;
  w.value[2] = 1e4f;
  CrossEntropySums sums;
  projection_cross_entropy(t.graph, h, w, {}, Targets{0, 2}, {}, &sums);
  CHECK(sums.correct == 1);
  CHECK(sums.negative_log_likelihood == doctest::Approx(std::log(3.0) + std::log(2.0)));
  projection_cross_entropy(t.graph, h, w, {}, Targets{1, 0}, {}, &sums);
  CHECK(sums.negative_log_likelihood == doctest::Approx(std::log(6.0) + 2e4));
  for (const float g : h.gradient.sum().span()) CHECK(std::isfinite(g));
}

TEST_CASE("cross-entropy: an empty batch has no loss") {
  Training<float> t;
  CrossEntropySums sums;
  const auto loss = projection_cross_entropy(t.graph, t.normal({0, 4}), t.normal({5, 4}), {}, Targets{}, {}, &sums);
  CHECK(loss.value[0] == 0);
  CHECK(sums.tokens == 0);
}

TEST_CASE_TEMPLATE("log-probabilities: as the loss, and a row's bits whatever its neighbours", T, float, double) {
  const std::int64_t rows = 131, width = 20, vocabulary = 67;
  Training<T> t;
  const Tensor<T> h = t.normal({rows, width}).value, w = t.normal({vocabulary, width}).value,
                  b = t.normal({vocabulary}).value;
  const Targets targets = some_targets(rows, vocabulary);
  const Tensor<T> all = t.arena.template tensor<T>({rows, vocabulary}),
                  one = t.arena.template tensor<T>({1, vocabulary}), tokens = t.arena.template tensor<T>({rows});
  projection_log_probabilities(t.device, h, w, b, all);
  token_log_probabilities<T>(t.device, h, w, b, targets, tokens.data());
  CrossEntropySums sums;
  cross_entropy_forward<T>(t.device, h, w, b, targets, {}, {}, {}, {}, {}, {one.data(), &sums});
  double total = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    projection_log_probabilities(t.device, h.row_block(r, 1), w, b, one);
    CHECK(std::memcmp(one.data(), all.row(r), static_cast<std::size_t>(vocabulary) * sizeof(T)) == 0);
    CHECK(tokens[r] == all.row(r)[targets[static_cast<std::size_t>(r)]]);
    total -= double(tokens[r]);
    double sum = 0;
    for (const T x : one.span()) sum += std::exp(double(x));
    CHECK(sum == doctest::Approx(1).epsilon(1e-5));
  }
  CHECK(total == doctest::Approx(sums.negative_log_likelihood).epsilon(1e-5));
}

TEST_CASE("cross-entropy: wrong arguments are named") {
  Training<float> t;
  const auto h = t.normal({2, 3}), w = t.normal({5, 3}), b = t.normal({4});
  CHECK_THROWS_WITH_AS(projection_cross_entropy(t.graph, h, w, {}, Targets{1}, {}),
                       "internal: cross-entropy: hidden has shape [2, 3], expected [1, 3]", Error);
  CHECK_THROWS_WITH_AS(projection_cross_entropy(t.graph, h, w, b, Targets{1, 2}, {}),
                       "internal: cross-entropy: bias has shape [4], expected [5]", Error);
  CHECK_THROWS_WITH_AS(projection_cross_entropy(t.graph, h, w, {}, Targets{1, 5}, {}),
                       "internal: cross-entropy: target 5 is outside a vocabulary of 5", Error);
}
