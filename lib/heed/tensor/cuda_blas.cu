// The functions of cuBLASLt that heed calls. They load the library when the first of them is called, and call the
// functions of the library, whose names and types they have. heed is not linked with cuBLASLt, because the library has
// hundreds of megabytes: every program would start seven times as slowly, whether it uses a GPU or not, and would not
// start on a machine that has no GPU and lacks the library.
#include "heed/tensor/cuda_blas.h"

#include "heed/tensor/cuda_language.h"

#ifdef __CUDACC__

#include <cublasLt.h>
#include <dlfcn.h>

namespace heed {
namespace {

struct Library {
  void* handle = nullptr;
  std::string why_not;
};

/// Loads the library where the system finds it, or else from where it was when heed was built.
const Library& library() {
  static const Library loaded = [] {
    const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
    Library out;
    out.handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!out.handle)
      out.why_not =
          std::string("a GPU needs NVIDIA's library cuBLASLt (install the CUDA Toolkit, or name the folder of ") +
          name + " in LD_LIBRARY_PATH, or use --device cpu): " + ::dlerror();
#ifdef HEED_CUBLAS_LT
    if (!out.handle) out.handle = ::dlopen(HEED_CUBLAS_LT, RTLD_NOW | RTLD_LOCAL);
#endif
    return out;
  }();
  return loaded;
}

/// Returns the library's function with a name.
template <class Function>
Function* function(const char* name) {
  const Library& lt = library();
  if (!lt.handle) throw Error(lt.why_not);
  void* const found = ::dlsym(lt.handle, name);
  if (!found) throw Error(std::string("NVIDIA's library cuBLASLt has no ") + name + " (install a newer CUDA Toolkit)");
  return reinterpret_cast<Function*>(found);
}

}  // namespace

std::string load_cublas_lt() {
  return library().handle ? std::string() : library().why_not;
}

}  // namespace heed

/// Defines a function of cuBLASLt that calls the library's function of the same name.
#define HEED_FORWARD(Result, name, parameters, arguments)               \
  extern "C" Result name parameters {                                   \
    static auto* const forward = heed::function<decltype(name)>(#name); \
    return forward arguments;                                           \
  }
HEED_FORWARD(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle), (handle))
HEED_FORWARD(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle), (handle))
HEED_FORWARD(const char*, cublasLtGetStatusString, (cublasStatus_t status), (status))
HEED_FORWARD(cublasStatus_t, cublasLtMatmulDescCreate,
             (cublasLtMatmulDesc_t * product, cublasComputeType_t sums, cudaDataType_t scale), (product, sums, scale))
HEED_FORWARD(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t product), (product))
HEED_FORWARD(cublasStatus_t, cublasLtMatmulDescSetAttribute,
             (cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const void* value, size_t size),
             (product, attribute, value, size))
HEED_FORWARD(cublasStatus_t, cublasLtMatrixLayoutCreate,
             (cublasLtMatrixLayout_t * layout, cudaDataType type, uint64_t rows, uint64_t columns, int64_t stride),
             (layout, type, rows, columns, stride))
HEED_FORWARD(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout), (layout))
HEED_FORWARD(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference), (preference))
HEED_FORWARD(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference), (preference))
HEED_FORWARD(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
             (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
              size_t size),
             (preference, attribute, value, size))
HEED_FORWARD(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
             (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int wanted,
              cublasLtMatmulHeuristicResult_t* results, int* count),
             (handle, product, a, b, c, d, preference, wanted, results, count))
HEED_FORWARD(cublasStatus_t, cublasLtMatmulAlgoCheck,
             (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algorithm,
              cublasLtMatmulHeuristicResult_t* result),
             (handle, product, a, b, c, d, algorithm, result))
HEED_FORWARD(cublasStatus_t, cublasLtMatmul,
             (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
              const void* c, cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_size, cudaStream_t stream),
             (handle, product, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algorithm, workspace,
              workspace_size, stream))
#undef HEED_FORWARD

#endif
