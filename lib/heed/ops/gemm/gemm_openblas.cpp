#include "heed/ops/gemm/gemm_openblas.h"

#include <cblas.h>
#include <omp.h>

#include <cstdlib>
#include <string_view>

// Internal functions of OpenBLAS (driver/others/dynamic.c) that select and release the kernels for a core, that is, for
// a CPU model. OpenBLAS exports these functions only where it was built with kernels for several cores; otherwise the
// weak symbols below are null.
#if defined(__linux__)
extern "C" void gotoblas_dynamic_init() __attribute__((weak));
extern "C" void gotoblas_dynamic_quit() __attribute__((weak));
#endif

namespace heed {
namespace {

constexpr const char* kCoreVariable = "OPENBLAS_CORETYPE";

#if defined(__linux__) && defined(__x86_64__)
/// Returns the instruction set of the kernels that OpenBLAS has for the core (CPU model) with this name: AVX-512, AVX2,
/// or `baseline` for anything older (SSE2 to AVX).
InstructionSet level_of_core(std::string_view core) {
  if (core == "SkylakeX" || core == "Cooperlake" || core == "SapphireRapids") return InstructionSet::avx512;
  if (core == "Haswell" || core == "Zen" || core == "Excavator") return InstructionSet::avx2;
  return InstructionSet::baseline;
}
#endif

/// Chooses OpenBLAS's kernels by instruction_set() and limits OpenBLAS to one thread, because heed's kernels are
/// serial. The number of threads is set twice: an OpenBLAS that was built with OpenMP ignores
/// openblas_set_num_threads() and takes the number from a setting of OpenMP that each calling thread has for itself.
void set_up_openblas() {
  [[maybe_unused]] static const bool chosen = [] {
    if (!std::getenv(kCoreVariable)) choose_openblas_core(instruction_set());
    openblas_set_num_threads(1);
    return true;
  }();
  thread_local const bool serial = (omp_set_num_threads(1), true);
  (void)serial;
}

CBLAS_TRANSPOSE blas_transpose(bool transposed) {
  return transposed ? CblasTrans : CblasNoTrans;
}

blasint to_blas(std::int64_t n) {
  return static_cast<blasint>(n);
}

}  // namespace

void gemm_openblas(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
                   GemmOperand<float> b, float beta, float* c, std::int64_t c_stride) {
  set_up_openblas();
  cblas_sgemm(CblasRowMajor, blas_transpose(a.transposed), blas_transpose(b.transposed), to_blas(m), to_blas(n),
              to_blas(k), alpha, a.data, to_blas(a.stride), b.data, to_blas(b.stride), beta, c, to_blas(c_stride));
}

void gemm_openblas(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, GemmOperand<double> a,
                   GemmOperand<double> b, double beta, double* c, std::int64_t c_stride) {
  set_up_openblas();
  cblas_dgemm(CblasRowMajor, blas_transpose(a.transposed), blas_transpose(b.transposed), to_blas(m), to_blas(n),
              to_blas(k), alpha, a.data, to_blas(a.stride), b.data, to_blas(b.stride), beta, c, to_blas(c_stride));
}

void choose_openblas_core(InstructionSet set) {
#if defined(__linux__) && defined(__x86_64__)
  struct Core {
    InstructionSet level;
    const char* name;
  };
  const Core core = set >= InstructionSet::avx512 ? Core{InstructionSet::avx512, "SkylakeX"}
                    : set >= InstructionSet::avx2 ? Core{InstructionSet::avx2, "Haswell"}
                                                  : Core{InstructionSet::baseline, "Prescott"};
  if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit || level_of_core(openblas_get_corename()) == core.level) return;
  gotoblas_dynamic_quit();
  ::setenv(kCoreVariable, core.name, 1);
  gotoblas_dynamic_init();
  ::unsetenv(kCoreVariable);
#else
  (void)set;
#endif
}

std::string openblas_description() {
  set_up_openblas();
  const std::string config = openblas_get_config();  // such as "OpenBLAS 0.3.21 NO_LAPACKE ..."
  return config.substr(0, config.find(' ', config.find(' ') + 1)) + " (" + openblas_get_corename() + ")";
}

}  // namespace heed
