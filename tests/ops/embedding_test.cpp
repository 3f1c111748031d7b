#include "heed/ops/embedding.h"

#include "heed/base/error.h"
#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

namespace {

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("embedding: gradients with learned positions, without, and with dropout; ids repeat") {
  static const Ids ids = {3, 0, 3, 3, 1}, positions = {0, 1, 2, 0, 1};
  for (const double p : {0.0, 0.4}) {
    require_gradients({{4, 7}, {3, 7}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return embedding(graph, ids, positions, in[0], in[1], 2.5, p);
    });
    require_gradients({{4, 7}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return embedding(graph, ids, {}, in[0], {}, 2.5, p);
    });
    require_gradients({{3, 7}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return embedding(graph, ids, positions, zeros(graph, {4, 7}), in[0], 2.5, p);
    });
  }
}

TEST_CASE("embedding: as PyTorch, on every instruction set") {
  for_each_torch_case("embedding", [](auto& test, const auto& data) {
    const auto ids = data["options"]["ids"].template get<Ids>();
    const auto positions = data["options"]["positions"].template get<Ids>();
    const auto weight = test.input("weight"), table = test.input("position_table");
    using T = std::remove_reference_t<decltype(weight.value[0])>;
    const auto scale = data["options"]["scale"].template get<T>();
    test.check(embedding(test.graph(), ids, positions, weight, table, scale, 0.0));
  });
}

TEST_CASE("embedding: no ids; a bad id or position is named with its limit") {
  Training<float> t;
  const auto weight = t.normal({6, 5}), table = t.normal({4, 5});
  CHECK(embedding(t.graph, {}, {}, weight, table, 1.0f, 0.1).shape() == Shape{0, 5});
  const Ids good = {0, 5}, low = {0, -1}, high = {6, 0}, late = {3, 4};
  CHECK_THROWS_WITH_AS(embedding(t.graph, high, good, weight, table, 1.0f, 0),
                       "embedding: id 6 is not in the table of 6 rows (0 to 5)", Error);
  CHECK_THROWS_WITH_AS(embedding(t.graph, low, good, weight, table, 1.0f, 0),
                       "embedding: id -1 is not in the table of 6 rows (0 to 5)", Error);
  CHECK_THROWS_WITH_AS(embedding(t.graph, good, late, weight, table, 1.0f, 0),
                       "embedding: position 4 is not in the table of 4 rows (0 to 3)", Error);
  CHECK_THROWS_WITH_AS(embedding(t.graph, good, {}, weight, table, 1.0f, 0),
                       "internal: embedding: positions has shape [0], expected [2]", Error);
  CHECK_THROWS_WITH_AS(embedding(t.graph, good, good, weight, t.normal({4, 6}), 1.0f, 0),
                       "internal: embedding: position_table has shape [4, 6], expected [4, 5]", Error);
}
