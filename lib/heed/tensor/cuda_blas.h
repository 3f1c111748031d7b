#pragma once

#include <string>

namespace heed {

/// Loads cuBLASLt, NVIDIA's library of matrix products, if it is not loaded yet. Returns an empty string, or why it
/// cannot be loaded and what to do. All functions of cuBLASLt that heed calls throw Error in this case.
std::string load_cublas_lt();

}  // namespace heed
