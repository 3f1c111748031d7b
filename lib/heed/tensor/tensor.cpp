#include "heed/tensor/tensor.h"

#include "heed/base/error.h"

namespace heed {

Shape::Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > kMaxRank) throw Error("a tensor has at most 4 dimensions");
  for (const std::int64_t dim : dims) dims_[static_cast<std::size_t>(rank_++)] = dim;
}

std::int64_t Shape::size() const {
  std::int64_t size = 1;
  for (int i = 0; i < rank_; ++i) size *= (*this)[i];
  return size;
}

std::string Shape::text() const {
  std::string out = "[";
  for (int i = 0; i < rank_; ++i) out += (i ? ", " : "") + std::to_string((*this)[i]);
  return out + "]";
}

}  // namespace heed
