#include "heed/metrics/resampling.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "heed/base/threads.h"
#include "heed/metrics/numpy_random.h"

namespace heed {
namespace {

/// Returns for how many resamples or trials random numbers are drawn before the threads work on them: several for each
/// thread, but so few that their random numbers stay in the CPU's cache.
std::int64_t round_size(std::size_t segments, int threads) {
  const auto fitting = static_cast<std::int64_t>((std::size_t{1} << 18) / segments);
  return std::max<std::int64_t>(threads, std::min<std::int64_t>(64, fitting));
}

/// Returns the sum of an array, added in the same order as by NumPy's numpy.add.reduce, so that the sum is rounded in
/// the same way. Up to 128 numbers are added in eight running sums; a longer array is divided into halves, whose sums
/// are added.
template <class Number>
Number pairwise_sum(std::span<const double> values) {
  const auto at = [&](std::size_t i) { return static_cast<Number>(values[i]); };
  if (values.size() < 8) {
    Number sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += at(i);
    return sum;
  }
  if (values.size() <= 128) {
    Number sums[8];
    for (std::size_t k = 0; k < 8; ++k) sums[k] = at(k);
    std::size_t i = 8;
    for (; i + 8 <= values.size(); i += 8)
      for (std::size_t k = 0; k < 8; ++k) sums[k] += at(i + k);
    Number sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; i < values.size(); ++i) sum += at(i);
    return sum;
  }
  std::size_t half = values.size() / 2;
  half -= half % 8;
  return pairwise_sum<Number>(values.first(half)) + pairwise_sum<Number>(values.subspan(half));
}

/// Returns the mean of the values with NumPy's rounding errors, computed in float32 when `single` is true and else in
/// float64.
double numpy_mean(std::span<const double> values, bool single) {
  const auto count = static_cast<double>(values.size());
  if (!single) return pairwise_sum<double>(values) / count;
  return static_cast<double>(static_cast<float>(static_cast<double>(pairwise_sum<float>(values)) / count));
}

/// Returns the difference a - b, computed in float32 when `single` is true and else in float64.
double difference_of(double a, double b, bool single) {
  return single ? static_cast<double>(static_cast<float>(a) - static_cast<float>(b)) : a - b;
}

/// Returns the mean of the values nearly without rounding errors: `lost` sums up the rounding error of each addition to
/// `sum`.
double exact_mean(std::span<const double> values) {
  double sum = 0, lost = 0;
  for (const double value : values) {
    const double next = sum + value, part = next - sum;
    lost += (sum - (next - part)) + (value - part);
    sum = next;
  }
  const auto count = static_cast<long double>(values.size());
  return static_cast<double>((static_cast<long double>(sum) + static_cast<long double>(lost)) / count);
}

/// Returns the confidence interval of resampled scores: the given mean, and half the width of the range that holds the
/// middle 95 % of the scores.
Interval interval(const ResampledScores& scores, double mean) {
  std::vector<double> sorted = scores.values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t low = sorted.size() / 40, high = sorted.size() - low - 1;
  return {mean, 0.5 * difference_of(sorted[high], sorted[low], scores.single), scores.single};
}

/// Returns the p-value of a significance test with `count` random trials. In `larger` of the trials, the difference of
/// the scores was larger than the difference that was observed.
double p_value(std::size_t larger, std::size_t count) {
  return (static_cast<double>(larger) + 1) / (static_cast<double>(count) + 1);
}

/// The statistics of all segments (one row for each segment) in a form in which randomly drawn rows are summed quickly.
/// Small whole numbers are stored as bytes and summed as integers, which takes a quarter of the memory of float32. In
/// float32 these sums would be exact too, so the results are equal.
class ResampleRows {
 public:
  ResampleRows(const CompactNumbers& rows, std::size_t width) : width_(width) {
    // float32 represents all whole numbers up to this limit exactly.
    constexpr std::size_t kExact = 1 << 24;
    const auto bytes = rows.bytes();
    const std::size_t most = bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
    if (!bytes.empty() && most * (rows.size() / width) <= kExact) {
      bytes_.resize(rows.size() + kColumns);
      std::copy(bytes.begin(), bytes.end(), bytes_.begin());
      are_small_ = most < 64;
    } else {
      floats_.resize(rows.size() + kColumns);
      for (std::size_t i = 0; i < rows.size(); ++i) floats_[i] = static_cast<float>(rows[i]);
    }
  }

  /// Returns how many numbers add() writes: as many as a row has, rounded up to a multiple of kColumns. The numbers
  /// behind the end of the row have no meaning.
  std::size_t columns() const { return (width_ + kColumns - 1) / kColumns * kColumns; }

  /// Adds the rows whose indices are in `draws` to the column sums `sums` [columns()], in the order of `draws`.
  void add(std::span<const std::uint32_t> draws, std::span<float> sums) const {
    for (std::size_t at = 0; at < columns();) {
      const std::size_t blocks = std::min<std::size_t>(2, (columns() - at) / kColumns);
      if (blocks == 2)
        add_columns<2 * kColumns>(draws, at, sums.data() + at);
      else
        add_columns<kColumns>(draws, at, sums.data() + at);
      at += blocks * kColumns;
    }
  }

 private:
  static constexpr std::size_t kColumns = 16;

  template <std::size_t columns>
  void add_columns(std::span<const std::uint32_t> draws, std::size_t at, float* sums) const {
    if (bytes_.empty()) {
      add_stored<columns>(draws, floats_.data() + at, sums);
      return;
    }
    std::uint32_t totals[columns] = {};
    for (; !draws.empty(); draws = draws.subspan(std::min(kBytesPerSum, draws.size()))) {
      std::uint16_t part[columns] = {};
      const auto some = draws.first(std::min(kBytesPerSum, draws.size()));
      if (are_small_)
        add_small<columns>(some, bytes_.data() + at, part);
      else
        add_stored<columns>(some, bytes_.data() + at, part);
      for (std::size_t k = 0; k < columns; ++k) totals[k] += part[k];
    }
    for (std::size_t k = 0; k < columns; ++k) sums[k] += static_cast<float>(totals[k]);
  }

  template <std::size_t columns, class Stored, class Sum>
  void add_stored(std::span<const std::uint32_t> draws, const Stored* rows, Sum* totals) const {
    Sum sums[columns];  // the compiler can hold this local array in vector registers
    std::copy_n(totals, columns, sums);
    for (const std::uint32_t draw : draws) {
      const Stored* row = rows + draw * width_;
      for (std::size_t k = 0; k < columns; ++k) sums[k] = static_cast<Sum>(sums[k] + row[k]);
    }
    std::copy(std::begin(sums), std::end(sums), totals);
  }

  /// Adds rows whose numbers are all below 64 to the column sums `totals`: first four rows are summed in 8-bit
  /// integers, and these sums are then added in 16-bit integers.
  template <std::size_t columns>
  void add_small(std::span<const std::uint32_t> draws, const std::uint8_t* rows, std::uint16_t* totals) const {
    for (; draws.size() >= 4; draws = draws.subspan(4)) {
      std::uint8_t four[columns] = {};
      for (const std::uint32_t draw : draws.first<4>()) {
        const std::uint8_t* row = rows + draw * width_;
        for (std::size_t k = 0; k < columns; ++k) four[k] = static_cast<std::uint8_t>(four[k] + row[k]);
      }
      for (std::size_t k = 0; k < columns; ++k) totals[k] = static_cast<std::uint16_t>(totals[k] + four[k]);
    }
    add_stored<columns>(draws, rows, totals);
  }

  // This many numbers of 8 bits can be added without an overflow of a 16-bit sum.
  static constexpr std::size_t kBytesPerSum = 256;
  std::size_t width_;
  // True when all numbers are below 64, so that the sum of any four numbers fits into a byte.
  bool are_small_ = false;
  // The rows (the statistics of the segments) as bytes, one row after another, and kColumns more bytes, so that add()
  // can read past the last row.
  std::vector<std::uint8_t> bytes_;
  // The rows (the statistics of the segments) as floats, for numbers that do not fit into bytes. Either bytes_ or
  // floats_ is empty.
  std::vector<float> floats_;
};

/// The sums of one column of the statistics after a random trial has swapped some segments between a system and the
/// baseline: `one` for the system, `other` for the baseline.
struct ShuffledSums {
  double one = 0, other = 0;
};

/// Returns the two sums of a column whose numbers have fractions (such as TER's mean length of three references) for
/// one random trial, rounded as NumPy rounds them. Bit i of `mask` says whether the trial swaps segment i between the
/// system and the baseline. The last bit of the sums matters: a trial counts only if its difference is larger than the
/// observed difference, and not if both are equal. NumPy computes these sums as products of 0/1 matrices, which
/// OpenBLAS sums in blocks of 384 segments (two halves when less than two blocks are left) on CPUs with AVX-512.
ShuffledSums shuffled_fractions(const CompactNumbers& rows, std::size_t width, std::size_t baseline, std::size_t system,
                                const std::uint64_t* mask) {
  constexpr std::size_t kBlock = 384;
  const std::size_t segments = rows.size() / width;
  // Two parts of the sums: `swapped` is the part that comes from the baseline's rows, and `kept` is the part that comes
  // from the system's rows.
  ShuffledSums swapped, kept;
  for (std::size_t first = 0; first < segments;) {
    const std::size_t left = segments - first;
    const std::size_t last = first + (left >= 2 * kBlock ? kBlock : left > kBlock ? (left + 1) / 2 : left);
    double baseline_part[2] = {}, system_part[2] = {};
    for (; first < last; ++first) {
      const bool swap = mask[first / 64] >> (first % 64) & 1;
      baseline_part[swap ? 1 : 0] += rows[first * width + baseline];
      system_part[swap ? 1 : 0] += rows[first * width + system];
    }
    swapped.one += baseline_part[1];
    swapped.other += baseline_part[0];
    kept.one += system_part[0];
    kept.other += system_part[1];
  }
  return {swapped.one + kept.one, swapped.other + kept.other};
}

/// Divides the range 0 .. count among the threads of `pool`: calls function(first, last) once on each thread, with the
/// thread's part of the range.
template <class Function>
void share(ThreadPool& pool, std::int64_t count, const Function& function) {
  pool.run([&](int thread) {
    const std::int64_t threads = pool.size();
    function(thread * count / threads, (thread + 1) * count / threads);
  });
}

}  // namespace

void CompactNumbers::append(std::span<const double> numbers) {
  const auto fits = [](double x) { return x >= 0 && x <= 255 && x == std::floor(x); };
  if (doubles_.empty() && std::all_of(numbers.begin(), numbers.end(), fits)) {
    const std::size_t first = bytes_.size();
    bytes_.resize(first + numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) bytes_[first + i] = static_cast<std::uint8_t>(numbers[i]);
    return;
  }
  if (!bytes_.empty()) doubles_.assign(bytes_.begin(), bytes_.end());
  std::vector<std::uint8_t>().swap(bytes_);
  doubles_.insert(doubles_.end(), numbers.begin(), numbers.end());
}

SegmentStatistics::SegmentStatistics(const TranslationMetrics& metrics, std::size_t systems)
    : metrics_(metrics), systems_(systems) {
  for (const auto& metric : metrics) {
    offsets_.push_back(system_width_);
    system_width_ += metric->width();
  }
}

std::vector<double> SegmentStatistics::sums() const {
  const std::size_t width = row_width();
  std::vector<double> sums(width);
  for (std::size_t at = 0; at < rows_.size(); at += width)
    for (std::size_t k = 0; k < width; ++k) sums[k] += rows_[at + k];
  return sums;
}

std::vector<ResampledScores> bootstrap_scores(const SegmentStatistics& statistics, std::int64_t samples,
                                              std::uint64_t seed, int threads, const TrialsDone& tell) {
  const std::size_t segments = statistics.segments();
  const ResampleRows rows(statistics.rows(), statistics.row_width());
  const std::size_t metrics = statistics.metrics().size(), series = statistics.systems() * metrics;
  const auto count = static_cast<std::size_t>(samples);
  std::vector<ResampledScores> out(series, {std::vector<double>(count), false});
  std::vector<char> single(series * count);
  NumpyRandom random(seed);
  std::vector<std::uint32_t> draws;
  const auto keep = [&](std::size_t sample, std::span<const float> sums) {
    for (std::size_t s = 0; s < series; ++s) {
      const TranslationMetric& metric = *statistics.metrics()[s % metrics];
      const ResampledScore score =
          metric.resampled_score(sums.subspan(statistics.offset(s / metrics, s % metrics), metric.width()));
      out[s].values[sample] = score.value;
      single[s * count + sample] = score.single;
    }
  };
  if (threads == 1) {
    // A bootstrap sample is drawn in portions of at most 4096 segment indices, so that the CPU's cache holds a portion
    // together with the sums.
    std::vector<float> sums(rows.columns());
    for (std::size_t sample = 0; sample < count; ++sample) {
      std::fill(sums.begin(), sums.end(), 0.0F);
      for (std::size_t done = 0; done < segments; done += draws.size()) {
        draws.resize(std::min<std::size_t>(4096, segments - done));
        random.choose(static_cast<std::uint32_t>(segments), draws);
        rows.add(draws, sums);
      }
      keep(sample, sums);
      if (tell) tell(static_cast<std::int64_t>(sample) + 1);
    }
  } else {
    ThreadPool pool(threads);
    const std::int64_t most = round_size(segments, threads);
    for (std::int64_t done = 0; done < samples; done += most) {
      const std::int64_t round = std::min(most, samples - done);
      draws.resize(static_cast<std::size_t>(round) * segments);
      random.choose(static_cast<std::uint32_t>(segments), draws);
      share(pool, round, [&](std::int64_t first, std::int64_t last) {
        std::vector<float> sums(rows.columns());
        for (std::int64_t r = first; r < last; ++r) {
          std::fill(sums.begin(), sums.end(), 0.0F);
          rows.add(std::span(draws).subspan(static_cast<std::size_t>(r) * segments, segments), sums);
          keep(static_cast<std::size_t>(done + r), sums);
        }
      });
      if (tell) tell(done + round);
    }
  }
  for (std::size_t s = 0; s < series; ++s) {
    const auto first = single.begin() + static_cast<std::ptrdiff_t>(s * count);
    out[s].single = std::all_of(first, first + static_cast<std::ptrdiff_t>(count), [](char yes) { return yes != 0; });
  }
  return out;
}

Interval exact_interval(const ResampledScores& scores) {
  const double mean = exact_mean(scores.values);
  return interval(scores, scores.single ? static_cast<double>(static_cast<float>(mean)) : mean);
}

Interval numpy_interval(const ResampledScores& scores) {
  // The rounding of NumPy's sum depends on the order of the scores. sacreBLEU sums the sorted scores.
  std::vector<double> sorted = scores.values;
  std::sort(sorted.begin(), sorted.end());
  return interval(scores, numpy_mean(sorted, scores.single));
}

double bootstrap_p_value(const ResampledScores& baseline, const ResampledScores& system, double difference) {
  const bool single = baseline.single && system.single;
  std::vector<double> differences(system.values.size());
  for (std::size_t i = 0; i < differences.size(); ++i)
    differences[i] = std::abs(difference_of(system.values[i], baseline.values[i], single));
  const double mean = numpy_mean(differences, single);
  const double limit = single ? static_cast<double>(static_cast<float>(difference)) : difference;
  const auto larger = std::count_if(differences.begin(), differences.end(),
                                    [&](double value) { return difference_of(value, mean, single) > limit; });
  return p_value(static_cast<std::size_t>(larger), differences.size());
}

namespace {

/// Draws a bit for each of `segments` segments, 64 in a word of `mask`; the other bits of the last word are 0.
void draw_mask(NumpyBits& bits, std::size_t segments, std::span<std::uint64_t> mask) {
  for (std::size_t w = 0; w < mask.size(); ++w) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(64, segments - 64 * w); ++i)
      word |= std::uint64_t{bits.next()} << i;
    mask[w] = word;
  }
}

}  // namespace

std::vector<double> randomization_p_values(const SegmentStatistics& statistics, std::span<const double> scores,
                                           std::int64_t trials, std::uint64_t seed, int threads,
                                           const TrialsDone& tell) {
  const std::size_t segments = statistics.segments(), width = statistics.row_width(), words = (segments + 63) / 64;
  const std::size_t metrics = statistics.metrics().size(), systems = statistics.systems();
  const std::size_t system_width = width / systems;
  // `changes` holds, for each segment, the numbers that are added to a system's sums when a trial swaps this segment:
  // the baseline's statistics minus the system's. `own` holds each system's sums without swaps; `both` holds each
  // system's sums plus the baseline's sums.
  std::vector<double> changes(segments * (width - system_width)), own(width), both(width);
  for (std::size_t i = 0; i < segments; ++i) {
    const auto row = [&](std::size_t k) { return statistics.rows()[i * width + k]; };
    for (std::size_t k = 0; k < width; ++k) own[k] += row(k);
    for (std::size_t k = system_width; k < width; ++k)
      changes[i * (width - system_width) + k - system_width] = row(k % system_width) - row(k);
  }
  for (std::size_t k = 0; k < width; ++k) both[k] = own[k] + own[k % system_width];
  std::vector<char> has_fractions(width);
  for (std::size_t at = 0; at < statistics.rows().size(); ++at)
    if (const double number = statistics.rows()[at]; number != std::floor(number))
      has_fractions[at % width] = has_fractions[at % system_width] = 1;

  NumpyRandom random(seed);
  NumpyBits bits(random);
  ThreadPool pool(threads);
  std::vector<std::uint64_t> masks;
  std::vector<double> difference(systems * metrics);
  for (std::size_t s = metrics; s < difference.size(); ++s) difference[s] = std::abs(scores[s % metrics] - scores[s]);
  const std::int64_t most = round_size(segments, threads);
  std::vector<char> larger(static_cast<std::size_t>(most) * difference.size());
  std::vector<std::size_t> count(difference.size());
  for (std::int64_t done = 0; done < trials; done += most) {
    const std::int64_t round = std::min(most, trials - done);
    masks.resize(static_cast<std::size_t>(round) * words);
    for (std::size_t r = 0; r < static_cast<std::size_t>(round); ++r)
      draw_mask(bits, segments, std::span(masks).subspan(r * words, words));
    share(pool, round, [&](std::int64_t first, std::int64_t last) {
      std::vector<double> one(width), other(width);
      for (auto r = static_cast<std::size_t>(first); r < static_cast<std::size_t>(last); ++r) {
        one = own;
        for (std::size_t w = 0; w < words; ++w)
          for (std::uint64_t mask = masks[r * words + w]; mask != 0; mask &= mask - 1) {
            const std::size_t i = 64 * w + static_cast<std::size_t>(std::countr_zero(mask));
            const double* change = changes.data() + i * (width - system_width);
            for (std::size_t k = system_width; k < width; ++k) one[k] += change[k - system_width];
          }
        for (std::size_t k = system_width; k < width; ++k) {
          other[k] = both[k] - one[k];
          if (!has_fractions[k] && !has_fractions[k % system_width]) continue;
          const ShuffledSums sums =
              shuffled_fractions(statistics.rows(), width, k % system_width, k, masks.data() + r * words);
          one[k] = sums.one;
          other[k] = sums.other;
        }
        for (std::size_t s = metrics; s < difference.size(); ++s) {
          const TranslationMetric& metric = *statistics.metrics()[s % metrics];
          const std::size_t at = statistics.offset(s / metrics, s % metrics);
          const auto score = [&](const std::vector<double>& sums) {
            return metric.shuffled_score(std::span(sums).subspan(at, metric.width()));
          };
          larger[r * difference.size() + s] = std::abs(score(one) - score(other)) > difference[s];
        }
      }
    });
    for (std::size_t at = 0; at < static_cast<std::size_t>(round) * difference.size(); ++at)
      count[at % difference.size()] += larger[at] ? 1 : 0;
    std::fill(larger.begin(), larger.end(), 0);
    if (tell) tell(done + round);
  }
  std::vector<double> out(difference.size());
  for (std::size_t s = 0; s < out.size(); ++s)
    out[s] = s < metrics ? 1 : p_value(count[s], static_cast<std::size_t>(trials));
  return out;
}

}  // namespace heed
