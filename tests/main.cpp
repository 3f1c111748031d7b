#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

// HDF5's library loses some memory where it gives up on a damaged file; only its own allocations are excused.
extern "C" const char* __lsan_default_suppressions();  // NOLINT: the sanitizer's name
extern "C" const char* __lsan_default_suppressions() {
  return "leak:H5\nleak:libhdf5_serial\n";
}
