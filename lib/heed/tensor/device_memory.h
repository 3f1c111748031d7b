#pragma once

#include <cstddef>
#include <utility>

#include "heed/base/pages.h"
#include "heed/tensor/device.h"

namespace heed {

/// Memory of a device that can grow, for what outlives a computation.
class DeviceMemory {
 public:
  /// Creates memory of no bytes.
  explicit DeviceMemory(Device device) : device_(device), pages_(0, PageSize::huge) {}
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(other.device_),
        pages_(std::move(other.pages_)),
        on_gpu_(std::exchange(other.on_gpu_, nullptr)),
        gpu_bytes_(std::exchange(other.gpu_bytes_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  ~DeviceMemory() {
    if (on_gpu_) source().free(on_gpu_, gpu_bytes_);
  }

  std::byte* data() const { return device_.is_host() ? reinterpret_cast<std::byte*>(pages_.data()) : on_gpu_; }
  std::size_t size() const { return device_.is_host() ? pages_.size() : gpu_bytes_; }
  /// Enlarges the memory to at least `bytes` and keeps the contents. The address of the memory may change.
  void grow(std::size_t bytes) {
    if (device_.is_host()) return pages_.grow(bytes);
    if (bytes <= gpu_bytes_) return;
    auto* const larger = static_cast<std::byte*>(source().allocate(bytes));
    if (on_gpu_) {
      const Shape all{static_cast<std::int64_t>(gpu_bytes_)};
      device_.copy(Tensor<std::byte>(on_gpu_, all), Tensor<std::byte>(larger, all));
      device_.wait();
      source().free(on_gpu_, gpu_bytes_);
    }
    on_gpu_ = larger;
    gpu_bytes_ = bytes;
  }

 private:
  MemorySource source() const { return device_.arena().source(); }

  Device device_;
  Pages pages_;  // where the device is the host
  std::byte* on_gpu_ = nullptr;
  std::size_t gpu_bytes_ = 0;
};

}  // namespace heed
