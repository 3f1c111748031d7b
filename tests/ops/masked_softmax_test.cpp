#include "heed/ops/masked_softmax.h"

#include <limits>

#include "heed/base/error.h"
#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

namespace {

using Lengths = std::vector<std::int32_t>;
using Bytes = std::vector<std::uint8_t>;

Tensor<const std::uint8_t> view(const Bytes& bytes, const Shape& shape) {
  return {bytes.data(), shape};
}

}  // namespace

TEST_CASE("masked_softmax: gradients, 1-D and 2-D lengths, a row with nothing to see, all masks at once") {
  static const Lengths one = {2, 9}, two = {1, 2, 0, 9, 4, 1};
  static const Bytes padding = {0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};
  for (const Lengths* lengths : {&one, &two})
    require_gradients({{2, 3, 9}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return masked_softmax(graph, in[0], {.valid_lengths = *lengths});
    });
  require_gradients({{2, 3, 9}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
    const Tensor<double> additive =
        constant(graph, {2, 3, 9}, [](std::int64_t i) {
          return i == 5 ? -std::numeric_limits<double>::infinity() : static_cast<double>(i % 4);
        }).value;
    return masked_softmax(graph, in[0],
                          {.valid_lengths = two,
                           .key_padding = graph.device().upload(view(padding, {2, 9})),
                           .additive = Tensor<const double>(additive.data(), additive.shape())});
  });
}

TEST_CASE("masked_softmax: as PyTorch, on every instruction set") {
  for_each_torch_case("masked_softmax", [](auto& test, const auto& data) {
    const auto x = test.input("x");
    using T = std::remove_reference_t<decltype(x.value[0])>;
    const auto& options = data["options"];
    const auto lengths = options.value("valid_lengths", Lengths());
    const auto padding = options.value("key_padding", Bytes()), hidden = options.value("hidden", Bytes());
    SoftmaxMask<T> mask{.valid_lengths = lengths};
    if (!padding.empty()) {
      mask.key_padding = view(padding, {2, 5});
      mask.hidden = view(hidden, {3, 5});
      const auto additive = test.tensor(options["additive"]);
      mask.additive = {additive.data(), additive.shape()};
    }
    test.check(masked_softmax(test.graph(), x, mask));
  });
}

TEST_CASE("masked_softmax: hidden keys get exactly 0, a row with nothing to see zeros, by any of the masks") {
  const float lowest = -std::numeric_limits<float>::infinity();
  const Bytes all = {1, 1, 1}, padding = {1, 1, 1, 0, 1, 0};
  const float additive[] = {lowest, lowest, lowest};
  const Lengths none = {0, 2};
  const auto zeros = [&](const SoftmaxMask<float>& mask, std::int64_t count) {
    Training<float> t;
    const auto x = t.normal({2, 1, 3});
    const auto y = masked_softmax(t.graph, x, mask);
    t.backward(y, x.value);
    for (std::int64_t i = 0; i < count; ++i) {
      CHECK(y.value[i] == 0);
      CHECK(x.gradient.sum()[i] == 0);
    }
    return std::vector<float>(y.value.data(), y.value.data() + 6);
  };
  CHECK(zeros({.valid_lengths = none}, 3)[5] == 0);
  CHECK(zeros({.key_padding = view(padding, {2, 3})}, 3)[4] == 0);
  zeros({.hidden = view(all, {1, 3})}, 6);
  zeros({.additive = Tensor<const float>(additive, {1, 3})}, 6);
  Training<float> t;
  const auto plain = masked_softmax(t.graph, t.normal({2, 1, 3}), {});
  CHECK(plain.value[0] + plain.value[1] + plain.value[2] == doctest::Approx(1));
  CHECK(masked_softmax(t.graph, t.normal({2, 0, 3}), {}).shape() == Shape{2, 0, 3});
}

TEST_CASE("masked_softmax: masks that do not fit are named") {
  Training<float> t;
  const auto x = t.normal({2, 3, 5});
  const Lengths three = {1, 2, 3}, long_one = {1, 6};
  const Bytes bytes(30);
  CHECK_THROWS_WITH_AS(masked_softmax(t.graph, x, {.valid_lengths = three}),
                       "internal: masked_softmax: 3 valid lengths for scores of shape [2, 3, 5] (one for each sequence "
                       "or for each query)",
                       Error);
  CHECK_THROWS_WITH_AS(masked_softmax(t.graph, x, {.valid_lengths = long_one}),
                       "internal: masked_softmax: valid length 6 is not in 0 to 5", Error);
  CHECK_THROWS_WITH_AS(masked_softmax(t.graph, x, {.hidden = view(bytes, {2, 5})}),
                       "internal: masked_softmax: hidden has shape [2, 5], expected [3, 5]", Error);
  CHECK_THROWS_WITH_AS(masked_softmax(t.graph, t.normal({3, 5}), {}),
                       "internal: masked_softmax: x has shape [3, 5], expected [B, T, S]", Error);
}
