#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "heed/tensor/bfloat16.h"
#include "heed/tensor/context.h"
#include "heed/tensor/cuda_context.h"

namespace heed {

/// The left or the right matrix of a product, stored row by row with `stride` elements from the start of one row to the
/// start of the next. With `transposed`, the matrix of the product is the transpose of the stored matrix.
template <class T>
struct GemmOperand {
  const T* data;
  std::int64_t stride;
  bool transposed = false;
};

/// Computes the matrix product C = alpha A B + beta C with A [m, k], B [k, n] and C [m, n], C stored row by row with
/// `c_stride` elements from row to row. With beta 0, C is not read; with k 0, the result is beta C. The product runs on
/// the caller's thread alone.
///
/// Float32 products use oneDNN where heed was built with oneDNN, otherwise OpenBLAS. Products of doubles always use
/// OpenBLAS. With `Precision::bfloat16`, A and B are rounded to bfloat16 (to nearest, ties to even) and the products
/// are summed in float32: by gemm_bfloat16() where the CPU multiplies bfloat16, otherwise by a float32 product of the
/// rounded numbers, which has the same precision but is slow.
void gemm(CpuContext& device, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
          GemmOperand<float> b, float beta, float* c, std::int64_t c_stride);
void gemm(CpuContext& device, std::int64_t m, std::int64_t n, std::int64_t k, double alpha, GemmOperand<double> a,
          GemmOperand<double> b, double beta, double* c, std::int64_t c_stride);

/// The right matrix B [k, n] of products C = A B, prepared once for several left matrices A. For bfloat16 products B is
/// rounded and laid out in tiles (see gemm_bfloat16.h), in memory of the device's arena; otherwise B is used where it
/// is stored.
template <class T>
struct RightOperand {
  std::int64_t k, n;                     ///< the numbers of rows and columns of the right matrix B
  GemmOperand<T> plain;                  ///< the right matrix B as it is stored; not used where `tiles` is set
  const std::uint32_t* tiles = nullptr;  ///< B as bfloat16 numbers in tiles; null where B is used as it is stored
};
/// Prepares the right matrix B [k, n] of products C = A B for the precision of `device` (see RightOperand).
RightOperand<float> prepare_right_operand(CpuContext& device, std::int64_t k, std::int64_t n, GemmOperand<float> b);
RightOperand<double> prepare_right_operand(CpuContext& device, std::int64_t k, std::int64_t n, GemmOperand<double> b);
/// Prepares a right matrix B [k, n] whose numbers are bfloat16 already, for products C = A B. Allowed only where
/// takes_bfloat16(device) is true.
RightOperand<float> prepare_right_operand(CpuContext& device, std::int64_t k, std::int64_t n, GemmOperand<Bfloat16> b);

/// Computes C = alpha A B + beta C with a left matrix A of m rows and a right matrix B that prepare_right_operand() has
/// prepared for the precision of `device`.
void gemm(CpuContext& device, std::int64_t m, float alpha, GemmOperand<float> a, const RightOperand<float>& b,
          float beta, float* c, std::int64_t c_stride);
void gemm(CpuContext& device, std::int64_t m, double alpha, GemmOperand<double> a, const RightOperand<double>& b,
          double beta, double* c, std::int64_t c_stride);
/// Computes C = alpha A B + beta C with a left matrix A of m rows, whose numbers are bfloat16 already, and a prepared
/// right matrix B. Allowed only where takes_bfloat16(device) is true.
void gemm(CpuContext& device, std::int64_t m, float alpha, GemmOperand<Bfloat16> a, const RightOperand<float>& b,
          float beta, float* c, std::int64_t c_stride);

/// Returns whether matrix products of this precision multiply bfloat16 numbers on this CPU. Where this is true, tensors
/// that only matrix products read may be stored as bfloat16 at once.
bool takes_bfloat16(Precision precision);
inline bool takes_bfloat16(const CpuContext& device) {
  return takes_bfloat16(device.precision);
}

/// Computes C = alpha A B + beta C on a GPU, as gemm() does on a CPU, by cuBLASLt. The same product has the same bits
/// every time on the same kind of GPU. If T, the type of the elements of C, is double, A and B are double, too. If T is
/// float, A is float or Bfloat16, and so is B. With `Precision::bfloat16`, operands of type float are rounded to
/// bfloat16 first.
/// `bias` [n], where not null, is added to each row of C, without another pass over C; it is for T = float and k > 0.
template <class A, class B, class T>
void gemm(CudaContext& device, std::int64_t m, std::int64_t n, std::int64_t k, std::type_identity_t<T> alpha,
          GemmOperand<A> a, GemmOperand<B> b, std::type_identity_t<T> beta, T* c, std::int64_t c_stride,
          const std::type_identity_t<T>* bias = nullptr);

/// Computes C = f(A B + bias) on a GPU with bfloat16 products, and stores C [m, n], without gaps, as bfloat16: each
/// element is rounded once. `bias` [n] may be null; f(z) is max(0, z) with `relu`, otherwise z. k must not be 0.
template <class A, class B>
void rounded_gemm(CudaContext& device, std::int64_t m, std::int64_t n, std::int64_t k, GemmOperand<A> a,
                  GemmOperand<B> b, const Bfloat16* bias, bool relu, Bfloat16* c);

/// Computes C = f(A B^T + bias) on a GPU, for inference, with A [m, k], B [n, k] and C [m, n], all stored row by row
/// without gaps: a row of C does not depend on the other rows of A, nor on m, bit for bit. The types of A and C are
/// both float, both double, both Bfloat16, or Bfloat16 and float. An element of a C of Bfloat16 is rounded once. `bias`
/// [n] may be null, and f(z) is max(0, z) with `relu`, otherwise z; for double, bias is null, and f(z) is z.
template <class Operand, class C>
void gemm_rows(CudaContext& device, std::int64_t m, std::int64_t n, std::int64_t k, const Operand* a, const Operand* b,
               C* c, const std::type_identity_t<C>* bias = nullptr, bool relu = false);
/// Rounds a matrix [rows, columns], whose rows begin `stride` elements apart, to bfloat16 without gaps.
void round_matrix(CudaContext& device, const float* x, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                  Bfloat16* to);
/// What n and k must be multiples of in products of 8-bit integers on a GPU, and the smallest m: cuBLASLt may have no
/// algorithm for others.
constexpr std::int64_t kGpuInt8Block = 16, kGpuInt8Rows = 32;
/// Computes C = A B^T like the other gemm_rows(), with 8-bit integers. The sums are 32-bit integers and exact. n and k
/// must be multiples of kGpuInt8Block, and m at least kGpuInt8Rows.
void gemm_rows(CudaContext& device, std::int64_t m, std::int64_t n, std::int64_t k, const std::int8_t* a,
               const std::int8_t* b, std::int32_t* c);

/// Returns whether matrix products of a GPU multiply bfloat16 numbers: with `Precision::bfloat16`.
inline bool takes_bfloat16(const CudaContext& device) {
  return device.precision == Precision::bfloat16;
}

/// Returns the name, version and kernels of the library that multiplies float32 matrices, such as "oneDNN 2.6.3 (AVX2)"
/// or "OpenBLAS 0.3.21 (Zen)", for logs and benchmarks.
std::string gemm_library();

/// Returns whether this CPU has instructions that multiply bfloat16 numbers. With the option `--precision auto`, a
/// program chooses by this function.
bool has_fast_bfloat16();

}  // namespace heed
