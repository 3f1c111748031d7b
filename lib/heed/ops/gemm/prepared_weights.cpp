#include "heed/ops/gemm/prepared_weights.h"

#include <functional>

#include "heed/ops/gemm/gemm_bfloat16.h"

namespace heed {

void PreparedWeights::begin(std::span<const float> parameters) {
  parameters_ = parameters;
  ++version_;
}

const std::uint32_t* PreparedWeights::tiles(std::int64_t k, std::int64_t n, GemmOperand<float> b) {
  const float* const first = parameters_.data();
  if (std::less<>()(b.data, first) || !std::less<>()(b.data, first + parameters_.size())) return nullptr;
  Weight& weight = [&]() -> Weight& {
    const std::lock_guard lock(lookup_);
    return weights_[{b.data - first, k, n, b.stride, b.transposed}];
  }();
  if (weight.version.load(std::memory_order_acquire) != version_) {
    const std::lock_guard lock(weight.preparing);
    if (weight.version.load(std::memory_order_relaxed) != version_) {
      weight.tiles.resize(static_cast<std::size_t>(bfloat16_tile_words(k, n)));
      bfloat16_tiles(weight.tiles.data(), k, n, b);
      weight.version.store(version_, std::memory_order_release);
    }
  }
  return weight.tiles.data();
}

std::int64_t PreparedWeights::memory() const {
  const std::lock_guard lock(lookup_);
  std::int64_t bytes = 0;
  for (const auto& [key, weight] : weights_)
    bytes += std::ssize(weight.tiles) * static_cast<std::int64_t>(sizeof(std::uint32_t));
  return bytes;
}

RightOperand<float> prepare_weight(CpuContext& device, std::int64_t k, std::int64_t n, GemmOperand<float> b) {
  if (device.weights && takes_bfloat16(device))
    if (const std::uint32_t* const tiles = device.weights->tiles(k, n, b)) return {k, n, b, tiles};
  return prepare_right_operand(device, k, n, b);
}

RightOperand<double> prepare_weight(CpuContext& device, std::int64_t k, std::int64_t n, GemmOperand<double> b) {
  return prepare_right_operand(device, k, n, b);
}

}  // namespace heed
