#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "heed/autograd/parameters.h"
#include "heed/base/pages.h"
#include "heed/base/thread_team.h"
#include "heed/tensor/arena.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// The forms that weights are packed in: `rounded` is float32 rounded to bfloat16 where no hardware multiplies that.
enum class PackedForm { float32, rounded, bfloat16, int8 };

/// Reads elements first, first + 1, ... of all parameters' flat array from where they are stored. Called from several
/// threads.
template <class T>
using ParameterSource = std::function<void(std::int64_t first, std::span<T> out)>;

/// A weight [n, k] before it is packed: its rows are in memory, or are read piece by piece from a source.
template <class T>
class UnpackedWeight {
 public:
  explicit UnpackedWeight(Tensor<T> weight) : weight_(weight) {}
  UnpackedWeight(Tensor<T> weight, std::int64_t first, const ParameterSource<T>& source)
      : weight_(weight), first_(first), source_(&source) {}

  std::int64_t rows() const { return weight_.rows(); }
  std::int64_t columns() const { return weight_.columns(); }

  /// Rows begin ... end - 1 one after the other; `scratch` is where they are read to.
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

/// Parameters in the order in which inference reads them, packed when first asked for and kept. For parameters that do
/// not change any more; shared by all threads that decode with them.
template <class T>
class PackedParameters {
 public:
  /// Takes the memory of all parameters at once, which is less work for the system than piece by piece. Must not
  /// outlive `parameters`; where a source is given, these need not be read yet: see read_rest().
  explicit PackedParameters(const ParameterValues<T>& parameters, ParameterSource<T> source = {})
      : parameters_(parameters), source_(std::move(source)) {
    const Arena::Mark empty = arena_.mark();
    arena_.tensor<T>({parameters.layout().storage_size()});
    arena_.release(empty);
    if (source_) unread_[0] = parameters.layout().storage_size();
  }

  /// `size` elements that pack(unpacked, memory) wrote for this view of parameters [rows, columns] in this form, now or
  /// before. They stay where they are.
  template <class Pack>
  const T* get(Tensor<T> view, PackedForm form, std::int64_t size, Pack pack) {
    const std::lock_guard lock(mutex_);
    const Key key(view.data(), view.rows(), view.columns(), form);
    if (const auto found = packed_.find(key); found != packed_.end()) return found->second;
    T* const memory = arena_.tensor<T>({size}).data();
    pack(unpacked(view), memory);
    return packed_[key] = memory;
  }

  /// The rows of a view of parameters as they are, wherever they are.
  UnpackedWeight<T> unpacked(Tensor<T> view) const {
    const std::int64_t first = view.data() - parameters_.flat().data();
    return is_unread(first) ? UnpackedWeight<T>(view, first, source_) : UnpackedWeight<T>(view);
  }

  /// Reads the parameters that have not been packed so far, and those for which keeps(name) holds, into `parameters`
  /// (those of the constructor), on all threads of a team. The others are read again where another view of them is to
  /// be packed.
  template <class Keeps>
  void read_rest(ParameterValues<T>& parameters, Keeps keeps, ThreadTeam& team) {
    constexpr std::size_t kPiece = (std::size_t{4} << 20) / sizeof(T);
    std::vector<std::pair<std::int64_t, std::span<T>>> pieces;
    unread_.clear();
    for (const ParameterInfo& info : parameters.layout().all()) {
      if (is_packed(info) && !keeps(info.name)) {
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
  using Key = std::tuple<const T*, std::int64_t, std::int64_t, PackedForm>;  // where a view begins, rows, columns, form

  bool is_unread(std::int64_t at) const {
    const auto after = unread_.upper_bound(at);
    return after != unread_.begin() && at < std::prev(after)->second;
  }

  /// Whether one of the views that are packed holds the parameter.
  bool is_packed(const ParameterInfo& info) const {
    const T* const begin = parameters_.flat().data() + info.offset;
    return std::any_of(packed_.begin(), packed_.end(), [&](const auto& entry) {
      const auto& [first, rows, columns, form] = entry.first;
      return first <= begin && begin + info.shape.size() <= first + rows * columns;
    });
  }

  const ParameterValues<T>& parameters_;
  ParameterSource<T> source_;
  std::map<std::int64_t, std::int64_t> unread_;  // where ranges of elements begin, and end
  std::mutex mutex_;
  Arena arena_;
  std::map<Key, T*> packed_;
};

}  // namespace heed
