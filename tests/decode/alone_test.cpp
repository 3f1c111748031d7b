// Checks that the translation of a line does not depend on its neighbours: every bit of every score is the same alone
// and in any batch.

#include <doctest/doctest.h>

#include "heed/decode/force.h"
#include "heed/decode/search.h"
#include "random_model.h"

using namespace heed;

namespace {

struct AloneModel : RandomModel {
  explicit AloneModel(int width = 40, const std::function<void(TransformerConfig&)>& choose = {})
      : RandomModel(83, 2, 5, width, choose) {}
};

struct Case {
  Precision precision;
  int beam;  // beam size; 0: sampling
  const AloneModel& f;
};

// How many sentences there are, and how long a translation may be.
constexpr int kAlone = kTestsBriefly ? 4 : 37, kLongest = kTestsBriefly ? 6 : SearchOptions().max_output_length;

/// Checks that each sentence gives the same bits alone and in batches of several sizes.
void check_alone(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    const auto precision = c.precision;
    const int beam = c.beam;
    const AloneModel& f = c.f;
    CAPTURE(static_cast<int>(precision));
    CAPTURE(beam);
    CAPTURE(f.config.dim_emb);
    NetworkStepModel model(*f.model, *f.parameters, precision, f.packed());
    SearchOptions options;
    options.beam_size = beam == 0 ? 4 : beam;
    options.n_best = beam == 1 ? 1 : 3;
    options.max_output_length = kLongest;
    if (beam == 0) options.search = SearchKind::sample;
    std::vector<std::vector<Hypothesis>> alone;
    PackedIds all;
    for (int s = 0; s < kAlone; ++s) {
      PackedIds one;
      one.append(random_sentence(s));
      all.append(random_sentence(s));
      alone.push_back(search(model, one, options).at(0));
    }
    for (const int size : {2, std::min(5, kAlone), kAlone}) {
      for (int begin = 0; begin < kAlone; begin += size) {
        PackedIds some;
        for (int s = begin; s < std::min(kAlone, begin + size); ++s) some.append(all.sequence(s));
        const auto found = search(model, some, options);
        for (int s = begin; s < std::min(kAlone, begin + size); ++s) {
          const auto &x = found.at(static_cast<std::size_t>(s - begin)), &y = alone.at(static_cast<std::size_t>(s));
          REQUIRE(x.size() == y.size());
          for (std::size_t i = 0; i < x.size(); ++i) {
            INFO("sentence ", s, ", batches of ", size, ", hypothesis ", i);
            CHECK(x[i].ids == y[i].ids);
            CHECK(x[i].log_probabilities == y[i].log_probabilities);
            CHECK(x[i].score == y[i].score);
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("a sentence gives the same bits alone and in batches of any size, greedy, beam and sampled") {
  const AloneModel narrow, wide(512);  // the wide model's decoder cache has 8 bits with int8
  check_alone({{Precision::float32, 1, narrow},
               {Precision::float32, 4, narrow},
               {Precision::float32, 0, narrow},
               {Precision::bfloat16, 1, narrow},
               {Precision::bfloat16, 4, narrow},
               {Precision::int8, 1, narrow},
               {Precision::int8, 4, narrow},
               {Precision::int8, 4, wide}});
}

TEST_CASE("a sentence gives the same bits alone and in batches, with every kind of Transformer") {
  for (const auto& [name, choose] : kinds_of_transformer) {
    CAPTURE(name);
    const AloneModel f(40, choose);
    check_alone({{Precision::float32, 4, f}});
    if (!kTestsBriefly) check_alone({{Precision::int8, 4, f}});
  }
}

TEST_CASE("forced scores are the search's, and do not depend on the batch either") {
  AloneModel f;
  NetworkStepModel model(*f.model, *f.parameters, Precision::float32, f.packed());
  SearchOptions options;
  Batch all;
  std::vector<Hypothesis> found;
  for (int s = 0; s < 9; ++s) {
    PackedIds one;
    one.append(random_sentence(s));
    found.push_back(search(model, one, options).at(0).at(0));
    auto source = random_sentence(s);
    source.pop_back();
    all.add(source, found.back().ids);
  }
  ForcedDecoder forced(*f.model, *f.parameters, Precision::float32, f.packed());
  const auto together = forced.scores(all);
  for (int s = 0; s < 9; ++s) {
    const auto at = static_cast<std::size_t>(s);
    Batch one;
    auto source = random_sentence(s);
    source.pop_back();
    one.add(source, found[at].ids);
    CHECK(forced.scores(one).at(0) == together.at(at));
    for (std::size_t i = 0; i < found[at].log_probabilities.size(); ++i)
      CHECK(together[at][i] == doctest::Approx(found[at].log_probabilities[i]).epsilon(1e-4));
  }
}
