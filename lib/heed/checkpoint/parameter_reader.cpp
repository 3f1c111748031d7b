#include "heed/checkpoint/parameter_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/tensor/bfloat16.h"

namespace heed {

/// Free of branches on the numbers, so that the compiler makes vectors of it.
bool all_finite(std::span<const float> data) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::int32_t wrong = 0;
  for (const float x : data) wrong |= (std::bit_cast<std::uint32_t>(x) & kExponent) == kExponent ? 1 : 0;
  return wrong == 0;
}

ParameterReader::ParameterReader(std::shared_ptr<const h5::File> file, std::string group,
                                 std::vector<h5::Dataset> datasets, const ParameterLayout& layout)
    : file_(std::move(file)), group_(std::move(group)), datasets_(std::move(datasets)), layout_(layout) {
  descriptor_ = ::open(file_->path().c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw Error(Position{file_->path()}, "cannot open: " + errno_text());
  const bool same = file_->is_same_as(descriptor_);  // trainers put a new file in the place of the old one
  for (const h5::Dataset& dataset : datasets_) offsets_.push_back(same ? dataset.offset_of_floats() : -1);
}

ParameterReader::~ParameterReader() {
  ::close(descriptor_);
}

Error ParameterReader::error(std::size_t parameter, const std::string& what) const {
  return {Position{file_->path()}, group_ + "/" + layout_.all()[parameter].name + what};
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
    read(parameter, from - at->offset, part);
    if (!all_finite(part)) throw error(parameter, " holds numbers that are not finite");
  }
}

void ParameterReader::read(std::size_t parameter, std::int64_t first, std::span<float> out) const {
  if (offsets_[parameter] < 0) return read_by_library(parameter, first, out);
  auto* to = reinterpret_cast<char*>(out.data());
  std::int64_t offset = offsets_[parameter] + first * 4;
  for (std::size_t left = out.size_bytes(); left > 0;) {
    const ssize_t got = ::pread(descriptor_, to, left, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw error(parameter, ": cannot read: " + (got < 0 ? errno_text() : "the file has become shorter"));
    to += got, offset += got, left -= static_cast<std::size_t>(got);
  }
}

/// For datasets whose numbers do not lie in the file as in the memory.
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
      if (file_->read_attribute(group_ + "/" + layout_.all()[parameter].name, "dtype") !=
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
