#include <doctest/doctest.h>

#include <vector>

#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/ops/gemm/gemm_int8.h"
#include "heed/tensor/arena.h"
#include "tile_emulation.h"

using namespace heed;

TEST_CASE("emulated tiles: the products of bfloat16 and of 8-bit integers use them") {
  Arena arena;
  const std::vector<float> a(40 * 40, 0.5F), b(40 * 40, 0.25F);
  std::vector<float> c(40 * 40);
  const std::int64_t before = tile_emulation::registers.products;
  gemm_bfloat16(arena, 40, 1, {a.data(), 40}, bfloat16_tiles(arena, 40, 40, GemmOperand<float>{b.data(), 40}), 0,
                c.data(), 40);
  CHECK(c == std::vector<float>(40 * 40, 40 * 0.125F));
  // 40 rows and columns are two blocks each of 2 x 2 tiles, and two tiles along k.
  CHECK(tile_emulation::registers.products - before == 2 * 2 * 4 * 2);
  CHECK_FALSE(tile_emulation::registers.configured);
}

TEST_CASE("emulated tiles: a product of integers by hand") {
  tile_emulation::set_shapes(&kTileShapes);
  tile_emulation::clear(0);
  alignas(64) std::uint8_t a[16][64] = {};
  alignas(64) std::int8_t b[16][64] = {};
  a[2][4] = 200;           // row 2, k = 4
  a[2][5] = 3;             // row 2, k = 5
  b[1][4 * 7 + 0] = -128;  // k = 4, column 7
  b[1][4 * 7 + 1] = 5;     // k = 5, column 7
  tile_emulation::load(4, a, 64);
  tile_emulation::load(6, b, 64);
  tile_emulation::multiply_int8(0, 4, 6);
  tile_emulation::multiply_int8(0, 4, 6);
  std::int32_t c[16][16];
  tile_emulation::store(0, c, 64);
  CHECK(c[2][7] == 2 * (200 * -128 + 3 * 5));
  CHECK(c[2][6] == 0);
  CHECK(c[7][2] == 0);
  tile_emulation::release();
}

TEST_CASE("emulated tiles: a product of bfloat16 numbers by hand") {
  tile_emulation::set_shapes(&kTileShapes);
  tile_emulation::clear(1);
  alignas(64) std::uint16_t a[16][32] = {}, b[16][32] = {};
  a[3][6] = 0x3F80;          // 1, row 3, k = 6
  a[3][7] = 0x4000;          // 2, row 3, k = 7
  b[3][2 * 9] = 0x4040;      // 3, k = 6, column 9
  b[3][2 * 9 + 1] = 0xC080;  // -4, k = 7, column 9
  tile_emulation::load(5, a, 64);
  tile_emulation::load(7, b, 64);
  tile_emulation::multiply_bfloat16(1, 5, 7);
  float c[16][16];
  tile_emulation::store(1, c, 64);
  CHECK(c[3][9] == 1 * 3 - 2 * 4);
  CHECK(c[9][3] == 0);
  tile_emulation::release();
}

TEST_CASE("emulated tiles: a tile that is used without a configuration is an error") {
  CHECK_THROWS_WITH(tile_emulation::clear(0), "AMX: a tile is used without a configuration");
  TileShapes other;
  other.rows[3] = 8;
  CHECK_THROWS_WITH(tile_emulation::set_shapes(&other), "AMX: an unknown shape of tiles");
}
