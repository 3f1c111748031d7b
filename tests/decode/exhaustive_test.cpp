#include <doctest/doctest.h>

#include <cmath>

#include "heed/decode/exhaustive_search.h"
#include "heed/decode/step_model.h"
#include "random_model.h"
#include "table_model.h"

using namespace heed;

namespace {

SearchOptions exhaustive(int n_best = 0) {
  SearchOptions options;
  options.search = SearchKind::exhaustive;
  options.n_best = n_best;
  return options;
}

TEST_CASE("where a beam ends in a dead end, exhaustive search finds what can end all the same") {
  // Of two words, no pair may come twice: few of the sequences of five words go on so far.
  SearchOptions options = exhaustive();
  options.no_repeat_ngram_size = 2;
  options.min_output_length = options.max_output_length = 5;
  int dead_ends = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TableModel model(6, random_table(seed, 4, 5, 6));
    options.search = SearchKind::beam;
    options.beam_size = 1;
    const Hypothesis greedy = search(model, sources({9}), options).at(0).at(0);
    dead_ends += greedy.ids.size() < 5;
    CHECK(greedy.log_probabilities.size() == greedy.ids.size());
    CHECK(greedy.score == doctest::Approx(greedy.sum / static_cast<double>(greedy.ids.size())));
    options.search = SearchKind::exhaustive;
    const Hypothesis one = search(model, sources({9}), options).at(0).at(0);
    options.beam_size = 100;
    const Hypothesis other = search(model, sources({9}), options).at(0).at(0);
    CHECK(one.ids.size() == 5);
    CHECK(one.ids == other.ids);
  }
  CHECK(dead_ends > 0);
}

TEST_CASE("a hypothesis that can neither go on nor end is the translation, in every search") {
  SearchOptions options = exhaustive();
  options.no_repeat_ngram_size = 1;
  options.min_output_length = 3;
  TableModel model(6, random_table(1, 4, 5, 6));
  for (const SearchKind kind : {SearchKind::beam, SearchKind::exhaustive, SearchKind::sample}) {
    options.search = kind;
    const Hypothesis found = search(model, sources({9}), options).at(0).at(0);
    CHECK(found.ids.size() == 2);
    CHECK(found.log_probabilities.size() == 2);
    CHECK(found.sum < 0);
    CHECK(found.score == doctest::Approx(found.sum / 2));
  }
}

}  // namespace

TEST_CASE("exhaustive search finds the best hypotheses of all, for every length penalty and length limit") {
  int beam_missed = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const auto& [normalize, length_penalty] : {std::pair(0.0, 0.0), {1.0, 0.0}, {0.6, 0.0}, {1.0, 0.8}})
      for (const int shortest : {0, 2}) {
        CAPTURE(seed);
        CAPTURE(normalize);
        CAPTURE(length_penalty);
        CAPTURE(shortest);
        SearchOptions options = exhaustive(5);
        options.normalize = normalize;
        options.length_penalty = length_penalty;
        options.min_output_length = shortest;
        options.max_output_length = 4;
        options.beam_size = 2;
        const TableModel::Table table = random_table(seed, 4, 6, 4);
        const std::vector<Scored> expected = every_hypothesis(table, options);
        TableModel model(7, table);
        const std::vector<Hypothesis> found = search(model, sources({9}), options).at(0);
        REQUIRE(found.size() == 5);
        for (std::size_t i = 0; i < found.size(); ++i) {
          CAPTURE(i);
          CHECK(found[i].ids == expected[i].ids);
          CHECK(found[i].score == doctest::Approx(expected[i].score).epsilon(1e-5));
          double sum = 0;
          for (const float each : found[i].log_probabilities) sum += static_cast<double>(each);
          CHECK(found[i].sum == doctest::Approx(sum));
        }
        options.search = SearchKind::beam;
        options.n_best = 1;
        beam_missed += search(model, sources({9}), options).at(0).at(0).ids != expected[0].ids;
      }
  CHECK(beam_missed > 0);  // otherwise the tables are too easy
}

TEST_CASE("exhaustive search finds what the widest beam finds, with a Transformer") {
  // 6 pieces and </s>: at most 6^3 + 6^2 + 6 + 1 hypotheses.
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    RandomModel random(10, 2, seed);
    NetworkStepModel model(*random.model, *random.parameters, Precision::float32);
    PackedIds source;
    for (int s = 0; s < 3; ++s) source.append(random_sentence(static_cast<int>(seed) * 3 + s));
    SearchOptions options;
    options.max_output_length = 3;
    options.normalize = seed % 2 == 0 ? 0 : 1;
    options.n_best = 20;
    options.beam_size = 300;
    const auto widest = search(model, source, options);
    options.search = SearchKind::exhaustive;
    options.beam_size = 1;
    const auto found = search(model, source, options);
    REQUIRE(found.size() == 3);
    for (std::size_t s = 0; s < 3; ++s) {
      REQUIRE(found[s].size() == 20);
      for (std::size_t i = 0; i < 20; ++i) {
        CHECK(found[s][i].ids == widest[s][i].ids);
        CHECK(found[s][i].score == doctest::Approx(widest[s][i].score).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("exhaustive search: of equal scores, the shorter hypothesis and the lower ids come first") {
  TableModel model(10, {{{9}, {{4, 0.25}, {5, 0.25}, {6, 0.5}}},
                        {{9, 4}, {{3, 1.0}}},
                        {{9, 5}, {{3, 1.0}}},
                        {{9, 6}, {{7, 0.5}, {8, 0.5}}},
                        {{9, 6, 7}, {{3, 1.0}}},
                        {{9, 6, 8}, {{3, 1.0}}}});
  SearchOptions options = exhaustive(4);
  options.normalize = 0;
  const auto found = search(model, sources({9}), options).at(0);
  REQUIRE(found.size() == 4);
  CHECK(found[0].ids == Ids{4});
  CHECK(found[1].ids == Ids{5});
  CHECK(found[2].ids == Ids{6, 7});
  CHECK(found[3].ids == Ids{6, 8});
}

TEST_CASE("exhaustive search continues many blocks of prefixes") {
  // With so large a vocabulary, few rows are in memory at a time.
  constexpr std::int64_t kVocabulary = 3 << 20;
  const TableModel::Table table = random_table(3, 4, 7, 4);
  SearchOptions options = exhaustive(1000);
  options.max_output_length = 4;
  options.beam_size = 1;
  const std::vector<Scored> expected = every_hypothesis(table, options);
  TableModel model(kVocabulary, table);
  options.n_best = static_cast<int>(expected.size());
  REQUIRE(expected.size() > 256);
  options.beam_size = 1;
  TableModel narrow(8, table);
  const auto few = search(narrow, sources({9}), options).at(0);
  options.n_best = 12;
  const auto found = search(model, sources({9}), options).at(0);
  REQUIRE(few.size() == expected.size());
  REQUIRE(found.size() == 12);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].ids == expected[i].ids);
    CHECK(few[i].ids == expected[i].ids);
  }
}

TEST_CASE("exhaustive search gives up past its bound on work") {
  RandomModel random(200, 1, 7);
  NetworkStepModel model(*random.model, *random.parameters, Precision::float32);
  PackedIds source;
  source.append(std::vector<std::int32_t>{5, 6, kEndId});
  SearchOptions options = exhaustive();
  options.max_expansions = 50;
  try {
    search(model, source, options);
    FAIL("no error");
  } catch (const SearchTooLong& error) {
    CHECK(std::string(error.what()) ==
          "--search exhaustive: more than 50 prefixes may lead to a better translation than the best one so far "
          "(raise --max-expansions, or take --normalize 0 or a lower --max-output-length, which leave fewer)");
  }
  options.normalize = 0;
  options.max_expansions = 2;
  CHECK_THROWS_WITH(search(model, source, options),
                    "--search exhaustive: more than 2 prefixes may lead to a better translation than the best one so "
                    "far (raise --max-expansions, or take a lower --max-output-length, which leaves fewer)");
  options.normalize = 1;
  // The bound is exact where it suffices: greedy search's prefixes alone.
  TableModel table(10, {{{9}, {{4, 1.0}}}, {{9, 4}, {{5, 1.0}}}, {{9, 4, 5}, {{3, 1.0}}}});
  options.max_expansions = 3;
  CHECK(search(table, sources({9}), options).at(0).at(0).ids == Ids{4, 5});
  options.max_expansions = 2;
  CHECK_THROWS_AS(search(table, sources({9}), options), SearchTooLong);
}
