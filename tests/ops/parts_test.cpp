#include "heed/ops/parts.h"

#include "heed/base/error.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

using Variables = std::vector<Variable<double>>;

TEST_CASE("parts: gradients") {
  static const std::vector<std::int32_t> rows = {2, 0, 2, 1};
  require_gradients({{4, 3}}, [](Graph<double>& graph, Variables& in) { return row_block(graph, in[0], 1, 2); });
  require_gradients({{4, 3}}, [](Graph<double>& graph, Variables& in) { return gather_rows(graph, in[0], rows); });
  require_gradients({{4, 3}}, [](Graph<double>& graph, Variables& in) { return gather_rows(graph, in[0], rows, 2); });
  require_gradients({{2, 3}, {1, 3}}, [](Graph<double>& graph, Variables& in) {
    const Variable<double> parts[] = {in[0], in[1], in[0]};
    return stack_rows<double>(graph, parts);
  });
  require_gradients({{2, 3}, {2, 1}}, [](Graph<double>& graph, Variables& in) {
    const Variable<double> parts[] = {in[0], in[1], in[0]};
    return concatenate<double>(graph, parts);
  });
}

TEST_CASE("parts: every element is in its place") {
  Training<float> t;
  const Variable<float> a = t.normal({3, 2}), b = t.normal({1, 2}), c = t.normal({3, 5});
  const Variable<float> stacked = stack_rows<float>(t.graph, std::vector{a, b});
  CHECK(stacked.shape() == Shape{4, 2});
  CHECK(stacked.value.row(3)[1] == b.value[1]);
  CHECK(stacked.value.row(2)[0] == a.value.row(2)[0]);
  const Variable<float> beside = concatenate<float>(t.graph, std::vector{a, c});
  CHECK(beside.shape() == Shape{3, 7});
  CHECK(beside.value.row(1)[1] == a.value.row(1)[1]);
  CHECK(beside.value.row(1)[6] == c.value.row(1)[4]);
  CHECK(row_block(t.graph, c, 1, 2).value.data() == c.value.row(1));
  const std::vector<std::int32_t> rows = {2, 0};
  CHECK(gather_rows(t.graph, a, rows).value.row(0)[1] == a.value.row(2)[1]);
  const Variable<float> pair = gather_rows(t.graph, a, rows, 2);
  CHECK(pair.shape() == Shape{1, 4});
  CHECK(pair.value[1] == a.value.row(2)[1]);
  CHECK(pair.value[3] == a.value.row(0)[1]);
}

TEST_CASE("parts: wrong shapes are named") {
  Training<float> t;
  const Variable<float> a = t.normal({3, 2}), b = t.normal({2, 3});
  const std::vector<std::int32_t> rows = {3};
  CHECK_THROWS_WITH_AS(stack_rows<float>(t.graph, std::vector{a, b}),
                       "internal: stack_rows: part has shape [2, 3], expected [2, 2]", Error);
  CHECK_THROWS_WITH_AS(concatenate<float>(t.graph, std::vector{a, b}),
                       "internal: concatenate: part has shape [2, 3], expected [3, 3]", Error);
  CHECK_THROWS_WITH_AS(concatenate<float>(t.graph, {}), "internal: concatenate: no parts", Error);
  CHECK_THROWS_WITH_AS(row_block(t.graph, a, 2, 2), "internal: row_block: rows 2 to 4 of a matrix with 3 rows", Error);
  CHECK_THROWS_WITH_AS(gather_rows(t.graph, a, rows), "internal: gather_rows: rows 3 to 4 of a matrix with 3 rows",
                       Error);
  CHECK_THROWS_WITH_AS(gather_rows(t.graph, a, rows, 2), "internal: gather_rows: 1 rows, 2 side by side", Error);
}
