#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/tensor/tensor.h"
#include "heed/tensor/zeroed_array.h"

namespace heed {

/// How a parameter starts. `fan_in`/`fan_out` 0: taken from the shape [out, in].
struct Initialiser {
  enum class Kind { zeros, ones, xavier_uniform, normal };
  Kind kind = Kind::zeros;
  double scale = 1;  ///< gain of Xavier (Glorot and Bengio 2010), standard deviation of normal

  static Initialiser zeros() { return {Kind::zeros, 0}; }
  static Initialiser ones() { return {Kind::ones, 0}; }
  /// Uniform in +-gain * sqrt(6 / (fan_in + fan_out)).
  static Initialiser xavier(double gain = 1) { return {Kind::xavier_uniform, gain}; }
  static Initialiser normal(double deviation) { return {Kind::normal, deviation}; }
};

/// Names a parameter within its store.
struct ParameterId {
  int index = -1;
  explicit operator bool() const { return index >= 0; }
  bool operator==(const ParameterId&) const = default;
};

struct ParameterInfo {
  std::string name;  ///< module path: encoder/layers/0/self_attention/query/weight
  Shape shape;
  Initialiser initialiser;
  std::int64_t offset = 0;  ///< of the first element in the flat storage
};

/// The names, shapes and places of a model's parameters. All values live in one flat array in the order of
/// definition (and so do gradients and optimiser moments), so that optimisers, averaging and all-reduce are loops over
/// one array. Parameters defined one after another with `follows` lie side by side and can be viewed as one matrix
/// (query, key and value of a self-attention).
class ParameterLayout {
 public:
  /// Throws Error where the name is taken. `follows`: no gap to the parameter before.
  ParameterId add(const std::string& name, const Shape& shape, const Initialiser& initialiser, bool follows = false);

  /// All parameters in order of definition.
  const std::vector<ParameterInfo>& all() const { return parameters_; }
  const ParameterInfo& operator[](ParameterId id) const { return parameters_[static_cast<std::size_t>(id.index)]; }
  /// Absent id where there is none.
  ParameterId find(const std::string& name) const;

  /// Elements of the flat array, alignment gaps included (gaps hold zeros for ever).
  std::int64_t storage_size() const { return storage_size_; }
  /// Elements of all parameters: the number people quote.
  std::int64_t parameter_count() const;

 private:
  std::vector<ParameterInfo> parameters_;
  std::int64_t storage_size_ = 0;
};

/// A flat array of all parameters' values (or gradients, or moments).
template <class T>
class ParameterValues {
 public:
  /// All 0. `pages`: small where few of the parameters will be written.
  explicit ParameterValues(const ParameterLayout& layout, PageSize pages = PageSize::huge)
      : layout_(&layout), data_(static_cast<std::size_t>(layout.storage_size()), pages) {}

  const ParameterLayout& layout() const { return *layout_; }
  /// All elements, gaps included.
  std::span<T> flat() { return data_; }
  std::span<const T> flat() const { return data_; }
  Tensor<T> operator[](ParameterId id) { return view(id, (*layout_)[id].shape); }
  /// The parameter `id` and those that follow it without a gap, as one tensor of the given shape.
  Tensor<T> view(ParameterId id, const Shape& shape) { return {data_.data() + (*layout_)[id].offset, shape}; }
  void fill_zero() { std::fill(data_.begin(), data_.end(), T(0)); }

  /// Draws every parameter from its initialiser; a function of the seed and the parameter's name alone.
  void initialise(std::uint64_t seed);

 private:
  const ParameterLayout* layout_;
  ZeroedArray<T> data_;
};

extern template class ParameterValues<float>;
extern template class ParameterValues<double>;

}  // namespace heed
