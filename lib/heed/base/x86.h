#pragma once

// HEED_X86: whether there are x86-64's intrinsics, for functions with a target attribute of their own, and Linux's ways
// to ask what the CPU has. Else 0.
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
