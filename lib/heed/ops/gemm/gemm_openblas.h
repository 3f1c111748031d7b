#pragma once

#include "heed/base/instruction_set.h"
#include "heed/ops/gemm/gemm.h"

namespace heed {

/// gemm() by OpenBLAS, m and n at least 1. The first call chooses its kernels by instruction_set(), unless the
/// environment's OPENBLAS_CORETYPE names others.
void gemm_openblas(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
                   GemmOperand<float> b, float beta, float* c, std::int64_t c_stride);
void gemm_openblas(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, GemmOperand<double> a,
                   GemmOperand<double> b, double beta, double* c, std::int64_t c_stride);

/// Gives OpenBLAS, when no product is under way, the kernels of the best core it knows for `set`. Its own choice, made
/// by the CPU's name as it is loaded, falls to those of the oldest core on a CPU newer than the library. Does nothing
/// where OpenBLAS was built for one core.
void choose_openblas_core(InstructionSet set);

/// "OpenBLAS 0.3.21 (SkylakeX)"
std::string openblas_description();

}  // namespace heed
