#pragma once

// HEED_X86 is 1 when the compiler targets x86-64, so that functions can use intrinsics and target attributes, and when
// the system is Linux, where heed can find out which instructions the CPU has; otherwise HEED_X86 is 0.
#if defined(__x86_64__) && defined(__linux__)
#define HEED_X86 1
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // gcc 12 warns inside its own header of intrinsics
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#else
#define HEED_X86 0
#endif
