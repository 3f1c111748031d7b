#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/base/threads.h"
#include "heed/tensor/bfloat16.h"
#include "heed/tensor/tensor.h"
#include "heed/tensor/zeroed_array.h"

namespace heed {

/// The distribution of a parameter's values before training.
struct Initialiser {
  enum class Kind { zeros, ones, xavier_uniform, normal };
  Kind kind = Kind::zeros;
  double scale = 1;  ///< the gain for xavier_uniform, the standard deviation for normal

  static Initialiser zeros() { return {Kind::zeros, 0}; }
  static Initialiser ones() { return {Kind::ones, 0}; }
  /// Draws values from a uniform distribution in +-gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010). The
  /// shape [out, in] of the parameter gives fan_out and fan_in.
  static Initialiser xavier(double gain = 1) { return {Kind::xavier_uniform, gain}; }
  static Initialiser normal(double deviation) { return {Kind::normal, deviation}; }
};

/// The index of a parameter in its ParameterLayout; -1: no parameter.
struct ParameterId {
  int index = -1;
  explicit operator bool() const { return index >= 0; }
  bool operator==(const ParameterId&) const = default;
};

/// The definition of one parameter.
struct ParameterInfo {
  std::string name;  ///< path of the parameter, such as encoder/layers/0/self_attention/query/weight
  Shape shape;
  Initialiser initialiser;
  /// Index of the parameter's first element in the flat array of all parameters.
  std::int64_t offset = 0;
};

/// The names, shapes and places of a model's parameters. One flat array holds the values of all parameters, in the
/// order in which add() was called. Gradients and optimiser moments are arrays with the same layout, so that an
/// optimiser is a loop over arrays. A parameter that was added with `follows` begins directly behind the parameter
/// before, so that several parameters can be viewed as one matrix, such as the query, key and value weights of
/// self_attention.
class ParameterLayout {
 public:
  /// Adds a parameter behind all other parameters and returns its id. If `follows`, the flat array has no alignment gap
  /// between the parameter and the parameter that was added before. Throws Error if another parameter has the same
  /// name.
  ParameterId add(const std::string& name, const Shape& shape, const Initialiser& initialiser, bool follows = false);

  /// Adds a running average of a statistic of the training data, such as the mean in batch normalisation, behind all
  /// other parameters and returns its id. No gradient and no optimiser changes a running average: each update moves it
  /// towards the mean of the statistic over the update's tokens. The array of the gradients therefore holds, in place
  /// of a gradient, sums over the shards of an update: the statistic of a shard times the shard's number of tokens, and
  /// behind these elements the number of tokens. Throws Error if another parameter has the same name.
  ParameterId add_running(const std::string& name, const Shape& shape, const Initialiser& initialiser);
  /// Returns the running averages; they lie behind all other parameters.
  std::span<const ParameterInfo> running() const { return std::span(parameters_).last(running_); }
  /// Returns the number of elements of the flat array before the running averages: those that gradients change.
  std::int64_t trained_size() const { return running_ > 0 ? running().front().offset : storage_size_; }

  /// Returns the definitions of all parameters in the order in which they were added; their offsets ascend.
  const std::vector<ParameterInfo>& all() const { return parameters_; }
  const ParameterInfo& operator[](ParameterId id) const { return parameters_[static_cast<std::size_t>(id.index)]; }
  /// Returns the id of the parameter with this name, or an absent id (index -1).
  ParameterId find(const std::string& name) const;

  /// Returns the number of elements of the flat array of all parameters, alignment gaps included. Elements in gaps are
  /// always 0.
  std::int64_t storage_size() const { return storage_size_; }
  /// Returns the number of elements of all parameters, without alignment gaps and running averages: the number of
  /// parameters that publications state for a model.
  std::int64_t parameter_count() const;

 private:
  std::vector<ParameterInfo> parameters_;
  std::int64_t storage_size_ = 0;
  std::size_t running_ = 0;  // the number of running averages, which are the last of parameters_
};

/// A flat array with one number for each element of all parameters: the values, the gradients or an optimiser's
/// moments.
template <class T>
class ParameterValues {
 public:
  /// Creates an array of zeros. `pages` is the size of the memory pages, and should be `small` if only few of the
  /// parameters will be written: pages that are not written take no memory.
  explicit ParameterValues(const ParameterLayout& layout, PageSize pages = PageSize::huge)
      : layout_(&layout), data_(static_cast<std::size_t>(layout.storage_size()), pages) {}

  const ParameterLayout& layout() const { return *layout_; }
  /// Returns all elements of the flat array, those in alignment gaps between parameters included.
  std::span<T> flat() { return data_; }
  std::span<const T> flat() const { return data_; }
  /// Returns the elements of `slice` of the flat array.
  std::span<T> part(const Slice& slice) { return part_of(flat(), slice); }
  std::span<const T> part(const Slice& slice) const { return part_of(flat(), slice); }
  Tensor<T> operator[](ParameterId id) { return view(id, (*layout_)[id].shape); }
  /// Returns several parameters as one tensor of the given shape: the parameter `id` and the parameters that follow in
  /// the flat array without a gap.
  Tensor<T> view(ParameterId id, const Shape& shape) { return {data_.data() + (*layout_)[id].offset, shape}; }
  /// Forgets all elements outside of `slice`. The forgotten elements take no memory until they are written again, and
  /// must not be read before that.
  void keep_only(const Slice& slice) {
    data_.forget(0, static_cast<std::size_t>(slice.begin));
    data_.forget(static_cast<std::size_t>(slice.end), data_.size());
  }
  void fill_zero() { std::fill(data_.begin(), data_.end(), T(0)); }

  /// Sets the elements of every parameter to the initial values (zeros, ones or random numbers) that the parameter's
  /// initialiser defines. The values of a parameter depend only on the seed and on the parameter's definition: name,
  /// shape and initialiser.
  void initialise(std::uint64_t seed);

 private:
  template <class Element>
  static std::span<Element> part_of(std::span<Element> all, const Slice& slice) {
    return all.subspan(static_cast<std::size_t>(slice.begin), static_cast<std::size_t>(slice.size()));
  }

  const ParameterLayout* layout_;
  ZeroedArray<T> data_;
};

/// The parameters that a graph reads, or the gradients to which it adds: a view of a flat array in the memory of a
/// device, and, on a GPU, perhaps of a copy that is rounded to bfloat16. The caller owns the arrays.
template <class T>
class ParameterView {
 public:
  /// This constructor converts: for a CPU, the array is that of a ParameterValues object.
  ParameterView(ParameterValues<T>& values) : layout_(&values.layout()), data_(values.flat().data()) {}
  ParameterView(const ParameterLayout& layout, T* data, Bfloat16* rounded = nullptr)
      : layout_(&layout), data_(data), rounded_(rounded) {}

  const ParameterLayout& layout() const { return *layout_; }
  /// Returns all elements of the flat array as one tensor.
  Tensor<T> flat() const { return {data_, {layout_->storage_size()}}; }
  /// Returns several parameters as one tensor: see ParameterValues::view().
  Tensor<T> view(ParameterId id, const Shape& shape) const { return {data_ + (*layout_)[id].offset, shape}; }
  /// Returns the same elements of the rounded copy; an absent tensor where there is none.
  Tensor<Bfloat16> rounded(ParameterId id, const Shape& shape) const {
    return rounded_ ? Tensor<Bfloat16>{rounded_ + (*layout_)[id].offset, shape} : Tensor<Bfloat16>();
  }

 private:
  const ParameterLayout* layout_;
  T* data_;
  Bfloat16* rounded_ = nullptr;
};

extern template class ParameterValues<float>;
extern template class ParameterValues<double>;

}  // namespace heed
