#pragma once

#include "heed/tensor/cuda_language.h"

namespace heed {

/// Sums the columns of each chunk of `chunk` rows of x, whose rows begin `stride` elements apart, in the order of the
/// rows: row k of `to` [chunks, columns] is the sum of chunk k, or with `add` grows by it.
template <class T>
__global__ void sum_chunks_kernel(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                                  std::int64_t chunk, bool add, T* to) {
  for_each_element((rows + chunk - 1) / chunk * columns, [&](std::int64_t i) {
    const std::int64_t begin = i / columns * chunk, end = begin + chunk < rows ? begin + chunk : rows;
    T sum = 0;
    for (std::int64_t row = begin; row < end; ++row) sum += x[row * stride + i % columns];
    to[i] = add ? to[i] + sum : sum;
  });
}

/// Adds the sum over the rows of x [rows, columns], whose rows begin `stride` elements apart, to `to` [columns]. Chunks
/// of rows are summed first, and then the sums of the chunks, so that the order depends on the shape only.
template <class T>
void add_column_sums(CudaContext& device, const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                     T* to) {
  constexpr std::int64_t kChunk = 32;
  const auto sum = [&](const T* from, std::int64_t count, std::int64_t step, std::int64_t chunk, bool add, T* result) {
    const std::int64_t chunks = (count + chunk - 1) / chunk;
    launch(device, shape_for_elements(chunks * columns), sum_chunks_kernel<T>, from, count, step, columns, chunk, add,
           result);
  };
  if (rows <= kChunk) return sum(x, rows, stride, kChunk, true, to);
  const ArenaScope scope(device.arena);
  const std::int64_t chunks = (rows + kChunk - 1) / kChunk;
  T* const parts = device.arena.template tensor<T>({chunks, columns}).data();
  sum(x, rows, stride, kChunk, false, parts);
  sum(parts, chunks, columns, chunks, true, to);
}

}  // namespace heed
