#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/base/pages.h"

namespace heed {

/// A pool of posting lists. A posting list is a list of numbers that mostly rise; in the BPE learner each pair has a
/// list of the blocks of words in which the pair occurs.
///
/// A list does not store the numbers but the differences between neighbouring numbers, which are small and mostly fit
/// in one byte (7 bits of the difference in each byte; the highest bit says that another byte follows). For example the
/// list 5, 7, 300 is stored as the differences 6 (from -1 to 5), 2 and 293, in the bytes 06 02 A5 02. A difference of 0
/// says that the next number is smaller than the one before: the next difference then counts from -1 again.
///
/// The bytes of a list are stored in chunks of 60 bytes, which are linked and come from one pool. So thousands of lists
/// can grow at the same time, and no list ever has to be moved.
class PostingLists {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  /// A handle of one posting list. A copy of a handle stands for the same list. After append() has been called for one
  /// copy, append() must not be called for another copy.
  struct List {
    // The indices in the pool of the chunks that hold the first and the last bytes of the list; kNone for an empty
    // list.
    std::uint32_t head = kNone, tail = kNone;
    std::uint32_t last = kNone;  // the number that was appended to the list last
    std::uint32_t used = 0;      // how many bytes of the list's last chunk are in use
    bool empty() const { return head == kNone; }
  };

  /// Appends `number`, which is below kNone, to the posting list `list`. Does nothing if `number` is already the last
  /// number of the list.
  void append(List& list, std::uint32_t number) {
    if (number == list.last) return;
    if (!list.empty() && number < list.last) {
      push(list, 0);  // a difference of 0 tells the reader that the next difference counts from -1 again
      list.last = kNone;
    }
    // Before the first number and after a difference of 0, list.last is kNone, which as an unsigned number acts as -1.
    std::uint32_t difference = number - list.last;
    for (; difference >= 0x80; difference >>= 7) push(list, static_cast<std::uint8_t>(difference | 0x80));
    push(list, static_cast<std::uint8_t>(difference));
    list.last = number;
  }

  /// Empties a list, and gives the chunks of memory that the list used back to the pool.
  void clear(List& list) {
    if (!list.empty()) {
      chunk(list.tail).next = free_;
      free_ = list.head;
    }
    list = {};
  }
  /// Frees the memory of all lists of this pool at once. The caller must not use any List made before this call again.
  void clear();

  /// Reads the numbers of a list one after another. The list must not change while a Reader reads it.
  class Reader {
   public:
    Reader(const PostingLists& lists, const List& list)
        : lists_(lists), chunk_(list.head), tail_(list.tail), used_(list.used) {}
    /// Sets `number` to the next number of the list. Returns false at the end of the list.
    bool next(std::uint32_t& number) {
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
        return next(number);
      }
      number = last_ += difference;
      return true;
    }

   private:
    const PostingLists& lists_;
    std::uint32_t chunk_, tail_, used_, at_ = 0, last_ = kNone;
  };

 private:
  static constexpr std::uint32_t kBytes = 60;  // how many bytes of a posting list one Chunk holds
  // The number of bytes that the pool of chunks reserves when the first list is written. Reserved memory costs nothing
  // until the pool writes to it.
  static constexpr std::size_t kFirstPages = std::size_t{2} << 20;
  /// An element of the pool, 64 bytes large. A chunk holds up to 60 bytes of one posting list, and the link to the
  /// list's next chunk.
  struct Chunk {
    std::uint32_t next;  // the index in the pool of the next chunk of the same list
    std::uint8_t bytes[kBytes];
  };

  Chunk& chunk(std::uint32_t number) const { return reinterpret_cast<Chunk*>(pages_.data())[number]; }
  /// Returns the index of a chunk that no list uses. Makes the pool of chunks larger if every chunk is in use.
  std::uint32_t take();

  /// Appends one byte to the bytes of a posting list, and takes a new chunk from the pool when the last chunk is full.
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
  // The number of chunks at the start of the pool that a list uses or has used; the later chunks were never used.
  std::uint32_t taken_ = 0;
  // The index of the first chunk that a list has given back to the pool, or kNone. Chunk::next links all these chunks.
  std::uint32_t free_ = kNone;
};

}  // namespace heed
