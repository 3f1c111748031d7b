#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <iostream>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"

int main(int argc, char** argv) {
  try {
    heed::instruction_set();  // what HEED_ISA names, or nothing is tested
  } catch (const heed::UsageError& error) {
    std::cerr << error.what() << '\n';
    return heed::UsageError::exit_code;
  }
  return doctest::Context(argc, argv).run();
}

// HDF5's library loses some memory where it gives up on a damaged file; only its own allocations are excused.
extern "C" const char* __lsan_default_suppressions();  // NOLINT: the sanitizer's name
extern "C" const char* __lsan_default_suppressions() {
  return "leak:H5\nleak:libhdf5_serial\n";
}
