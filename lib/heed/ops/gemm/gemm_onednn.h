#pragma once

#include <string>

#include "heed/ops/gemm/gemm.h"

namespace heed {

/// oneDNN's gemm: takes any shape without compiling a kernel for it, which suits packed batches.
void gemm_onednn(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
                 GemmOperand<float> b, float beta, float* c, std::int64_t c_stride);

std::string onednn_description();

}  // namespace heed
