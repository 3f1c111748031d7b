// The sums of rows of a matrix that belong to the same row of another: the gradient of a table, of which each row was
// read by any number of tokens.
//
// No two threads may add to the same element, so the host sorts the rows by their targets, and each target gets its
// rows from one thread for each column, in their order. A frequent word would keep its threads busy long after all
// others have ended. A long list of rows is therefore cut into pieces of kRowsOfPiece rows, which are summed into an
// array of their own, and then these sums are added. With pieces of 2 rows and the targets 5 3 5 5 of the rows 0 ... 3:
//   first launch    part 0 = row 0 + row 2,  part 1 = row 3,  target 3 += row 1
//   second launch   target 5 += part 0 + part 1
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "heed/ops/dropout_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {

/// Lists of rows for scatter_rows_kernel(): the rows of list k are rows[begins[k]] ... rows[begins[k + 1] - 1], and
/// their sum belongs to targets[k].
struct RowLists {
  std::vector<std::int32_t> rows, begins{0}, targets;

  /// Adds a list of the rows from the end of the last list to rows[end - 1].
  void add(std::int32_t end, std::int32_t target) {
    begins.push_back(end);
    targets.push_back(target);
  }
};

/// The number of rows in the longest list that is summed at once.
constexpr std::int32_t kRowsOfPiece = 64;

/// Block k sums the rows of x in its list, after dropout: to[target] += scale * sum or, where the target is negative,
/// parts[-1 - target] = sum.
template <class T>
__global__ void scatter_rows_kernel(const T* x, DropoutMask<T> mask, const std::int32_t* rows,
                                    const std::int32_t* begins, const std::int32_t* targets, std::int64_t columns,
                                    T scale, T* to, T* parts) {
  const std::int32_t begin = begins[blockIdx.x], end = begins[blockIdx.x + 1];
  const std::int64_t target = targets[blockIdx.x];
  for (std::int64_t c = threadIdx.x; c < columns; c += blockDim.x) {
    T sum = 0;
    for (std::int32_t e = begin; e < end; ++e) {
      const std::int64_t i = rows[e] * columns + c;
      sum += drop(x[i], mask, i);
    }
    if (target >= 0)
      to[target * columns + c] += scale * sum;
    else
      parts[(-1 - target) * columns + c] = sum;
  }
}

/// Adds rows of x to rows of `to`, after dropout: to[targets[r]] += scale * dropout(x)[r] for each row r, in their
/// order.
template <class T>
void scatter_rows(CudaContext& device, const T* x, DropoutMask<T> mask, std::span<const std::int32_t> targets, T scale,
                  Tensor<T> to) {
  // Sort the rows by target: first ends[t] is the number of rows with a target before t, and then, after the rows of t
  // have been stored, the end of their list.
  std::vector<std::int32_t> ends(static_cast<std::size_t>(to.rows()) + 1);
  for (const std::int32_t target : targets) ++ends[static_cast<std::size_t>(target) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  RowLists lists, pieces;
  lists.rows.resize(targets.size());
  for (std::size_t r = 0; r < targets.size(); ++r)
    lists.rows[static_cast<std::size_t>(ends[static_cast<std::size_t>(targets[r])]++)] = static_cast<std::int32_t>(r);

  for (std::int32_t target = 0, begin = 0; target < to.rows(); ++target) {
    const std::int32_t end = ends[static_cast<std::size_t>(target)];
    if (end - begin > kRowsOfPiece) {
      for (; begin < end; begin = lists.begins.back()) {
        const auto part = static_cast<std::int32_t>(pieces.rows.size());
        lists.add(std::min(begin + kRowsOfPiece, end), -1 - part);
        pieces.rows.push_back(part);
      }
      pieces.add(static_cast<std::int32_t>(pieces.rows.size()), target);
    } else if (end > begin) {
      lists.add(end, target);
    }
    begin = end;
  }

  const ArenaScope scope(device.arena);
  const std::int64_t columns = to.columns();
  T* const parts = device.arena.template tensor<T>({std::ssize(pieces.rows), columns}).data();
  const auto sum = [&](const T* from, DropoutMask<T> dropout, const RowLists& of) {
    launch(device, shape_for_rows<T>(std::ssize(of.targets), columns), scatter_rows_kernel<T>, from, dropout,
           upload<std::int32_t>(device, of.rows), upload<std::int32_t>(device, of.begins),
           upload<std::int32_t>(device, of.targets), columns, scale, to.data(), parts);
  };
  sum(x, mask, lists);
  sum(parts, {}, pieces);
}

}  // namespace heed
