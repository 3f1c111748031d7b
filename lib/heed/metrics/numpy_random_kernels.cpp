#include "heed/metrics/numpy_random_kernels.h"

#include <algorithm>
#include <bit>

#include "heed/base/instruction_set.h"
#include "heed/base/x86.h"

namespace heed {
namespace {

using Wide = Pcg64Streams::Wide;
constexpr std::size_t kStreams = Pcg64Streams::kStreams;

void draw_portable(Pcg64Streams& streams, std::span<std::uint32_t> out) {
  for (std::size_t i = 0; i < out.size(); i += 2 * kStreams) {
    for (std::size_t k = 0; k < kStreams; ++k) {
      Wide& state = streams.states[k];
      const auto high = static_cast<std::uint64_t>(state >> 64), low = static_cast<std::uint64_t>(state);
      const std::uint64_t drawn = std::rotr(high ^ low, static_cast<int>(high >> 58));
      out[i + 2 * k] = static_cast<std::uint32_t>(drawn);
      out[i + 2 * k + 1] = static_cast<std::uint32_t>(drawn >> 32);
      state = state * streams.multiplier + streams.increment;
    }
  }
}

[[gnu::always_inline]] inline std::uint32_t scale(std::span<const std::uint32_t> drawn, std::uint32_t size,
                                                  std::uint32_t* out) {
  std::uint32_t least = UINT32_MAX;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const std::uint64_t product = std::uint64_t{drawn[i]} * size;
    least = std::min(least, static_cast<std::uint32_t>(product));
    out[i] = static_cast<std::uint32_t>(product >> 32);
  }
  return least;
}

#if HEED_X86
#define HEED_AVX512_IFMA __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512ifma")))

constexpr int kLimbBits = 52;
constexpr std::uint64_t kLimb = (std::uint64_t{1} << kLimbBits) - 1;

std::uint64_t limb(Wide number, int i) {
  return static_cast<std::uint64_t>(number >> (kLimbBits * i)) & kLimb;
}

/// Fills `out` with the next random numbers of PCG64, with AVX-512 instructions. A 128-bit state is divided into three
/// parts (limbs) of 52 bits, and a vector holds the same limb of eight states. A limb may have a carry above its 52
/// bits: the carry is added to the next limb but not removed, since the multiplication instructions ignore the bits
/// above 52.
HEED_AVX512_IFMA void draw_avx512(Pcg64Streams& streams, std::span<std::uint32_t> out) {
  constexpr std::size_t kLanes = 8, kVectors = kStreams / kLanes;
  alignas(64) std::uint64_t lanes[3][kLanes];
  __m512i state[kVectors][3], multiplier[3], increment[3];
  for (int i = 0; i < 3; ++i) {
    multiplier[i] = _mm512_set1_epi64(static_cast<long long>(limb(streams.multiplier, i)));
    increment[i] = _mm512_set1_epi64(static_cast<long long>(limb(streams.increment, i)));
    for (std::size_t v = 0; v < kVectors; ++v) {
      for (std::size_t k = 0; k < kLanes; ++k) lanes[i][k] = limb(streams.states[v * kLanes + k], i);
      state[v][i] = _mm512_load_si512(lanes[i]);
    }
  }
  const __m512i limb_mask = _mm512_set1_epi64(static_cast<long long>(kLimb));
  const __m512i high_mask = _mm512_set1_epi64((1LL << 40) - 1);
  // The truth table of the function (a & b) | c of three bits, as the instruction for functions of three bits needs it.
  constexpr int kAndOr = 0xEA;
  for (std::size_t i = 0; i < out.size(); i += 2 * kStreams) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const __m512i s0 = state[v][0], s1 = state[v][1], s2 = state[v][2];
      const __m512i low = _mm512_ternarylogic_epi64(s0, limb_mask, _mm512_slli_epi64(s1, 52), kAndOr);
      const __m512i high =
          _mm512_ternarylogic_epi64(_mm512_srli_epi64(s1, 12), high_mask, _mm512_slli_epi64(s2, 40), kAndOr);
      const __m512i drawn = _mm512_rorv_epi64(_mm512_xor_si512(low, high), _mm512_srli_epi64(high, 58));
      _mm512_storeu_si512(out.data() + i + 2 * kLanes * v, drawn);
      // Limbs (parts of 52 bits) 1 and 2 of the next state are each computed as two separate sums that are then added,
      // so that the CPU can compute both sums at the same time.
      const __m512i next0 = _mm512_madd52lo_epu64(increment[0], s0, multiplier[0]);
      const __m512i next1 = _mm512_add_epi64(
          _mm512_madd52lo_epu64(_mm512_madd52hi_epu64(increment[1], s0, multiplier[0]), s0, multiplier[1]),
          _mm512_madd52lo_epu64(_mm512_srli_epi64(next0, kLimbBits), s1, multiplier[0]));
      __m512i next2 = _mm512_madd52hi_epu64(increment[2], s0, multiplier[1]);
      next2 = _mm512_madd52lo_epu64(next2, s0, multiplier[2]);
      next2 = _mm512_madd52lo_epu64(next2, s2, multiplier[0]);
      const __m512i carried = _mm512_madd52hi_epu64(_mm512_srli_epi64(next1, kLimbBits), s1, multiplier[0]);
      state[v][0] = next0;
      state[v][1] = next1;
      state[v][2] = _mm512_add_epi64(next2, _mm512_madd52lo_epu64(carried, s1, multiplier[1]));
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) {
    for (int i = 0; i < 3; ++i) _mm512_store_si512(lanes[i], state[v][i]);
    for (std::size_t k = 0; k < kLanes; ++k)
      streams.states[v * kLanes + k] =
          Wide{lanes[0][k] & kLimb} | Wide{lanes[1][k] & kLimb} << kLimbBits | Wide{lanes[2][k]} << (2 * kLimbBits);
  }
}

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) std::uint32_t scale_avx512(
    std::span<const std::uint32_t> drawn, std::uint32_t size, std::uint32_t* out) {
  return scale(drawn, size, out);
}

bool has_ifma() {
  static const bool has = instruction_set() >= InstructionSet::avx512 && __builtin_cpu_supports("avx512ifma");
  return has;
}
#endif

}  // namespace

void Pcg64Streams::draw(std::span<std::uint32_t> out) {
#if HEED_X86
  if (has_ifma()) return draw_avx512(*this, out);
#endif
  draw_portable(*this, out);
}

std::uint32_t scale_drawn(std::span<const std::uint32_t> drawn, std::uint32_t size, std::uint32_t* out) {
#if HEED_X86
  if (instruction_set() >= InstructionSet::avx512) return scale_avx512(drawn, size, out);
#endif
  return scale(drawn, size, out);
}

}  // namespace heed
