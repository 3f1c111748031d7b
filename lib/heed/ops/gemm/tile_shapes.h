#pragma once

#include <cstdint>

namespace heed {

/// The shapes of AMX's eight tile registers, 16 rows of 64 bytes each (Intel 64 manual, palette 1). The shapes must be
/// a constant: the compiler believes that the intrinsic _tile_loadconfig reads only the first bytes of its argument, so
/// it might leave out writes to the other bytes of a variable.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr TileShapes kTileShapes;

}  // namespace heed
