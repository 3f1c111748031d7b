#include "heed/inspect/head_statistics.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace heed;

namespace {

AttentionMap map_of(int head, std::vector<std::string> rows, std::vector<std::string> columns,
                    std::vector<float> weights, bool end = false) {
  return {.kind = "cross",
          .layer = 2,
          .head = head,
          .rows = std::move(rows),
          .columns = std::move(columns),
          .column_marks = {.end = end},
          .weights = std::move(weights)};
}

}  // namespace

TEST_CASE("statistics of a head: entropy in bits, distance, the largest weight, the shares of the first key and </s>") {
  HeadStatistics statistics;
  statistics.add(map_of(1, {"a", "b"}, {"x", "y", "z", "</s>"}, {0.25F, 0.25F, 0.25F, 0.25F, 0, 0, 0.5F, 0.5F}, true));
  statistics.add(map_of(1, {"c"}, {"w", "</s>"}, {0, 1}, true));
  statistics.add(map_of(3, {"c"}, {"w", "</s>"}, {0.75F, 0.25F}));
  REQUIRE(statistics.heads().size() == 2);
  const HeadSummary& one = statistics.heads()[0];
  CHECK(one.head == 1);
  CHECK(one.sentences == 2);
  CHECK(one.queries == 3);
  CHECK(one.mean(one.entropy) == doctest::Approx((2 + 1 + 0) / 3.0));
  // |key - query|: (0 + 1 + 2 + 3) / 4, then 1 and 2 with a half each, then 1.
  CHECK(one.mean(one.distance) == doctest::Approx((1.5 + 1.5 + 1) / 3));
  CHECK(one.mean(one.largest) == doctest::Approx((0.25 + 0.5 + 1) / 3));
  CHECK(one.mean(one.first) == doctest::Approx(0.25 / 3));
  CHECK(one.mean(one.end) == doctest::Approx((0.25 + 0.5 + 1) / 3));
  CHECK(statistics.heads()[1].end == 0);  // the last key is a word of the text
  CHECK(head_tsv(statistics.heads(), {}) ==
        "kind\tlayer\thead\tsentences\tqueries\tentropy\tdistance\tlargest\tfirst\tend\n"
        "cross\t2\t1\t2\t3\t1.0000\t1.333\t0.5833\t0.0833\t0.5833\n"
        "cross\t2\t3\t1\t1\t0.8113\t0.250\t0.7500\t0.7500\t0.0000\n");
}

// The example of Och and Ney (2003): an alignment error rate counts a link that is only possible as right, but does not
// ask for it.
TEST_CASE("alignment error rate") {
  LinkCounts counts;
  const GoldAlignment gold{{{0, 0}, {1, 1}, {2, 2}}, {{1, 2}, {3, 3}}};
  counts.add({{0, 0}, {1, 2}, {2, 2}, {3, 0}}, gold);
  CHECK(counts.precision() == doctest::Approx(3.0 / 4));
  CHECK(counts.recall() == doctest::Approx(2.0 / 3));
  CHECK(counts.error_rate() == doctest::Approx(1 - (2.0 + 3) / (4 + 3)));
  counts.add({{0, 0}}, {{{0, 0}}, {}});
  CHECK(counts.error_rate() == doctest::Approx(1 - (3.0 + 4) / (5 + 4)));
  LinkCounts perfect;
  perfect.add({{1, 0}}, {{{1, 0}}, {}});
  CHECK(perfect.error_rate() == 0);
  CHECK(LinkCounts().error_rate() == 1);
  LinkCounts wrong;
  wrong.add({{1, 0}}, {{{0, 0}}, {}});
  CHECK(wrong.error_rate() == 1);
}

TEST_CASE("a head without any link is not the best one, even if no link is sure") {
  HeadStatistics statistics;
  const GoldAlignment gold{{}, {{0, 0}, {1, 0}}};
  statistics.add_links(map_of(1, {"a"}, {"x"}, {1}), {}, gold);
  statistics.add_links(map_of(2, {"a"}, {"x"}, {1}), {{0, 0}, {0, 1}}, gold);
  CHECK(head_table(statistics.heads(), {.statistics = false, .gold = true})
            .ends_with("\nlowest alignment error rate: 0.5000, layer 2, head 2\n"));
}

TEST_CASE("summaries with alignments, as text, TSV and JSON") {
  HeadStatistics statistics;
  const AttentionMap one = map_of(1, {"a"}, {"x"}, {1});
  AttentionMap mean = map_of(0, {"a"}, {"x"}, {1});
  mean.reduction = "mean";
  statistics.add_links(one, {{1, 0}}, {{{0, 0}}, {}});
  statistics.add_links(mean, {{0, 0}}, {{{0, 0}}, {}});
  const HeadColumns columns{.statistics = false, .gold = true};
  CHECK(head_tsv(statistics.heads(), columns) ==
        "kind\tlayer\thead\tlinks\tprecision\trecall\taer\n"
        "cross\t2\t1\t1\t0.0000\t0.0000\t1.0000\n"
        "cross\t2\tmean\t1\t1.0000\t1.0000\t0.0000\n");
  CHECK(head_table(statistics.heads(), columns) ==
        "kind   layer  head  links  precision  recall     aer\n"
        "cross      2     1      1     0.0000  0.0000  1.0000\n"
        "cross      2  mean      1     1.0000  1.0000  0.0000\n"
        "lowest alignment error rate: 0.0000, layer 2, mean of heads\n");
  CHECK(
      head_jsonl(statistics.heads(), columns) ==
      "{\"kind\":\"cross\",\"layer\":2,\"head\":1,\"links\":1,\"precision\":0.0,\"recall\":0.0,\"aer\":1.0}\n"
      "{\"kind\":\"cross\",\"layer\":2,\"head\":\"mean\",\"links\":1,\"precision\":1.0,\"recall\":1.0,\"aer\":0.0}\n");
}
