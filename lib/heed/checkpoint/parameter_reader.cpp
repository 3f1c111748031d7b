#include "heed/checkpoint/parameter_reader.h"

#include <algorithm>
#include <bit>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/tensor/bfloat16.h"

namespace heed {

/// Tests all numbers without a branch for each number, so that the compiler can use vector instructions.
bool all_finite(std::span<const float> data) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::int32_t wrong = 0;
  for (const float x : data) wrong |= (std::bit_cast<std::uint32_t>(x) & kExponent) == kExponent ? 1 : 0;
  return wrong == 0;
}

ParameterReader::ParameterReader(OpenCheckpoint checkpoint, std::string group, std::vector<h5::Dataset> datasets,
                                 const ParameterLayout& layout)
    : checkpoint_(std::move(checkpoint)), group_(std::move(group)), datasets_(std::move(datasets)), layout_(layout) {
  unchecked_.resize(datasets_.size());
  const std::vector<DataRange>& data_ranges = checkpoint_.bytes->unchecked();
  for (std::size_t i = 0; i < datasets_.size(); ++i) {
    const std::int64_t begin = datasets_[i].offset_of_floats(), end = begin + 4 * layout_.all()[i].shape.size();
    offsets_.push_back(begin);
    const auto found = std::upper_bound(data_ranges.begin(), data_ranges.end(), begin,
                                        [](std::int64_t at, const DataRange& range) { return at < range.bytes.end; });
    if (begin < 0 || found == data_ranges.end() || found->bytes.begin >= end) continue;
    if (found->bytes.begin != begin || found->bytes.end != end) throw checkpoint_.bytes->damaged();
    unchecked_[i] = {*found->crc, RangeChecksum(found->bytes)};
  }
}

Error ParameterReader::error(std::size_t parameter, const std::string& what) const {
  return {Position{checkpoint_.file->path()}, group_ + "/" + layout_.all()[parameter].name + what};
}

void ParameterReader::read(std::int64_t first, std::span<float> out) const {
  const std::vector<ParameterInfo>& all = layout_.all();
  const std::int64_t end = first + std::ssize(out);
  auto at = std::upper_bound(all.begin(), all.end(), first,
                             [](std::int64_t offset, const ParameterInfo& info) { return offset < info.offset; });
  if (at != all.begin()) --at;
  for (; at != all.end() && at->offset < end; ++at) {
    const std::int64_t from = std::max(first, at->offset), to = std::min(end, at->offset + at->shape.size());
    if (from >= to) continue;
    const auto part = out.subspan(static_cast<std::size_t>(from - first), static_cast<std::size_t>(to - from));
    const auto parameter = static_cast<std::size_t>(at - all.begin());
    // Numbers whose bytes a checksum covers need no test for infinity and NaN: save_checkpoint() writes finite numbers
    // only.
    const bool has_checksum = read(parameter, from - at->offset, part);
    if (!has_checksum && !all_finite(part)) throw error(parameter, " holds numbers that are not finite");
  }
}

bool ParameterReader::read(std::size_t parameter, std::int64_t first, std::span<float> out) const {
  if (offsets_[parameter] < 0) {
    read_by_library(parameter, first, out);
    return false;
  }
  const std::int64_t offset = offsets_[parameter] + first * 4;
  const std::span<char> bytes(reinterpret_cast<char*>(out.data()), out.size_bytes());
  checkpoint_.bytes->read(offset, bytes);
  return check(parameter, offset, bytes);
}

bool ParameterReader::check(std::size_t parameter, std::int64_t offset, std::span<const char> bytes) const {
  std::optional<PendingChecksum>& unchecked = unchecked_[parameter];
  {
    const std::lock_guard lock(check_mutex_);
    if (!unchecked) return false;
  }
  const Checksum part = Checksum::of(bytes);
  const std::lock_guard lock(check_mutex_);
  if (!unchecked) return false;
  unchecked->sum.add(offset, part);
  if (!unchecked->sum.whole()) return true;
  if (unchecked->sum.crc() != unchecked->crc) throw checkpoint_.bytes->damaged();
  unchecked.reset();
  return true;
}

void ParameterReader::check_rest(std::size_t parameter) const {
  constexpr std::int64_t kPiece = 1 << 16;
  std::vector<ByteRange> missing;
  {
    const std::lock_guard lock(check_mutex_);
    if (unchecked_[parameter]) missing = unchecked_[parameter]->sum.missing();
  }
  std::vector<char> bytes;
  for (auto [begin, end] : missing) {
    for (; begin < end; begin += std::ssize(bytes)) {
      bytes.resize(static_cast<std::size_t>(std::min(kPiece, end - begin)));
      checkpoint_.bytes->read(begin, bytes);
      check(parameter, begin, bytes);
    }
  }
}

void ParameterReader::finish() const {
  for (std::size_t i = 0; i < unchecked_.size(); ++i) check_rest(i);
}

/// Reads the whole dataset of a parameter, even if the caller asks for a part only, and keeps the numbers until another
/// dataset is needed: the parts of a dataset are usually read one after another.
void ParameterReader::read_by_library(std::size_t parameter, std::int64_t first, std::span<float> out) const {
  const std::lock_guard lock(mutex_);
  if (held_ != parameter) {
    const h5::Dataset& dataset = datasets_[parameter];
    const auto size = static_cast<std::size_t>(layout_.all()[parameter].shape.size());
    held_ = SIZE_MAX;
    values_.resize(size);
    if (dataset.type == h5::Type::float32) {
      dataset.read(std::span(values_));
    } else {
      if (checkpoint_.file->read_attribute(group_ + "/" + layout_.all()[parameter].name, "dtype") !=
          FieldValue(std::string("bfloat16")))
        throw error(parameter, ": 16-bit integers without the attribute dtype = 'bfloat16'");
      std::vector<std::uint16_t> half(size);
      dataset.read(std::span(half));
      std::transform(half.begin(), half.end(), values_.begin(),
                     [](std::uint16_t bits) { return from_bfloat16(Bfloat16{bits}); });
    }
    held_ = parameter;
  }
  std::copy_n(values_.begin() + first, out.size(), out.begin());
}

}  // namespace heed
