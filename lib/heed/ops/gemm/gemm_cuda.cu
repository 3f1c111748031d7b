#include "heed/ops/gemm/gemm.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "heed/tensor/cuda_language.h"
#include "heed/tensor/cuda_packs.h"

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

// Rows that do not depend on each other. The problem: an algorithm of a library that is fast for 64 rows is slow for
// 4,096, and another one may add up the terms of a sum in another order. The idea: an algorithm that was chosen for
// more rows is taken only if a trial shows that it gives the same bits as the algorithm that was chosen for the fewest
// rows. An algorithm of these products adds up all sums in the same way, whatever the row and the numbers, so that one
// product of random matrices tells algorithms apart.

/// The numbers of rows for which algorithms are chosen where rows do not depend on each other. The first one is that of
/// the algorithm whose bits all products have.
constexpr std::int64_t kIndependentRows[] = {64, 256, 1024, 4096};
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
  if (rows == Rows::independent) {
    const auto* const found = std::ranges::lower_bound(kIndependentRows, m);
    return {found == std::end(kIndependentRows) ? *std::prev(found) : *found, k};
  }
  return {rows == Rows::exact ? power_of_two(m) : typical_size(m), k};
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

/// Rounds a matrix whose rows begin `stride` elements apart, in packs of N numbers.
template <int N>
__global__ void round_kernel(const float* x, std::int64_t stride, Bfloat16* to, std::int64_t rows,
                             std::int64_t columns) {
  const std::int64_t packs = columns / N;  // of a row
  for_each_element(rows * packs, [&](std::int64_t i) {
    const std::int64_t r = rows == 1 ? 0 : i / packs, c = (i - r * packs) * N;
    store_pack(round_pack(load_pack<N>(x + r * stride + c)), to + r * columns + c);
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

/// Returns random bits, which depend on `x` alone.
__device__ inline std::uint32_t random_bits(std::uint32_t x) {
  for (int round = 0; round < 2; ++round) x = (x ^ x >> 15) * 0x2C1B3C6DU;
  return x ^ x >> 16;
}

/// Sets a matrix [rows, k] to random numbers of many sizes, which depend on `seed`. The second half of a row repeats
/// the first half, with other signs where `cancels` is true.
template <class Operand>
__global__ void randomise_kernel(Operand* x, std::int64_t rows, std::int64_t k, std::uint32_t seed, bool cancels) {
  for_each_element(rows * k, [&](std::int64_t i) {
    const std::int64_t half = k / 2, column = i % k, place = column >= half && column < 2 * half ? i - half : i;
    const std::uint32_t bits = random_bits(static_cast<std::uint32_t>(place) * 0x9E3779B9U + seed),
                        more = random_bits(bits);
    const int exponent = static_cast<int>(more & 15);
    const double size = std::ldexp(1.0 + bits / 4294967296.0 + (more >> 4) / 1152921504606846976.0, -exponent);
    const bool negative = ((bits & 1) != 0) != (cancels && place != i);
    x[i] = stored<Operand>(static_cast<decltype(full(x[i]))>(negative ? -size : size));
  });
}

/// Sets `differ` to 1 if two arrays of n numbers do not have the same bits.
template <class C>
__global__ void compare_kernel(const C* x, const C* y, std::int64_t n, std::uint8_t* differ) {
  using Bits = std::conditional_t<sizeof(C) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint16_t>>;
  for_each_element(n, [&](std::int64_t i) {
    if (std::bit_cast<Bits>(x[i]) != std::bit_cast<Bits>(y[i])) *differ = 1;
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
using Algorithm = cublasLtMatmulAlgo_t;
#else
/// How the emulation adds up the terms of a sum: from the first to the last, or from the last to the first.
enum class Algorithm { forwards, backwards };
#endif

struct CudaProducts {
  /// The numbers that choose an algorithm: the type, the sizes m, n and k, the strides of A, B and C, bits for
  /// transposed operands, independent rows, a relu and a rounded result, and the alignments of the three matrices and
  /// of the bias, 0 where there is none.
  using Key = std::tuple<int, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, int,
                         std::array<std::uint32_t, 4>>;

  std::map<Key, std::optional<Algorithm>> algorithms;  // nothing where the library has none
  /// The algorithms that have computed products of exactly these sizes, or nothing where the library could not finish
  /// one. Only for steps that repeat (see CudaGraphs), which must know it before cuBLASLt is asked.
  std::map<Key, std::optional<Algorithm>> computed;
#ifdef __CUDACC__
  cublasLtHandle_t library = nullptr;

  CudaProducts() {
    if (const cublasStatus_t status = cublasLtCreate(&library); status != CUBLAS_STATUS_SUCCESS)
      throw Error(std::string("cuBLASLt cannot be used: ") + cublasLtGetStatusString(status));
  }
  CudaProducts(const CudaProducts&) = delete;
  CudaProducts& operator=(const CudaProducts&) = delete;
  ~CudaProducts() {
    cublasLtDestroy(library);
  }
#endif
};

namespace {

/// The memory of the operands and results of a product, and its number of rows.
template <class Operand, class C>
struct ProductMemory {
  std::int64_t m, k;
  const Operand *a, *b;
  C* c;
};

/// A product C = alpha A B + beta C of n columns, which is finished as `finish` says. Rows of C begin `c_stride`
/// elements apart. The memory and the number of rows are those of ProductMemory.
template <class Operand, class T, class C>
struct ProductTerms {
  std::int64_t n;
  T alpha;
  GemmOperand<Operand> a, b;
  T beta;
  std::int64_t c_stride;
  Finish<C> finish;
};

/// Returns the largest power of two, up to 256, by which an address can be divided. (cuBLASLt takes it for 256 unless
/// it is told.)
std::uint32_t alignment_of(const void* address) {
  constexpr std::uintptr_t kMost = 256;
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | kMost;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

#ifdef __CUDACC__

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

/// A product for cuBLASLt: computed as C^T = B^T A^T, because cuBLASLt sees the transpose of each stored matrix. The
/// addresses of the operands and of C serve for their layouts and alignments; compute() is told the memory and the
/// number of rows.
template <class Operand, class T, class C>
class LibraryProduct {
 public:
  LibraryProduct(const CudaContext& device, Rows rows, const ProductTerms<Operand, T, C>& terms)
      : device_(device), rows_(rows), terms_(terms) {
    const Finish<C>& finish = terms.finish;
    check(cublasLtMatmulDescCreate(&product_.handle, kSums<T>, kType<T>));
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
      check(cublasLtMatmulDescSetAttribute(product_.handle, attribute, &value, sizeof(value)));
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, terms.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, terms.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (finish)
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, !finish.relu  ? CUBLASLT_EPILOGUE_BIAS
                                         : finish.bias ? CUBLASLT_EPILOGUE_RELU_BIAS
                                                       : CUBLASLT_EPILOGUE_RELU);
    if (finish.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, finish.bias);
  }

  /// Returns algorithms that cuBLASLt suggests for products of these sizes and alignments, the fastest first, or
  /// nothing if cuBLASLt has none. With Rows::independent, an algorithm must compute each sum as a whole, and must be
  /// able to compute products with the fewest and with many rows. Otherwise there is one algorithm, and it may compute
  /// sums in parts, which a second step adds up in a fixed order; if the result is rounded, the parts are not stored in
  /// the type of the result.
  std::vector<Algorithm> suggestions(const ChosenFor& sizes, const std::array<std::uint32_t, 4>& alignments) const {
    const bool independent = rows_ == Rows::independent;
    std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE;
    if (!independent) reductions |= CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    if (!independent && sizeof(C) >= sizeof(T)) reductions |= CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    Preference preference;
    check(cublasLtMatmulPreferenceCreate(&preference.handle));
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(cublasLtMatmulPreferenceSetAttribute(preference.handle, attribute, &value, sizeof(value)));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments[1]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments[0]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments[2]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[2]);

    Matrices matrices;
    describe(matrices, sizes.m, sizes.k);
    std::array<cublasLtMatmulHeuristicResult_t, 8> results{};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(device_.products->library, product_.handle, matrices.b.handle, matrices.a.handle,
                                       matrices.c.handle, matrices.c.handle, preference.handle,
                                       independent ? static_cast<int>(results.size()) : 1, results.data(), &count);
    std::vector<Algorithm> out;
    if (is_refused(status)) return out;
    check(status);
    constexpr std::int64_t kMany = 4096;
    for (int i = 0; i < count; ++i) {
      const cublasLtMatmulHeuristicResult_t& result = results[static_cast<std::size_t>(i)];
      if (result.state != CUBLAS_STATUS_SUCCESS) continue;
      const Algorithm& algorithm = result.algo;
      if (!independent || (can_compute(algorithm, 1, sizes.k) && can_compute(algorithm, kMany, sizes.k)))
        out.push_back(algorithm);
    }
    return out;
  }

  /// Computes the product, with kWorkspace bytes of memory for partial sums. Returns false if cuBLASLt refuses the
  /// algorithm.
  bool compute(const Algorithm& algorithm, const ProductMemory<Operand, C>& at, void* workspace) const {
    Matrices matrices;
    describe(matrices, at.m, at.k);
    const cublasStatus_t status =
        cublasLtMatmul(device_.products->library, product_.handle, &terms_.alpha, at.b, matrices.b.handle, at.a,
                       matrices.a.handle, &terms_.beta, at.c, matrices.c.handle, at.c, matrices.c.handle, &algorithm,
                       workspace, kWorkspace, device_.stream);
    if (is_refused(status)) return false;
    check(status);
    return true;
  }

 private:
  void describe(Matrices& matrices, std::int64_t m, std::int64_t k) const {
    const GemmOperand<Operand>&a = terms_.a, &b = terms_.b;
    heed::describe<Operand>(matrices.a, a.transposed ? k : m, a.transposed ? m : k, a.stride);
    heed::describe<Operand>(matrices.b, b.transposed ? terms_.n : k, b.transposed ? k : terms_.n, b.stride);
    heed::describe<C>(matrices.c, m, terms_.n, terms_.c_stride);
  }

  bool can_compute(const Algorithm& algorithm, std::int64_t m, std::int64_t k) const {
    Matrices matrices;
    describe(matrices, m, k);
    cublasLtMatmulHeuristicResult_t result{};
    return cublasLtMatmulAlgoCheck(device_.products->library, product_.handle, matrices.b.handle, matrices.a.handle,
                                   matrices.c.handle, matrices.c.handle, &algorithm,
                                   &result) == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= kWorkspace;
  }

  const CudaContext& device_;
  Rows rows_;
  ProductTerms<Operand, T, C> terms_;
  Product product_;
};

#else

/// Throws Error where a row of a stored matrix is longer than the distance of two rows, which cuBLASLt refuses.
void require_rows_apart(std::int64_t columns, std::int64_t stride) {
  if (columns > stride)
    throw Error("emulation of CUDA: rows of " + std::to_string(columns) + " numbers that begin " +
                std::to_string(stride) + " numbers apart");
}

/// Stands in for cuBLASLt over the emulation: computes C = alpha A B + beta C, and finishes it, element by element.
/// Like cuBLASLt, it wants aligned memory for partial sums, and layouts that are possible for the sizes for which it
/// would choose an algorithm, too. It cannot add a bias where n is odd, so that tests also see a product which it does
/// not finish. For more independent rows, it first suggests an algorithm that gives other bits.
template <class Operand, class T, class C>
class LibraryProduct {
 public:
  LibraryProduct(const CudaContext& device, Rows rows, const ProductTerms<Operand, T, C>& terms)
      : device_(device), rows_(rows), terms_(terms) {}

  std::vector<Algorithm> suggestions(const ChosenFor& sizes, const std::array<std::uint32_t, 4>&) const {
    const GemmOperand<Operand>&a = terms_.a, &b = terms_.b;
    const std::int64_t n = terms_.n;
    require_rows_apart(a.transposed ? sizes.m : sizes.k, a.stride);
    require_rows_apart(b.transposed ? sizes.k : n, b.stride);
    require_rows_apart(n, terms_.c_stride);
    if (terms_.finish.bias && n % 2 != 0) return {};
    if (rows_ == Rows::independent && sizes.m > kIndependentRows[0]) return {Algorithm::backwards, Algorithm::forwards};
    return {Algorithm::forwards};
  }

  bool compute(Algorithm algorithm, const ProductMemory<Operand, C>& at, void* workspace) const {
    if (reinterpret_cast<std::uintptr_t>(workspace) % kGpuAlignment != 0)
      throw Error("emulation of CUDA: the memory for partial sums is not aligned");
    const auto element = [](const GemmOperand<Operand>& x, std::int64_t row, std::int64_t column) {
      return full(x.transposed ? x.data[column * x.stride + row] : x.data[row * x.stride + column]);
    };
    const GemmOperand<Operand> a{at.a, terms_.a.stride, terms_.a.transposed},
        b{at.b, terms_.b.stride, terms_.b.transposed};
    emulation::require_memory_of_gpu(at);
    emulation::require_memory_of_gpu(terms_.finish.bias);
    emulation::run_grid({1}, {1}, 0, [&] {
      for (std::int64_t i = 0; i < at.m; ++i)
        for (std::int64_t j = 0; j < terms_.n; ++j) {
          T sum = 0;
          for (std::int64_t l = 0; l < at.k; ++l) {
            const std::int64_t term = algorithm == Algorithm::forwards ? l : at.k - 1 - l;
            sum += element(a, i, term) * element(b, term, j);
          }
          const T scaled = terms_.alpha * sum;
          C& target = at.c[i * terms_.c_stride + j];
          target = finished(terms_.finish, terms_.beta != 0 ? scaled + terms_.beta * full(target) : scaled, j);
        }
    });
    return true;
  }

 private:
  const CudaContext& device_;
  Rows rows_;
  ProductTerms<Operand, T, C> terms_;
};

#endif

/// Returns the first of some algorithms for products A B^T with independent rows that gives the same bits as `base`, or
/// `base` if none does. The trial's sums are 0 but for rounding errors, which depend on the order of the terms.
template <class Operand, class T, class C>
Algorithm first_with_bits_of(CudaContext& device, const Algorithm& base, const std::vector<Algorithm>& algorithms,
                             std::int64_t n, std::int64_t k, bool has_bias, bool relu) {
#ifdef __CUDACC__
  constexpr std::int64_t kTrialRows = 300;  // more than a tile has
#else
  constexpr std::int64_t kTrialRows = 40;
#endif
  const ArenaScope scope(device.arena);
  const auto random_rows = [&](std::int64_t rows, std::uint32_t seed, bool cancels) {
    Operand* const out = device.arena.tensor<Operand>({rows, k}).data();
    launch(device, shape_for_elements(rows * k), randomise_kernel<Operand>, out, rows, k, seed, cancels);
    return out;
  };
  C* const bias = has_bias ? device.arena.tensor<C>({n}).data() : nullptr;
  if (bias)
    fill_on_gpu(device, reinterpret_cast<std::uint8_t*>(bias), n * static_cast<std::int64_t>(sizeof(C)),
                std::uint8_t{0});
  const LibraryProduct<Operand, T, C> product(device, Rows::independent,
                                              {n, T(1), {nullptr, k}, {nullptr, k, true}, T(0), n, {bias, relu}});
  ProductMemory<Operand, C> memory{kTrialRows, k, random_rows(kTrialRows, 1, true), random_rows(n, 2, false),
                                   device.arena.tensor<C>({kTrialRows, n}).data()};
  const C* const expected = memory.c;
  void* const workspace = device.arena.allocate(kWorkspace);
  if (!product.compute(base, memory, workspace)) return base;
  memory.c = device.arena.tensor<C>({kTrialRows, n}).data();
  std::uint8_t* const differ = device.arena.tensor<std::uint8_t>({1}).data();
  for (const Algorithm& algorithm : algorithms) {
    if (std::memcmp(&algorithm, &base, sizeof(base)) == 0) return base;
    if (!product.compute(algorithm, memory, workspace)) continue;
    fill_on_gpu(device, differ, 1, std::uint8_t{0});
    launch(device, shape_for_elements(kTrialRows * n), compare_kernel<C>, expected, memory.c, kTrialRows * n, differ);
    std::uint8_t found = 1;
    download(device, differ, std::span(&found, 1));
    wait_for_gpu(device);
    if (found == 0) return algorithm;
  }
  return base;
}

[[noreturn]] void refuse_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  throw Error("the GPU refuses a matrix product of " + std::to_string(m) + " rows, " + std::to_string(n) +
              " columns and sums of " + std::to_string(k) + " terms");
}

/// Adds a product, whose algorithm has computed products of these sizes before, to the commands of the step.
template <class Operand, class T, class C>
void put_product(CudaContext& device, Rows rows, const ProductTerms<Operand, T, C>& terms, const Algorithm& algorithm,
                 const ProductMemory<Operand, C>& memory) {
  const ArenaScope scope(device.arena);
  void* const workspace = device.arena.allocate(kWorkspace);
  const auto submit = [=](const CudaContext& gpu) {
    if (!LibraryProduct<Operand, T, C>(gpu, rows, terms).compute(algorithm, memory, workspace))
      refuse_product(memory.m, terms.n, memory.k);
  };
  put_command(device, submit, put_product<Operand, T, C>, terms, algorithm, memory, workspace);
}

/// Computes C = alpha A B + beta C, which is finished as `finish` says. Returns false where the library cannot finish
/// this product.
template <class Operand, class T, class C>
bool multiply_and_finish(CudaContext& device, Rows rows, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
                         GemmOperand<Operand> a, GemmOperand<Operand> b, T beta, C* c, std::int64_t c_stride,
                         Finish<C> finish) {
  if (!device.products) device.products = std::make_shared<CudaProducts>();
  const bool independent = rows == Rows::independent;
  // Independent rows may begin at any row of a matrix, whose first row is in an arena.
  const auto alignment_of_rows = [&](const void* address, std::int64_t stride, std::size_t size) {
    const std::size_t row = static_cast<std::size_t>(stride) * size | kGpuAlignment;
    return independent ? alignment_of(reinterpret_cast<const void*>(row)) : alignment_of(address);
  };
  const std::array<std::uint32_t, 4> alignments{alignment_of_rows(a.data, a.stride, sizeof(Operand)),
                                                alignment_of(b.data), alignment_of_rows(c, c_stride, sizeof(C)),
                                                finish.bias ? alignment_of(finish.bias) : 0};
  const int bits = int{a.transposed} + 2 * int{b.transposed} + 4 * int{independent} + 8 * int{finish.relu} +
                   16 * int{sizeof(C) < sizeof(T)};
  const auto key_for = [&](const ChosenFor& chosen) {
    return CudaProducts::Key{
        static_cast<int>(sizeof(Operand)), chosen.m, n, chosen.k, a.stride, b.stride, c_stride, bits, alignments};
  };
  const ProductTerms<Operand, T, C> terms{n, alpha, a, b, beta, c_stride, finish};
  const ProductMemory<Operand, C> memory{m, k, a.data, b.data, c};
  const ChosenFor exact{m, k};
  if (device.graphs && device.graphs->collects()) {
    if (const auto known = device.products->computed.find(key_for(exact)); known != device.products->computed.end()) {
      if (known->second) put_product(device, rows, terms, *known->second, memory);
      return known->second.has_value();
    }
    submit_collected(device);  // the library must say now whether it can compute the product
  }
  const auto remember = [&](const std::optional<Algorithm>& algorithm) {
    if (device.graphs && device.graphs->may_repeat()) device.products->computed.emplace(key_for(exact), algorithm);
  };
  const LibraryProduct<Operand, T, C> product(device, rows, terms);
  const auto compute = [&](const std::optional<Algorithm>& algorithm) {
    if (!algorithm) return false;
    const ArenaScope scope(device.arena);
    if (!product.compute(*algorithm, memory, device.arena.allocate(kWorkspace))) return false;
    remember(algorithm);
    return true;
  };
  const ChosenFor sizes = chosen_for(rows, m, k, a, b),
                  others = independent ? ChosenFor{kIndependentRows[0], k} : exact;
  const auto algorithm_for = [&](const ChosenFor& chosen, const auto& choose) {
    const auto [found, is_new] = device.products->algorithms.try_emplace(key_for(chosen));
    if (is_new) found->second = choose(product.suggestions(chosen, alignments));
    return found->second;
  };
  const auto first = [](const std::vector<Algorithm>& suggestions) {
    return suggestions.empty() ? std::optional<Algorithm>() : suggestions.front();
  };
  const auto like_others = [&](const std::vector<Algorithm>& suggestions) -> std::optional<Algorithm> {
    const std::optional<Algorithm> base = algorithm_for(others, first);
    if constexpr (!std::is_same_v<T, std::int32_t>) {
      try {
        if (base)
          return first_with_bits_of<Operand, T, C>(device, *base, suggestions, n, k, finish.bias != nullptr,
                                                   finish.relu);
      } catch (const OutOfGpuMemory&) {  // a faster algorithm is not worth a failure
      }
    }
    return base;
  };
  std::optional<Algorithm> algorithm =
      independent && sizes != others ? algorithm_for(sizes, like_others) : algorithm_for(sizes, first);
  if (compute(algorithm)) return true;
  // The library may refuse the algorithm that was chosen for other sizes. Then the algorithm for the exact sizes is
  // tried, or the one whose bits all independent rows have.
  if (sizes != others) {
    algorithm = algorithm_for(others, first);
    if (compute(algorithm)) return true;
  }
  if (!finish || (independent && algorithm)) refuse_product(m, n, k);
  remember(std::nullopt);
  return false;
}

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

template <class Operand, class C>
void gemm_rows(CudaContext& device, std::int64_t m, std::int64_t n, std::int64_t k, const Operand* a, const Operand* b,
               C* c, const std::type_identity_t<C>* bias, bool relu) {
  if (m == 0 || n == 0) return;
  using Sum = std::conditional_t<std::is_same_v<Operand, Bfloat16>, float, Operand>;
  multiply(device, Rows::independent, m, n, k, Sum(1), GemmOperand<Operand>{a, k}, GemmOperand<Operand>{b, k, true},
           Sum(0), c, n, Finish<C>{bias, relu});
}

void round_matrix(CudaContext& device, const float* x, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                  Bfloat16* to) {
  if (stride == columns) {  // one row, so that no thread divides
    columns = stride = rows * columns;
    rows = 1;
  }
  constexpr int kPack = 8;
  if (const std::int64_t rest = columns % kPack; rows == 1 && columns > kPack && rest != 0) {
    const std::int64_t whole = columns - rest;
    round_matrix(device, x, whole, 1, whole, to);
    return round_matrix(device, x + whole, rest, 1, rest, to + whole);
  }
  with_packs<kPack>(takes_packs<kPack>(columns, x, to) && takes_packs<kPack>(stride), [&](auto pack) {
    launch(device, shape_for_elements(rows * columns / pack.value), round_kernel<pack.value>, x, stride, to, rows,
           columns);
  });
}

void gemm_rows(CudaContext& device, std::int64_t m, std::int64_t n, std::int64_t k, const std::int8_t* a,
               const std::int8_t* b, std::int32_t* c) {
  if (n % kGpuInt8Block != 0 || k % kGpuInt8Block != 0) throw Error("internal: int8 products have whole blocks");
  if (m < kGpuInt8Rows) throw Error("internal: cuBLASLt may have no algorithm for int8 products of so few rows");
  if (n == 0) return;
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
#define HEED_INSTANTIATE(Operand, C)                                                                                  \
  template void gemm_rows(CudaContext&, std::int64_t, std::int64_t, std::int64_t, const Operand*, const Operand*, C*, \
                          const C*, bool);
HEED_INSTANTIATE(float, float)
HEED_INSTANTIATE(double, double)
HEED_INSTANTIATE(Bfloat16, float)
HEED_INSTANTIATE(Bfloat16, Bfloat16)
#undef HEED_INSTANTIATE

}  // namespace heed
