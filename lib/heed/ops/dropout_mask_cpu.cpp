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

/// Multiplies each lane of `a` by `factor` and returns the high and the low 32 bits of each 64-bit product.
template <class D, class V>
HWY_INLINE void multiply_wide(D d, V a, std::uint32_t factor, V& high, V& low) {
#if HWY_TARGET == HWY_SCALAR  // vectors of one lane have no operations on even and odd lanes
  const std::uint64_t product = std::uint64_t{hn::GetLane(a)} * factor;
  high = hn::Set(d, static_cast<std::uint32_t>(product >> 32));
  low = hn::Set(d, static_cast<std::uint32_t>(product));
#else
  const hn::RepartitionToWide<D> wide;
  const auto f = hn::Set(d, factor);
  const auto even = hn::MulEven(a, f);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), f);
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
#endif
}

/// Decides which elements dropout keeps. Each 32-bit word of `words` decides two elements by 16 random bits each. For
/// each element, writes the byte 1 (kept) where the 16 bits, read as a number, are at least `threshold`, and otherwise
/// the byte 0 (dropped). `threshold` is from 1 to 65536.
template <class D, class V>
HWY_INLINE void store_kept(D, V words, std::uint32_t threshold, std::uint8_t* to) {
#if HWY_TARGET == HWY_SCALAR  // a vector of one 32-bit lane cannot be taken as two lanes of 16 bits
  const std::uint32_t word = hn::GetLane(words);
  to[0] = (word & 0xFFFF) >= threshold;
  to[1] = (word >> 16) >= threshold;
#else
  const hn::RepartitionToNarrow<D> halves;
  const hn::RebindToSigned<decltype(halves)> halves_signed;
  const auto limit = hn::Set(halves, static_cast<std::uint16_t>(threshold - 1));
  const auto above = hn::SaturatedSub(hn::BitCast(halves, words), limit);
  const auto kept = hn::Min(above, hn::Set(halves, std::uint16_t{1}));
  const hn::Rebind<std::uint8_t, decltype(halves)> bytes;
  hn::StoreU(hn::DemoteTo(bytes, hn::BitCast(halves_signed, kept)), bytes, to);
#endif
}

/// Draws 128 elements of a dropout mask, one byte each, from 16 blocks of the random generator Philox4x32-10 (see
/// base/random.h). Each lane of a vector computes one block; the first block has the number `block`.
void fill_group(const std::uint32_t* key, const std::uint32_t* counter, std::uint32_t block, std::uint32_t threshold,
                std::uint8_t* HWY_RESTRICT kept) {
  const hn::CappedTag<std::uint32_t, kGroupBlocks> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t lane = 0; lane < kGroupBlocks; lane += lanes) {
    auto c0 = hn::Iota(d, block + static_cast<std::uint32_t>(lane));
    auto c1 = hn::Set(d, counter[1]), c2 = hn::Set(d, counter[2]), c3 = hn::Set(d, counter[3]);
    std::uint32_t key0 = key[0], key1 = key[1];
    for (int round = 0; round < 10; ++round) {
      auto high0 = c0, low0 = c0, high1 = c0, low1 = c0;
      multiply_wide(d, c0, 0xD2511F53, high0, low0);
      multiply_wide(d, c2, 0xCD9E8D57, high1, low1);
      c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, key0));
      c1 = low1;
      c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, key1));
      c3 = low0;
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    store_kept(d, c0, threshold, kept + 2 * lane);
    store_kept(d, c1, threshold, kept + 2 * lane + 32);
    store_kept(d, c2, threshold, kept + 2 * lane + 64);
    store_kept(d, c3, threshold, kept + 2 * lane + 96);
  }
}

/// Draws a dropout mask of n elements in groups of 128; of the last group, only the elements below n are stored.
void fill_mask(const std::uint32_t* key, const std::uint32_t* counter, std::uint32_t threshold, std::int64_t n,
               std::uint8_t* kept) {
  std::uint32_t block = counter[0];
  std::int64_t i = 0;
  for (; i + kGroupElements <= n; i += kGroupElements, block += kGroupBlocks)
    fill_group(key, counter, block, threshold, kept + i);
  if (i == n) return;
  std::uint8_t last[kGroupElements];
  fill_group(key, counter, block, threshold, last);
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
