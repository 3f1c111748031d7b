#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

constexpr std::int32_t kNoNumber = -1;

/// Different strings, numbered 0, 1, 2, ... as they come: a hash table with open addressing over one block of bytes, so
/// that a vocabulary is built without an allocation for each piece.
class StringNumbering {
 public:
  /// The number of `text`; a text not seen before gets the next one (then size() has grown).
  std::int32_t add(std::string_view text);
  /// kNoNumber where it was never added.
  std::int32_t find(std::string_view text) const;

  std::int32_t size() const { return static_cast<std::int32_t>(ends_.size()); }
  /// The text of a number below size(). The view lives until the next add().
  std::string_view operator[](std::int32_t number) const {
    const auto i = static_cast<std::size_t>(number);
    const std::size_t start = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + start, ends_[i] - start};
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t number = kNoNumber;
  };

  /// Where `text` is or belongs.
  std::size_t slot_of(std::string_view text, std::uint32_t hash) const;
  void grow();

  std::string bytes_;
  std::vector<std::size_t> ends_;
  std::vector<Slot> slots_;  // a power of two, at most half of them taken
};

/// Different pairs of numbers (each 0 or more), numbered 0, 1, 2, ... as they come.
class PairNumbering {
 public:
  std::int32_t add(std::int32_t first, std::int32_t second);
  std::int32_t find(std::int32_t first, std::int32_t second) const {
    return slots_.empty() ? kNoNumber : slots_[slot_of(key(first, second))];
  }

  std::int32_t size() const { return static_cast<std::int32_t>(keys_.size()); }
  std::int32_t first(std::int32_t pair) const {
    return static_cast<std::int32_t>(keys_[static_cast<std::size_t>(pair)] >> 32);
  }
  std::int32_t second(std::int32_t pair) const {
    return static_cast<std::int32_t>(keys_[static_cast<std::size_t>(pair)] & 0xFFFFFFFFu);
  }

 private:
  static std::uint64_t key(std::int32_t first, std::int32_t second) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) << 32 | static_cast<std::uint32_t>(second);
  }
  std::size_t slot_of(std::uint64_t key) const {
    std::size_t slot = (key * 0x9E3779B97F4A7C15u >> 20) & (slots_.size() - 1);
    while (slots_[slot] != kNoNumber && keys_[static_cast<std::size_t>(slots_[slot])] != key)
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  void grow();

  std::vector<std::uint64_t> keys_;
  std::vector<std::int32_t> slots_;  // a power of two, at most half of them taken
};

}  // namespace heed
