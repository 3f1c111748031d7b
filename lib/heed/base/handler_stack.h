#pragma once

namespace heed {

/// Gives the calling thread a second stack, on which signal handlers that were installed with SA_ONSTACK run until the
/// thread ends. Does nothing if the thread already has a second stack.
///
/// On the thread's own stack, a handler could not run after a stack overflow. It could also damage the results of
/// oneDNN, whose products with AVX2 (in version 2.6.3) keep data where the handler would write: below the stack
/// pointer, beyond the 128 bytes that the ABI protects. Every thread that computes therefore needs a second stack, and
/// every handler of heed needs SA_ONSTACK.
void use_handler_stack();

}  // namespace heed
