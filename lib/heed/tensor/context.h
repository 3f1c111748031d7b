#pragma once

#include <string_view>

#include "heed/tensor/arena.h"

namespace heed {

class ThreadTeam;
class PreparedWeights;
struct CudaContext;

/// The arithmetic of matrix products. `bfloat16` rounds both operands to bfloat16 and sums in float32. `int8`, for
/// inference only, rounds each row of both operands to 8-bit integers with a scale for each row. All other computation
/// is in float32. With `bfloat16` and `int8`, the decoder also stores the keys and values of earlier tokens as
/// integers: see DecoderCache.
enum class Precision { float32, bfloat16, int8 };

/// The environment in which ops run: one CPU thread and the arena that provides the memory of the ops. Ops do not start
/// threads; parallel work uses one context for each thread, so that a training step has one barrier instead of a
/// thousand. If `team` is not null, the threads of the team share each matrix product of inference, with the same
/// results bit for bit: the translation of a single line, for which a user waits, then uses all threads. If `weights`
/// is not null, products in training read prepared weights from there: each weight is prepared once, for all parts
/// (shards) of an update.
struct CpuContext {
  Arena& arena;
  Precision precision = Precision::float32;
  ThreadTeam* team = nullptr;
  PreparedWeights* weights = nullptr;
};

}  // namespace heed
