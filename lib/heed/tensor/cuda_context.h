#pragma once

#include "heed/tensor/arena.h"
#include "heed/tensor/context.h"

struct CUstream_st;  // a stream of CUDA, as cuda_runtime.h declares it

namespace heed {

struct CudaProducts;  // what gemm() keeps of cuBLASLt; see make_cuda_products()

/// The environment in which the kernels of a GPU run. Kernels are put into the stream, one after another; the GPU runs
/// them in this order while the host goes on.
struct CudaContext {
  Arena& arena;       ///< of tensors, in the memory of the GPU
  Arena& host_arena;  ///< of arrays that the host reads and writes
  Precision precision = Precision::float32;
  CUstream_st* stream = nullptr;
  CudaProducts* products = nullptr;  ///< for gemm(); over the emulation null
};

}  // namespace heed
