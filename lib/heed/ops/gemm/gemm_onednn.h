#pragma once

#include <string>

#include "heed/ops/gemm/gemm.h"

namespace heed {

/// Computes C = alpha A B + beta C with oneDNN's sgemm (see gemm() for the arguments). The function sgemm takes any
/// shape without compiling a kernel for that shape; packed batches need this, because their shape changes every time.
/// On a CPU with AVX2 and without AVX-512, operands whose width is a multiple of 128 are copied first, into memory of
/// the arena that is free again afterwards, because the kernels read them up to twice as fast in another layout. The
/// copies do not change a bit of the result.
void gemm_onednn(Arena& arena, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
                 GemmOperand<float> b, float beta, float* c, std::int64_t c_stride);

/// Returns oneDNN's version and the instruction set of its kernels, such as "oneDNN 2.6.3 (AVX2)".
std::string onednn_description();

}  // namespace heed
