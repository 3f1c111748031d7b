#include "heed/decode/score_rules.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "random_model.h"
#include "same_hypotheses.h"
#include "table_model.h"

using namespace heed;

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

/// Returns the log-probabilities of the tokens 0 ... 7, equally likely before the rule, after a history.
std::vector<float> apply(const ScoreRule& rule, const Ids& history) {
  std::vector<float> scores(8, 5.0F);
  const auto normalizer = static_cast<float>(5 + std::log(8.0));
  NextTokens next(scores, normalizer);
  rule.apply(0, history, next);
  next.finish();
  double sum = 0;
  for (float& each : scores) sum += std::exp(static_cast<double>(each -= normalizer));
  CHECK(sum == doctest::Approx(1));
  return scores;
}

/// Returns the tokens but <pad> whose log-probability is another one than at first.
std::vector<std::int32_t> changed(const std::vector<float>& log_probabilities) {
  std::vector<std::int32_t> out;
  for (std::size_t i = 1; i < log_probabilities.size(); ++i)
    if (std::abs(log_probabilities[i] + std::log(8.0F)) > 1e-5F) out.push_back(static_cast<std::int32_t>(i));
  return out;
}

bool has_repeated(const Ids& ids, std::size_t n) {
  std::set<Ids> seen;
  for (std::size_t i = 0; i + n <= ids.size(); ++i)
    if (!seen.insert(Ids(ids.begin() + std::ptrdiff_t(i), ids.begin() + std::ptrdiff_t(i + n))).second) return true;
  return false;
}

}  // namespace

TEST_CASE("the token that would repeat an n-gram is forbidden, and no other") {
  CHECK(changed(apply(NoRepeatedNgram(2), {4, 5, 6, 4})) == Ids{5});
  CHECK(apply(NoRepeatedNgram(2), {4, 5, 6, 4})[5] == kNever);
  CHECK(changed(apply(NoRepeatedNgram(2), {4, 5, 4, 7, 4})) == Ids{5, 7});
  CHECK(changed(apply(NoRepeatedNgram(2), {4, 4})) == Ids{4});
  CHECK(changed(apply(NoRepeatedNgram(2), {4})).empty());
  CHECK(changed(apply(NoRepeatedNgram(2), {})).empty());
  CHECK(changed(apply(NoRepeatedNgram(1), {4, 6})) == Ids{4, 6});
  CHECK(changed(apply(NoRepeatedNgram(3), {4, 5, 6, 4, 5})) == Ids{6});
  CHECK(changed(apply(NoRepeatedNgram(3), {5, 6, 4, 5})).empty());
}

TEST_CASE("the repetition penalty multiplies the log-probability of each earlier token, once") {
  const auto after = apply(RepetitionPenalty(1.5), {6, 4, 6});
  CHECK(changed(after) == Ids{4, 6});
  CHECK(after[4] == doctest::Approx(-1.5 * std::log(8.0)));
  CHECK(after[6] == after[4]);
}

TEST_CASE("rules hold in every search, and leave the model's scores as they are") {
  RandomModel random(40, 2, 11);
  NetworkStepModel model(*random.model, *random.parameters, Precision::float32);
  PackedIds source;
  for (int s = 0; s < 12; ++s) source.append(random_sentence(s));
  SearchOptions options;
  options.max_output_length = 12;
  options.min_output_length = 8;
  options.n_best = 4;
  const auto free = search(model, source, options);
  const auto repeats = [](const std::vector<std::vector<Hypothesis>>& all, std::size_t n) {
    int count = 0;
    for (const auto& hypotheses : all)
      for (const Hypothesis& each : hypotheses) count += has_repeated(each.ids, n);
    return count;
  };
  REQUIRE(repeats(free, 2) > 0);
  for (const SearchKind kind : {SearchKind::beam, SearchKind::sample})
    for (const int n : {1, 2, 3}) {
      options.search = kind;
      options.no_repeat_ngram_size = n;
      CHECK(repeats(search(model, source, options), static_cast<std::size_t>(n)) == 0);
    }
  options.search = SearchKind::beam;
  options.no_repeat_ngram_size = 100;  // longer than any output: nothing is forbidden
  const auto same = search(model, source, options);
  for (std::size_t s = 0; s < same.size(); ++s)
    for (std::size_t i = 0; i < same[s].size(); ++i) {
      CHECK(same[s][i].ids == free[s][i].ids);
      CHECK(same[s][i].sum == doctest::Approx(free[s][i].sum).epsilon(1e-5));
    }
}

TEST_CASE("the beam of full width equals exhaustive search with rules") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SearchOptions options;
    options.max_output_length = 4;
    options.no_repeat_ngram_size = 2;
    options.repetition_penalty = 1.3;
    options.n_best = 8;
    options.beam_size = 200;
    TableModel model(7, random_table(seed, 4, 6, 4));
    const auto widest = search(model, sources({9}), options).at(0);
    options.search = SearchKind::exhaustive;
    options.beam_size = 1;
    const auto found = search(model, sources({9}), options).at(0);
    REQUIRE(found.size() == widest.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].ids == widest[i].ids);
      CHECK(found[i].score == doctest::Approx(widest[i].score).epsilon(1e-5));
      CHECK(!has_repeated(found[i].ids, 2));
    }
  }
}

TEST_CASE("a temperature of 0 is greedy search, bit for bit") {
  RandomModel random(50, 2, 5);
  NetworkStepModel model(*random.model, *random.parameters, Precision::float32);
  PackedIds source;
  for (int s = 0; s < 9; ++s) source.append(random_sentence(s));
  SearchOptions options;
  options.beam_size = 1;
  const auto greedy = search(model, source, options);
  options.search = SearchKind::sample;
  options.temperature = 0;
  options.n_best = 2;
  const auto sampled = search(model, source, options);
  for (std::size_t s = 0; s < greedy.size(); ++s) check_same(sampled[s], {greedy[s][0], greedy[s][0]});
}

TEST_CASE("a temperature of 0 gives equal samples at the length limit, too, where a hypothesis may also go on") {
  TableModel model(10, {{{9}, {{3, 0.6}, {4, 0.4}}}});
  SearchOptions options;
  options.search = SearchKind::sample;
  options.temperature = 0;
  options.max_output_length = 1;
  options.n_best = 3;
  const auto sampled = search(model, sources({9}), options).at(0);
  REQUIRE(sampled.size() == 3);
  for (const Hypothesis& each : sampled) CHECK(each.ids.empty());
}

TEST_CASE("diverse beam search: groups avoid the tokens of earlier groups") {
  // One group: 4 and 5 begin the two best hypotheses.
  const TableModel::Table table{{{9}, {{4, 0.5}, {5, 0.3}, {6, 0.2}}},
                                {{9, 4}, {{4, 0.55}, {5, 0.45}}},
                                {{9, 5}, {{3, 1.0}}},
                                {{9, 6}, {{3, 1.0}}},
                                {{9, 4, 4}, {{3, 1.0}}},
                                {{9, 4, 5}, {{3, 1.0}}}};
  SearchOptions options;
  options.beam_size = options.n_best = 2;
  options.normalize = 0;
  options.beam_groups = 2;
  const auto first_tokens = [&](double strength) {
    options.diversity_strength = strength;
    TableModel model(10, table);
    std::vector<Ids> out;
    const auto found = search(model, sources({9}), options);
    for (const Hypothesis& each : found.at(0)) out.push_back(each.ids);
    return out;
  };
  // Without strength, both groups are greedy search: the same hypothesis, which is returned once.
  CHECK(first_tokens(0) == std::vector<Ids>{{4, 4}});
  // log 0.5 - 0.5 is more than log 0.3, but in the second step log 0.55 - 0.5 is less than log 0.45.
  CHECK(first_tokens(0.5) == std::vector<Ids>{{4, 4}, {4, 5}});
  // log 0.5 - 0.6 is less than log 0.3: the second group takes 5.
  CHECK(first_tokens(0.6) == std::vector<Ids>{{5}, {4, 4}});
  // So it does where both groups end at the length limit.
  options.max_output_length = 1;
  CHECK(first_tokens(0.6) == std::vector<Ids>{{4}, {5}});
  options.max_output_length = 1000;
  // The scores are those of the model.
  options.diversity_strength = 0.6;
  TableModel model(10, table);
  const auto found = search(model, sources({9, 9}), options);
  CHECK(found.at(1).at(0).sum == doctest::Approx(std::log(0.3)));
  CHECK(found.at(1).at(1).sum == doctest::Approx(std::log(0.5 * 0.55)));
}

TEST_CASE("diverse beam search does not depend on the other sentences, and widens a list") {
  RandomModel random(60, 2, 9);
  NetworkStepModel model(*random.model, *random.parameters, Precision::float32);
  SearchOptions options;
  options.beam_size = options.n_best = 6;
  options.beam_groups = 3;
  options.diversity_strength = 1;
  PackedIds all;
  for (int s = 0; s < 8; ++s) all.append(random_sentence(s));
  const auto together = search(model, all, options);
  for (int s = 0; s < 8; ++s) {
    PackedIds one;
    one.append(random_sentence(s));
    check_same(search(model, one, options).at(0), together.at(static_cast<std::size_t>(s)));
  }
  const auto kinds_of_beginning = [&](const std::vector<std::vector<Hypothesis>>& found) {
    std::size_t count = 0;
    for (const auto& hypotheses : found) {
      std::set<std::int32_t> first;
      for (const Hypothesis& each : hypotheses)
        if (!each.ids.empty()) first.insert(each.ids.front());
      count += first.size();
    }
    return count;
  };
  const std::size_t diverse = kinds_of_beginning(together);
  options.beam_groups = 1;
  CHECK(diverse > kinds_of_beginning(search(model, all, options)));
}
