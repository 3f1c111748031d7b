#include "heed/ops/rotary.h"

#include <complex>
#include <cstring>

#include "heed/base/error.h"
#include "heed/nn/position_encoding.h"
#include "heed/ops/arithmetic.h"
#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

namespace {

using Offsets = std::vector<std::int32_t>;

/// Returns the table of cosines and sines for heads of d columns and `length` positions.
template <class T>
Tensor<T> rotations(Arena& arena, std::int64_t length, std::int64_t d) {
  const Tensor<T> table = arena.tensor<T>({length, 2 * d});
  fill_sinusoids(PositionEncoding::rotary, table);
  return table;
}

/// Returns a copy of x as the result of an op: rotary() overwrites its input, and tests read theirs later.
template <class T>
Variable<T> copy(Graph<T>& graph, const Variable<T>& x) {
  return multiply(graph, x, T(1));
}

}  // namespace

TEST_CASE("rotary: gradients, of all columns and of the first ones, and when no op follows") {
  static const Offsets offsets{0, 3, 3, 4, 9};
  for (const std::int64_t d : {2, 4, 8})
    for (const std::int64_t width : {8, 16})
      require_gradients({{9, 17}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
        return rotary(graph, copy(graph, in[0]), width, {offsets},
                      graph.device().upload(rotations<double>(graph.host_arena(), 5, d)));
      });
  // The rotated value takes no part in the result: its gradient stays empty.
  require_gradients({{4, 4}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
    static const Offsets four{0, 4};
    rotary(graph, copy(graph, in[0]), 4, {four}, graph.device().upload(rotations<double>(graph.host_arena(), 5, 4)));
    return copy(graph, in[0]);
  });
}

TEST_CASE("rotary: as PyTorch") {
  for_each_torch_case("rotary", [](auto& test, const auto& data) {
    using T = std::remove_reference_t<decltype(test.input("x").value[0])>;
    const auto offsets = data["options"]["offsets"].template get<Offsets>();
    const auto heads = data["options"]["heads"].template get<std::int64_t>();
    const std::int64_t d = heads == 1 ? 6 : heads == 2 ? 4 : 2;
    const auto x = test.input("x");
    test.check(
        rotary(test.graph(), copy(test.graph(), x), heads * d, {offsets}, rotations<T>(test.graph().arena(), 5, d)));
  });
}

TEST_CASE_TEMPLATE("rotary: the definition, every instruction set and head size", T, float, double) {
  for (const int d : {2, 6, 8, 16, 24, 32, 64, 100}) {
    CAPTURE(d);
    const Offsets offsets{0, 40, 41, 58};
    Training<T> t;
    const auto x = t.normal({58, 3 * 2 * d + 1});
    const auto y = rotary(t.graph, copy(t.graph, x), 2 * 2 * d, {offsets}, rotations<T>(t.arena, 64, d));
    double worst = 0;
    for (std::int64_t r = 0; r < 58; ++r) {
      const std::int64_t p = r < 40 ? r : r < 41 ? 0 : r - 41;
      for (std::int64_t c = 0; c < x.value.columns() - 1; c += 2) {
        const double angle = static_cast<double>(p) * std::pow(10000.0, -static_cast<double>(c % d) / d);
        const std::complex<double> from(double(x.value.row(r)[c]), double(x.value.row(r)[c + 1]));
        const auto to = c < 4 * d ? from * std::polar(1.0, angle) : from;
        worst = std::max({worst, std::abs(to.real() - double(y.value.row(r)[c])),
                          std::abs(to.imag() - double(y.value.row(r)[c + 1]))});
      }
      CHECK(y.value.row(r)[6 * d] == x.value.row(r)[6 * d]);
    }
    CHECK(worst < (sizeof(T) == 4 ? 2e-6 : 1e-14));
  }
}

TEST_CASE_TEMPLATE("rotary: a token has the same bits alone, in a step of decoding, and in a batch", T, float, double) {
  const Offsets offsets{0, 7, 8, 19};
  for (const int d : {8, 64}) {
    Training<T> t;
    const Tensor<T> table = rotations<T>(t.arena, 20, d);
    const auto x = t.normal({19, 3 * d}), y = rotary(t.graph, copy(t.graph, x), 2 * d, {offsets}, table);
    const auto step = copy(t.graph, x);
    Offsets lengths;
    for (int b = 0; b < 3; ++b)
      for (int i = offsets[static_cast<std::size_t>(b)]; i < offsets[static_cast<std::size_t>(b) + 1]; ++i)
        lengths.push_back(i - offsets[static_cast<std::size_t>(b)] + 1);
    rotary_step(t.device, step.value, 2 * d, lengths, table);
    CHECK(std::memcmp(step.value.data(), y.value.data(), static_cast<std::size_t>(19 * 3 * d) * sizeof(T)) == 0);
  }
}

TEST_CASE("rotary: wrong arguments are named, an empty batch is none") {
  Training<float> t;
  const Offsets four{0, 1, 4}, none{0};
  const auto x = t.normal({4, 12});
  const auto call = [&](std::int64_t width, const Offsets& offsets, Tensor<float> table) {
    return rotary(t.graph, x, width, {offsets}, table);
  };
  const Tensor<float> table = rotations<float>(t.arena, 3, 4);
  CHECK_THROWS_WITH_AS(call(10, four, table), "internal: rotary: a table of 8 columns does not fit 10 of 12 columns",
                       Error);
  CHECK_THROWS_WITH_AS(call(16, four, table), "internal: rotary: a table of 8 columns does not fit 16 of 12 columns",
                       Error);
  CHECK_THROWS_WITH_AS(call(6, four, t.arena.tensor<float>({3, 6})),
                       "internal: rotary: a table of 6 columns does not fit 6 of 12 columns", Error);
  CHECK_THROWS_WITH_AS(call(8, none, table), "internal: rotary: x has shape [4, 12], expected [0, 12]", Error);
  CHECK_THROWS_WITH_AS(call(8, four, rotations<float>(t.arena, 2, 4)),
                       "internal: rotary: sequence 1 has 3 tokens, but the table has 2 positions", Error);
  CHECK_THROWS_WITH_AS(rotations<float>(t.arena, 2, 3),
                       "internal: rotary positions need heads of an even width, not 3 columns", Error);
  const auto empty = t.normal({0, 12});
  CHECK(rotary(t.graph, empty, 8, {none}, table).value.size() == 0);
}
