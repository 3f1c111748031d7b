#include "heed/ops/residual_norm.h"

#include <type_traits>

#include "heed/base/error.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/residual.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

namespace {

using Inputs = std::vector<Variable<double>>;

}  // namespace

TEST_CASE("residual_norm: gradients through the norm alone, the sum alone and both") {
  const std::vector<Shape> shapes = {{4, 7}, {4, 7}, {7}, {7}};
  for (const double p : {0.0, 0.4}) {
    require_gradients(shapes, [&](Graph<double>& graph, Inputs& in) {
      return residual_norm(graph, RowNorm::layer, in[0], in[1], in[2], in[3], 1e-5, p).normed;
    });
    require_gradients(shapes, [&](Graph<double>& graph, Inputs& in) {
      return residual_norm(graph, RowNorm::layer, in[0], in[1], in[2], in[3], 1e-5, p).sum;
    });
    require_gradients(shapes, [&](Graph<double>& graph, Inputs& in) {
      const auto y = residual_norm(graph, RowNorm::layer, in[0], in[1], in[2], in[3], 1e-5, p);
      return residual(graph, y.sum, y.normed, 0);
    });
    require_gradients({{4, 7}, {4, 7}, {7}}, [&](Graph<double>& graph, Inputs& in) {
      const auto y = residual_norm(graph, RowNorm::rms, in[0], in[1], in[2], {}, 1e-5, p);
      return residual(graph, y.sum, y.normed, 0);
    });
    require_gradients({{3, 5}, {5}, {5}}, [&](Graph<double>& graph, Inputs& in) {
      return residual_norm(graph, RowNorm::layer, in[0], in[0], in[1], in[2], 1e-5, p).normed;
    });
  }
}

TEST_CASE_TEMPLATE("residual_norm: values and gradients of residual and then the norm, on every instruction set", Kind,
                   std::integral_constant<RowNorm, RowNorm::layer>, std::integral_constant<RowNorm, RowNorm::rms>) {
  constexpr RowNorm kind = Kind::value;
  for (const std::int64_t rows : {0, 1, 5})
    for (const std::int64_t d : {1, 33, 128}) {
      Training<float> a, b, c;
      const auto run = [&](Training<float>& t, bool fused, bool in_place = false) {
        std::vector<Variable<float>> in = {t.normal({rows, d}), t.normal({rows, d}), t.normal({d})};
        const Variable<float> bias = kind == RowNorm::layer ? t.normal({d}) : Variable<float>();
        if (bias) in.push_back(bias);
        const auto dy = t.normal({rows, d});
        t.graph.set_dropout({9, 3});
        ResidualNorm<float> y;
        if (fused) {
          y = residual_norm(t.graph, kind, in[0], in[1], in[2], bias, 1e-5, 0.3,
                            in_place ? in[1].value : Tensor<float>());
        } else {
          y.sum = residual(t.graph, in[0], in[1], 0.3);
          y.normed = kind == RowNorm::layer ? layer_norm(t.graph, y.sum, in[2], bias, 1e-5)
                                            : rms_norm(t.graph, y.sum, in[2], 1e-5);
        }
        t.backward(residual(t.graph, y.sum, y.normed, 0), dy.value);
        std::vector<Tensor<float>> out = {y.sum.value, y.normed.value};
        for (const auto& x : in) out.push_back(x.gradient.sum());
        return out;
      };
      const auto fused = run(a, true), composed = run(b, false), in_place = run(c, true, true);
      for (std::size_t i = 0; i < fused.size(); ++i) {
        CHECK(largest_difference(fused[i], composed[i]) < 2e-5);
        CHECK(largest_difference(fused[i], in_place[i]) == 0);
      }
    }
}

TEST_CASE("residual_norm: a wrong shape is named") {
  Training<float> t;
  const auto x = t.normal({3, 4}), scale = t.normal({4});
  CHECK_THROWS_WITH_AS(residual_norm(t.graph, RowNorm::layer, x, t.normal({2, 4}), scale, scale, 1e-5, 0),
                       "internal: residual_norm: branch has shape [2, 4], expected [3, 4]", Error);
  CHECK_THROWS_WITH_AS(residual_norm(t.graph, RowNorm::layer, x, x, scale, t.normal({5}), 1e-5, 0),
                       "internal: residual_norm: bias has shape [5], expected [4]", Error);
  CHECK_THROWS_WITH_AS(residual_norm(t.graph, RowNorm::rms, x, x, scale, scale, 1e-5, 0),
                       "internal: residual_norm: bias has shape [4], expected []", Error);
}
