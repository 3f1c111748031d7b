// Sums over the rows of a matrix, for the gradients of biases and gains. To be included by kernels of GPUs.
//
// Threads that add to the same sum at the same time would add in a different order each time. The rows are therefore
// cut into chunks, whose number depends on the shape alone: a thread sums one column of one chunk, and a second kernel
// adds up the chunks in their order.
#pragma once

#include <algorithm>

#include "heed/tensor/cuda_language.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// Sums the columns of each chunk of `chunk` rows of x [rows, columns]: sums[c, j] = sum of x[i, j] over the rows i of
/// chunk c. With `add`, adds to the sums.
template <class T>
__global__ void column_sum_kernel(const T* x, std::int64_t rows, std::int64_t columns, std::int64_t chunk, bool add,
                                  T* sums) {
  for_each_element((rows + chunk - 1) / chunk * columns, [&](std::int64_t e) {
    const std::int64_t begin = e / columns * chunk, end = begin + chunk < rows ? begin + chunk : rows;
    T sum = add ? sums[e] : T(0);
    for (std::int64_t i = begin; i < end; ++i) sum += x[i * columns + e % columns];
    sums[e] = sum;
  });
}

/// Adds to `sums` [columns] the sums of the columns of x [rows, columns], in an order that depends on the shape alone.
template <class T>
void add_column_sums(CudaContext& device, Tensor<T> x, Tensor<T> sums) {
  constexpr std::int64_t kMostChunks = 256, kFewRows = 16;
  const ArenaScope scope(device.arena);
  const std::int64_t rows = x.rows(), columns = x.columns();
  const std::int64_t chunk = std::max((rows + kMostChunks - 1) / kMostChunks, kFewRows);
  const std::int64_t chunks = (rows + chunk - 1) / chunk;
  if (chunks <= 1) {
    launch(device, shape_for_elements(columns), column_sum_kernel<T>, x.data(), rows, columns, chunk, true,
           sums.data());
    return;
  }
  T* const of_chunks = device.arena.tensor<T>({chunks, columns}).data();
  launch(device, shape_for_elements(chunks * columns), column_sum_kernel<T>, x.data(), rows, columns, chunk, false,
         of_chunks);
  launch(device, shape_for_elements(columns), column_sum_kernel<T>, of_chunks, chunks, columns, chunks, true,
         sums.data());
}

}  // namespace heed
