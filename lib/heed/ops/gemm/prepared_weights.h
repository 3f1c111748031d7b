#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "heed/ops/gemm/gemm.h"
#include "heed/tensor/aligned_vector.h"

namespace heed {

/// The weights of a training as the right matrices of bfloat16 products, rounded and laid out in tiles (see
/// gemm_bfloat16.h). All threads of an update read the same weights, once for each part of the batch. The first thread
/// that needs a weight prepares it, in the memory that held the weight in the update before. All other products of the
/// update read what this thread has prepared. In inference, where weights do not change, PackedParameters keeps them.
class PreparedWeights {
 public:
  /// Begins an update, or a validation: `parameters` are the weights, which do not change until the next call, and the
  /// weights prepared before are out of date. No thread may be in tiles().
  void begin(std::span<const float> parameters);

  /// Returns the tiles of a right matrix B [k, n] that is stored among the parameters; null if it is not one of them.
  /// For any number of threads at a time. The tiles are valid until the next call of begin().
  const std::uint32_t* tiles(std::int64_t k, std::int64_t n, GemmOperand<float> b);

  /// Returns the number of bytes of all prepared weights.
  std::int64_t memory() const;

 private:
  /// What tells a matrix from others that are stored in the same memory.
  struct Key {
    std::int64_t offset, k, n, stride;
    bool transposed;
    auto operator<=>(const Key&) const = default;
  };
  struct Weight {
    std::mutex preparing;
    std::atomic<std::int64_t> version = 0;  // the version_ for which the tiles were made
    AlignedVector<std::uint32_t> tiles;
  };

  std::span<const float> parameters_;
  std::int64_t version_ = 0;  // the number of calls of begin()
  mutable std::mutex lookup_;
  std::map<Key, Weight> weights_;
};

/// Prepares a weight as the right matrix B [k, n] of products C = A B, like prepare_right_operand(), but only once for
/// all parts of an update where the device has PreparedWeights.
RightOperand<float> prepare_weight(CpuContext& device, std::int64_t k, std::int64_t n, GemmOperand<float> b);
RightOperand<double> prepare_weight(CpuContext& device, std::int64_t k, std::int64_t n, GemmOperand<double> b);

}  // namespace heed
