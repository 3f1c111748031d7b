#include "heed/text/place_lists.h"

namespace heed {

std::uint32_t PlaceLists::take() {
  if (free_ != kNone) {
    const std::uint32_t taken = free_;
    free_ = chunk(taken).next;
    chunk(taken).next = kNone;
    return taken;
  }
  if (taken_ == blocks_.size() * kChunks) blocks_.push_back(std::make_unique_for_overwrite<Chunk[]>(kChunks));
  chunk(taken_).next = kNone;
  return taken_++;
}

void PlaceLists::clear() {
  taken_ = 0;
  free_ = kNone;
}

}  // namespace heed
