#pragma once

#include "heed/base/instruction_set.h"
#include "heed/ops/gemm/gemm.h"

namespace heed {

/// Computes C = alpha A B + beta C with OpenBLAS (see gemm() for the arguments); m and n are at least 1. The first call
/// chooses OpenBLAS's kernels by instruction_set(), unless the environment variable OPENBLAS_CORETYPE names other
/// kernels.
void gemm_openblas(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
                   GemmOperand<float> b, float beta, float* c, std::int64_t c_stride);
void gemm_openblas(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, GemmOperand<double> a,
                   GemmOperand<double> b, double beta, double* c, std::int64_t c_stride);

/// Makes OpenBLAS use its kernels for the best core (CPU model) that has the instruction set `set`. OpenBLAS itself
/// chooses by the CPU's name when the library is loaded, and on a CPU newer than the library it takes the kernels of
/// the oldest core. Must not be called while a product runs. Does nothing where OpenBLAS was built for a single core.
void choose_openblas_core(InstructionSet set);

/// Returns OpenBLAS's version and the core (CPU model) whose kernels OpenBLAS uses, such as "OpenBLAS 0.3.21
/// (SkylakeX)".
std::string openblas_description();

}  // namespace heed
