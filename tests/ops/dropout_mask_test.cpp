#include "heed/ops/dropout_mask.h"

#include "heed/base/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "op_test.h"

using namespace heed;

namespace {

using Offsets = std::vector<std::int32_t>;

/// Returns whether element i is kept, by the rule that fill_dropout_mask() documents, with the scalar random generator.
bool kept_by_rule(const RandomStream& stream, std::uint32_t threshold, std::int64_t i) {
  const auto words = stream.words(static_cast<std::uint32_t>(16 * (i / 128) + i % 32 / 2));
  const std::uint32_t word = words[static_cast<std::size_t>(i / 32 % 4)];
  return (i % 2 == 0 ? word & 0xFFFF : word >> 16) >= threshold;
}

}  // namespace

TEST_CASE("dropout mask: every instruction set gives the bits of the scalar Philox, any length") {
  const RandomStream stream(0x123456789abcdefULL, RandomUse::dropout, 77, 5);
  for (const std::int64_t n : {0, 1, 15, 127, 128, 129, 1000})
    for (const std::uint32_t threshold : {0u, 1u, 20000u, 40000u, 65535u, 65536u}) {
      std::vector<std::uint8_t> kept(static_cast<std::size_t>(n) + 8, 7);
      fill_dropout_mask(stream, threshold, n, kept.data());
      bool equal = true;
      for (std::int64_t i = 0; i < n; ++i)
        equal &= kept[static_cast<std::size_t>(i)] == (kept_by_rule(stream, threshold, i) ? 1 : 0);
      CHECK(equal);
      for (std::int64_t i = n; i < n + 8; ++i) CHECK(kept[static_cast<std::size_t>(i)] == 7);
    }
}

TEST_CASE("dropout mask: the share of dropped elements is p, and 0 and 1 are exact") {
  const RandomStream stream(3, RandomUse::dropout, 1);
  std::vector<std::uint8_t> kept(1 << 20);
  const auto dropped = [&](double p) {
    fill_dropout_mask(stream, dropout_threshold(p), static_cast<std::int64_t>(kept.size()), kept.data());
    double sum = 0;
    for (const auto k : kept) sum += 1 - k;
    return sum / static_cast<double>(kept.size());
  };
  CHECK(dropped(0) == 0);
  CHECK(dropped(1) == 1);
  for (const double p : {0.1, 0.3, 0.5, 0.9}) CHECK(dropped(p) == doctest::Approx(p).epsilon(0.01));
}

TEST_CASE("dropout mask: absent without recording or with p = 0, a new stream each time else") {
  Arena arena;
  CpuContext device{arena};
  ParameterLayout layout;
  ParameterValues<float> values(layout), gradients(layout);
  Graph<float> inference(device, values), training(device, values, gradients);
  CHECK_FALSE(draw_dropout_mask(inference, 10, 10, 0.5));
  CHECK_FALSE(draw_dropout_mask(training, 10, 10, 0));
  const auto a = draw_dropout_mask(training, 10, 100, 0.5), b = draw_dropout_mask(training, 10, 100, 0.5);
  CHECK(a.scale == 2.0f);
  CHECK_FALSE(std::equal(a.kept, a.kept + 1000, b.kept));
  CHECK(draw_dropout_mask(training, 1, 10, 1).scale == 0.0f);
  CHECK_THROWS_WITH_AS(draw_dropout_mask(training, 1, 10, 1.5),
                       "internal: dropout: the probability is 1.500000 (it must be from 0 to 1)", Error);
  CHECK_THROWS_AS(dropout_threshold(std::nan("")), Error);
  const Offsets offsets{0, 3, 4};
  training.set_rows({offsets});
  CHECK_THROWS_WITH_AS(draw_dropout_mask(training, 5, 2, 0.5), "internal: dropout: 5 rows, but the sequences have 4",
                       Error);
}

TEST_CASE("dropout mask: every update, op, step and sequence has a stream of its own") {
  std::map<std::array<std::uint32_t, 4>, std::string> seen;
  for (const std::uint64_t update : {0ULL, 1ULL, 4096ULL, 0xFFFFFFFFULL})
    for (const std::uint32_t op : {0u, 1u, 4095u, 65535u})
      for (const std::uint32_t step : {0u, 1u, 65535u})
        for (const std::uint32_t first : {0u, 10u, 0xFFFFF0u})
          for (const int sequence : {0, 1, 9}) {
            const RandomStream stream = DropoutStreams{{11, update}, op, step, first, {}}.of(sequence);
            const std::string name = "update " + std::to_string(update) + " op " + std::to_string(op) + " step " +
                                     std::to_string(step) + " sequence " + std::to_string(first + sequence);
            const auto [other, is_new] = seen.emplace(stream.counter(), name);
            CHECK_MESSAGE(is_new, name << " draws what " << other->second << " draws");
            CHECK((stream.counter()[1] >> 24) == static_cast<std::uint32_t>(RandomUse::dropout));
          }
}

TEST_CASE("dropout mask: a sequence has the same mask alone, in a batch, and under a name") {
  Arena arena;
  CpuContext device{arena};
  ParameterLayout layout;
  ParameterValues<float> values(layout), gradients(layout);
  Graph<float> graph(device, values, gradients);
  const Offsets all{0, 3, 10, 11}, last{0, 1}, turned{0, 1, 8}, names{2, 1};
  constexpr std::int64_t columns = 50;
  const auto draw = [&](const Offsets& offsets, std::uint32_t first, std::span<const std::int32_t> order = {}) {
    graph.reset();
    graph.set_dropout({7, 1}, first);
    graph.set_rows({offsets}, order);
    draw_dropout_mask(graph, offsets.back(), columns, 0.5);  // the second op is compared
    const auto mask = draw_dropout_mask(graph, offsets.back(), columns, 0.5);
    return std::vector<std::uint8_t>(mask.kept, mask.kept + offsets.back() * columns);
  };
  const auto whole = draw(all, 20), alone = draw(last, 22), other = draw(turned, 20, names);
  CHECK(std::equal(alone.begin(), alone.end(), whole.begin() + 10 * columns));
  CHECK(std::equal(alone.begin(), alone.end(), other.begin()));
  CHECK(std::equal(other.begin() + columns, other.end(), whole.begin() + 3 * columns));
  CHECK_FALSE(std::equal(alone.begin(), alone.end(), whole.begin()));
}
