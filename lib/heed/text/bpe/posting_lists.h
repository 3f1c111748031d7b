#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/base/pages.h"

namespace heed {

/// Posting lists: for each of many entries a list of numbers that mostly rise, such as the blocks of text in which a
/// pair occurs. A list stores the differences of its numbers in one byte or a few, in chunks of one pool, so that many
/// lists grow at once and none moves.
class PostingLists {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  /// One list; copies are the same list.
  struct List {
    std::uint32_t head = kNone, tail = kNone;
    std::uint32_t last = kNone;  // the number appended last
    std::uint32_t used = 0;      // bytes of the chunk `tail`
    bool empty() const { return head == kNone; }
  };

  /// Appends `place` (below kNone), unless it is the last one already.
  void append(List& list, std::uint32_t place) {
    if (place == list.last) return;
    if (!list.empty() && place < list.last) {
      push(list, 0);  // from here on counted from the start again
      list.last = kNone;
    }
    std::uint32_t difference = place - list.last;  // from -1 at the start
    for (; difference >= 0x80; difference >>= 7) push(list, static_cast<std::uint8_t>(difference | 0x80));
    push(list, static_cast<std::uint8_t>(difference));
    list.last = place;
  }

  /// Gives the room of a list back.
  void clear(List& list) {
    if (!list.empty()) {
      chunk(list.tail).next = free_;
      free_ = list.head;
    }
    list = {};
  }
  /// Gives all room back. Every list has to be forgotten.
  void clear();

  /// The numbers of a list, one after the other. It must not change meanwhile.
  class Reader {
   public:
    Reader(const PostingLists& lists, const List& list)
        : lists_(lists), chunk_(list.head), tail_(list.tail), used_(list.used) {}
    /// False at the end.
    bool next(std::uint32_t& place) {
      std::uint32_t difference = 0;
      for (int shift = 0;; shift += 7) {
        if (at_ == (chunk_ == tail_ ? used_ : kBytes)) {
          if (chunk_ == tail_) return false;
          chunk_ = lists_.chunk(chunk_).next;
          at_ = 0;
        }
        const std::uint32_t byte = lists_.chunk(chunk_).bytes[at_++];
        difference |= (byte & 0x7F) << shift;
        if (byte < 0x80) break;
      }
      if (difference == 0) {
        last_ = kNone;
        return next(place);
      }
      place = last_ += difference;
      return true;
    }

   private:
    const PostingLists& lists_;
    std::uint32_t chunk_, tail_, used_, at_ = 0, last_ = kNone;
  };

 private:
  static constexpr std::uint32_t kBytes = 60;                       // of a chunk
  static constexpr std::size_t kFirstPages = std::size_t{2} << 20;  // bytes; taken as they are written
  struct Chunk {
    std::uint32_t next;
    std::uint8_t bytes[kBytes];
  };

  Chunk& chunk(std::uint32_t number) const { return reinterpret_cast<Chunk*>(pages_.data())[number]; }
  std::uint32_t take();

  void push(List& list, std::uint8_t byte) {
    if (list.empty() || list.used == kBytes) {
      const std::uint32_t added = take();
      (list.empty() ? list.head : chunk(list.tail).next) = added;
      list.tail = added;
      list.used = 0;
    }
    chunk(list.tail).bytes[list.used++] = byte;
  }

  Pages pages_{0, PageSize::huge};
  std::uint32_t taken_ = 0;     // chunks that were ever in use
  std::uint32_t free_ = kNone;  // the first of those given back, in a chain
};

}  // namespace heed
