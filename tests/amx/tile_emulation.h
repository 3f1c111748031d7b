// AMX's tile registers in C++, on which heed's products with AMX are tested where the CPU does not have them.
//
// AMX is a set of CPU instructions that multiply tiles, matrices of 16 rows in registers. tests/amx compiles the
// matrix products of the library again, with this header before each source: the words of the compiler for AMX then
// mean the functions below, and instruction_set() says that the CPU has AMX. All else runs on the CPU, which must have
// AVX-512 BF16. Unlike the registers of a CPU, the emulation also finds tiles that are used without a configuration,
// and with AddressSanitizer, tiles that reach beyond the end of an array.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"
#include "heed/base/x86.h"
#include "heed/ops/gemm/tile_shapes.h"

namespace heed::tile_emulation {

/// A tile register: 16 rows of 64 bytes, 16 words of 32 bits each.
using Tile = std::uint32_t[16][16];

/// The registers of a thread.
struct Registers {
  bool configured = false;
  Tile tiles[8];
  std::int64_t products = 0;  ///< how many tiles have been multiplied
};
inline thread_local Registers registers;

/// Returns a register. Throws Error before set_shapes() and after release().
inline Tile& tile(int number) {
  if (!registers.configured) throw Error("AMX: a tile is used without a configuration");
  return registers.tiles[number];
}

inline void set_shapes(const void* shapes) {
  if (std::memcmp(shapes, &kTileShapes, sizeof kTileShapes) != 0) throw Error("AMX: an unknown shape of tiles");
  registers.configured = true;
}
inline void release() {
  registers.configured = false;
}

inline void clear(int number) {
  std::memset(tile(number), 0, sizeof(Tile));
}
inline void load(int number, const void* rows, std::size_t stride) {
  for (std::size_t r = 0; r < 16; ++r)
    std::memcpy(tile(number)[r], static_cast<const char*>(rows) + r * stride, sizeof(Tile) / 16);
}
inline void store(int number, void* rows, std::size_t stride) {
  for (std::size_t r = 0; r < 16; ++r)
    std::memcpy(static_cast<char*>(rows) + r * stride, tile(number)[r], sizeof(Tile) / 16);
}

/// Returns x, or zero where x is denormal.
inline float flushed(float x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? 0.0F : x;
}
/// Returns the lower or the upper bfloat16 number of a word.
inline float bfloat16_of(std::uint32_t word, bool upper) {
  return flushed(std::bit_cast<float>(upper ? word & 0xFFFF0000U : word << 16));
}

/// C += A B, where a word of A holds two bfloat16 numbers that are neighbours along k, and a word of B the matching
/// two. Intel 64 manual, TDPBF16PS: the products of the lower and of the upper numbers are summed apart, over the 16
/// words in ascending order, and the sum of both is added to C.
inline void multiply_bfloat16(int c, int a, int b) {
  ++registers.products;
  const Tile &of_a = tile(a), &of_b = tile(b);
  Tile& sums = tile(c);
  float numbers_of_b[16][2][16];
  for (int k = 0; k < 16; ++k)
    for (int n = 0; n < 16; ++n)
      for (const bool upper : {false, true}) numbers_of_b[k][upper][n] = bfloat16_of(of_b[k][n], upper);
  for (int m = 0; m < 16; ++m) {
    float parts[2][16] = {};
    for (int k = 0; k < 16; ++k)
      for (const bool upper : {false, true}) {
        const float x = bfloat16_of(of_a[m][k], upper);
        // The product of two bfloat16 numbers is exact, so that one rounding follows, as in a fused multiply-add.
        for (int n = 0; n < 16; ++n) parts[upper][n] = flushed(parts[upper][n] + x * numbers_of_b[k][upper][n]);
      }
    for (int n = 0; n < 16; ++n) {
      const float sum = flushed(std::bit_cast<float>(sums[m][n])) + flushed(parts[0][n] + parts[1][n]);
      sums[m][n] = std::bit_cast<std::uint32_t>(flushed(sum));
    }
  }
}

/// C += A B, where a word of A holds four unsigned integers of 8 bits that are neighbours along k, and a word of B the
/// matching four signed integers. Intel 64 manual, TDPBUSD.
inline void multiply_int8(int c, int a, int b) {
  ++registers.products;
  const Tile &of_a = tile(a), &of_b = tile(b);
  Tile& sums = tile(c);
  for (int m = 0; m < 16; ++m)
    for (int k = 0; k < 16; ++k)
      for (int byte = 0; byte < 32; byte += 8) {
        const int x = static_cast<std::uint8_t>(of_a[m][k] >> byte);
        for (int n = 0; n < 16; ++n)
          sums[m][n] += static_cast<std::uint32_t>(x * static_cast<std::int8_t>(of_b[k][n] >> byte));
      }
}

inline InstructionSet emulated_set() {
  return InstructionSet::amx;
}

}  // namespace heed::tile_emulation

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_dpbusd
#define _tile_loadconfig(shapes) ::heed::tile_emulation::set_shapes(shapes)
#define _tile_release() ::heed::tile_emulation::release()
#define _tile_zero(number) ::heed::tile_emulation::clear(number)
#define _tile_loadd(number, rows, stride) ::heed::tile_emulation::load(number, rows, stride)
#define _tile_stored(number, rows, stride) ::heed::tile_emulation::store(number, rows, stride)
#define _tile_dpbf16ps(c, a, b) ::heed::tile_emulation::multiply_bfloat16(c, a, b)
#define _tile_dpbusd(c, a, b) ::heed::tile_emulation::multiply_int8(c, a, b)
#define instruction_set() tile_emulation::emulated_set()
