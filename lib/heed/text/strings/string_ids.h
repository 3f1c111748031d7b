#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

constexpr std::int32_t kNoId = -1;

/// A hash of a text, made for words: eight bytes at a time, all of its bits good. Differs between machines' byte
/// orders.
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
    std::uint32_t low = 0, high = 0;  // two reads that overlap
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + left - 4, 4);
    hash = mix(hash ^ (static_cast<std::uint64_t>(high) << 32 | low));
  } else if (left > 0) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])); };
    hash = mix(hash ^ (byte(0) << 16 | byte(left / 2) << 8 | byte(left - 1)));
  }
  return mix(hash ^ kSecond);
}

/// An interner: gives each different string an id, 0, 1, 2, ... in the order in which the strings are added. A hash
/// table with open addressing over one block of bytes, so that a vocabulary is built without an allocation per string.
class StringIds {
 public:
  /// Returns the id of `text`. A new text gets the next id, and size() grows by one.
  std::int32_t add(std::string_view text) { return add(text, hash_of(text)); }
  /// Does the same with a hash_of(text) that the caller has computed.
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
  /// Tells of a text all that a look-up needs, so that it touches the slot and the bytes only.
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t id = kNoId;
    std::uint64_t start : 36 = 0;
    std::uint64_t length : 28 = 0;
  };

  /// Where `text` is or belongs.
  std::size_t slot_of(std::string_view text, std::uint32_t hash) const;
  void grow();

  std::string bytes_;
  std::vector<std::size_t> ends_;
  std::vector<Slot> slots_;  // a power of two, at most half of them taken
};

/// An interner of pairs of integers (each 0 or more): gives each different pair an id, 0, 1, 2, ... in the order in
/// which the pairs are added.
class PairIds {
 public:
  std::int32_t add(std::int32_t first, std::int32_t second);
  /// Returns the id of a pair, or kNoId when the pair was never added.
  std::int32_t find(std::int32_t first, std::int32_t second) const {
    return slots_.empty() ? kNoId : slots_[slot_of(key_of(first, second))].id;
  }

  std::int32_t size() const { return static_cast<std::int32_t>(keys_.size()); }
  std::int32_t first(std::int32_t pair) const {
    return static_cast<std::int32_t>(keys_[static_cast<std::size_t>(pair)] >> 32);
  }
  std::int32_t second(std::int32_t pair) const {
    return static_cast<std::int32_t>(keys_[static_cast<std::size_t>(pair)] & 0xFFFFFFFFu);
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t id = kNoId;
  };
  static std::uint64_t key_of(std::int32_t first, std::int32_t second) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) << 32 | static_cast<std::uint32_t>(second);
  }
  std::size_t slot_of(std::uint64_t key) const {
    std::size_t slot = (key * 0x9E3779B97F4A7C15u) >> shift_;
    while (slots_[slot].id != kNoId && slots_[slot].key != key) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  void grow();

  std::vector<std::uint64_t> keys_;
  std::vector<Slot> slots_;  // a power of two, at most two thirds of them taken
  int shift_ = 64;
};

}  // namespace heed
