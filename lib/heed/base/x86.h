#pragma once

// HEED_X86 is 1 when the compiler has x86-64's intrinsics, which functions with a target attribute use, and when Linux
// can tell what the CPU has; otherwise 0.
#if defined(__x86_64__) && defined(__linux__)
#define HEED_X86 1
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // gcc 12 warns inside its own intrinsics
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#else
#define HEED_X86 0
#endif
