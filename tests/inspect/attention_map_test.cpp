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
          .row_marks = {.end = true},
          .column_marks = {.end = true},
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

TEST_CASE("a head has a name for tables and one for captions") {
  CHECK(head_value(3, "") == "3");
  CHECK(head_value(0, "mean") == "mean");
  CHECK(head_title(3, "") == "head 3");
  CHECK(head_title(0, "max") == "max of heads");
  CHECK(head_title(0, kRolloutReduction) == "rollout");
}

TEST_CASE("weights of pieces that belong to no word are left out") {
  const std::vector<float> weights{0.5F, 0.25F, 0.25F, 0.F, 0.5F, 0.5F, 1.F, 0.F, 0.F};
  CHECK(merge_weights(weights, std::vector{0, 0, -1}, std::vector{0, 0, -1}) == std::vector{0.625});
  CHECK(merge_weights(weights, std::vector{0, 1, 1}, std::vector{-1, 0, 1}) == std::vector{0.25, 0.25, 0.25, 0.25});
  CHECK(merge_weights(std::vector{1.F}, std::vector{-1}, std::vector{-1}).empty());
  CHECK(word_count(std::vector{0, 0, 1, -1}) == 2);
}

TEST_CASE("merged words: mean over query pieces, sum over key pieces") {
  const AttentionMap map = example();
  const AttentionMap words =
      merge_words(map, {{0, 1, 1, 2}, {"j'ai", "perdu", "</s>"}}, {{0, 1, 1, 2}, {"i", "lost", "</s>"}});
  CHECK(words.rows == std::vector<std::string>{"j'ai", "perdu", "</s>"});
  CHECK(words.columns == std::vector<std::string>{"i", "lost", "</s>"});
  CHECK(words.weights == std::vector<float>{0.75F, 0.25F, 0.F, 0.0625F, 0.8125F, 0.125F, 0.F, 0.25F, 0.75F});
}

TEST_CASE("groups that do not fit are an error") {
  const AttentionMap map = example();
  const WordGroups rows{{0, 1, 1, 2}, {"j'ai", "perdu", "</s>"}};
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
  AttentionMap word = example();  // "</s>" is a word of the text
  word.row_marks = word.column_marks = {};
  CHECK(drop_end_of_sentence(word).rows == word.rows);
  CHECK(drop_marks(word).columns == word.columns);
}

TEST_CASE("dropping all marks leaves the text, whose words are counted from 0") {
  const AttentionMap map = drop_marks({.kind = "decoder",
                                       .rows = {"<s>", "a", "b"},
                                       .columns = {"<s>", "a", "b"},
                                       .row_marks = {.start = true},
                                       .column_marks = {.start = true},
                                       .weights = {1, 0, 0, 0.5F, 0.5F, 0, 0.5F, 0.25F, 0.125F}});
  CHECK(map.rows == std::vector<std::string>{"a", "b"});
  CHECK(map.columns == std::vector<std::string>{"a", "b"});
  CHECK(map.weights == std::vector<float>{0.5F, 0, 0.25F, 0.125F});
  CHECK(pharaoh(align_argmax(map)) == "0-0 0-1");
  CHECK(drop_marks(map).rows == map.rows);
  CHECK(drop_marks({.kind = "decoder",
                    .rows = {"<s>"},
                    .columns = {"</s>"},
                    .row_marks = {.start = true},
                    .column_marks = {.end = true},
                    .weights = {1}})
            .weights.empty());
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
