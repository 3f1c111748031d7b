#pragma once

#include <algorithm>
#include <utility>

#include "heed/tensor/context.h"

namespace heed {

/// The device on which the ops of a graph run: a view of a context, which the caller owns. So far, every device is a
/// CPU.
///
/// A kernel is a function whose first parameter is a context. Device::run() calls a function object that takes a
/// context of any kind, so that the types of the arguments choose the kernels of the device.
///
/// The elements of tensors are in the memory of the device: only kernels and the functions below read or write them.
/// What describes a batch (ids, offsets, lists of rows) and what the tape holds is in the memory of the host, in
/// host_arena(); kernels receive such arrays as they are. For a CPU both memories are one.
class Device {
 public:
  /// This constructor converts: a context is a device.
  Device(CpuContext& context) : cpu_(&context) {}

  /// Returns the context of the CPU, for parts of heed that only a CPU can run.
  CpuContext& cpu() const { return *cpu_; }

  /// Calls function(context) with the context of the device, and returns the result.
  template <class Function>
  decltype(auto) run(Function&& function) const {
    return std::forward<Function>(function)(*cpu_);
  }

  /// Returns the arena of tensors, in the memory of the device.
  Arena& arena() const { return cpu_->arena; }
  /// Returns the arena of arrays in the memory of the host, which live as long as the tensors in arena().
  Arena& host_arena() const { return cpu_->arena; }

  /// Returns a tensor in the memory of the device with the elements of a tensor in the memory of the host: for a CPU
  /// the same tensor. It is valid as long as `host` and the memory of arena().
  template <class T>
  Tensor<T> upload(Tensor<T> host) const {
    return host;
  }
  /// Returns a tensor in the memory of the host with the elements of a tensor in the memory of the device, after all
  /// kernels that write it have run: for a CPU the same tensor. It is valid as long as `tensor` and the memory of
  /// host_arena().
  template <class T>
  Tensor<T> download(Tensor<T> tensor) const {
    return tensor;
  }
  /// Sets all elements of a tensor to `value`.
  template <class T>
  void fill(Tensor<T> tensor, T value) const {
    std::fill_n(tensor.data(), tensor.size(), value);
  }
  /// Copies the elements of a tensor to another tensor with as many elements.
  template <class T>
  void copy(Tensor<T> from, Tensor<T> to) const {
    std::copy_n(from.data(), from.size(), to.data());
  }
  /// Returns the number in a scalar tensor, after all kernels that write it have run.
  template <class T>
  T read(Tensor<T> scalar) const {
    return scalar[0];
  }

 private:
  CpuContext* cpu_;
};

}  // namespace heed
