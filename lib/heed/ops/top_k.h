// The k largest scores of each row, such as the k likeliest next tokens of each hypothesis in a beam search.
//
// An example: the logits (2, 5, 5, 1) with k = 2 give the indices (1, 2); if values are equal, the lower index comes
// first. top_k() returns the values (5, 5). log_softmax_top_k() returns their log-probabilities, 5 - log(e^2 + e^5 +
// e^5 + e^1) = -0.727 (rounded). LogSoftmaxTopK computes the same when the logits come in blocks of columns, for
// example (2, 5) and then (5, 1): it keeps the k best logits so far, and the sum of the exponentials so far.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/tensor/context.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// Finds the k largest numbers of each row, the largest first; of equal numbers, the number with the lower index comes
/// first. NaN counts as less than every other number.
///
/// Shapes: scores [R, V], k in 1 .. V -> values [R, k], indices [R, k]. A row's result does not depend on the other
/// rows.
template <class T>
void top_k(CpuContext& device, Tensor<T> scores, std::int64_t k, T* values, std::int32_t* indices);
template <class T>
void top_k(CudaContext& device, Tensor<T> scores, std::int64_t k, T* values, std::int32_t* indices);

/// Finds the k largest logits of each row and returns their log-probabilities in `values`, without computing the
/// log-probabilities of the other logits. Shapes and order as in top_k().
template <class T>
void log_softmax_top_k(CpuContext& device, Tensor<T> logits, std::int64_t k, T* values, std::int32_t* indices);
template <class T>
void log_softmax_top_k(CudaContext& device, Tensor<T> logits, std::int64_t k, T* values, std::int32_t* indices);

/// Sets of columns, in the memory of the device: column c is in set s if bit c % 32 of bits[s * stride + c / 32] is 1.
struct ColumnSets {
  const std::uint32_t* bits = nullptr;
  std::int64_t stride = 0;
};

/// Sets the elements of x whose column is not in the set of their row to minus infinity. Shapes: x [R, V], the number
/// of each row's set set_of_row [R], in the memory of the device.
template <class T>
void mask_columns(CpuContext& device, Tensor<T> x, const ColumnSets& sets, std::span<const std::int32_t> set_of_row);
template <class T>
void mask_columns(CudaContext& device, Tensor<T> x, const ColumnSets& sets, std::span<const std::int32_t> set_of_row);

/// Finds the k largest log-probabilities of each row when the logits come in blocks of columns. A block is scanned
/// while it is still in the cache, and the logits of a whole vocabulary need not exist at the same time.
template <class T>
class LogSoftmaxTopK {
 public:
  /// Prepares the search for the k largest log-probabilities in each of `rows` rows; k is at most kLargest. add() and
  /// finish() write to `values` and `indices`, both [rows, k].
  LogSoftmaxTopK(Arena& arena, std::int64_t rows, std::int64_t k, T* values, std::int32_t* indices);

  static constexpr std::int64_t kLargest = 256;
  /// The number of columns of logits that are scanned at a time: so few that the logits of all rows of a decoding step
  /// stay in the cache until they are scanned.
  static constexpr std::int64_t kColumns = 512;

  /// Adds a block of logits: the columns first ... first + logits.columns() - 1 of all rows. The blocks must come in
  /// order. A block is scanned kColumns columns at a time; where all blocks begin at multiples of kColumns, the result
  /// has the same bits for any sizes of the blocks.
  void add(Tensor<T> logits, std::int64_t first);
  /// Turns the values, the k largest logits, into log-probabilities. Returns the rows with fewer than k logits above
  /// minus infinity (NaN does not count as above). The `values` and `indices` of these rows must not be used; those of
  /// the other rows do not depend on them.
  std::vector<std::int64_t> finish();

 private:
  void add_columns(const T* logits, std::int64_t stride, std::int64_t columns, std::int64_t first);

  std::int64_t rows_, k_;
  T* values_;
  std::int32_t* indices_;
  // [rows]: how many logits have been stored so far as the row's largest ones, at most k.
  std::int64_t* found_;
  // [rows] each: the row's largest logit so far, and the sum of exp(logit - largest logit) so far.
  T *largest_, *sum_;
};

}  // namespace heed
