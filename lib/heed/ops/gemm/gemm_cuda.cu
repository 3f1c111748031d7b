#include "heed/ops/gemm/gemm.h"

#include <array>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "heed/tensor/cuda_language.h"

#ifdef __CUDACC__
#include <cublasLt.h>
#endif

namespace heed {
namespace {

/// How the rows of a product C = A B may depend on each other.
enum class Rows {
  together,     ///< the fastest product for this number of rows
  independent,  ///< a row of C has the same bits whatever the number of rows is
  exact         ///< sums have no rounding, so that any product is good: a fast one for about this number of rows
};

/// What is done with the sums of a product before they are stored: where `bias` is not null, it is added to each row;
/// with `relu`, negative elements become 0.
template <class C>
struct Finish {
  const C* bias = nullptr;
  bool relu = false;

  explicit operator bool() const { return bias || relu; }
};

/// The number of rows for which an algorithm is chosen where rows do not depend on each other.
constexpr std::int64_t kIndependentRows = 64;
/// The memory in bytes that an algorithm may use for partial sums.
constexpr std::size_t kWorkspace = std::size_t{32} << 20;

std::int64_t power_of_two(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

/// Rounds a number of tokens up, by an eighth at most.
std::int64_t typical_size(std::int64_t n) {
  const std::int64_t step = std::max<std::int64_t>(power_of_two(n) / 16, 1);
  return (n + step - 1) / step * step;
}

/// The sizes m and k of a product for which its algorithm is chosen.
struct ChosenFor {
  std::int64_t m, k;

  bool operator==(const ChosenFor&) const = default;
};

/// Returns the sizes for which the algorithm of a product of A [m, k] and B is chosen. cuBLASLt takes about 0.1 ms to
/// suggest an algorithm, and nearly every batch of a training has another number of tokens, which is therefore rounded
/// up. The tokens are rows of a stored matrix: m rows of A, or k rows of A and B if A is transposed. The number of
/// columns of a stored matrix is not rounded, because it must not exceed the distance between two rows.
template <class Operand>
ChosenFor chosen_for(Rows rows, std::int64_t m, std::int64_t k, const GemmOperand<Operand>& a,
                     const GemmOperand<Operand>& b) {
  if (a.transposed) return {m, b.transposed || rows != Rows::together ? k : typical_size(k)};
  return {rows == Rows::independent ? kIndependentRows : rows == Rows::exact ? power_of_two(m) : typical_size(m), k};
}

/// full(x) returns a stored number in full precision. stored<C>(x) returns a sum in the type C in which it is stored.
__host__ __device__ inline float full(Bfloat16 x) {
  return from_bfloat16(x);
}
template <class T>
__host__ __device__ T full(T x) {
  return x;
}
template <class C, class T>
__host__ __device__ C stored(T x) {
  if constexpr (std::is_same_v<C, Bfloat16>)
    return to_bfloat16(x);
  else
    return x;
}

/// Returns the element of C in this column that a sum becomes.
template <class C, class T>
__host__ __device__ C finished(const Finish<C>& finish, T sum, std::int64_t column) {
  if (finish.bias) sum += full(finish.bias[column]);
  return stored<C>(finish.relu && !(sum > 0) ? T(0) : sum);
}

/// Stores the sums of a product [rows, columns], whose rows begin `stride` elements apart, in C, finished as `finish`
/// says. `sums` may be C itself.
template <class T, class C>
__global__ void finish_kernel(const T* sums, std::int64_t stride, C* c, std::int64_t c_stride, std::int64_t rows,
                              std::int64_t columns, Finish<C> finish) {
  for_each_element(rows * columns, [&](std::int64_t i) {
    const std::int64_t row = i / columns, column = i % columns;
    c[row * c_stride + column] = finished(finish, sums[row * stride + column], column);
  });
}

__global__ void round_kernel(const float* x, std::int64_t stride, Bfloat16* to, std::int64_t rows,
                             std::int64_t columns) {
  for_each_element(rows * columns, [&](std::int64_t i) {
    to[i] = to_bfloat16(rows == 1 ? x[i] : x[i / columns * stride + i % columns]);
  });
}

/// Computes c = beta c for a matrix whose rows begin `stride` elements apart; with beta 0, c is not read.
template <class T>
__global__ void scale_rows_kernel(T* c, std::int64_t stride, std::int64_t rows, std::int64_t columns, T beta) {
  for_each_element(rows * columns, [&](std::int64_t i) {
    T& element = c[i / columns * stride + i % columns];
    element = beta != 0 ? beta * element : T(0);
  });
}

/// Returns a copy of an operand that is rounded to bfloat16, in memory of the device's arena. `rows` and `columns` are
/// those of the matrix of the product.
GemmOperand<Bfloat16> rounded(CudaContext& device, GemmOperand<float> x, std::int64_t rows, std::int64_t columns) {
  if (x.transposed) std::swap(rows, columns);
  Bfloat16* const to = device.arena.tensor<Bfloat16>({rows, columns}).data();
  round_matrix(device, x.data, x.stride, rows, columns, to);
  return {to, columns, x.transposed};
}
GemmOperand<Bfloat16> rounded(CudaContext&, GemmOperand<Bfloat16> x, std::int64_t, std::int64_t) {
  return x;
}

}  // namespace

#ifdef __CUDACC__

struct CudaProducts {
  /// The numbers that choose an algorithm: the type, the sizes m, n and k, the strides of A, B and C, bits for
  /// transposed operands, independent rows, a relu and a rounded result, and the alignments of the three matrices and
  /// of the bias, 0 where there is none.
  using Key = std::tuple<int, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, int,
                         std::array<std::uint32_t, 4>>;

  cublasLtHandle_t library = nullptr;
  std::map<Key, std::optional<cublasLtMatmulAlgo_t>> algorithms;  // nothing where cuBLASLt has none

  CudaProducts() = default;
  CudaProducts(const CudaProducts&) = delete;
  CudaProducts& operator=(const CudaProducts&) = delete;
  ~CudaProducts() { cublasLtDestroy(library); }
};

namespace {

void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(std::string("the GPU refuses a matrix product: ") + cublasLtGetStatusString(status));
}

/// Returns whether a status of cuBLASLt says that cuBLASLt, or the algorithm that it was given, cannot compute a
/// product.
bool is_refused(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
}

/// A descriptor of cuBLASLt, which Destroy frees.
template <class Handle, cublasStatus_t (*Destroy)(Handle)>
struct Descriptor {
  Handle handle = nullptr;

  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Destroy(handle); }
};
using Product = Descriptor<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Descriptor<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Descriptor<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

template <class T>
constexpr cudaDataType kType = std::is_same_v<T, double>         ? CUDA_R_64F
                               : std::is_same_v<T, float>        ? CUDA_R_32F
                               : std::is_same_v<T, std::int8_t>  ? CUDA_R_8I
                               : std::is_same_v<T, std::int32_t> ? CUDA_R_32I
                                                                 : CUDA_R_16BF;
template <class T>
constexpr cublasComputeType_t kSums = std::is_same_v<T, double>         ? CUBLAS_COMPUTE_64F
                                      : std::is_same_v<T, std::int32_t> ? CUBLAS_COMPUTE_32I
                                                                        : CUBLAS_COMPUTE_32F;

/// Describes a matrix that is stored row by row to cuBLASLt, which stores matrices column by column: as its transpose.
/// `rows` and `columns` are those of the stored matrix.
template <class T>
void describe(Layout& layout, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  check(cublasLtMatrixLayoutCreate(&layout.handle, kType<T>, static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), stride));
}

/// The stored matrices of a product C = A B, as cuBLASLt sees them.
struct Matrices {
  Layout a, b, c;
};

template <class Operand, class C>
void describe(Matrices& matrices, std::int64_t m, std::int64_t n, std::int64_t k, const GemmOperand<Operand>& a,
              const GemmOperand<Operand>& b, std::int64_t c_stride) {
  describe<Operand>(matrices.a, a.transposed ? k : m, a.transposed ? m : k, a.stride);
  describe<Operand>(matrices.b, b.transposed ? n : k, b.transposed ? k : n, b.stride);
  describe<C>(matrices.c, m, n, c_stride);
}

/// Returns the largest power of two, up to 256, by which an address can be divided. (cuBLASLt takes it for 256 unless
/// it is told.)
std::uint32_t alignment_of(const void* address) {
  constexpr std::uintptr_t kMost = 256;
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | kMost;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

/// Returns the algorithm that cuBLASLt suggests for a product with m rows, or nothing if cuBLASLt has none. With
/// Rows::independent, the algorithm must compute each sum as a whole, and must be able to compute products with few and
/// with many rows. Otherwise the algorithm may compute sums in parts, which a second step adds up in a fixed order; if
/// the result is `rounded`, the parts are not stored in the type of the result. describe_rows(matrices, m) describes
/// the matrices of a product with m rows.
template <class DescribeRows>
std::optional<cublasLtMatmulAlgo_t> suggested_algorithm(cublasLtHandle_t library, const Product& product,
                                                        const DescribeRows& describe_rows, std::int64_t m,
                                                        const std::array<std::uint32_t, 4>& alignments, Rows rows,
                                                        bool rounded) {
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE;
  if (rows != Rows::independent) reductions |= CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (rows != Rows::independent && !rounded) reductions |= CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  Preference preference;
  check(cublasLtMatmulPreferenceCreate(&preference.handle));
  check(cublasLtMatmulPreferenceSetAttribute(preference.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                                             sizeof(kWorkspace)));
  check(cublasLtMatmulPreferenceSetAttribute(preference.handle, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                             sizeof(reductions)));
  const auto set_alignment = [&](cublasLtMatmulPreferenceAttributes_t attribute, std::uint32_t alignment) {
    check(cublasLtMatmulPreferenceSetAttribute(preference.handle, attribute, &alignment, sizeof(alignment)));
  };
  set_alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments[1]);
  set_alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments[0]);
  set_alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments[2]);
  set_alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[2]);

  Matrices matrices;
  describe_rows(matrices, m);
  std::array<cublasLtMatmulHeuristicResult_t, 8> results{};
  const int wanted = rows == Rows::independent ? static_cast<int>(results.size()) : 1;
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(library, product.handle, matrices.b.handle, matrices.a.handle, matrices.c.handle,
                                     matrices.c.handle, preference.handle, wanted, results.data(), &count);
  if (is_refused(status)) return {};
  check(status);
  const auto can_compute = [&](const cublasLtMatmulAlgo_t& algorithm, std::int64_t of_rows) {
    Matrices tried;
    describe_rows(tried, of_rows);
    cublasLtMatmulHeuristicResult_t result{};
    return cublasLtMatmulAlgoCheck(library, product.handle, tried.b.handle, tried.a.handle, tried.c.handle,
                                   tried.c.handle, &algorithm, &result) == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= kWorkspace;
  };
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulAlgo_t& algorithm = results[static_cast<std::size_t>(i)].algo;
    constexpr std::int64_t kMany = 4096;
    if (rows != Rows::independent || (can_compute(algorithm, 1) && can_compute(algorithm, kMany))) return algorithm;
  }
  return {};
}

/// Computes C = alpha A B + beta C, which is finished as `finish` says, as C^T = B^T A^T, because cuBLASLt sees the
/// transpose of each stored matrix. Returns false where cuBLASLt cannot finish this product.
template <class Operand, class T, class C>
bool multiply_and_finish(CudaContext& device, Rows rows, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
                         GemmOperand<Operand> a, GemmOperand<Operand> b, T beta, C* c, std::int64_t c_stride,
                         Finish<C> finish) {
  if (!device.products) {
    device.products = std::make_shared<CudaProducts>();
    check(cublasLtCreate(&device.products->library));
  }
  CudaProducts& products = *device.products;
  Product product;
  check(cublasLtMatmulDescCreate(&product.handle, kSums<T>, kType<T>));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulDescSetAttribute(product.handle, attribute, &value, sizeof(value)));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (finish)
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, !finish.relu  ? CUBLASLT_EPILOGUE_BIAS
                                       : finish.bias ? CUBLASLT_EPILOGUE_RELU_BIAS
                                                     : CUBLASLT_EPILOGUE_RELU);
  if (finish.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, finish.bias);

  // Independent rows may begin at any row of a matrix, whose first row is in an arena.
  const auto alignment_of_rows = [&](const void* address, std::int64_t stride, std::size_t size) {
    const std::size_t row = static_cast<std::size_t>(stride) * size | kGpuAlignment;
    return rows == Rows::independent ? alignment_of(reinterpret_cast<const void*>(row)) : alignment_of(address);
  };
  const std::array<std::uint32_t, 4> alignments{alignment_of_rows(a.data, a.stride, sizeof(Operand)),
                                                alignment_of(b.data), alignment_of_rows(c, c_stride, sizeof(C)),
                                                finish.bias ? alignment_of(finish.bias) : 0};
  constexpr bool kRoundedResult = sizeof(C) < sizeof(T);
  const int bits = int{a.transposed} + 2 * int{b.transposed} + 4 * int{rows == Rows::independent} +
                   8 * int{finish.relu} + 16 * int{kRoundedResult};
  const auto algorithm_for = [&](const ChosenFor& sizes) {
    const CudaProducts::Key key{
        static_cast<int>(kType<Operand>), sizes.m, n, sizes.k, a.stride, b.stride, c_stride, bits, alignments};
    const auto [found, is_new] = products.algorithms.try_emplace(key);
    if (is_new) {
      const auto describe_rows = [&](Matrices& matrices, std::int64_t of_rows) {
        describe<Operand, C>(matrices, of_rows, n, sizes.k, a, b, c_stride);
      };
      found->second =
          suggested_algorithm(products.library, product, describe_rows, sizes.m, alignments, rows, kRoundedResult);
    }
    return found->second;
  };
  Matrices matrices;
  describe<Operand, C>(matrices, m, n, k, a, b, c_stride);
  const ArenaScope scope(device.arena);
  void* const workspace = device.arena.allocate(kWorkspace);
  const auto compute = [&](const std::optional<cublasLtMatmulAlgo_t>& algorithm) {
    if (!algorithm) return CUBLAS_STATUS_NOT_SUPPORTED;
    return cublasLtMatmul(products.library, product.handle, &alpha, b.data, matrices.b.handle, a.data,
                          matrices.a.handle, &beta, c, matrices.c.handle, c, matrices.c.handle, &*algorithm, workspace,
                          kWorkspace, device.stream);
  };
  const ChosenFor sizes = chosen_for(rows, m, k, a, b), exact{m, k};
  const std::optional<cublasLtMatmulAlgo_t> algorithm = algorithm_for(sizes);
  cublasStatus_t status = compute(algorithm);
  // cuBLASLt may refuse the algorithm that was chosen for rounded sizes; then the algorithm for the exact sizes is
  // tried. Independent rows have one algorithm for all numbers of rows, which nothing may replace for some of them.
  if (is_refused(status) && rows != Rows::independent && sizes != exact) status = compute(algorithm_for(exact));
  if (is_refused(status) && finish && (rows != Rows::independent || !algorithm)) return false;
  check(status);
  return true;
}

}  // namespace

#else

namespace {

/// Throws Error where a row of a stored matrix is longer than the distance of two rows, which cuBLASLt refuses.
void require_rows_apart(std::int64_t columns, std::int64_t stride) {
  if (columns > stride)
    throw Error("emulation of CUDA: rows of " + std::to_string(columns) + " numbers that begin " +
                std::to_string(stride) + " numbers apart");
}

/// Stands in for cuBLASLt over the emulation: computes C = alpha A B + beta C, and finishes it, element by element.
/// Like cuBLASLt, it wants aligned memory for partial sums, and layouts that are possible for the sizes for which it
/// would choose an algorithm, too. It cannot add a bias where n is odd, so that tests also see a product which it does
/// not finish.
template <class Operand, class T, class C>
bool multiply_and_finish(CudaContext& device, Rows rows, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
                         GemmOperand<Operand> a, GemmOperand<Operand> b, T beta, C* c, std::int64_t c_stride,
                         Finish<C> finish) {
  const ChosenFor sizes = chosen_for(rows, m, k, a, b);
  require_rows_apart(a.transposed ? sizes.m : sizes.k, a.stride);
  require_rows_apart(b.transposed ? sizes.k : n, b.stride);
  require_rows_apart(n, c_stride);
  const ArenaScope scope(device.arena);
  if (reinterpret_cast<std::uintptr_t>(device.arena.allocate(kWorkspace)) % kGpuAlignment != 0)
    throw Error("emulation of CUDA: the memory for partial sums is not aligned");
  if (finish.bias && n % 2 != 0) return false;
  const auto element = [](const GemmOperand<Operand>& x, std::int64_t row, std::int64_t column) {
    return full(x.transposed ? x.data[column * x.stride + row] : x.data[row * x.stride + column]);
  };
  emulation::run_grid({1}, {1}, 0, [&] {
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        T sum = 0;
        for (std::int64_t l = 0; l < k; ++l) sum += element(a, i, l) * element(b, l, j);
        C& target = c[i * c_stride + j];
        target = finished(finish, beta != 0 ? alpha * sum + beta * full(target) : alpha * sum, j);
      }
  });
  return true;
}

}  // namespace

#endif

namespace {

/// Computes C = alpha A B + beta C, which is finished as `finish` says.
template <class Operand, class T, class C>
void multiply(CudaContext& device, Rows rows, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
              GemmOperand<Operand> a, GemmOperand<Operand> b, T beta, C* c, std::int64_t c_stride,
              Finish<C> finish = {}) {
  if (multiply_and_finish(device, rows, m, n, k, alpha, a, b, beta, c, c_stride, finish)) return;
  const ArenaScope scope(device.arena);
  T* sums = nullptr;
  std::int64_t stride = n;
  if constexpr (std::is_same_v<T, C>) {
    sums = c;
    stride = c_stride;
  } else {  // in full precision first, so that the result is rounded once
    if (beta != 0) throw Error("internal: a product that is rounded is added to nothing");
    sums = device.arena.tensor<T>({m, n}).data();
  }
  multiply_and_finish(device, rows, m, n, k, alpha, a, b, beta, sums, stride, Finish<T>{});
  launch(device, shape_for_elements(m * n), finish_kernel<T, C>, sums, stride, c, c_stride, m, n, finish);
}

}  // namespace

template <class A, class B, class T>
void gemm(CudaContext& device, std::int64_t m, std::int64_t n, std::int64_t k, std::type_identity_t<T> alpha,
          GemmOperand<A> a, GemmOperand<B> b, std::type_identity_t<T> beta, T* c, std::int64_t c_stride,
          const std::type_identity_t<T>* bias) {
  if (m == 0 || n == 0) return;
  if (k == 0) return launch(device, shape_for_elements(m * n), scale_rows_kernel<T>, c, c_stride, m, n, beta);
  if constexpr (std::is_same_v<T, float>) {
    if (!std::is_same_v<A, B> || takes_bfloat16(device) || std::is_same_v<A, Bfloat16>) {
      const ArenaScope scope(device.arena);
      const GemmOperand<Bfloat16> left = rounded(device, a, m, k), right = rounded(device, b, k, n);
      return multiply(device, Rows::together, m, n, k, alpha, left, right, beta, c, c_stride, Finish<T>{bias});
    }
  }
  if constexpr (std::is_same_v<A, T> && std::is_same_v<B, T>)
    multiply(device, Rows::together, m, n, k, alpha, a, b, beta, c, c_stride, Finish<T>{bias});
}

template <class A, class B>
void rounded_gemm(CudaContext& device, std::int64_t m, std::int64_t n, std::int64_t k, GemmOperand<A> a,
                  GemmOperand<B> b, const Bfloat16* bias, bool relu, Bfloat16* c) {
  if (m == 0 || n == 0) return;
  const ArenaScope scope(device.arena);
  multiply(device, Rows::together, m, n, k, 1.0F, rounded(device, a, m, k), rounded(device, b, k, n), 0.0F, c, n,
           Finish<Bfloat16>{bias, relu});
}

template <class T>
void gemm_rows(CudaContext& device, std::int64_t m, std::int64_t n, std::int64_t k, const T* a, const T* b, T* c,
               const std::type_identity_t<T>* bias, bool relu) {
  if (m == 0 || n == 0) return;
  const GemmOperand<T> left{a, k}, right{b, k, true};
  if constexpr (std::is_same_v<T, float>) {
    if (takes_bfloat16(device)) {
      const ArenaScope scope(device.arena);
      return gemm_rows(device, m, n, k, a, rounded(device, right, k, n).data, c, bias, relu);
    }
  }
  multiply(device, Rows::independent, m, n, k, T(1), left, right, T(0), c, n, Finish<T>{bias, relu});
}

void round_matrix(CudaContext& device, const float* x, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                  Bfloat16* to) {
  if (stride == columns) {  // one row, so that no thread divides
    columns = stride = rows * columns;
    rows = 1;
  }
  launch(device, shape_for_elements(rows * columns), round_kernel, x, stride, to, rows, columns);
}

void gemm_rows(CudaContext& device, std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const Bfloat16* b,
               float* c, const float* bias, bool relu) {
  if (m == 0 || n == 0) return;
  const ArenaScope scope(device.arena);
  multiply(device, Rows::independent, m, n, k, 1.0F, rounded(device, GemmOperand<float>{a, k}, m, k),
           GemmOperand<Bfloat16>{b, k, true}, 0.0F, c, n, Finish<float>{bias, relu});
}

void gemm_rows(CudaContext& device, std::int64_t m, std::int64_t n, std::int64_t k, const std::int8_t* a,
               const std::int8_t* b, std::int32_t* c) {
  if (n % kGpuInt8Block != 0 || k % kGpuInt8Block != 0) throw Error("internal: int8 products have whole blocks");
  if (m == 0 || n == 0) return;
  multiply(device, Rows::exact, m, n, k, std::int32_t{1}, GemmOperand<std::int8_t>{a, k},
           GemmOperand<std::int8_t>{b, k, true}, std::int32_t{0}, c, n);
}

#define HEED_INSTANTIATE(A, B, T)                                                                                      \
  template void gemm(CudaContext&, std::int64_t, std::int64_t, std::int64_t, T, GemmOperand<A>, GemmOperand<B>, T, T*, \
                     std::int64_t, const T*);
HEED_INSTANTIATE(float, float, float)
HEED_INSTANTIATE(Bfloat16, float, float)
HEED_INSTANTIATE(float, Bfloat16, float)
HEED_INSTANTIATE(Bfloat16, Bfloat16, float)
HEED_INSTANTIATE(double, double, double)
#undef HEED_INSTANTIATE
#define HEED_INSTANTIATE(A, B)                                                                                       \
  template void rounded_gemm(CudaContext&, std::int64_t, std::int64_t, std::int64_t, GemmOperand<A>, GemmOperand<B>, \
                             const Bfloat16*, bool, Bfloat16*);
HEED_INSTANTIATE(float, float)
HEED_INSTANTIATE(Bfloat16, float)
HEED_INSTANTIATE(float, Bfloat16)
HEED_INSTANTIATE(Bfloat16, Bfloat16)
#undef HEED_INSTANTIATE
template void gemm_rows(CudaContext&, std::int64_t, std::int64_t, std::int64_t, const float*, const float*, float*,
                        const float*, bool);
template void gemm_rows(CudaContext&, std::int64_t, std::int64_t, std::int64_t, const double*, const double*, double*,
                        const double*, bool);

}  // namespace heed
