#include "heed/ops/gemm/gemm.h"

#include "heed/base/error.h"
#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/ops/gemm/gemm_openblas.h"
#include "heed/tensor/bfloat16.h"
#if HEED_HAS_ONEDNN
#include "heed/ops/gemm/gemm_onednn.h"
#endif

namespace heed {
namespace {

void gemm_float32([[maybe_unused]] Arena& arena, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                  GemmOperand<float> a, GemmOperand<float> b, float beta, float* c, std::int64_t c_stride) {
#if HEED_HAS_ONEDNN
  gemm_onednn(arena, m, n, k, alpha, a, b, beta, c, c_stride);
#else
  gemm_openblas(m, n, k, alpha, a, b, beta, c, c_stride);
#endif
}

/// Computes C = beta C for C [m, n], the result of a matrix product where the inner dimension k is 0. With beta 0, C is
/// not read.
template <class T>
void scale(std::int64_t m, std::int64_t n, T beta, T* c, std::int64_t c_stride) {
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) c[i * c_stride + j] = beta == 0 ? T(0) : beta * c[i * c_stride + j];
}

/// Returns a copy of a matrix [rows, columns] with every element rounded to bfloat16, but stored as float32. The copy
/// is in the device's arena and has no gaps between rows. It is stored transposed where `x` is stored transposed.
GemmOperand<float> rounded(CpuContext& device, GemmOperand<float> x, std::int64_t rows, std::int64_t columns) {
  if (x.transposed) std::swap(rows, columns);
  const Tensor<float> copy = device.arena.tensor<float>({rows, columns});
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) copy.row(i)[j] = round_to_bfloat16(x.data[i * x.stride + j]);
  return {copy.data(), columns, x.transposed};
}

}  // namespace

RightOperand<float> prepare_right_operand(CpuContext& device, std::int64_t k, std::int64_t n, GemmOperand<float> b) {
  if (device.precision != Precision::bfloat16) return {k, n, b};
  if (!takes_bfloat16(device)) return {k, n, rounded(device, b, k, n)};
  return {k, n, b, bfloat16_tiles(device.arena, k, n, b).tiles};
}

RightOperand<float> prepare_right_operand(CpuContext& device, std::int64_t k, std::int64_t n, GemmOperand<Bfloat16> b) {
  return {k, n, {}, bfloat16_tiles(device.arena, k, n, b).tiles};
}

RightOperand<double> prepare_right_operand(CpuContext&, std::int64_t k, std::int64_t n, GemmOperand<double> b) {
  return {k, n, b};
}

void gemm(CpuContext& device, std::int64_t m, float alpha, GemmOperand<float> a, const RightOperand<float>& b,
          float beta, float* c, std::int64_t c_stride) {
  if (m == 0 || b.n == 0) return;
  if (b.k == 0) return scale(m, b.n, beta, c, c_stride);
  const ArenaScope scope(device.arena);
  if (b.tiles) {
    gemm_bfloat16(device.arena, m, alpha, a, {b.tiles, b.k, b.n}, beta, c, c_stride);
  } else {
    if (device.precision == Precision::bfloat16) a = rounded(device, a, m, b.k);
    gemm_float32(device.arena, m, b.n, b.k, alpha, a, b.plain, beta, c, c_stride);
  }
}

void gemm(CpuContext& device, std::int64_t m, float alpha, GemmOperand<Bfloat16> a, const RightOperand<float>& b,
          float beta, float* c, std::int64_t c_stride) {
  if (m == 0 || b.n == 0) return;
  if (b.k == 0) return scale(m, b.n, beta, c, c_stride);
  if (!b.tiles) throw Error("internal: gemm: a left side in bfloat16, a right side in another precision");
  const ArenaScope scope(device.arena);
  gemm_bfloat16(alpha, bfloat16_left_operand(device.arena, m, b.k, a), {b.tiles, b.k, b.n}, beta, c, c_stride);
}

bool takes_bfloat16(Precision precision) {
  return precision == Precision::bfloat16 && has_fast_bfloat16();
}

void gemm(CpuContext& device, std::int64_t m, double alpha, GemmOperand<double> a, const RightOperand<double>& b,
          double beta, double* c, std::int64_t c_stride) {
  gemm(device, m, b.n, b.k, alpha, a, b.plain, beta, c, c_stride);
}

void gemm(CpuContext& device, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
          GemmOperand<float> b, float beta, float* c, std::int64_t c_stride) {
  const ArenaScope scope(device.arena);
  gemm(device, m, alpha, a, prepare_right_operand(device, k, n, b), beta, c, c_stride);
}

void gemm(CpuContext&, std::int64_t m, std::int64_t n, std::int64_t k, double alpha, GemmOperand<double> a,
          GemmOperand<double> b, double beta, double* c, std::int64_t c_stride) {
  if (m == 0 || n == 0) return;
  if (k == 0) return scale(m, n, beta, c, c_stride);
  gemm_openblas(m, n, k, alpha, a, b, beta, c, c_stride);
}

std::string gemm_library() {
#if HEED_HAS_ONEDNN
  return onednn_description();
#else
  return openblas_description();
#endif
}

bool has_fast_bfloat16() {
  return instruction_set() >= InstructionSet::avx512_bf16;
}

}  // namespace heed
