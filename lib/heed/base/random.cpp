#include "heed/base/random.h"

#include <cmath>
#include <numbers>

namespace heed {

namespace {

/// Returns the i-th 64-bit number of a random stream. Each block of the stream has 128 random bits and gives two 64-bit
/// numbers.
std::uint64_t word64(const RandomStream& stream, std::uint64_t i) {
  const auto w = stream.words(static_cast<std::uint32_t>(i / 2));
  return i % 2 == 0 ? (std::uint64_t{w[1]} << 32) | w[0] : (std::uint64_t{w[3]} << 32) | w[2];
}

}  // namespace

double RandomStream::uniform(std::uint64_t i) const {
  return static_cast<double>(word64(*this, i) >> 11) * 0x1.0p-53;
}

double RandomStream::normal(std::uint64_t i) const {
  const auto w = words(static_cast<std::uint32_t>(i));
  // The random number u is in (0, 1] and never 0, so that its logarithm is finite.
  const double u = (static_cast<double>(((std::uint64_t{w[1]} << 32) | w[0]) >> 11) + 1) * 0x1.0p-53;
  const double v = static_cast<double>(((std::uint64_t{w[3]} << 32) | w[2]) >> 11) * 0x1.0p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

std::uint64_t RandomStream::below(std::uint64_t n, std::uint64_t i) const {
  __extension__ using uint128 = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<uint128>(word64(*this, i)) * n) >> 64);
}

}  // namespace heed
