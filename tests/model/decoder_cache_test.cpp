#include "heed/model/decoder_cache.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace heed;

namespace {

constexpr int kLayers = 2, kHeads = 4;

/// Decodes one number of a key or value in the cache: integer times scale, or float32, depending on the format.
double number(const CachedRows<float>& rows, std::int64_t row, std::int64_t column, std::int64_t width) {
  const std::byte* const at = rows.data + row * rows.stride;
  const auto scale = [&] {
    const std::int64_t head = rows.format == CacheFormat::int8 ? column / (width / kHeads) : 0;
    return static_cast<double>(reinterpret_cast<const float*>(at + rows.scales)[head]);
  };
  switch (rows.format) {
    case CacheFormat::int16:
      return reinterpret_cast<const std::int16_t*>(at)[column] * scale();
    case CacheFormat::int8:
      return reinterpret_cast<const std::int8_t*>(at)[column] * scale();
    default:
      return static_cast<double>(reinterpret_cast<const float*>(at)[column]);
  }
}

/// The expected content of one row of the cache: the row's sentence, and for each position the number `made` from which
/// value_of() computes the position's keys and values.
struct Hypothesis {
  std::int32_t sentence;
  std::vector<int> positions;
};

/// Computes column c of a layer's query (part 0), key (part 1) or value (part 2) as a function of `made`, a number that
/// is different for each position of each hypothesis.
float value_of(int made, int layer, int part, std::int64_t c) {
  return std::sin(static_cast<float>(made * 31 + layer * 7 + part * 3) + 0.37F * static_cast<float>(c)) *
         static_cast<float>(1 + part + c % 5);
}

}  // namespace

TEST_CASE(
    "DecoderCache: rows keep their keys and values while hypotheses come, go, are reordered and cut, and grow by "
    "chains") {
  struct Case {
    Precision precision;
    std::int64_t width;
    CacheFormat format;
    double error;  // largest error allowed; the largest number in the cache is 7
  };
  for (const Case& c : {Case{Precision::float32, 512, CacheFormat::exact, 0},
                        {Precision::bfloat16, 512, CacheFormat::int16, 0.6 * 7 / 32767},
                        {Precision::int8, 64, CacheFormat::int16, 0.6 * 7 / 32767},
                        {Precision::int8, 512, CacheFormat::int8, 0.6 * 7 / 127}}) {
    CAPTURE(static_cast<int>(c.precision));
    CAPTURE(c.width);
    std::mt19937 random(7);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    Arena arena;
    CpuContext device{arena, c.precision};
    DecoderCache<float> cache(device, kLayers, c.width, kHeads);
    std::vector<float> qkv;
    int made = 0;
    for (int batch = 0; batch < 2; ++batch) {  // the second batch reuses the memory of the first batch
      const std::vector<std::int32_t> source{0, 3, 5, 9};
      cache.begin({source});
      for (int layer = 0; layer < kLayers; ++layer) {
        std::vector<float> kv;
        for (int token = 0; token < source.back(); ++token)
          for (int part = 1; part < 3; ++part)
            for (std::int64_t k = 0; k < c.width; ++k) kv.push_back(value_of(1000 + token, layer, part, k));
        cache.set_memory(layer, {kv.data(), {source.back(), 2 * c.width}});
      }
      std::vector<Hypothesis> expected{{0, {}}, {1, {}}, {2, {}}};
      for (int step = 0; step < 40; ++step) {  // 40 steps need more than the 16 positions of the first capacity
        if (step % 3 == 1) {  // a chain of 0 to 4 positions for each row, at least one for the first row
          std::vector<std::int32_t> counts;
          std::vector<Hypothesis> chains;
          for (Hypothesis each : expected) {
            counts.push_back(static_cast<std::int32_t>(below(5) + (counts.empty() ? 1 : 0)));
            for (std::int32_t i = 0; i < counts.back(); ++i) {
              each.positions.push_back(made++);
              chains.push_back(each);
            }
          }
          cache.begin_chains(counts);
          expected = chains;
        } else {
          cache.begin_step();
          for (Hypothesis& each : expected) each.positions.push_back(made++);
        }
        for (int layer = 0; layer < kLayers; ++layer) {
          qkv.clear();
          for (const Hypothesis& each : expected)
            for (int part = 0; part < 3; ++part)
              for (std::int64_t k = 0; k < c.width; ++k) qkv.push_back(value_of(each.positions.back(), layer, part, k));
          cache.append(layer, {qkv.data(), {std::ssize(expected), 3 * c.width}});
        }
        std::vector<std::int32_t> parents(1 + below(9));  // 1 to 9 rows, so that beams grow and shrink
        std::vector<Hypothesis> next;
        for (std::int32_t& parent : parents) {
          parent = static_cast<std::int32_t>(below(expected.size()));
          next.push_back(expected[static_cast<std::size_t>(parent)]);
        }
        cache.select(parents);
        expected = next;
        if (step % 5 == 4) {  // forgets up to 3 positions of each row
          std::vector<std::int32_t> lengths;
          for (Hypothesis& each : expected) {
            each.positions.resize(each.positions.size() - std::min(each.positions.size(), below(4)));
            lengths.push_back(static_cast<std::int32_t>(each.positions.size()));
          }
          cache.truncate(lengths);
        }

        REQUIRE(cache.rows() == static_cast<int>(expected.size()));
        double worst = 0;
        bool in_place = true;
        for (std::size_t r = 0; r < expected.size(); ++r) {
          in_place &= cache.sentences()[r] == expected[r].sentence &&
                      cache.lengths()[r] == static_cast<std::int32_t>(expected[r].positions.size());
          for (std::size_t t = 0; t < expected[r].positions.size(); ++t) {
            const std::int32_t slot = cache.slots()[r * static_cast<std::size_t>(cache.capacity()) + t];
            for (int layer = 0; layer < kLayers; ++layer)
              for (std::int64_t k = 0; k < c.width; k += 61) {
                const int from = expected[r].positions[t];
                worst = std::max({worst,
                                  std::abs(number(cache.keys(layer), slot, k, c.width) -
                                           static_cast<double>(value_of(from, layer, 1, k))),
                                  std::abs(number(cache.values(layer), slot, k, c.width) -
                                           static_cast<double>(value_of(from, layer, 2, k)))});
              }
          }
        }
        REQUIRE(in_place);
        REQUIRE(worst <= c.error);
      }
      CHECK(cache.keys(0).format == c.format);
      double worst = 0;
      for (int layer = 0; layer < kLayers; ++layer)
        for (int token = 0; token < source.back(); ++token)
          for (std::int64_t k = 0; k < c.width; k += 61)
            worst = std::max({worst,
                              std::abs(number(cache.memory_keys(layer), token, k, c.width) -
                                       static_cast<double>(value_of(1000 + token, layer, 1, k))),
                              std::abs(number(cache.memory_values(layer), token, k, c.width) -
                                       static_cast<double>(value_of(1000 + token, layer, 2, k)))});
      CHECK(worst <= c.error);
    }
  }
}
