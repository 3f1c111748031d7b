// Checks that a shortlist changes only which pieces may be produced. The scores of these pieces stay the same, bit for
// bit, and a line's translation does not depend on its neighbours.

#include <doctest/doctest.h>

#include <algorithm>

#include "heed/base/thread_team.h"
#include "heed/decode/search.h"
#include "random_model.h"
#include "random_shortlist.h"
#include "same_hypotheses.h"

using namespace heed;

namespace {

struct ListedModel : RandomModel {
  explicit ListedModel(std::uint64_t seed = 5) : RandomModel(kPieces, 1, seed) {}

  std::unique_ptr<NetworkStepModel> step_model(Precision precision, std::shared_ptr<const Shortlist> list = {}) const {
    return std::make_unique<NetworkStepModel>(*model, *parameters, precision, nullptr, std::move(list));
  }
};

PackedIds sentences(int begin, int end) {
  PackedIds out;
  for (int s = begin; s < end; ++s) out.append(random_sentence(s));
  return out;
}

std::shared_ptr<const Shortlist> shortlist(int frequent, int best) {
  return random_shortlist(kPieces, frequent, best);
}

struct Way {
  Precision precision;
  SearchKind search;
  int beam;
};
const Way kWays[] = {{Precision::float32, SearchKind::beam, 1},   {Precision::float32, SearchKind::beam, 4},
                     {Precision::float32, SearchKind::beam, 200}, {Precision::float32, SearchKind::sample, 4},
                     {Precision::bfloat16, SearchKind::beam, 1},  {Precision::bfloat16, SearchKind::beam, 4},
                     {Precision::int8, SearchKind::beam, 1},      {Precision::int8, SearchKind::beam, 4},
                     {Precision::int8, SearchKind::sample, 4}};

SearchOptions options_of(const Way& way) {
  SearchOptions options;
  options.search = way.search;
  options.beam_size = way.beam;
  options.n_best = std::min(way.beam, 3);
  options.max_output_length = way.beam > 100 ? 3 : 12;
  return options;
}

}  // namespace

TEST_CASE("a shortlist of all pieces gives the bits of a search without one") {
  const ListedModel f;
  const auto all = shortlist(kPieces - 4, 1);
  for (const Way& way : kWays) {
    CAPTURE(static_cast<int>(way.precision));
    CAPTURE(way.beam);
    const PackedIds source = sentences(0, way.beam > 100 ? 3 : 21);
    const auto without = search(*f.step_model(way.precision), source, options_of(way));
    const auto with = search(*f.step_model(way.precision, all), source, options_of(way));
    REQUIRE(with.size() == without.size());
    for (std::size_t s = 0; s < with.size(); ++s) check_same(with[s], without[s]);
  }
}

TEST_CASE("with a shortlist a sentence gives the same bits alone and in batches, by one thread and by several") {
  const ListedModel f;
  ThreadTeam team(3);
  for (const auto& list : {shortlist(20, 30), shortlist(0, 2)})
    for (const Way& way : kWays) {
      CAPTURE(static_cast<int>(way.precision));
      CAPTURE(way.beam);
      const int count = way.beam > 100 || kTestsBriefly ? 5 : 37;
      const auto model = f.step_model(way.precision, list);
      std::vector<std::vector<Hypothesis>> alone;
      for (int s = 0; s < count; ++s) {
        model->share_with(s % 2 == 0 ? &team : nullptr);
        alone.push_back(search(*model, sentences(s, s + 1), options_of(way)).at(0));
      }
      model->share_with(nullptr);
      for (const int size : {2, 5, count})
        for (int begin = 0; begin < count; begin += size) {
          const int end = std::min(count, begin + size);
          const auto found = search(*model, sentences(begin, end), options_of(way));
          for (int s = begin; s < end; ++s) {
            INFO("sentence ", s, ", batches of ", size);
            check_same(found.at(static_cast<std::size_t>(s - begin)), alone.at(static_cast<std::size_t>(s)));
          }
        }
    }
}

TEST_CASE("pieces outside of a source's list are never produced") {
  const ListedModel f, g(9);
  for (const auto& list : {shortlist(20, 30), shortlist(0, 2)})
    for (const Way& way : kWays) {
      std::vector<std::unique_ptr<StepModel>> both;
      both.push_back(f.step_model(way.precision, list));
      both.push_back(g.step_model(way.precision, list));
      EnsembleStepModel ensemble(std::move(both));
      for (StepModel* model :
           {static_cast<StepModel*>(f.step_model(way.precision, list).release()), static_cast<StepModel*>(&ensemble)}) {
        const std::unique_ptr<StepModel> owned(model == &ensemble ? nullptr : model);
        const int count = way.beam > 100 ? 3 : 15;
        const auto found = search(*model, sentences(0, count), options_of(way));
        bool any = false;
        for (int s = 0; s < count; ++s) {
          std::vector<std::int32_t> allowed;
          list->targets_of(random_sentence(s), allowed);
          for (const Hypothesis& hypothesis : found.at(static_cast<std::size_t>(s)))
            for (const std::int32_t id : hypothesis.ids) {
              CHECK(std::binary_search(allowed.begin(), allowed.end(), id));
              CHECK(id > kEndId);
              any = true;
            }
        }
        CHECK(any);
      }
    }
}
