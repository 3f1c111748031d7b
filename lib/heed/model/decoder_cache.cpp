#include "heed/model/decoder_cache.h"

#include <algorithm>
#include <cstring>

namespace heed {

template <class T>
DecoderCache<T>::DecoderCache(int layers, std::int64_t width)
    : width_(width), pools_(static_cast<std::size_t>(layers)), memories_(static_cast<std::size_t>(layers)) {}

template <class T>
void DecoderCache<T>::begin(PackedOffsets source) {
  source_.assign(source.offsets.begin(), source.offsets.end());
  const auto rows = static_cast<std::size_t>(source.sequences());
  lengths_.assign(rows, 0);
  sentences_.resize(rows);
  for (std::size_t i = 0; i < rows; ++i) sentences_[i] = static_cast<std::int32_t>(i);
  capacity_ = 16;
  slots_.assign(rows * static_cast<std::size_t>(capacity_), 0);
  free_.clear();
  for (std::int32_t slot = static_cast<std::int32_t>(slot_count_); slot-- > 0;) free_.push_back(slot);
}

template <class T>
void DecoderCache<T>::set_memory(int layer, Tensor<T> kv) {
  memories_[static_cast<std::size_t>(layer)].assign(kv.data(), kv.data() + kv.size());
}

template <class T>
Tensor<T> DecoderCache<T>::memory(int layer) const {
  const auto& memory = memories_[static_cast<std::size_t>(layer)];
  return {const_cast<T*>(memory.data()), {static_cast<std::int64_t>(memory.size()) / (2 * width_), 2 * width_}};
}

/// Doubles the positions a row can have.
template <class T>
void DecoderCache<T>::widen() {
  const auto rows = lengths_.size(), old = static_cast<std::size_t>(capacity_);
  std::vector<std::int32_t> wider(rows * old * 2);
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(slots_.begin() + static_cast<std::ptrdiff_t>(r * old), old,
                wider.begin() + static_cast<std::ptrdiff_t>(r * old * 2));
  slots_ = std::move(wider);
  capacity_ *= 2;
}

/// Finds the slots that no row lists; doubles the pool where they are fewer than half.
template <class T>
void DecoderCache<T>::collect() {
  std::vector<bool> used(static_cast<std::size_t>(slot_count_));
  std::int64_t live = 0;
  for (std::size_t r = 0; r < lengths_.size(); ++r)
    for (std::int32_t t = 0; t + 1 < lengths_[r]; ++t) {  // the position just begun has no slot yet
      auto mark =
          used[static_cast<std::size_t>(slots_[r * static_cast<std::size_t>(capacity_) + static_cast<std::size_t>(t)])];
      live += !mark;
      mark = true;
    }
  free_.clear();
  const std::int64_t needed = 2 * live + static_cast<std::int64_t>(lengths_.size());
  while (slot_count_ < needed) {
    slot_count_ = std::max<std::int64_t>(2 * slot_count_, 64);
    used.resize(static_cast<std::size_t>(slot_count_));
    for (auto& pool : pools_) pool.resize(static_cast<std::size_t>(slot_count_ * 2 * width_));
  }
  for (std::int32_t slot = static_cast<std::int32_t>(slot_count_); slot-- > 0;)
    if (!used[static_cast<std::size_t>(slot)]) free_.push_back(slot);
}

template <class T>
void DecoderCache<T>::begin_step() {
  for (std::int32_t& length : lengths_) {
    ++length;
    if (length > capacity_) widen();
  }
  if (free_.size() < lengths_.size()) collect();
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    slots_[r * static_cast<std::size_t>(capacity_) + static_cast<std::size_t>(lengths_[r] - 1)] = free_.back();
    free_.pop_back();
  }
}

template <class T>
void DecoderCache<T>::append(int layer, Tensor<T> qkv) {
  T* pool = pools_[static_cast<std::size_t>(layer)].data();
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    const std::int32_t slot =
        slots_[r * static_cast<std::size_t>(capacity_) + static_cast<std::size_t>(lengths_[r] - 1)];
    std::memcpy(pool + slot * 2 * width_, qkv.row(static_cast<std::int64_t>(r)) + width_,
                static_cast<std::size_t>(2 * width_) * sizeof(T));
  }
}

template <class T>
void DecoderCache<T>::select(std::span<const std::int32_t> parents) {
  const auto capacity = static_cast<std::size_t>(capacity_);
  spare_.resize(parents.size() * capacity);
  std::vector<std::int32_t> lengths(parents.size()), sentences(parents.size());
  for (std::size_t i = 0; i < parents.size(); ++i) {
    const auto parent = static_cast<std::size_t>(parents[i]);
    lengths[i] = lengths_[parent];
    sentences[i] = sentences_[parent];
    std::copy_n(slots_.begin() + static_cast<std::ptrdiff_t>(parent * capacity), lengths[i],
                spare_.begin() + static_cast<std::ptrdiff_t>(i * capacity));
  }
  slots_.swap(spare_);
  lengths_.swap(lengths);
  sentences_.swap(sentences);
}

template class DecoderCache<float>;
template class DecoderCache<double>;

}  // namespace heed
