#include "heed/inspect/attention_map.h"

#include <doctest/doctest.h>

#include "heed/base/error.h"

using namespace heed;

namespace {

AttentionMap example() {
  return {.kind = "cross",
          .layer = 2,
          .head = 3,
          .rows = {"j'ai", "per@@", "du", "</s>"},
          .columns = {"i", "lo@@", "st", "</s>"},
          .weights = {0.75F, 0.25F, 0.F, 0.F,       //
                      0.125F, 0.5F, 0.25F, 0.125F,  //
                      0.F, 0.25F, 0.625F, 0.125F,   //
                      0.F, 0.F, 0.25F, 0.75F}};
}

}  // namespace

TEST_CASE("a map names itself and checks its size") {
  AttentionMap map = example();
  CHECK(map.title() == "cross attention, layer 2, head 3");
  CHECK_NOTHROW(map.check());
  map.weights.pop_back();
  CHECK_THROWS_WITH_AS(map.check(), "cross attention, layer 2, head 3: 15 weights for 4 x 4 tokens", Error);
}

TEST_CASE("pieces are grouped by their continuation mark") {
  const auto groups = group_by_continuation(std::vector<std::string>{"per@@", "du", "a@@", "b@@", "c", "d@@"});
  CHECK(groups.word_of == std::vector<int>{0, 0, 1, 1, 1, 2});
  CHECK(groups.words == std::vector<std::string>{"perdu", "abc", "d@@"});
  CHECK(group_by_continuation(std::vector<std::string>{}).words.empty());
}

TEST_CASE("merged words: mean over query pieces, sum over key pieces") {
  const AttentionMap map = example();
  const AttentionMap words = merge_words(map, group_by_continuation(map.rows), group_by_continuation(map.columns));
  CHECK(words.rows == std::vector<std::string>{"j'ai", "perdu", "</s>"});
  CHECK(words.columns == std::vector<std::string>{"i", "lost", "</s>"});
  CHECK(words.weights == std::vector<float>{0.75F, 0.25F, 0.F, 0.0625F, 0.8125F, 0.125F, 0.F, 0.25F, 0.75F});
}

TEST_CASE("groups that do not fit are an error") {
  const AttentionMap map = example();
  const auto rows = group_by_continuation(map.rows);
  CHECK_THROWS_WITH_AS(merge_words(map, rows, {{0, 1, 2}, {"a", "b", "c"}}),
                       "merge_words: the words of the columns do not cover its 4 pieces in order", Error);
  CHECK_THROWS_AS(merge_words(map, rows, {{0, 2, 2, 2}, {"a", "b", "c"}}), Error);
  CHECK_THROWS_AS(merge_words(map, rows, {{1, 1, 2, 2}, {"a", "b", "c"}}), Error);
}

TEST_CASE("mean and maximum over heads") {
  const AttentionMap a{
      .kind = "encoder", .layer = 1, .head = 1, .rows = {"x"}, .columns = {"x", "y"}, .weights = {1, 0}};
  AttentionMap b = a;
  b.head = 2;
  b.weights = {0.5F, 0.5F};
  const AttentionMap mean = reduce_heads(std::vector{a, b}, HeadReduction::mean);
  CHECK(mean.weights == std::vector<float>{0.75F, 0.25F});
  CHECK(mean.title() == "encoder attention, layer 1, mean of heads");
  CHECK(reduce_heads(std::vector{a, b}, HeadReduction::max).weights == std::vector<float>{1.F, 0.5F});
  b.rows = {"z"};
  CHECK_THROWS_AS(reduce_heads(std::vector{a, b}, HeadReduction::max), Error);
}

TEST_CASE("dropping </s> keeps the other weights") {
  const AttentionMap map = drop_end_of_sentence(example());
  CHECK(map.rows.size() == 3);
  CHECK(map.columns == std::vector<std::string>{"i", "lo@@", "st"});
  CHECK(map.weights == std::vector<float>{0.75F, 0.25F, 0.F, 0.125F, 0.5F, 0.25F, 0.F, 0.25F, 0.625F});
  CHECK(drop_end_of_sentence(map).weights == map.weights);
}

TEST_CASE("alignments") {
  const AttentionMap map = drop_end_of_sentence(example());
  CHECK(pharaoh(align_argmax(map)) == "0-0 1-1 2-2");
  CHECK(pharaoh(align_threshold(map, 0.25F)) == "0-0 1-0 1-1 2-1 1-2 2-2");
  CHECK(pharaoh(align_threshold(map, 1.1F)).empty());
  const AttentionMap tie{.kind = "cross", .rows = {"a"}, .columns = {"x", "y"}, .weights = {0.5F, 0.5F}};
  CHECK(pharaoh(align_argmax(tie)) == "0-0");
  CHECK(align_argmax({.kind = "cross", .rows = {"a"}}).empty());
}
