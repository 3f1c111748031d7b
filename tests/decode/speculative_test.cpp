// Checks that a search with a draft model finds what the search without it finds, bit for bit, whatever the draft model
// proposes.

#include "heed/decode/speculative_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/base/random.h"
#include "heed/base/thread_team.h"
#include "heed/decode/hypotheses.h"
#include "heed/decode/search.h"
#include "heed/text/strings/vocabulary.h"
#include "random_model.h"
#include "random_shortlist.h"
#include "same_hypotheses.h"

using namespace heed;

namespace {

constexpr int kSentences = 11;

std::unique_ptr<NetworkStepModel> step_model(const RandomModel& f, Precision precision,
                                             std::shared_ptr<const Shortlist> list = {}) {
  return std::make_unique<NetworkStepModel>(*f.model, *f.parameters, precision, nullptr, std::move(list));
}

/// Returns the model of this seed with noise on its weights, so that it often prefers the same tokens.
RandomModel disturbed(std::uint64_t seed, int layers, int width, float noise) {
  RandomModel f(kPieces, layers, seed, width);
  const RandomStream stream(3, RandomUse::sampling);
  std::uint64_t draws = 0;
  for (float& x : f.parameters->flat()) x *= 1 + noise * static_cast<float>(stream.normal(draws++));
  return f;
}

/// Returns limits without the least probability of a guess: the random models are seldom sure of any token.
DraftLimits limits(int length, std::optional<int> longest = std::nullopt) {
  return {.length = length, .least_probability = 0, .longest = longest};
}

PackedIds sentence(int seed) {
  PackedIds out;
  out.append(random_sentence(seed));
  return out;
}

/// Returns options of greedy searches: with the default limits, with limits that cut or lengthen the translations, and
/// with other scores.
std::vector<SearchOptions> greedy_options() {
  std::vector<SearchOptions> all(5);
  for (SearchOptions& options : all) {
    options.beam_size = 1;
    options.max_output_length = 27;
  }
  all[1].max_output_length = 1;
  all[2].max_output_length = 7;
  all[2].n_best = 1;
  all[3].min_output_length = all[3].max_output_length = 23;  // longer than the first capacity of the cache
  all[4].min_output_length = 3;
  all[4].length_penalty = 0.7;
  return all;
}

}  // namespace

TEST_CASE("greedy search with a draft model gives the bits of the search without it") {
  const RandomModel narrow(kPieces, 2, 5), wide(kPieces, 1, 5, 512);  // the wide model's cache has 8 bits with int8
  const RandomModel other(kPieces, 1, 77), alike = disturbed(5, 2, 40, 0.05F);
  const RandomModel alike_wide = disturbed(5, 1, 512, 0.05F);
  struct Case {
    const RandomModel &f, &draft;
    Precision precision;
    std::shared_ptr<const Shortlist> list = nullptr;
    bool team = false;
  };
  ThreadTeam team(3);
  for (const Case& c : {Case{narrow, narrow, Precision::float32},
                        {narrow, other, Precision::float32},
                        {narrow, alike, Precision::float32},
                        {narrow, alike, Precision::float32, nullptr, true},
                        {narrow, alike, Precision::bfloat16},
                        {narrow, narrow, Precision::int8},
                        {narrow, other, Precision::int8},
                        {narrow, alike, Precision::int8},
                        {wide, alike_wide, Precision::int8},
                        {narrow, alike, Precision::float32, random_shortlist(kPieces, 20, 30)},
                        {narrow, alike, Precision::int8, random_shortlist(kPieces, 0, 2)}}) {
    if (kTestsBriefly && !c.team) continue;
    CAPTURE(static_cast<int>(c.precision));
    CAPTURE(c.f.config.dim_emb);
    const auto plain = step_model(c.f, c.precision, c.list);
    const auto all = greedy_options();
    std::vector<std::vector<Hypothesis>> expected;
    for (const SearchOptions& options : all)
      for (int s = 0; s < kSentences; ++s) expected.push_back(search(*plain, sentence(s), options).at(0));
    for (const int length : {1, 4}) {
      CAPTURE(length);
      SpeculativeStepModel model(step_model(c.f, c.precision, c.list), step_model(c.draft, c.precision, c.list),
                                 limits(length));
      model.share_with(c.team ? &team : nullptr);
      std::size_t next = 0;
      std::int64_t scores = 0;
      for (const SearchOptions& options : all)
        for (int s = 0; s < kSentences; ++s) {
          CAPTURE(s);
          const auto found = search(model, sentence(s), options).at(0);
          scores += std::ssize(found.at(0).log_probabilities);
          check_same(found, expected[next++]);
        }
      // Every score comes from a step of the model or from a token that was right.
      const DraftCounts counts = model.counts();
      CHECK(counts.sentences == std::ssize(all) * kSentences);
      CHECK(counts.steps + counts.accepted == scores);
      CHECK(counts.proposed >= counts.accepted);
      CHECK(counts.proposed <= counts.steps * length);
      if (&c.draft == &other) CHECK(counts.accepted < scores / 10);
      if (&c.draft != &other) CHECK(counts.accepted > scores / 10);
      if (&c.draft != &c.f) CHECK(counts.accepted < counts.proposed);
    }
  }
}

// What the draft model proposes does not show in the translations. This test therefore computes the proposals again
// with single steps of the draft model, and from them the counts.
TEST_CASE("the draft model proposes what it finds likeliest after the tokens of the translation") {
  const RandomModel f(kPieces, 2, 5), alike = disturbed(5, 2, 40, 0.05F);
  SearchOptions options;
  options.beam_size = 1;
  options.min_output_length = options.max_output_length = 16;
  std::int64_t most = 0;  // the accepted tokens of the case before, with the same draft model
  for (const auto& [draft, least] : {std::pair(&f, 0.0), {&f, 0.005}, {&alike, 0.0}, {&alike, 0.005}}) {
    CAPTURE(least);
    const DraftLimits limits{.length = 3, .least_probability = least};
    SpeculativeStepModel model(step_model(f, Precision::float32), step_model(*draft, Precision::float32), limits);
    const auto guesser = step_model(*draft, Precision::float32);
    Arena arena;
    CpuContext device{arena};
    std::int64_t steps = 0, proposed = 0, accepted = 0;
    for (int s = 0; s < kSentences; ++s) {
      std::vector<std::int32_t> fed = search(model, sentence(s), options).at(0).at(0).ids;
      fed.insert(fed.begin(), kStartId);
      fed.pop_back();  // the last token is not fed
      for (std::size_t at = 0; at < fed.size(); ++steps) {
        guesser->start(sentence(s));
        std::vector<std::int32_t> tokens(fed.begin(), fed.begin() + static_cast<std::ptrdiff_t>(at) + 1), ids(4);
        std::vector<float> values(4);
        for (std::size_t i = 0; i < at; ++i)
          guesser->step(std::span(&tokens[i], 1), device, 4, values.data(), ids.data());
        double all_right = 1;
        while (tokens.size() <= at + 3) {
          guesser->step(std::span(&tokens.back(), 1), device, 4, values.data(), ids.data());
          const auto best =
              static_cast<std::size_t>(std::find_if_not(ids.begin(), ids.end(), is_forbidden) - ids.begin());
          all_right *= std::exp(static_cast<double>(values[best]));
          if (ids[best] == kEndId || all_right < least) break;
          tokens.push_back(ids[best]);
        }
        proposed += std::ssize(tokens) - 1 - static_cast<std::int64_t>(at);
        const std::size_t before = at++;
        while (at < fed.size() && at < tokens.size() && fed[at] == tokens[at]) ++at;
        accepted += static_cast<std::int64_t>(at - before) - 1;
      }
    }
    CHECK(model.counts().steps == steps);
    CHECK(model.counts().proposed == proposed);
    CHECK(model.counts().accepted == accepted);
    if (least > 0) CHECK((accepted > 0 && accepted < most));
    most = accepted;
  }
}

TEST_CASE("batches of several sentences, wider beams and samples are the model's, too") {
  const RandomModel f(kPieces, 2, 5), alike = disturbed(5, 2, 40, 0.05F);
  const auto plain = step_model(f, Precision::float32);
  SpeculativeStepModel model(step_model(f, Precision::float32), step_model(alike, Precision::float32), limits(3));
  PackedIds batch;
  for (int s = 0; s < 5; ++s) batch.append(random_sentence(s));
  for (const SearchKind kind : {SearchKind::beam, SearchKind::sample})
    for (const int beam : {1, 3}) {
      SearchOptions options;
      options.search = kind;
      options.beam_size = beam;
      options.n_best = beam;
      options.max_output_length = 20;
      const auto expected = search(*plain, batch, options), found = search(model, batch, options);
      for (std::size_t s = 0; s < 5; ++s) {
        check_same(found.at(s), expected.at(s));
        check_same(search(model, sentence(static_cast<int>(s)), options).at(0), expected[s]);
      }
    }
}

TEST_CASE("learned positions of both models end, and the translation is the same") {
  const auto learned = [](int positions, std::uint64_t seed) {
    RandomModel f(kPieces, 1, seed);
    f.config.positions = PositionEncoding::learned;
    f.config.max_positions = positions;
    f.model = std::make_unique<Transformer<float>>(f.config);
    f.parameters = std::make_unique<ParameterValues<float>>(f.model->layout());
    f.parameters->initialise(seed);
    for (float& x : f.parameters->flat()) x *= 2;
    return f;
  };
  const RandomModel long_model = learned(13, 5);
  for (const int positions : {4, 9, 13, 20}) {
    CAPTURE(positions);
    const RandomModel draft = positions == 13 ? learned(13, 5) : learned(positions, 6);
    const auto plain = step_model(long_model, Precision::float32);
    SpeculativeStepModel model(step_model(long_model, Precision::float32), step_model(draft, Precision::float32),
                               limits(5, std::min(positions, 13)));
    SearchOptions options;
    options.beam_size = 1;
    options.max_output_length = 12;
    options.min_output_length = 12;
    for (int s = 0; s < kSentences; ++s)
      check_same(search(model, sentence(s), options).at(0), search(*plain, sentence(s), options).at(0));
    CHECK(model.counts().sentences == (positions == 4 ? 3 : positions == 9 ? 8 : kSentences));
  }
}

TEST_CASE("a draft model whose weights are damaged is never right and does no harm") {
  const RandomModel f(kPieces, 1, 5), damaged(kPieces, 1, 6);
  for (float& x : damaged.parameters->flat()) x = std::numeric_limits<float>::quiet_NaN();
  const auto plain = step_model(f, Precision::float32);
  SpeculativeStepModel model(step_model(f, Precision::float32), step_model(damaged, Precision::float32), limits(5));
  SearchOptions options;
  options.beam_size = 1;
  for (int s = 0; s < kSentences; ++s)
    check_same(search(model, sentence(s), options).at(0), search(*plain, sentence(s), options).at(0));
  CHECK(model.counts().proposed == 0);
}
