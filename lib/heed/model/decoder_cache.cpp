#include "heed/model/decoder_cache.h"

#include <algorithm>
#include <type_traits>

namespace heed {
namespace {

/// Rounds a number up to a multiple of `step`.
template <class Number>
Number rounded_up(Number n, Number step) {
  return (n + step - 1) / step * step;
}
/// Rounds a number of bytes up to whole cache lines of 64 bytes.
std::size_t whole_lines(std::size_t bytes) {
  return rounded_up(bytes, std::size_t{64});
}

/// Chooses the number format (exact, int16 or int8) in which the cache stores keys and values, from the precision of
/// the model and the model's width in columns.
template <class T>
CacheFormat format_of(Precision precision, std::int64_t width) {
  // The smallest width, in columns, of models whose keys and values are stored as 8-bit integers. The keys and values
  // of narrower models fit in the processor's caches anyway: 8-bit integers would not make decoding faster.
  constexpr std::int64_t kWide = 512;
  if (!std::is_same_v<T, float> || precision == Precision::float32) return CacheFormat::exact;
  return precision == Precision::int8 && width >= kWide ? CacheFormat::int8 : CacheFormat::int16;
}

/// Returns the number of bytes that one element of a key or value takes in this number format.
template <class T>
std::size_t bytes_of(CacheFormat format) {
  switch (format) {
    case CacheFormat::int16:
      return sizeof(std::int16_t);
    case CacheFormat::int8:
      return sizeof(std::int8_t);
    default:
      return sizeof(T);
  }
}

}  // namespace

template <class T>
DecoderCache<T>::DecoderCache(Device device, int layers, std::int64_t width, int heads, bool of_states)
    : device_(device),
      width_(width),
      layers_(static_cast<std::size_t>(layers)),
      heads_(heads),
      format_(format_of<T>(device.precision(), width)),
      row_(static_cast<std::size_t>(width) * bytes_of<T>(format_)),
      scales_(whole_lines(2 * row_)),
      record_(scales_ + whole_lines(2 * static_cast<std::size_t>(records(nullptr, 0).scales_of_row()) * sizeof(float))),
      pool_record_(of_states ? whole_lines(static_cast<std::size_t>(width) * sizeof(T)) : record_),
      pool_(device),
      memory_(device),
      batch_(device.arena().source()),
      step_(device.arena().source()) {}

template <class T>
void DecoderCache<T>::begin(PackedOffsets source) {
  source_.assign(source.offsets.begin(), source.offsets.end());
  memory_tokens_ = source.tokens();
  if (!device_.is_host())
    memory_tokens_ =
        std::max(rounded_up(memory_tokens_, 64), static_cast<int>(memory_.size() / bytes_of_source_token()));
  batch_.reset();
  if (!device_.is_host()) source_on_device_ = put_in<std::int32_t>(batch_, device_, source_);
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
  memory_.grow(static_cast<std::size_t>(memory_tokens_) * bytes_of_source_token());
  device_.run([&](auto& context) {
    store_records<T>(context, {kv.data(), kv.columns()}, kv.rows(), width_, memory_records(layer), {});
  });
}

template <class T>
void DecoderCache<T>::set_words(Tensor<T> vectors) {
  words_ = copy_in(batch_, device_, vectors);
}

template <class T>
std::int32_t DecoderCache<T>::word_of(std::size_t r) const {
  const PackedOffsets sentences = source();
  const int sentence = sentences_[r];
  return sentences.begin(sentence) + std::min(counts_[slot_of(r, lengths_[r] - 1)], sentences.length(sentence) - 1);
}

/// Doubles the number of columns of the table slots_ and keeps the contents of all rows. The table has one row for each
/// hypothesis and capacity() columns, one for each position of the hypothesis.
template <class T>
void DecoderCache<T>::double_capacity() {
  const auto rows = lengths_.size(), old = static_cast<std::size_t>(capacity_);
  std::vector<std::int32_t> doubled(rows * old * 2);
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(slots_.begin() + static_cast<std::ptrdiff_t>(r * old), old,
                doubled.begin() + static_cast<std::ptrdiff_t>(r * old * 2));
  slots_ = std::move(doubled);
  capacity_ *= 2;
}

/// Collects garbage in the pool, where each slot holds the keys and values of one position: marks the slots that the
/// hypotheses list in the table slots_, and makes all other slots free. If the free slots would not suffice for two
/// decoding steps that add `added` positions each, or are less than a quarter of the listed slots, adds slots to the
/// pool.
template <class T>
void DecoderCache<T>::collect(std::size_t added) {
  used_.assign(static_cast<std::size_t>(slot_count_), false);
  std::int64_t live = 0;
  for (std::size_t r = 0; r < lengths_.size(); ++r)
    for (std::int32_t t = 0; t < lengths_[r]; ++t) {
      auto mark = used_[slot_of(r, t)];
      live += !mark;
      mark = true;
    }
  const std::int64_t needed = live + std::max(live / 4, 2 * static_cast<std::int64_t>(added));
  if (slot_count_ < needed) {
    pool_.grow_ahead(static_cast<std::size_t>(needed) * bytes_of_position());
    slot_count_ = needed;
    used_.resize(static_cast<std::size_t>(slot_count_));
    counts_.resize(static_cast<std::size_t>(slot_count_));
  }
  free_.clear();
  for (std::int32_t slot = static_cast<std::int32_t>(slot_count_); slot-- > 0;)
    if (!used_[static_cast<std::size_t>(slot)]) free_.push_back(slot);
}

/// Takes a slot from the list of free slots, which must not be empty.
template <class T>
std::int32_t DecoderCache<T>::take_slot() {
  const std::int32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

template <class T>
void DecoderCache<T>::begin_step() {
  if (free_.size() < lengths_.size()) collect(lengths_.size());
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    if (lengths_[r] == capacity_) double_capacity();
    slots_[r * static_cast<std::size_t>(capacity_) + static_cast<std::size_t>(lengths_[r]++)] = take_slot();
  }
  upload_step();
}

template <class T>
void DecoderCache<T>::begin_chains(std::span<const std::int32_t> counts) {
  std::vector<std::int32_t> parents;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    parents.insert(parents.end(), static_cast<std::size_t>(counts[r]), static_cast<std::int32_t>(r));
    while (lengths_[r] + counts[r] > capacity_) double_capacity();
  }
  if (free_.size() < parents.size()) collect(parents.size());
  select(parents);
  // For each row r of a chain, `added` is how many positions of the chain the row has. The row copies all positions but
  // the last from the row before, which belongs to the same chain.
  std::int32_t added = 0;
  for (std::size_t r = 0; r < parents.size(); ++r) {
    added = r > 0 && parents[r] == parents[r - 1] ? added + 1 : 1;
    std::int32_t* const row = slots_.data() + r * static_cast<std::size_t>(capacity_);
    if (added > 1) std::copy_n(row - capacity_ + lengths_[r], added - 1, row + lengths_[r]);
    lengths_[r] += added;
    row[lengths_[r] - 1] = take_slot();
  }
  upload_step();
}

/// Copies the arrays of the step to the device, all at once; the table of slots with longest() columns.
template <class T>
void DecoderCache<T>::upload_step() {
  places_.clear();
  longest_ = 0;
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    places_.push_back(static_cast<std::int32_t>(slot_of(r, lengths_[r] - 1)));
    longest_ = std::max(longest_, lengths_[r]);
  }
  if (device_.is_host()) return;
  longest_ = rounded_up(longest_, 16);  // no more than capacity_, which is a multiple
  staged_ = places_;
  staged_.insert(staged_.end(), lengths_.begin(), lengths_.end());
  staged_.insert(staged_.end(), sentences_.begin(), sentences_.end());
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    const auto row = slots_.begin() + static_cast<std::ptrdiff_t>(r * static_cast<std::size_t>(capacity_));
    staged_.insert(staged_.end(), row, row + longest_);
  }
  step_.reset();
  std::span<const std::int32_t> rest = put_in<std::int32_t>(step_, device_, staged_);
  const auto take = [&](std::size_t count) {
    const auto taken = rest.first(count);
    rest = rest.subspan(count);
    return taken;
  };
  const std::size_t rows = lengths_.size();
  places_on_device_ = take(rows);
  on_device_ = {.lengths = take(rows),
                .sentences = take(rows),
                .slots = rest,
                .capacity = longest_,
                .source = {source_on_device_}};
}

template <class T>
typename DecoderCache<T>::StepArrays DecoderCache<T>::arrays() const {
  if (device_.is_host()) return {lengths_, sentences_, slots_, capacity_, source()};
  return on_device_;
}

template <class T>
void DecoderCache<T>::append(int layer, Tensor<T> qkv) {
  device_.run([&](auto& context) {
    store_records<T>(context, {qkv.data() + width_, qkv.columns()}, qkv.rows(), width_, pool_records(layer),
                     device_.is_host() ? std::span<const std::int32_t>(places_) : places_on_device_);
  });
}

template <class T>
std::span<const StateStep<T>> DecoderCache<T>::states(int layer) {
  states_.clear();
  for (std::size_t r = 0; r < lengths_.size(); ++r) {
    const std::int32_t length = lengths_[r];
    const auto at = [&](std::int32_t position) { return reinterpret_cast<T*>(pool_at(slot_of(r, position), layer)); };
    states_.push_back({length > 1 ? at(length - 2) : nullptr, at(length - 1), length});
  }
  return states_;
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

template <class T>
void DecoderCache<T>::truncate(std::span<const std::int32_t> lengths) {
  std::copy(lengths.begin(), lengths.end(), lengths_.begin());
}

template class DecoderCache<float>;
template class DecoderCache<double>;

}  // namespace heed
