#include <cmath>

#include "heed/base/error.h"
#include "heed/ops/dropout_mask.h"

// Compiled once for each instruction set; the best one the CPU has is called (Highway's dynamic dispatch).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/dropout_mask_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kGroupBlocks = 16, kGroupElements = 128;

/// High and low words of the 64-bit products a * factor, lane by lane.
template <class D, class V>
HWY_INLINE void multiply_wide(D d, V a, std::uint32_t factor, V& high, V& low) {
#if HWY_TARGET == HWY_SCALAR  // one lane has no even and odd
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

/// The 128 bytes of one group: Philox4x32-10 (base/random.h) with a block in each lane.
void fill_group(const std::uint32_t* key, const std::uint32_t* counter, std::uint32_t block, std::uint32_t threshold,
                std::uint8_t* HWY_RESTRICT kept) {
  const hn::CappedTag<std::uint32_t, kGroupBlocks> d;
  const hn::Rebind<std::int32_t, decltype(d)> d_signed;
  const hn::Rebind<std::uint8_t, decltype(d)> d_bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto limit = hn::Set(d_signed, static_cast<std::int32_t>(threshold)), one = hn::Set(d_signed, 1);
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
    const auto put = [&](int k, auto half) HWY_ATTR {
      const auto drop = hn::Lt(hn::BitCast(d_signed, half), limit);
      hn::StoreU(hn::DemoteTo(d_bytes, hn::IfThenZeroElse(drop, one)), d_bytes, kept + k * kGroupBlocks + lane);
    };
    const auto low_half = hn::Set(d, 0xFFFFu);
    put(0, hn::And(c0, low_half));
    put(1, hn::ShiftRight<16>(c0));
    put(2, hn::And(c1, low_half));
    put(3, hn::ShiftRight<16>(c1));
    put(4, hn::And(c2, low_half));
    put(5, hn::ShiftRight<16>(c2));
    put(6, hn::And(c3, low_half));
    put(7, hn::ShiftRight<16>(c3));
  }
}

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

HWY_EXPORT(fill_mask);

std::uint32_t dropout_threshold(double p) {
  if (!(p >= 0 && p <= 1))
    throw Error("internal: dropout: the probability is " + std::to_string(p) + " (it must be from 0 to 1)");
  return static_cast<std::uint32_t>(std::lround(p * 65536));
}

void fill_dropout_mask(const RandomStream& stream, std::uint32_t threshold, std::int64_t n, std::uint8_t* kept) {
  const auto key = stream.key();
  const auto counter = stream.counter();
  HWY_DYNAMIC_DISPATCH(fill_mask)(key.data(), counter.data(), threshold, n, kept);
}

}  // namespace heed
#endif  // HWY_ONCE
