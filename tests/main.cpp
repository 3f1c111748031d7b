#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <iostream>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"

int main(int argc, char** argv) {
  try {
    heed::instruction_set();  // throws UsageError if this machine lacks the instruction set that HEED_ISA names
  } catch (const heed::UsageError& error) {
    std::cerr << error.what() << '\n';
    return heed::UsageError::exit_code;
  }
  return doctest::Context(argc, argv).run();
}

// HDF5's library leaks some memory when it gives up on a damaged file. LeakSanitizer ignores only the library's own
// allocations.
extern "C" const char* __lsan_default_suppressions();  // NOLINT: the sanitizer's name
extern "C" const char* __lsan_default_suppressions() {
  return "leak:H5\nleak:libhdf5_serial\n";
}

// ICU makes each normaliser once for all threads. TSan does not see how ICU's library, which is compiled without TSan,
// orders the making and the uses, and reports a race between them.
extern "C" const char* __tsan_default_suppressions();  // NOLINT: the sanitizer's name
extern "C" const char* __tsan_default_suppressions() {
  return "race:heed::to_nfc\nrace:heed::to_nfkc\n";
}
