#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The value that a look-up of an id, such as StringIds::find(), returns when the string has no id.
constexpr std::int32_t kNoId = -1;

/// Returns a hash of a text. The function is made for words: it reads eight bytes at a time, and every bit of the hash
/// depends on the whole text. A little-endian and a big-endian machine give different hashes.
inline std::uint64_t hash_of(std::string_view text) {
  constexpr std::uint64_t kFirst = 0x9E3779B97F4A7C15u, kSecond = 0xD6E8FEB86659FD93u;
  const auto mix = [](std::uint64_t x) {
    x *= kFirst;
    return x ^ x >> 32;
  };
  std::uint64_t hash = text.size() * kSecond;
  const char* at = text.data();
  std::size_t left = text.size();
  std::uint64_t word = 0;
  for (; left >= 8; at += 8, left -= 8) {
    std::memcpy(&word, at, 8);
    hash = mix(hash ^ word);
  }
  if (left >= 4) {
    // The remaining 4 to 7 bytes of the text are read as two numbers of four bytes each, which overlap.
    std::uint32_t low = 0, high = 0;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + left - 4, 4);
    hash = mix(hash ^ (static_cast<std::uint64_t>(high) << 32 | low));
  } else if (left > 0) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])); };
    hash = mix(hash ^ (byte(0) << 16 | byte(left / 2) << 8 | byte(left - 1)));
  }
  return mix(hash ^ kSecond);
}

/// An interner: gives each different string an id, 0, 1, 2, ... in the order in which the strings are added. After
/// add("the"), add("cat"), add("the") the ids are 0, 1 and 0. The interner is a hash table with open addressing; all
/// strings are stored one after another in one array of bytes, so that a string needs no memory allocation.
class StringIds {
 public:
  /// Returns the id of the string `text`. A new string gets the next id, and size() grows by one.
  std::int32_t add(std::string_view text) { return add(text, hash_of(text)); }
  /// Returns the id of `text` like add(text). `hash` is hash_of(text), which the caller has already computed.
  std::int32_t add(std::string_view text, std::uint64_t hash);
  /// Returns the id of `text`, or kNoId when `text` was never added.
  std::int32_t find(std::string_view text) const;

  std::int32_t size() const { return static_cast<std::int32_t>(ends_.size()); }
  /// Returns the text of an id below size(). The view lives until the next add().
  std::string_view operator[](std::int32_t id) const {
    const auto i = static_cast<std::size_t>(id);
    const std::size_t start = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + start, ends_[i] - start};
  }

 private:
  /// An entry of the hash table: the hash and the id of a string, and where bytes_ holds the bytes of the string
  /// (`start` and `length`, in bytes). An empty slot has the id kNoId. A look-up reads only slots and the bytes of
  /// strings.
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t id = kNoId;
    std::uint64_t start : 36 = 0;
    std::uint64_t length : 28 = 0;
  };

  /// Returns the index of the slot in the hash table that holds the string `text`, or of the empty slot to which `text`
  /// would be added.
  std::size_t slot_of(std::string_view text, std::uint32_t hash) const;
  /// Doubles the number of slots of the hash table.
  void grow();

  std::string bytes_;              // the bytes of all strings, one string after another
  std::vector<std::size_t> ends_;  // for each id the offset in bytes_ at which the string with this id ends
  // The slots of the hash table. The number of slots is a power of two; at most half of the slots are used.
  std::vector<Slot> slots_;
};

/// An interner of pairs of integers (each 0 or more): gives each different pair an id, 0, 1, 2, ... in the order in
/// which the pairs are added.
class PairIds {
 public:
  /// Returns the id of the pair (first, second). A new pair gets the next id, and size() grows by one.
  std::int32_t add(std::int32_t first, std::int32_t second);
  /// Returns the id of the pair (first, second), or kNoId when the pair was never added.
  std::int32_t find(std::int32_t first, std::int32_t second) const {
    return slots_.empty() ? kNoId : slots_[slot_of(key_of(first, second))].id;
  }

  std::int32_t size() const { return static_cast<std::int32_t>(keys_.size()); }
  /// Returns the first integer of the pair with the id `pair`.
  std::int32_t first(std::int32_t pair) const {
    return static_cast<std::int32_t>(keys_[static_cast<std::size_t>(pair)] >> 32);
  }
  /// Returns the second integer of the pair with the id `pair`.
  std::int32_t second(std::int32_t pair) const {
    return static_cast<std::int32_t>(keys_[static_cast<std::size_t>(pair)] & 0xFFFFFFFFu);
  }

 private:
  /// An entry of the hash table: a pair as one number (see key_of()), and the pair's id. An empty slot has the id
  /// kNoId.
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t id = kNoId;
  };
  /// Returns a pair of integers as one number, with `first` in the upper 32 bits and `second` in the lower 32 bits.
  static std::uint64_t key_of(std::int32_t first, std::int32_t second) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) << 32 | static_cast<std::uint32_t>(second);
  }
  /// Returns the index of the slot in the hash table that holds the pair `key`, or of the empty slot to which the pair
  /// would be added.
  std::size_t slot_of(std::uint64_t key) const {
    std::size_t slot = (key * 0x9E3779B97F4A7C15u) >> shift_;
    while (slots_[slot].id != kNoId && slots_[slot].key != key) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  /// Doubles the number of slots of the hash table.
  void grow();

  std::vector<std::uint64_t> keys_;  // for each id the pair with this id, as one number (see key_of())
  // The slots of the hash table. The number of slots is a power of two; at most two thirds of the slots are used.
  std::vector<Slot> slots_;
  // A 64-bit hash, shifted right by `shift_` bits, is the index of the slot at which the search for a pair begins.
  int shift_ = 64;
};

}  // namespace heed
