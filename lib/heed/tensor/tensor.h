#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace heed {

/// The shape of a tensor: up to four dimensions, outermost first (row-major).
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  /// Creates a shape from the sizes of the dimensions. Throws Error if there are more than four dimensions.
  Shape(std::initializer_list<std::int64_t> dims);
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  /// Returns the number of elements of a tensor of this shape; 1 for a scalar, whose rank is 0.
  std::int64_t size() const;
  bool operator==(const Shape&) const = default;
  /// Returns the shape as text for messages, such as "[3, 4]".
  std::string text() const;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// A view of an array of contiguous elements in row-major order. Another object owns the array, usually an Arena or
/// ParameterValues. Copying a tensor copies the view and not the elements. A default-constructed tensor is "absent":
/// data() is null.
template <class T>
class Tensor {
 public:
  Tensor() = default;
  Tensor(T* data, const Shape& shape) : data_(data), shape_(shape) {}

  T* data() const { return data_; }
  const Shape& shape() const { return shape_; }
  std::int64_t size() const { return shape_.size(); }
  std::int64_t dim(int axis) const { return shape_[axis]; }
  /// Tells whether the tensor is present, that is, whether it is a view of an array.
  explicit operator bool() const { return data_ != nullptr; }

  /// Returns the number of rows when the tensor is seen as a matrix: the product of all dimensions but the last, also
  /// if the last dimension is 0.
  std::int64_t rows() const {
    std::int64_t rows = 1;
    for (int axis = 0; axis + 1 < shape_.rank(); ++axis) rows *= shape_[axis];
    return rows;
  }
  /// Returns the number of columns when the tensor is seen as a matrix: the last dimension, or 1 for a scalar.
  std::int64_t columns() const { return shape_.rank() == 0 ? 1 : shape_[shape_.rank() - 1]; }
  T* row(std::int64_t i) const { return data_ + i * columns(); }
  /// Returns a view of `count` rows of this tensor, seen as a matrix; row `begin` is the first row of the view.
  Tensor row_block(std::int64_t begin, std::int64_t count) const { return {row(begin), {count, columns()}}; }
  std::span<T> span() const { return {data_, static_cast<std::size_t>(size())}; }
  T& operator[](std::int64_t i) const {
    assert(i >= 0 && i < size());
    return data_[i];
  }

 private:
  T* data_ = nullptr;
  Shape shape_;
};

}  // namespace heed
