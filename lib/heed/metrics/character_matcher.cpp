#include "heed/metrics/character_matcher.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace heed {
namespace {

// Each different character of the two texts gets an id, from kFirst on. The ids kHypothesisEnd and kReferenceEnd stand
// for the ends of the texts; they differ, so that an end matches nothing.
constexpr std::uint32_t kHypothesisEnd = 0, kReferenceEnd = 1, kFirst = 2;
// Characters below kCommon take one or two bytes in UTF-8; their ids are in an array instead of a hash table.
constexpr std::size_t kCommon = 0x800;
// One vector holds a count for each of kOrderLanes values of n (the length of the n-grams).
constexpr std::size_t kOrderLanes = 8;
// The largest count that fits into a lane (16 bits) of a vector.
constexpr std::size_t kLongest = 0x7FFF;
// The radix sort is used for at most kMany keys whose characters' ids have at most kDigit bits; otherwise std::sort is
// faster.
constexpr std::size_t kMany = 1024;
constexpr int kDigit = 8;

using Lanes [[gnu::vector_size(2 * kOrderLanes)]] = std::int16_t;

/// kBeyond[k] selects the lanes of a vector that count n-grams of more than k characters. If two neighbouring strings
/// in the sorted list share only their first k characters, these longer n-grams differ: the counts in these lanes are
/// added to the result and start again at 0.
constexpr auto kBeyond = [] {
  std::array<std::array<std::int16_t, kOrderLanes>, kOrderLanes + 1> masks{};
  for (std::size_t shared = 0; shared <= kOrderLanes; ++shared)
    for (std::size_t n = shared; n < kOrderLanes; ++n) masks[shared][n] = -1;
  return masks;
}();

}  // namespace

std::uint64_t CharacterMatcher::Character::hash() const {
  const std::uint64_t product = value * 0x9E3779B97F4A7C15U;
  return product >> 32;
}

CharacterMatcher::CharacterMatcher(int max_order) : max_order_(static_cast<std::size_t>(max_order)), common_(kCommon) {}

/// Appends the ids of a text's characters to numbers_, and then the id `end`, which stands for the text's end.
void CharacterMatcher::number(std::span<const char32_t> text, std::uint32_t end) {
  const std::size_t start = numbers_.size();
  numbers_.resize(start + text.size() + 1);
  std::uint32_t* out = numbers_.data() + start;
  for (const char32_t c : text) {
    if (c >= kCommon) {
      *out++ = rare_.intern(Character{c}, count_);
      continue;
    }
    Number& known = common_[c];
    if (known.generation != generation_) known = {generation_, count_++};
    *out++ = known.number;
  }
  *out = end;
}

void CharacterMatcher::match(std::span<const char32_t> hypothesis, std::span<const char32_t> reference,
                             std::span<std::int64_t> matches) {
  std::fill(matches.begin(), matches.end(), 0);
  if (max_order_ == 0 || hypothesis.empty() || reference.empty()) return;
  if (++generation_ == 0) {
    std::fill(common_.begin(), common_.end(), Number{});
    generation_ = 1;
  }
  rare_.clear();
  numbers_.clear();
  count_ = kFirst;
  number(hypothesis, kHypothesisEnd);
  number(reference, kReferenceEnd);
  const auto bits = static_cast<int>(std::bit_width(count_ - 1));
  if (max_order_ <= kOrderLanes && max_order_ * static_cast<std::size_t>(bits) < 64 && numbers_.size() <= kLongest)
    match_packed(hypothesis.size(), bits, matches);
  else
    match_any(hypothesis.size(), matches);
}

/// Sorts keys_, in which each 64-bit key holds max_order characters. Two passes of a radix sort order the keys by their
/// first two characters, and an insertion sort then orders the keys that begin with the same two characters.
void CharacterMatcher::sort_packed(int bits) {
  if (keys_.size() > kMany || bits > kDigit) {
    std::sort(keys_.begin(), keys_.end());
    return;
  }
  sorted_.resize(keys_.size());
  const int first = bits * static_cast<int>(max_order_ - 1) + 1;
  for (int shift = std::max(1, first - bits); shift <= first; shift += bits) {
    const auto digit = [&](std::uint64_t key) { return key >> shift & ((std::uint64_t{1} << bits) - 1); };
    std::array<std::uint16_t, std::size_t{1} << kDigit> starts;
    std::fill_n(starts.begin(), std::size_t{1} << bits, std::uint16_t{0});
    for (const std::uint64_t key : keys_) ++starts[digit(key)];
    std::uint16_t sum = 0;
    for (std::size_t d = 0; d < std::size_t{1} << bits; ++d)
      sum = static_cast<std::uint16_t>(sum + std::exchange(starts[d], sum));
    for (const std::uint64_t key : keys_) sorted_[starts[digit(key)]++] = key;
    keys_.swap(sorted_);
  }
  for (std::size_t i = 1; i < keys_.size(); ++i) {
    const std::uint64_t key = keys_[i];
    std::size_t at = i;
    for (; at > 0 && keys_[at - 1] > key; --at) keys_[at] = keys_[at - 1];
    keys_[at] = key;
  }
}

/// Counts the n-grams that both texts have, with packed keys: a 64-bit key holds the ids of the max_order characters
/// that begin at one place of a text, and the lowest bit says which text this is (0: hypothesis, 1: reference).
void CharacterMatcher::match_packed(std::size_t hypothesis, int bits, std::span<std::int64_t> matches) {
  const int top = bits * static_cast<int>(max_order_ - 1);
  keys_.resize(numbers_.size() - 2);
  std::uint64_t* out = keys_.data();
  const auto pack = [&](std::size_t first, std::size_t end, std::uint64_t side) {
    std::uint64_t key = 0;
    for (std::size_t n = 0; n < max_order_; ++n) key = key << bits | numbers_[end];
    for (std::size_t i = end; i-- > first;) {
      key = key >> bits | std::uint64_t{numbers_[i]} << top;
      *out++ = key << 1 | side;
    }
  };
  pack(0, hypothesis, 0);
  pack(hypothesis + 1, numbers_.size() - 1, 1);
  sort_packed(bits);

  // shared[w] is the number of first characters that two keys share, where w is the bit width of the XOR of the keys
  // (without their lowest bit).
  std::array<std::uint8_t, 65> shared{};
  for (int width = 0; width <= top + bits; ++width)
    shared[static_cast<std::size_t>(width)] = static_cast<std::uint8_t>((top + bits - width) / bits);
  Lanes counts[2] = {}, sums = {};
  // An artificial last key: it shares no character with the key before it, so that the loop below completes all counts.
  keys_.push_back(~keys_.back());
  for (std::size_t i = 0; i + 1 < keys_.size(); ++i) {
    const Lanes hypothesis_here = Lanes{} + static_cast<std::int16_t>(1 - (keys_[i] & 1));
    counts[0] += hypothesis_here;
    counts[1] += 1 - hypothesis_here;
    const auto width = std::min(top + bits, static_cast<int>(std::bit_width((keys_[i] ^ keys_[i + 1]) >> 1)));
    const auto& mask = kBeyond[shared[static_cast<std::size_t>(width)]];
    const Lanes beyond = std::bit_cast<Lanes>(mask);
    sums += (counts[0] < counts[1] ? counts[0] : counts[1]) & beyond;
    counts[0] &= ~beyond;
    counts[1] &= ~beyond;
  }
  for (std::size_t n = 0; n < max_order_; ++n) matches[n] = sums[n];
}

/// Counts the n-grams that both texts have, for the case that max_order characters do not fit into a 64-bit key or that
/// a text is very long: each key is an index in numbers_ at which a string of characters begins.
void CharacterMatcher::match_any(std::size_t hypothesis, std::span<std::int64_t> matches) {
  keys_.clear();
  for (std::size_t i = 0; i + 1 < numbers_.size(); ++i)
    if (i != hypothesis) keys_.push_back(i);
  // Returns how many characters (at most max_order) the strings that begin at the indices a and b of numbers_ share.
  // The ids of the texts' ends differ, so no comparison runs past an end.
  const auto shared = [this](std::uint64_t a, std::uint64_t b) {
    std::size_t n = 0;
    while (n < max_order_ && numbers_[a + n] == numbers_[b + n]) ++n;
    return n;
  };
  std::sort(keys_.begin(), keys_.end(), [&](std::uint64_t a, std::uint64_t b) {
    if (a == b) return false;
    const std::size_t n = shared(a, b);
    return n < max_order_ && numbers_[a + n] < numbers_[b + n];
  });
  std::vector<std::int64_t> counts[2] = {std::vector<std::int64_t>(max_order_), std::vector<std::int64_t>(max_order_)};
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    for (std::int64_t& count : counts[keys_[i] > hypothesis ? 1 : 0]) ++count;
    for (std::size_t n = i + 1 < keys_.size() ? shared(keys_[i], keys_[i + 1]) : 0; n < max_order_; ++n) {
      matches[n] += std::min(counts[0][n], counts[1][n]);
      counts[0][n] = counts[1][n] = 0;
    }
  }
}

}  // namespace heed
