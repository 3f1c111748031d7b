#pragma once

#include <string_view>

#include "heed/tensor/arena.h"

namespace heed {

class ThreadTeam;

/// The arithmetic of matrix products: `bfloat16` rounds both operands to bfloat16 and sums in float32; `int8`, for
/// inference only, rounds the rows of both to 8 bits of a scale of their own. All else is float32, but for the keys and
/// values that decoding keeps, which these two hold as 16-bit integers.
enum class Precision { float32, bfloat16, int8 };

/// Where ops run and take their memory from: one CPU thread. Parallel work uses one context a thread; the kernels
/// themselves are serial, so that a step has one barrier and not a thousand. Only where one line is all there is to do,
/// `team` shares the products of inference, with the same results.
struct CpuContext {
  Arena& arena;
  Precision precision = Precision::float32;
  ThreadTeam* team = nullptr;
};

}  // namespace heed
