// How the threads of a GPU share the rows of a matrix in kernels that read each row once.
//
// A team of threads has one row at a time: the 32 threads of a warp or, where the rows are longer, a whole block. A
// thread visits packs of the row: thread t of a team of s threads has the packs t, t + s, t + 2 s, .... Each thread
// holds its packs in registers, so that a formula with several passes over the row reads the memory once. A warp needs
// no barrier. Rows that are too long, or cannot be read in packs, belong to blocks that read them again in each pass.
#pragma once

#include <algorithm>
#include <cstdint>

#include "heed/tensor/cuda_language.h"
#include "heed/tensor/cuda_packs.h"

namespace heed {

/// A kind of team. `Columns` is the number of elements of a pack, `Held` the number of packs that a thread holds in
/// registers (0: the thread reads its packs again in each pass), and `IsWarp` tells whether a team is a warp or a
/// block.
template <int Columns, int Held, bool IsWarp>
struct RowTeam {
  static constexpr int kColumns = Columns, kHeld = Held;
  static constexpr bool kIsWarp = IsWarp;

  /// number() returns the index of this team among the teams of its block, and count() how many teams a block has.
  __device__ static int number() { return kIsWarp ? static_cast<int>(threadIdx.x) / 32 : 0; }
  __device__ static int count() { return kIsWarp ? static_cast<int>(blockDim.x) / 32 : 1; }
  /// If the teams of the grid share all rows, this team has the rows first_row(), first_row() + row_step(), ...
  __device__ static std::int64_t first_row() { return std::int64_t{blockIdx.x} * count() + number(); }
  __device__ static std::int64_t row_step() { return std::int64_t{gridDim.x} * count(); }
  /// thread() returns the index of this thread in its team, and threads() how many threads a team has.
  __device__ static int thread() { return kIsWarp ? lane_of_warp() : static_cast<int>(threadIdx.x); }
  __device__ static int threads() { return kIsWarp ? 32 : static_cast<int>(blockDim.x); }

  /// Returns the sum of the values of all threads of the team to each of them. A block has shared memory for
  /// block_sum().
  template <class T>
  __device__ __forceinline__ static T sum(T value) {
    if constexpr (kIsWarp)
      return warp_sum(value);
    else
      return block_sum(value, shared_memory<T>());
  }

  /// Calls visit(j, c) for each pack of this thread: pack j of the thread, which begins at column c.
  template <class Visit>
  __device__ __forceinline__ static void for_each_pack(std::int64_t columns, const Visit& visit) {
    const int step = threads() * kColumns, first = thread() * kColumns, end = static_cast<int>(columns);
    if constexpr (kHeld > 0) {
      HEED_UNROLL
      for (int j = 0; j < kHeld; ++j)
        if (first + j * step < end) visit(j, first + j * step);
    } else {
      for (int c = first; c < end; c += step) visit(0, c);
    }
  }
};

/// The packs of a row of numbers T that a thread of a team holds, or the address of a row that it reads again.
template <class T, class Team>
class TeamRow {
 public:
  using Packed = Pack<T, Team::kColumns>;

  /// Makes a row whose packs set() stores at this address, which may be null for packs that are held.
  __device__ explicit TeamRow(T* row) : row_(row) {}
  /// Reads a row. A null address stands for a row whose packs must not be read.
  __device__ TeamRow(const T* row, std::int64_t columns) : row_(const_cast<T*>(row)) {
    if constexpr (Team::kHeld > 0) {
      if (!row) return;
      Team::for_each_pack(columns, [&](int j, int c) { held_[j] = load_pack<Team::kColumns>(row_ + c); });
    }
  }

  /// Returns pack j of this thread, which begins at column c.
  __device__ __forceinline__ Packed at(int j, int c) const {
    if constexpr (Team::kHeld > 0)
      return held_[j];
    else
      return load_pack<Team::kColumns>(row_ + c);
  }
  /// Sets this pack, and stores it in memory.
  __device__ __forceinline__ void set(int j, int c, const Packed& pack) {
    if constexpr (Team::kHeld > 0) held_[j] = pack;
    if (row_) store_pack(pack, row_ + c);
  }

 private:
  T* row_;
  Packed held_[Team::kHeld > 0 ? Team::kHeld : 1]{};
};

/// The threads of a block whose teams are warps, and the largest number of threads of a team that is a block.
constexpr unsigned kWarpTeamThreads = 128, kMostTeamThreads = 256;

/// Returns the shape of a launch in which each of `rows` rows has a team that is a warp.
inline LaunchShape shape_for_warps(std::int64_t rows) {
  constexpr std::int64_t kTeams = kWarpTeamThreads / 32;
  return {static_cast<unsigned>((rows + kTeams - 1) / kTeams), kWarpTeamThreads};
}

/// Calls run(team, shape) with the kind of team for rows of so many columns, and the shape of a launch in which each
/// team has one of `rows` rows of numbers T. `packs` tells whether all arrays can be read in packs of kTeamColumns.
constexpr int kTeamColumns = 4;
template <class T, class Run>
void with_row_team(std::int64_t rows, std::int64_t columns, bool packs, const Run& run) {
  constexpr std::int64_t kWarpColumns = 32 * kTeamColumns;
  const LaunchShape of_warps = shape_for_warps(rows);
  if (packs && columns <= 4 * kWarpColumns) return run(RowTeam<kTeamColumns, 4, true>(), of_warps);
  if (packs && columns <= 8 * kWarpColumns) return run(RowTeam<kTeamColumns, 8, true>(), of_warps);
  LaunchShape of_blocks = shape_for_rows<T>(rows, columns);
  static_assert(kMostTeamThreads == 256);  // as shape_for_rows()
  if (packs && columns <= kMostTeamThreads * kTeamColumns * 4) return run(RowTeam<kTeamColumns, 4, false>(), of_blocks);
  run(RowTeam<1, 0, false>(), of_blocks);
}

}  // namespace heed
