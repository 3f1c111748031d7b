#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "heed/base/error.h"
#include "heed/tensor/context.h"
#include "heed/tensor/cuda_graphs.h"
#include "heed/tensor/cuda_memory.h"

namespace heed {

// The macro HEED_HAS_CUDA is 1 where heed is built with kernels of GPUs. Otherwise every device is a CPU.
#ifndef HEED_HAS_CUDA
#define HEED_HAS_CUDA 0
#endif

/// The device on which the ops of a graph run, a CPU or a GPU: a view of a context, which the caller owns.
///
/// A kernel is a function whose first parameter is a context. Device::run() calls a function object that takes a
/// context of any kind, so that the types of the arguments choose the kernels of the device.
///
/// The elements of tensors are in the memory of the device: only kernels and the functions below read or write them.
/// Two kinds of arrays are in the memory of the host, in host_arena(): the arrays that describe a batch (ids, offsets,
/// lists of rows), and the entries of the tape. The caller passes such an array to a kernel as it is. For a CPU, the
/// device and the host have the same memory: upload() and download() then return the tensor that they received.
class Device {
 public:
  /// These constructors convert: a context is a device.
  Device(CpuContext& context) : cpu_(&context) {}
#if HEED_HAS_CUDA
  Device(CudaContext& context) : cuda_(&context) {}
#endif

  /// Returns the context of the CPU, for parts of heed that only a CPU can run.
  CpuContext& cpu() const {
    if (!cpu_) throw Error("internal: only a CPU can do this");
    return *cpu_;
  }

  /// Tells whether the memory of the device is that of the host, which may then read and write tensors.
  bool is_host() const {
    return !cuda_;
  }
  Precision precision() const {
    return cuda_ ? cuda_->precision : cpu_->precision;
  }
  /// Prepares the calling thread for computing on the device. Every thread but the one that has created the device must
  /// call begin() first.
  void begin() const {
#if HEED_HAS_CUDA
    if (cuda_) use_gpu(*cuda_);
#endif
  }

  /// Calls function(context) with the context of the device, and returns the result.
  template <class Function>
  decltype(auto) run(Function&& function) const {
#if HEED_HAS_CUDA
    if (cuda_) return std::forward<Function>(function)(*cuda_);
#endif
    return std::forward<Function>(function)(*cpu_);
  }

  /// Calls compute(), which computes one of many steps that may differ only in what they upload, such as the steps of a
  /// search; `rows` is the number of rows of the step. A GPU may run all kernels of such a step as one CUDA graph (see
  /// tensor/cuda_graphs.h). If compute() throws, reset() must be called before the next step.
  template <class Compute>
  void step([[maybe_unused]] std::int64_t rows, const Compute& compute) const {
#if HEED_HAS_CUDA
    if (cuda_) return collect_step(*cuda_, rows, compute);
#endif
    compute();
  }

  /// Returns the arena of tensors, in the memory of the device.
  Arena& arena() const {
    return cuda_ ? cuda_->arena : cpu_->arena;
  }
  /// Returns the arena of arrays in the memory of the host, which live as long as the tensors in arena().
  Arena& host_arena() const {
    return cuda_ ? cuda_->host_arena : cpu_->arena;
  }
  /// Frees the memory of both arenas for reuse, and that of upload_bytes().
  void reset() const {
    arena().reset();
#if HEED_HAS_CUDA
    if (!cuda_) return;
    host_arena().reset();
    forget_uploads(*cuda_);
#endif
  }

  /// Returns a tensor in the memory of the device with the elements of a tensor in the memory of the host: for a CPU
  /// the same tensor. It is valid as long as `host` and the memory of arena().
  template <class T>
  Tensor<T> upload(Tensor<T> host) const {
    if (is_host()) return host;
    const Tensor<std::remove_const_t<T>> out = arena().template tensor<std::remove_const_t<T>>(host.shape());
    put(host, out);
    return {out.data(), out.shape()};
  }
  /// Returns a tensor in the memory of the host with the elements of a tensor in the memory of the device, after all
  /// kernels that write it have run: for a CPU the same tensor. It is valid as long as `tensor` and the memory of
  /// host_arena().
  template <class T>
  Tensor<T> download(Tensor<T> tensor) const {
    if (is_host()) return tensor;
    const Tensor<T> out = host_arena().tensor<T>(tensor.shape());
    get(tensor, out);
    return out;
  }
  /// Sets all elements of a tensor to `value`.
  template <class T>
  void fill(Tensor<T> tensor, T value) const {
#if HEED_HAS_CUDA
    if (cuda_) return fill_on_gpu(*cuda_, tensor.data(), tensor.size(), value);
#endif
    std::fill_n(tensor.data(), tensor.size(), value);
  }
  /// Copies the elements of a tensor to another tensor with as many elements.
  template <class T>
  void copy(Tensor<T> from, Tensor<T> to) const {
#if HEED_HAS_CUDA
    if (cuda_) return copy_on_gpu(*cuda_, to.data(), from.data(), bytes_of(from));
#endif
    std::copy_n(from.data(), from.size(), to.data());
  }
  /// Copies the elements of a tensor in the memory of the host to a tensor in that of the device.
  template <class From, class T>
  void put(Tensor<From> host, Tensor<T> to) const {
    static_assert(std::is_same_v<std::remove_const_t<From>, T>);
#if HEED_HAS_CUDA
    if (cuda_) return copy_to_gpu(*cuda_, to.data(), host.data(), bytes_of(host));
#endif
    std::copy_n(host.data(), host.size(), to.data());
  }
  /// Copies the elements of a tensor in the memory of the device to a tensor in that of the host, after all kernels
  /// that write it have run.
  template <class T>
  void get(Tensor<T> tensor, Tensor<T> host) const {
#if HEED_HAS_CUDA
    if (cuda_) {
      copy_from_gpu(*cuda_, host.data(), tensor.data(), bytes_of(tensor));
      return wait();
    }
#endif
    std::copy_n(tensor.data(), tensor.size(), host.data());
  }
  /// Returns the number in a scalar tensor, after all kernels that write it have run.
  template <class T>
  T read(Tensor<T> scalar) const {
    return download(scalar)[0];
  }
  /// Waits until all kernels and copies have run, so that the host may read what they have written to its memory.
  void wait() const {
#if HEED_HAS_CUDA
    if (cuda_) wait_for_gpu(*cuda_);
#endif
  }

 private:
  template <class T>
  static std::size_t bytes_of(Tensor<T> tensor) {
    return static_cast<std::size_t>(tensor.size()) * sizeof(T);
  }

  CpuContext* cpu_ = nullptr;
  CudaContext* cuda_ = nullptr;
};

}  // namespace heed
