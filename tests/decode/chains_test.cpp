// Checks that a step with several tokens for each row gives the bits of as many steps with one token.

#include <doctest/doctest.h>

#include <algorithm>

#include "heed/base/thread_team.h"
#include "heed/decode/step_model.h"
#include "heed/text/strings/vocabulary.h"
#include "random_model.h"
#include "random_shortlist.h"

using namespace heed;

namespace {

constexpr std::int64_t kBest = 5;
constexpr int kLength = kTestsBriefly ? 10 : 14;

using Ids = std::vector<std::int32_t>;

/// The best next tokens of several rows, as a step returns them.
struct Best {
  std::vector<float> values;
  Ids ids;
  explicit Best(std::size_t rows) : values(rows * kBest), ids(rows * kBest) {}
  bool operator==(const Best&) const = default;
  Best row(std::size_t r) const {
    Best out(1);
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(r * kBest), kBest, out.values.begin());
    std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(r * kBest), kBest, out.ids.begin());
    return out;
  }
};

/// Returns the token that is fed to a sentence at a position.
std::int32_t token(std::size_t sentence, std::size_t position) {
  return position == 0 ? kStartId : static_cast<std::int32_t>(4 + (sentence * 53 + position * position * 17) % 90);
}

struct ChainCase {
  const RandomModel& f;
  Precision precision;
  std::shared_ptr<const Shortlist> list;
  bool team = false;
};

/// Checks that a chain of tokens gives the bits of single steps, and that a row can go back to any of its tokens.
void check_chains(std::initializer_list<ChainCase> cases) {
  ThreadTeam team(3);
  for (const ChainCase& c : cases) {
    CAPTURE(static_cast<int>(c.precision));
    CAPTURE(c.f.config.dim_emb);
    CAPTURE(c.list != nullptr);
    NetworkStepModel model(*c.f.model, *c.f.parameters, c.precision, c.f.packed(), c.list);
    PackedIds source;
    for (const int seed : {3, 8, 21}) source.append(random_sentence(seed));
    Arena arena;
    CpuContext device{arena, c.precision};
    // expected[s][t]: the best next tokens of sentence s after t + 1 tokens.
    std::vector<std::vector<Best>> expected(3);
    model.start(source);
    for (std::size_t t = 0; t < kLength; ++t) {
      Best best(3);
      model.step(Ids{token(0, t), token(1, t), token(2, t)}, device, kBest, best.values.data(), best.ids.data());
      for (std::size_t s = 0; s < 3; ++s) expected[s].push_back(best.row(s));
    }
    model.share_with(c.team ? &team : nullptr);
    for (const int way : {0, 1, 2}) {
      CAPTURE(way);
      model.start(source);
      std::vector<std::size_t> fed(3);  // how many tokens the row of each sentence has been fed
      for (std::size_t round = 0; *std::max_element(fed.begin(), fed.end()) + 4 <= kLength; ++round) {
        // Feeds 1 to 4 tokens to each row.
        Ids tokens, counts;
        for (std::size_t s = 0; s < 3; ++s) {
          counts.push_back(static_cast<std::int32_t>(1 + (round * 2 + s) % 4));
          for (std::int32_t i = 0; i < counts[s]; ++i) tokens.push_back(token(s, fed[s] + static_cast<std::size_t>(i)));
        }
        Best best(tokens.size());
        model.step_chains(tokens, counts, device, kBest, best.values.data(), best.ids.data());
        std::size_t row = 0;
        Ids kept, lengths;
        for (std::size_t s = 0; s < 3; ++s) {
          for (std::int32_t i = 0; i < counts[s]; ++i, ++row) {
            CAPTURE(s);
            CAPTURE(fed[s] + static_cast<std::size_t>(i));
            CHECK(best.row(row) == expected[s][fed[s] + static_cast<std::size_t>(i)]);
          }
          // Keeps all tokens (way 0) or half of them, by choosing an earlier row of the chain (way 1) or by cutting the
          // last row off (way 2).
          const std::int32_t right = way == 0 ? counts[s] : (counts[s] + 1) / 2;
          kept.push_back(static_cast<std::int32_t>(row) - counts[s] + (way == 1 ? right : counts[s]) - 1);
          fed[s] += static_cast<std::size_t>(right);
          lengths.push_back(static_cast<std::int32_t>(fed[s]));
        }
        model.reorder(kept);
        if (way == 2) model.truncate(lengths);
      }
      CHECK(*std::min_element(fed.begin(), fed.end()) > 4);
    }
    model.share_with(nullptr);
  }
}

}  // namespace

TEST_CASE("a chain of tokens gives the bits of single steps, and a row can go back to any of its tokens") {
  const RandomModel narrow(kPieces, 2, 5), wide(kPieces, 1, 6, 512);  // the wide model's cache has 8 bits with int8
  check_chains({{narrow, Precision::float32, nullptr},
                {narrow, Precision::float32, nullptr, true},
                {narrow, Precision::bfloat16, nullptr},
                {narrow, Precision::int8, nullptr},
                {wide, Precision::int8, nullptr},
                {narrow, Precision::float32, random_shortlist(kPieces, 20, 30)},
                {narrow, Precision::int8, random_shortlist(kPieces, 0, 2)}});
}

TEST_CASE("a chain of tokens gives the bits of single steps with every kind of Transformer") {
  for (const auto& [name, choose] : kinds_of_transformer) {
    CAPTURE(name);
    const RandomModel f(kPieces, 2, 5, 40, choose);
    check_chains({{f, Precision::float32, nullptr}});
    if (!kTestsBriefly) check_chains({{f, Precision::int8, nullptr}});
  }
}
