#include "heed/text/bpe/posting_lists.h"

#include <algorithm>

namespace heed {

std::uint32_t PostingLists::take() {
  if (free_ != kNone) {
    const std::uint32_t taken = free_;
    free_ = chunk(taken).next;
    chunk(taken).next = kNone;
    return taken;
  }
  if ((taken_ + std::size_t{1}) * sizeof(Chunk) > pages_.size()) pages_.grow(std::max(kFirstPages, 2 * pages_.size()));
  chunk(taken_).next = kNone;
  return taken_++;
}

void PostingLists::clear() {
  pages_ = Pages(0, PageSize::huge);
  taken_ = 0;
  free_ = kNone;
}

}  // namespace heed
