#include "heed/ops/stochastic_depth.h"

#include "heed/base/error.h"
#include "heed/ops/arithmetic.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

namespace {

const std::vector<std::int32_t> kDepthOffsets = {0, 2, 3, 7, 8, 12};

}  // namespace

TEST_CASE("stochastic depth: gradients") {
  for (const double p : {0.0, 0.4, 1.0})
    require_gradients({{12, 3}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      graph.set_rows({kDepthOffsets});
      return stochastic_depth(graph, multiply(graph, in[0], 3.0), p);
    });
}

TEST_CASE("stochastic depth: a sequence is kept and scaled, or dropped as a whole, alike in any cut of the batch") {
  std::vector<std::int32_t> offsets(201);
  for (std::size_t b = 0; b < offsets.size(); ++b) offsets[b] = static_cast<std::int32_t>(3 * b);
  Training<float> t;
  t.graph.set_rows({offsets});
  const auto x = t.normal({600, 2});
  const std::vector<float> before(x.value.data(), x.value.data() + x.value.size());
  const auto y = stochastic_depth(t.graph, x, 0.25);
  int dropped = 0;
  for (int b = 0; b < 200; ++b) {
    const bool kept = y.value.row(3 * b)[0] != 0;
    dropped += !kept;
    for (int i = 0; i < 6; ++i)
      CHECK(y.value.row(3 * b)[i] == (kept ? before[static_cast<std::size_t>(6 * b + i)] * (4.0F / 3) : 0));
  }
  CHECK(dropped > 30);
  CHECK(dropped < 70);

  // Sequence 100 of the whole is sequence 0 of a shard that begins there.
  Training<float> part;
  part.graph.set_dropout(part.graph.dropout_key(), 100);
  const std::vector<std::int32_t> first = {0, 3, 6};
  part.graph.set_rows({first});
  const auto z = stochastic_depth(part.graph, part.normal({6, 2}), 0.25);
  for (int b = 0; b < 2; ++b) CHECK((z.value.row(3 * b)[0] != 0) == (y.value.row(3 * (100 + b))[0] != 0));
}

TEST_CASE("stochastic depth: x itself where p is 0 or nothing is recorded; wrong rows are named") {
  Training<float> t;
  const std::vector<std::int32_t> offsets = {0, 3};
  t.graph.set_rows({offsets});
  const auto x = t.normal({3, 5}), other = t.normal({4, 5});
  CHECK(stochastic_depth(t.graph, x, 0).value.data() == x.value.data());
  Graph<float> inference(t.device, t.values);
  CHECK(stochastic_depth(inference, x, 0.5).value.data() == x.value.data());
  CHECK_THROWS_WITH_AS(stochastic_depth(t.graph, other, 0.5),
                       "internal: stochastic_depth: the sequences have 3 rows, the tensor has 4", Error);
}
