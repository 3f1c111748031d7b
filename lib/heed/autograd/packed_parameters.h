#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "heed/autograd/device_parameters.h"
#include "heed/autograd/parameters.h"
#include "heed/base/pages.h"
#include "heed/base/thread_team.h"
#include "heed/tensor/arena.h"
#include "heed/tensor/owned_device.h"
#include "heed/tensor/tensor.h"

namespace heed {

// The problem. The matrix products of inference read weights in a packed form: reordered for the processor's vectors
// and, in bfloat16 or int8, rounded. To pack a weight takes longer than a product with a few rows, so that each weight
// should be packed once, when a program starts, and serve all threads. A model of 800 MB in float32 takes 200 MB packed
// as int8: the program should never hold both forms of a weight at once.
//
// The idea. PackedParameters keeps the packed form of each weight in a map. linear() asks for a packed weight; the
// first request packs, and later requests return the same memory. If a source is given (in the programs, a
// ParameterReader: the checkpoint file), the values of the parameters are not in memory at first: the first request
// reads a few rows at a time from the source, packs them, and overwrites them with the next rows. At the end,
// read_rest() reads the parameters that ops also, or only, need unpacked: biases, layer normalisations, embeddings.
//
// Words.
//   flat array     the array in which ParameterValues holds all parameters, one after another
//   view           a matrix within the flat array: one parameter, or several that lie side by side
//   packed weight  a copy of a view in the form that a matrix product reads
//   source         a function that reads elements of the flat array from where they are stored, such as a file
//   unread         allocated in the flat array, but not yet read from the source
//
// An example: width 512, int8, one layer whose weights lie in the flat array as
//   query.weight [512, 512] at 0, key.weight at 262144, value.weight at 524288, query.bias [512] at 786432 ...
//   PackedParameters(parameters, source)   all elements of the flat array are unread
//   get(view at 0 [1536, 512], int8, ...)  One view covers query, key and value. pack() reads 64 rows at a time
//                                          from the source and writes them as int8; the flat array remains unread.
//   get(the same view, int8, ...)          Another thread, another step: get() returns the same packed weight.
//   read_rest(...)                         Reads query.bias from the source into the flat array. The three weights
//                                          have been packed, so that nothing is written to their memory in the
//                                          flat array, and the system never provides that memory.

// With a GPU, the constructor copies all parameters to the memory of the GPU, and graphs read that copy (see view()). A
// packed weight is then a copy of a weight that is rounded, row by row, to bfloat16 or to 8-bit integers.

/// The forms in which a weight can be packed for matrix products. `float32`, `bfloat16` and `int8` are precisions of
/// the products; `rounded` is float32 with values rounded to bfloat16, for processors that cannot multiply bfloat16. A
/// GPU packs as `bfloat16` and `int8` only.
enum class PackedForm { float32, rounded, bfloat16, int8 };

/// A function that fills `out` with elements first, first + 1, ... of the flat array, in which all parameters lie one
/// after another. The function reads the elements from where they are stored (a checkpoint). Several threads may call
/// the function at once.
template <class T>
using ParameterSource = std::function<void(std::int64_t first, std::span<T> out)>;

/// A weight [n, k] before packing. The rows of the weight are in memory, or are read from a source, such as a file, a
/// few rows at a time.
template <class T>
class UnpackedWeight {
 public:
  /// Creates the description of a weight that is in memory.
  explicit UnpackedWeight(Tensor<T> weight) : weight_(weight) {}
  /// Creates the description of a weight that must be read from `source`; `first` is the index of the weight's first
  /// element in the flat array of all parameters. Only the shape of `weight` is used.
  UnpackedWeight(Tensor<T> weight, std::int64_t first, const ParameterSource<T>& source)
      : weight_(weight), first_(first), source_(&source) {}

  std::int64_t rows() const { return weight_.rows(); }
  std::int64_t columns() const { return weight_.columns(); }

  /// Returns rows begin ... end - 1 of the weight, one after another. Rows that come from a source are read into
  /// `scratch`, and stay valid until `scratch` changes.
  const T* get(std::int64_t begin, std::int64_t end, std::vector<T>& scratch) const {
    if (!source_) return weight_.row(begin);
    scratch.resize(static_cast<std::size_t>((end - begin) * columns()));
    (*source_)(first_ + begin * columns(), scratch);
    return scratch.data();
  }

 private:
  Tensor<T> weight_;
  std::int64_t first_ = 0;
  const ParameterSource<T>* source_ = nullptr;
};

/// The packed weights of a model whose parameters no longer change, shared by all threads that translate with the
/// model. A weight is packed at the first request. The comment at the top of this file has an example.
template <class T>
class PackedParameters {
 public:
  /// Prepares to pack `parameters`, which must outlive this object. If `source` is given, `parameters` may be allocated
  /// but not yet read: get() then reads weights from `source`. Reserves memory for all packed weights at once, which is
  /// faster than many reservations.
  explicit PackedParameters(ParameterValues<T>& parameters, ParameterSource<T> source = {})
      : parameters_(parameters), source_(std::move(source)), device_({}, Precision::float32) {
    reserve();
    if (source_) unread_[0] = parameters.layout().storage_size();
  }
  /// Copies `parameters` to GPU number `gpu`; if `gpu` has no value, prepares to pack `parameters` for the CPU.
  /// `parameters` must outlive this object.
  PackedParameters(ParameterValues<T>& parameters, std::optional<int> gpu)
      : parameters_(parameters), gpu_(gpu), device_(gpu, Precision::float32) {
    if (gpu) {
      on_gpu_.emplace(device_, parameters);
      Device(device_).wait();  // other streams read the copy, too
    } else {
      reserve();
    }
  }

  /// Returns the number of the GPU that computes with the parameters, if any.
  std::optional<int> gpu() const { return gpu_; }
  /// Returns the parameters as graphs read them, in the memory of the device.
  ParameterView<T> view() const { return on_gpu_ ? on_gpu_->view() : ParameterView<T>(parameters_); }

  /// Returns the packed weight of `view`, a matrix [rows, columns] within the parameters, in the given form. At the
  /// first request, reserves `size` elements of memory and calls pack(unpacked weight, memory), which must fill the
  /// memory. The packed weight never moves. Several threads may call get() at once.
  template <class Pack>
  const T* get(Tensor<T> view, PackedForm form, std::int64_t size, Pack pack) {
    const std::lock_guard lock(mutex_);
    const Key key(view.data(), view.rows(), view.columns(), form);
    if (const auto found = packed_.find(key); found != packed_.end()) return found->second;
    T* const memory = arena_.tensor<T>({size}).data();
    pack(unpacked(view), memory);
    return packed_[key] = memory;
  }

  /// Returns the number of bytes that are reserved for packed weights, in the memory of the device.
  std::size_t reserved() const { return arena_.reserved(); }

  /// Returns a description of the unpacked rows of `view`, a matrix within the parameters. The rows are read from the
  /// source if the parameters of the view have not been read into memory.
  UnpackedWeight<T> unpacked(Tensor<T> view) const {
    if (on_gpu_) return UnpackedWeight<T>(view);
    const std::int64_t first = view.data() - parameters_.flat().data();
    return is_unread(first) ? UnpackedWeight<T>(view, first, source_) : UnpackedWeight<T>(view);
  }

  /// Reads from the source, with all threads of a team, the parameters that no packed weight contains, and the
  /// parameters for which keeps(info) is true, where `info` is the ParameterInfo. `parameters` must be the object that
  /// the constructor received. All other parameters stay unread: get() and unpacked() read them from the source again
  /// when another view of these parameters is requested.
  template <class Keeps>
  void read_rest(ParameterValues<T>& parameters, Keeps keeps, ThreadTeam& team) {
    constexpr std::size_t kPiece = (std::size_t{4} << 20) / sizeof(T);
    std::vector<std::pair<std::int64_t, std::span<T>>> pieces;
    unread_.clear();
    for (const ParameterInfo& info : parameters.layout().all()) {
      if (is_packed(info) && !keeps(info)) {
        unread_[info.offset] = info.offset + info.shape.size();
        continue;
      }
      const std::span<T> values =
          parameters.flat().subspan(static_cast<std::size_t>(info.offset), static_cast<std::size_t>(info.shape.size()));
      prefer_huge_pages(values.data(), values.size_bytes());
      for (std::size_t at = 0; at < values.size(); at += kPiece)
        pieces.emplace_back(info.offset + static_cast<std::int64_t>(at),
                            values.subspan(at, std::min(kPiece, values.size() - at)));
    }
    team.run(static_cast<int>(pieces.size()), [&](int i) {
      const auto& [first, values] = pieces[static_cast<std::size_t>(i)];
      source_(first, values);
    });
  }

 private:
  /// The key of a packed weight in the map packed_: the first element, the rows and the columns of the unpacked matrix,
  /// and the packed form.
  using Key = std::tuple<const T*, std::int64_t, std::int64_t, PackedForm>;

  /// Reserves memory for all packed weights.
  void reserve() {
    const Arena::Mark empty = arena_.mark();
    arena_.tensor<T>({parameters_.layout().storage_size()});
    arena_.release(empty);
  }

  /// Tells whether element `at` of the flat array of all parameters has not been read from the source.
  bool is_unread(std::int64_t at) const {
    const auto after = unread_.upper_bound(at);
    return after != unread_.begin() && at < std::prev(after)->second;
  }

  /// Tells whether the parameter is part of a weight that has been packed.
  bool is_packed(const ParameterInfo& info) const {
    const T* const begin = parameters_.flat().data() + info.offset;
    return std::any_of(packed_.begin(), packed_.end(), [&](const auto& entry) {
      const auto& [first, rows, columns, form] = entry.first;
      return first <= begin && begin + info.shape.size() <= first + rows * columns;
    });
  }

  ParameterValues<T>& parameters_;
  ParameterSource<T> source_;
  std::optional<int> gpu_;
  OwnedDevice device_;
  std::optional<DeviceParameters<T>> on_gpu_;
  // The ranges of the flat array of all parameters that have not been read from the source: first element -> end.
  std::map<std::int64_t, std::int64_t> unread_;
  std::mutex mutex_;
  Arena arena_{Device(device_).arena().source()};
  std::map<Key, T*> packed_;
};

}  // namespace heed
