#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/tensor/tensor.h"

namespace heed {

/// The numbers by which a model encodes positions, as a table for people to look at. What the rows and the columns are
/// depends on the encoding (see PositionEncoding):
///   sinusoid, learned             position x component: the vector that is added to the embedding of a token
///   rotary                        position x component: the cosine (even) and sine (odd) of the angle by which the
///                                 components 2i and 2i + 1 of the queries and keys of a head are rotated
///   relative_key, relative_value  distance x component: the vector that is added to the keys or values of a head
///   alibi, t5                     head x distance: the number that is added to the logit
///   word                          position x component: as for sinusoid, but a position is a number of words
/// Positions and components are counted from 0, heads from 1. A distance is the position of the key minus the position
/// of the query.
struct PositionTable {
  enum class Stack { encoder, decoder, both };
  enum class Term { sinusoid, word, learned, rotary, relative_key, relative_value, alibi, t5 };

  Stack stack = Stack::both;
  Term term = Term::sinusoid;
  int layer = 0;                                 ///< the number of the layer, from 1; 0 if all layers share the table
  std::string_view row_axis, column_axis;        ///< "position", "distance", "head" or "component"
  std::int64_t first_row = 0, first_column = 0;  ///< the position, distance, ... of the first row and column
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values = {};  ///< [rows, columns], row-major
};

/// Returns the block of `source` that begins at the given row and column, as the values of a table [rows, columns].
template <class T>
std::vector<float> table_values(const Tensor<T>& source, std::int64_t row, std::int64_t column, std::int64_t rows,
                                std::int64_t columns) {
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) out.push_back(static_cast<float>(source.row(row + r)[column + c]));
  return out;
}

}  // namespace heed
