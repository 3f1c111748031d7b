#include <cmath>

#include "heed/base/error.h"
#include "heed/ops/dropout_mask.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/dropout_mask_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/simd-inl.h"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The random generator Philox computes blocks of four 32-bit words. The kernel draws the mask in groups of 128
// elements, which take 16 random bits each, so 16 blocks.
constexpr std::int64_t kGroupBlocks = 16, kGroupElements = 128;

/// The keys of the ten rounds of the random generator Philox4x32-10 (see base/random.h), two words for each round.
struct RoundKeys {
  std::uint32_t first[10], second[10];

  explicit RoundKeys(const std::uint32_t* key) {
    for (std::uint32_t r = 0; r < 10; ++r) {
      first[r] = key[0] + r * 0x9E3779B9;
      second[r] = key[1] + r * 0xBB67AE85;
    }
  }
};

#if HWY_TARGET == HWY_SCALAR  // vectors of one lane: one block at a time

/// Draws 128 elements of a dropout mask, one byte each, from 16 blocks of Philox4x32-10, of which the first has the
/// number `block`. Each 32-bit word of a block decides two elements by 16 random bits each: the byte of an element is 1
/// (kept) where the 16 bits, read as a number, are at least `threshold`, and otherwise 0 (dropped). `threshold` is from
/// 1 to 65536.
void fill_group(const RoundKeys& keys, const std::uint32_t* counter, std::uint32_t block, std::uint32_t threshold,
                std::uint8_t* HWY_RESTRICT kept) {
  for (std::uint32_t i = 0; i < kGroupBlocks; ++i) {
    const auto words = philox({keys.first[0], keys.second[0]}, {block + i, counter[1], counter[2], counter[3]});
    for (std::uint32_t word = 0; word < 4; ++word) {
      std::uint8_t* const to = kept + 2 * i + 32 * word;
      to[0] = (words[word] & 0xFFFF) >= threshold;
      to[1] = (words[word] >> 16) >= threshold;
    }
  }
}

#else

/// One block of the random generator for each 64-bit lane: its four 32-bit words are the lower halves of the lanes. The
/// upper halves are not used, and hold anything.
template <class V>
struct Blocks {
  V words[4];
};

/// Computes round number r of Philox4x32-10.
template <class D, class V>
HWY_INLINE void compute_round(D d, Blocks<V>& blocks, const RoundKeys& keys, int r) {
  const hn::RepartitionToNarrow<D> halves;
  const auto multiply = [&](V a, std::uint32_t factor)
                            HWY_ATTR { return hn::MulEven(hn::BitCast(halves, a), hn::Set(halves, factor)); };
  auto& [c0, c1, c2, c3] = blocks.words;
  const V product0 = multiply(c0, 0xD2511F53), product2 = multiply(c2, 0xCD9E8D57);
  c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product2), c1), hn::Set(d, keys.first[r]));
  c1 = product2;
  c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c3), hn::Set(d, keys.second[r]));
  c3 = product0;
}

/// Decides which elements dropout keeps. Each 32-bit word of `words` decides two elements by 16 random bits each. For
/// each element, writes the byte 1 (kept) where the 16 bits, read as a number, are at least `threshold`, and otherwise
/// the byte 0 (dropped). `threshold` is from 1 to 65536.
template <class D, class V>
HWY_INLINE void store_kept(D, V words, std::uint32_t threshold, std::uint8_t* to) {
  const hn::RepartitionToNarrow<D> halves;
  const hn::RebindToSigned<decltype(halves)> halves_signed;
  const auto limit = hn::Set(halves, static_cast<std::uint16_t>(threshold - 1));
  const auto above = hn::SaturatedSub(hn::BitCast(halves, words), limit);
  const auto kept = hn::Min(above, hn::Set(halves, std::uint16_t{1}));
  const hn::Rebind<std::uint8_t, decltype(halves)> bytes;
  hn::StoreU(hn::DemoteTo(bytes, hn::BitCast(halves_signed, kept)), bytes, to);
}

/// Draws 128 elements of a dropout mask, one byte each, from 16 blocks of Philox4x32-10, of which the first has the
/// number `block`. The blocks with even numbers are computed beside those with odd numbers, in vectors of their own.
void fill_group(const RoundKeys& keys, const std::uint32_t* counter, std::uint32_t block, std::uint32_t threshold,
                std::uint8_t* HWY_RESTRICT kept) {
  const hn::CappedTag<std::uint32_t, kGroupBlocks> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t lane = 0; lane < kGroupBlocks; lane += lanes) {
    // Compilers make hn::Iota() of a variable number by number, which takes longer than this sum.
    const auto first = hn::Set(d, block + static_cast<std::uint32_t>(lane));
    const auto numbers = hn::BitCast(wide, hn::Add(first, hn::Iota(d, 0)));
    const auto c1 = hn::Set(wide, counter[1]), c2 = hn::Set(wide, counter[2]), c3 = hn::Set(wide, counter[3]);
    Blocks<decltype(hn::Zero(wide))> even = {{numbers, c1, c2, c3}}, odd = {{hn::ShiftRight<32>(numbers), c1, c2, c3}};
    for (int r = 0; r < 10; ++r) {
      compute_round(wide, even, keys, r);
      compute_round(wide, odd, keys, r);
    }
    for (int word = 0; word < 4; ++word)
      store_kept(d, hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd.words[word])), hn::BitCast(d, even.words[word])),
                 threshold, kept + 2 * lane + 32 * word);
  }
}

#endif

/// Draws a dropout mask of n elements in groups of 128; of the last group, only the elements below n are stored.
void fill_mask(const std::uint32_t* key, const std::uint32_t* counter, std::uint32_t threshold, std::int64_t n,
               std::uint8_t* kept) {
  const RoundKeys keys(key);
  std::uint32_t block = counter[0];
  std::int64_t i = 0;
  for (; i + kGroupElements <= n; i += kGroupElements, block += kGroupBlocks)
    fill_group(keys, counter, block, threshold, kept + i);
  if (i == n) return;
  std::uint8_t last[kGroupElements];
  fill_group(keys, counter, block, threshold, last);
  std::copy_n(last, n - i, kept + i);
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

std::uint32_t dropout_threshold(double p) {
  if (!(p >= 0 && p <= 1))
    throw Error("internal: dropout: the probability is " + std::to_string(p) + " (it must be from 0 to 1)");
  return static_cast<std::uint32_t>(std::lround(p * 65536));
}

void fill_dropout_mask(const RandomStream& stream, std::uint32_t threshold, std::int64_t n, std::uint8_t* kept) {
  if (threshold == 0) {
    std::fill_n(kept, n, std::uint8_t{1});
    return;
  }
  const auto key = stream.key();
  const auto counter = stream.counter();
  HEED_DISPATCH(fill_mask)(key.data(), counter.data(), threshold, n, kept);
}

void draw_dropout_parts(CpuContext&, std::span<const DropoutPart> parts, std::uint32_t threshold, std::int64_t slack,
                        std::uint8_t* kept) {
  for (const DropoutPart& part : parts) {
    fill_dropout_mask(part.stream, threshold, part.elements, kept);
    kept += part.elements;
  }
  std::fill_n(kept, slack, std::uint8_t{0});
}

}  // namespace heed
#endif  // HWY_ONCE
