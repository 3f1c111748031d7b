#include "heed/decode/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "heed/base/error.h"
#include "heed/text/strings/vocabulary.h"
#include "table_model.h"

using namespace heed;

namespace {

/// The textbook example in which greedy search fails: token 4 is likelier at first, but token 5 has a likelier
/// continuation.
TableModel::Table garden_path() {
  return {{{9}, {{4, 0.5}, {5, 0.4}, {3, 0.1}}},
          {{9, 4}, {{4, 0.4}, {5, 0.35}, {3, 0.25}}},
          {{9, 5}, {{3, 0.95}, {4, 0.05}}},
          {{9, 4, 4}, {{3, 1.0}}},
          {{9, 4, 5}, {{3, 1.0}}},
          {{9, 5, 4}, {{3, 1.0}}},
          {{8}, {{6, 1.0}}},
          {{8, 6}, {{3, 1.0}}}};
}

/// Returns search options for the length penalties that exist: none, two exponents of the length, and GNMT's.
std::vector<SearchOptions> length_penalties() {
  std::vector<SearchOptions> all(4);
  all[0].normalize = 0;
  all[2].normalize = 0.6;
  all[3].length_penalty = 0.8;
  return all;
}

/// A model that gives the same scores after each prefix.
class RepeatedScores : public StepModel {
 public:
  explicit RepeatedScores(std::vector<float> scores) : one_(std::move(scores)) {}
  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(one_.size()); }
  void start(const PackedIds&) override {}
  Tensor<float> step(std::span<const std::int32_t> tokens) override {
    all_.clear();
    for (std::size_t r = 0; r < tokens.size(); ++r) all_.insert(all_.end(), one_.begin(), one_.end());
    return {all_.data(), {static_cast<std::int64_t>(tokens.size()), vocabulary()}};
  }
  void reorder(std::span<const std::int32_t>) override {}
  void share_with(ThreadTeam*) override {}

 private:
  std::vector<float> one_, all_;
};

}  // namespace

TEST_CASE("greedy takes the best token, a beam finds the better sentence") {
  TableModel model(10, garden_path());
  SearchOptions options;
  options.beam_size = 1;
  options.normalize = 0;
  auto found = search(model, sources({9}), options);
  CHECK(found.at(0).at(0).ids == Ids{4, 4});
  CHECK(found[0][0].sum == doctest::Approx(std::log(0.5 * 0.4)));
  options.beam_size = 2;
  options.n_best = 2;
  found = search(model, sources({9}), options);
  REQUIRE(found.at(0).size() == 2);
  CHECK(found[0][0].ids == Ids{5});
  CHECK(found[0][0].score == doctest::Approx(std::log(0.4 * 0.95)));
  CHECK(found[0][0].log_probabilities.size() == 2);
  CHECK(found[0][1].score <= found[0][0].score);
}

TEST_CASE("sentences of a batch do not disturb each other") {
  TableModel model(10, garden_path());
  for (const int beam : {1, 2, 4}) {
    SearchOptions options;
    options.beam_size = beam;
    const auto alone = search(model, sources({9}), options), other = search(model, sources({8}), options);
    const auto both = search(model, sources({8, 9, 8}), options);
    CHECK(both.at(0).at(0).ids == other.at(0).at(0).ids);
    CHECK(both.at(1).at(0).ids == alone.at(0).at(0).ids);
    CHECK(both.at(1).at(0).score == alone.at(0).at(0).score);
    CHECK(both.at(2).at(0).ids == Ids{6});
  }
}

TEST_CASE("a beam as wide as all hypotheses finds all of them, in the order of an exhaustive search") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed)
    for (SearchOptions options : length_penalties())
      for (const int shortest : {0, 2}) {
        CAPTURE(seed);
        CAPTURE(options.normalize);
        CAPTURE(options.length_penalty);
        CAPTURE(shortest);
        options.min_output_length = shortest;
        options.max_output_length = 4;
        const TableModel::Table table = random_table(seed, 4, 6, 4);
        const std::vector<Scored> expected = every_hypothesis(table, options);
        REQUIRE(expected.size() > 81);  // 3^4 hypotheses end at the length limit, the others with </s>
        options.beam_size = options.n_best = static_cast<int>(expected.size());
        TableModel model(7, table);
        const std::vector<Hypothesis> found = search(model, sources({9}), options).at(0);
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          CAPTURE(i);
          CHECK(found[i].ids == expected[i].ids);
          CHECK(found[i].score == doctest::Approx(expected[i].score).epsilon(1e-5));
        }
      }
}

// A narrower beam may miss the best hypothesis, and a wider beam may even find a worse one. This much is sure: the beam
// returns different hypotheses, at most as many as asked for, with their true scores, best first, so that none is
// better than the best of all hypotheses; and the beam of 1 always takes the likeliest token.
TEST_CASE("a narrower beam returns different hypotheses with their true scores, best first") {
  int missed = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed)
    for (SearchOptions options : length_penalties()) {
      options.max_output_length = 4;
      const TableModel::Table table = random_table(seed, 4, 6, 4);
      const std::vector<Scored> all = every_hypothesis(table, options);
      for (const int beam : {1, 2, 3, 5, 20}) {
        CAPTURE(seed);
        CAPTURE(beam);
        options.beam_size = options.n_best = beam;
        TableModel model(7, table);
        const std::vector<Hypothesis> found = search(model, sources({9}), options).at(0);
        REQUIRE(!found.empty());
        CHECK(found.size() <= static_cast<std::size_t>(beam));
        std::set<Ids> different;
        for (std::size_t i = 0; i < found.size(); ++i) {
          const auto same =
              std::find_if(all.begin(), all.end(), [&](const Scored& one) { return one.ids == found[i].ids; });
          REQUIRE(same != all.end());
          CHECK(found[i].score == doctest::Approx(same->score).epsilon(1e-5));
          if (i > 0) CHECK(found[i].score <= found[i - 1].score);
          different.insert(found[i].ids);
        }
        CHECK(different.size() == found.size());
        missed += found[0].ids != all[0].ids;
        if (beam > 1) continue;
        Ids greedy{9};
        while (greedy.size() <= 4) {
          const auto& next = table.at(greedy);
          const auto likeliest =
              std::max_element(next.begin(), next.end(), [](auto& a, auto& b) { return a.second < b.second; });
          if (likeliest->first == kEndId) break;
          greedy.push_back(likeliest->first);
        }
        CHECK(found[0].ids == Ids(greedy.begin() + 1, greedy.end()));
      }
    }
  CHECK(missed > 0);
}

TEST_CASE("both length penalties, and length limits") {
  SearchOptions options;
  options.normalize = 1;
  CHECK(options.final_score(-3, 2) == doctest::Approx(-1.5));
  options.length_penalty = 0.6;
  CHECK(options.final_score(-3, 7) == doctest::Approx(-3 / std::pow(2.0, 0.6)));
  TableModel model(10, garden_path());
  SearchOptions limited;
  limited.beam_size = 1;
  limited.max_output_length = 1;
  CHECK(search(model, sources({9}), limited).at(0).at(0).ids == Ids{4});
  // The factor is of the pieces of the source, without </s>.
  SearchOptions by_source{.max_length_factor = 2};
  CHECK(by_source.longest(8) == 2 * 7 + 10);
  SearchOptions longer;
  longer.beam_size = 4;
  longer.min_output_length = 2;
  CHECK(search(model, sources({9}), longer).at(0).at(0).ids.size() == 2);
}

TEST_CASE("reserved ids are never produced") {
  TableModel model(10, {{{9}, {{kUnknownId, 0.6}, {kPadId, 0.2}, {kStartId, 0.1}, {7, 0.1}}}, {{9, 7}, {{3, 1.0}}}});
  for (const SearchKind kind : {SearchKind::beam, SearchKind::sample}) {
    SearchOptions options;
    options.search = kind;
    CHECK(search(model, sources({9}), options).at(0).at(0).ids == Ids{7});
  }
}

TEST_CASE("sampling follows the distribution, and its cuts") {
  TableModel::Table table{{{0}, {}}};
  table.clear();
  PackedIds many;
  for (std::int32_t i = 0; i < 3000; ++i) {
    many.append(Ids{100 + i, kEndId});
    table[{100 + i}] = {{4, 0.6}, {5, 0.3}, {6, 0.1}};
    for (const std::int32_t t : {4, 5, 6}) table[{100 + i, t}] = {{3, 1.0}};
  }
  const auto count = [&](const SearchOptions& options) {
    TableModel model(10, table);
    std::map<std::int32_t, int> counts;
    for (const auto& hypotheses : search(model, many, options)) ++counts[hypotheses.at(0).ids.at(0)];
    return counts;
  };
  SearchOptions options;
  options.search = SearchKind::sample;
  auto counts = count(options);
  CHECK(counts[4] == doctest::Approx(1800).epsilon(0.06));
  CHECK(counts[5] == doctest::Approx(900).epsilon(0.12));
  options.top_k = 2;
  counts = count(options);
  CHECK(counts[6] == 0);
  CHECK(counts[4] == doctest::Approx(2000).epsilon(0.06));
  options.top_k = 0;
  options.top_p = 0.5;
  CHECK(count(options)[4] == 3000);
  options.top_p = 1;
  options.temperature = 0;
  CHECK(count(options)[4] == 3000);
  options.temperature = 0.5;  // temperature 0.5 squares the probabilities: 36 : 9 : 1
  CHECK(count(options)[4] == doctest::Approx(3000 * 36 / 46.0).epsilon(0.06));
  options.temperature = 1;
  options.seed = 2;
  SearchOptions first;
  first.search = SearchKind::sample;
  CHECK(count(options) != count(first));
  CHECK(count(options) == count(options));
}

TEST_CASE("of many tokens, the likeliest are drawn, each as often as its probability says") {
  // 600 tokens in no order, and always two of the same score, of which the one with the lower id comes first.
  constexpr std::int32_t kFirst = 4, kTokens = 600;
  std::vector<float> scores(kFirst + kTokens, -std::numeric_limits<float>::infinity());
  scores[kUnknownId] = 2;  // a reserved id is likelier than all, and never drawn
  std::vector<std::size_t> order;
  for (std::int32_t i = 0; i < kTokens; ++i) {
    order.push_back(static_cast<std::size_t>(kFirst + i * 7 % kTokens));
    scores[order.back()] = -static_cast<float>(i / 2) / 40;
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  constexpr int kDraws = 4000;
  PackedIds source;
  for (std::int32_t i = 0; i < kDraws; ++i) source.append(Ids{100 + i, kEndId});

  struct Cut {
    int top_k;
    double top_p, temperature;
  };
  for (const Cut& cut : {Cut{0, 1, 1}, Cut{0, 1, 3}, Cut{10, 1, 1}, Cut{41, 1, 2}, Cut{300, 1, 1}, Cut{0, 0.2, 1},
                         Cut{0, 0.6, 1}, Cut{0, 0.999, 1}, Cut{0, 0.5, 3}, Cut{90, 0.7, 1}}) {
    CAPTURE(cut.top_k);
    CAPTURE(cut.top_p);
    CAPTURE(cut.temperature);
    // The definition: the first top_k tokens, and of these the fewest whose probabilities add up to top_p.
    std::vector<double> weights;
    for (const std::size_t id : order) weights.push_back(std::exp(static_cast<double>(scores[id]) / cut.temperature));
    if (cut.top_k > 0) weights.resize(static_cast<std::size_t>(cut.top_k));
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::size_t count = 0;
    double sum = 0;
    while (count < weights.size() && sum < cut.top_p * all) sum += weights[count++];
    double mean = 0, square = 0;  // of a token's place in the order
    for (std::size_t i = 0; i < count; ++i) {
      mean += static_cast<double>(i) * weights[i] / sum;
      square += static_cast<double>(i * i) * weights[i] / sum;
    }
    SearchOptions options;
    options.search = SearchKind::sample;
    options.max_output_length = 1;
    options.top_k = cut.top_k;
    options.top_p = cut.top_p;
    options.temperature = cut.temperature;
    RepeatedScores model(scores);
    double total = 0;
    std::set<std::size_t> drawn;
    for (const auto& hypotheses : search(model, source, options)) {
      const auto id = static_cast<std::size_t>(hypotheses.at(0).ids.at(0));
      const auto place = static_cast<std::size_t>(std::find(order.begin(), order.end(), id) - order.begin());
      REQUIRE(place < count);
      drawn.insert(place);
      total += static_cast<double>(place);
    }
    CHECK(std::abs(total / kDraws - mean) < 4 * std::sqrt((square - mean * mean) / kDraws));
    if (count < 60) CHECK(drawn.size() == count);
  }
}

TEST_CASE("options that do not fit together are named") {
  SearchOptions options;
  options.n_best = 9;
  CHECK_THROWS_WITH_AS(options.validate_n_best(), "--n-best 9 is more than --beam-size 4 (raise --beam-size)",
                       UsageError);
  options.n_best = 0;
  options.beam_groups = 3;
  CHECK_THROWS_WITH_AS(options.validate(),
                       "--beam-groups 3 does not divide --beam-size 4 (give a multiple of 3 with -b)", UsageError);
}

TEST_CASE("the logarithm of a sum of probabilities far below those that a float can have") {
  const float inf = std::numeric_limits<float>::infinity();
  const float all[] = {-300, -300 + std::log(3.0F), -inf}, none[] = {-inf, -inf};
  CHECK(log_sum_exp(all) == doctest::Approx(-300 + std::log(4.0)));
  CHECK(log_sum_exp(none) == -inf);
}

TEST_CASE("an ensemble is the mean of its members' probabilities") {
  TableModel::Table a{{{9}, {{4, 0.9}, {5, 0.1}}}, {{9, 4}, {{3, 1.0}}}, {{9, 5}, {{3, 1.0}}}};
  TableModel::Table b{{{9}, {{4, 0.2}, {5, 0.8}}}, {{9, 4}, {{3, 1.0}}}, {{9, 5}, {{3, 1.0}}}};
  std::vector<std::unique_ptr<StepModel>> models;
  models.push_back(std::make_unique<TableModel>(10, a));
  models.push_back(std::make_unique<TableModel>(10, b));
  EnsembleStepModel ensemble(std::move(models));
  SearchOptions options;
  options.normalize = 0;
  const auto found = search(ensemble, sources({9}), options);
  CHECK(found.at(0).at(0).ids == Ids{4});
  CHECK(found[0][0].sum == doctest::Approx(std::log(0.55)));
}
