#pragma once

#include <cstdint>

#include "heed/tensor/context.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// The k largest of each row, largest first; of equal values the one of lower index first. NaN is never among them
/// while there is something else.
///
/// Shapes: scores [R, V], k in 1 .. V -> values [R, k], indices [R, k]. A row's result does not depend on the others.
template <class T>
void top_k(CpuContext& device, Tensor<T> scores, std::int64_t k, T* values, std::int32_t* indices);

/// The same of log softmax(logits), without writing that matrix: values are log-probabilities.
template <class T>
void log_softmax_top_k(CpuContext& device, Tensor<T> logits, std::int64_t k, T* values, std::int32_t* indices);

}  // namespace heed
