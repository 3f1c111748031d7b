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

/// The same of logits that come a block of columns after the other, so that they can be looked at while they are in the
/// cache and need not be kept.
template <class T>
class LogSoftmaxTopK {
 public:
  /// For k of at most kLargest. `values` and `indices` [rows, k] are written until finish().
  LogSoftmaxTopK(Arena& arena, std::int64_t rows, std::int64_t k, T* values, std::int32_t* indices);

  static constexpr std::int64_t kLargest = 256;
  /// So many columns of the rows of a step stay in the cache until they have been looked at.
  static constexpr std::int64_t kColumns = 512;

  /// Columns [first, first + logits.columns()) of all rows; blocks come in order. They are looked at kColumns at a
  /// time: blocks that begin at multiples of it give the same bits, however many columns come at once.
  void add(Tensor<T> logits, std::int64_t first);
  /// Makes the values log-probabilities. False where a row has fewer than k numbers above minus infinity (NaN is not
  /// above anything): then values and indices are none.
  bool finish();

 private:
  void add_columns(const T* logits, std::int64_t stride, std::int64_t columns, std::int64_t first);

  std::int64_t rows_, k_;
  T* values_;
  std::int32_t* indices_;
  std::int64_t* found_;
  T *largest_, *sum_;  // of each row: the largest logit so far, the sum of exp(logit - largest)
};

}  // namespace heed
