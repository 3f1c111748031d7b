#pragma once

namespace heed {

/// Gives the calling thread a second stack, on which handlers that were installed with SA_ONSTACK run from now on until
/// the thread ends. Does nothing where the thread has one already.
///
/// A handler on the thread's own stack would have two dangers. After a stack overflow it could not run. And it would
/// write where oneDNN's products of AVX2 (seen in version 2.6.3) keep data, below the stack pointer and beyond the 128
/// bytes there that the ABI protects: a signal during such a product then damaged memory. So the threads that compute
/// need a second stack, and every handler of heed needs SA_ONSTACK.
void use_handler_stack();

}  // namespace heed
