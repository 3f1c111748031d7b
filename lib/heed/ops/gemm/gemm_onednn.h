#pragma once

#include <string>

#include "heed/ops/gemm/gemm.h"
#include "heed/tensor/arena.h"

namespace heed {

/// oneDNN's gemm: takes any shape without compiling a kernel for it, which suits packed batches.
void gemm_onednn(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
                 GemmOperand<float> b, float beta, float* c, std::int64_t c_stride);

/// The operands rounded to bfloat16, multiplied in hardware. Kernels are compiled for a shape and cached: m, n and k
/// are padded with zeros to a few values. Only where onednn_has_bfloat16().
void gemm_onednn_bfloat16(Arena& scratch, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                          GemmOperand<float> a, GemmOperand<float> b, float beta, float* c, std::int64_t c_stride);

bool onednn_has_bfloat16();
std::string onednn_description();

}  // namespace heed
