#pragma once

#include <cstddef>
#include <iterator>
#include <span>
#include <utility>

#include "heed/base/pages.h"
#include "heed/tensor/device.h"

namespace heed {

/// Returns a copy of a tensor of the device in memory of `arena`, which is of the same device.
template <class T>
Tensor<T> copy_in(Arena& arena, Device device, Tensor<T> tensor) {
  const Tensor<T> out = arena.tensor<T>(tensor.shape());
  device.copy(tensor, out);
  return out;
}

/// Returns a copy of an array of the host in memory of `arena`, which is of the device.
template <class T>
std::span<const T> put_in(Arena& arena, Device device, std::span<const T> host) {
  const Tensor<const T> from(host.data(), {std::ssize(host)});
  const Tensor<T> out = arena.tensor<T>(from.shape());
  device.put(from, out);
  return out.span();
}

/// Memory of a device that can grow. It holds data that lives longer than one computation, such as a cache of keys and
/// values; an Arena loses its contents at reset().
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
  /// Enlarges the memory to at least `bytes` and keeps the contents. The address of the memory may change. Throws
  /// OutOfGpuMemory if the GPU has not enough memory; this object is then unchanged.
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
  /// Enlarges the memory to at least `bytes`, as grow() does, but to twice `bytes` if the GPU has enough memory, so
  /// that memory that grows in many small steps is seldom copied. On the host, pages that are not written take no
  /// memory.
  void grow_ahead(std::size_t bytes) {
    if (bytes <= size()) return;
    try {
      grow(2 * bytes);
    } catch (const OutOfGpuMemory&) {
      grow(bytes);
    }
  }

 private:
  MemorySource source() const { return device_.arena().source(); }

  Device device_;
  Pages pages_;  // where the device is the host
  std::byte* on_gpu_ = nullptr;
  std::size_t gpu_bytes_ = 0;
};

}  // namespace heed
