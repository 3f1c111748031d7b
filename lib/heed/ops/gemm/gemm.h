#pragma once

#include <cstdint>
#include <string>

#include "heed/tensor/bfloat16.h"
#include "heed/tensor/context.h"

namespace heed {

/// One side of a matrix product: row-major elements, `stride` elements from row to row; `transposed` takes the
/// transpose of what is stored.
template <class T>
struct GemmOperand {
  const T* data;
  std::int64_t stride;
  bool transposed = false;
};

/// C = alpha A B + beta C, with A [m, k], B [k, n], C [m, n] row-major with stride `c_stride`; beta C where k is 0, and
/// beta 0 does not read C. Serial (the caller's thread). The libraries: oneDNN where heed was built with it, else
/// OpenBLAS; double always OpenBLAS. With `Precision::bfloat16` both operands are rounded to bfloat16 (nearest, ties to
/// even) and products are summed in float32: by gemm_bfloat16() where the CPU has the hardware, else emulated, which is
/// exact but slow.
void gemm(CpuContext& device, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
          GemmOperand<float> b, float beta, float* c, std::int64_t c_stride);
void gemm(CpuContext& device, std::int64_t m, std::int64_t n, std::int64_t k, double alpha, GemmOperand<double> a,
          GemmOperand<double> b, double beta, double* c, std::int64_t c_stride);

/// The right side of products, prepared once for several left sides: in bfloat16 rounded and laid out for the hardware
/// (in the arena), else as it lies.
template <class T>
struct RightOperand {
  std::int64_t k, n;
  GemmOperand<T> plain;
  const std::uint32_t* tiles = nullptr;
};
RightOperand<float> prepare_right_operand(CpuContext& device, std::int64_t k, std::int64_t n, GemmOperand<float> b);
RightOperand<double> prepare_right_operand(CpuContext& device, std::int64_t k, std::int64_t n, GemmOperand<double> b);
/// Of numbers that are rounded already, only where takes_bfloat16(device).
RightOperand<float> prepare_right_operand(CpuContext& device, std::int64_t k, std::int64_t n, GemmOperand<Bfloat16> b);

/// gemm() with a right side prepared for this device's precision.
void gemm(CpuContext& device, std::int64_t m, float alpha, GemmOperand<float> a, const RightOperand<float>& b,
          float beta, float* c, std::int64_t c_stride);
void gemm(CpuContext& device, std::int64_t m, double alpha, GemmOperand<double> a, const RightOperand<double>& b,
          double beta, double* c, std::int64_t c_stride);
/// The same with a left side that is rounded already, only where takes_bfloat16(device).
void gemm(CpuContext& device, std::int64_t m, float alpha, GemmOperand<Bfloat16> a, const RightOperand<float>& b,
          float beta, float* c, std::int64_t c_stride);

/// Whether products in this precision are of bfloat16 numbers on this CPU, which may then be rounded beforehand.
bool takes_bfloat16(Precision precision);
inline bool takes_bfloat16(const CpuContext& device) {
  return takes_bfloat16(device.precision);
}

/// "oneDNN 2.6.3 (AVX2)" or "OpenBLAS 0.3.21 (Zen)": for logs and benchmarks.
std::string gemm_library();

/// Whether this CPU multiplies bfloat16 in hardware (what --precision auto asks).
bool has_fast_bfloat16();

}  // namespace heed
