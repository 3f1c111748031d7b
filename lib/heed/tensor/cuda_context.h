#pragma once

#include <memory>

#include "heed/tensor/arena.h"
#include "heed/tensor/context.h"

struct CUstream_st;  // a stream of CUDA, as cuda_runtime.h declares it

namespace heed {

struct CudaProducts;  // the handle and the chosen algorithms of cuBLASLt, which gemm() reuses
class CudaStaging;    // the locked memory through which copy_to_gpu() copies
class CudaUploads;    // the copies that upload_bytes() has made
class CudaGraphs;     // the graphs of steps that repeat

/// The environment in which the kernels of a GPU run. Kernels are put into the stream, one after another; the GPU runs
/// them in this order while the host goes on.
struct CudaContext {
  Arena& arena;       ///< of tensors, in the memory of the GPU
  Arena& host_arena;  ///< of arrays that the host reads and writes
  Precision precision = Precision::float32;
  CUstream_st* stream = nullptr;
  int number = 0;                               ///< of the GPU, counted from 0
  std::shared_ptr<CudaProducts> products = {};  ///< made by the first gemm()
  std::shared_ptr<CudaUploads> uploads = {};    ///< made by the first upload_bytes()
  std::shared_ptr<CudaStaging> staging = {};    ///< made by the first copy_to_gpu(); freed before what it copies to
  std::shared_ptr<CudaGraphs> graphs = {};      ///< made by the first collect_step()
};

}  // namespace heed
