#include "heed/metrics/ngram_matcher.h"

#include <algorithm>
#include <cstring>

namespace heed {
namespace {

constexpr std::uint32_t kAbsent = UINT32_MAX;

/// Returns a hash of a 64-bit value. The value is multiplied by an odd constant, and the high half of the product is
/// XORed into the low half, so that each bit of the value changes the low bits of the hash, which index the hash table.
std::uint64_t mix(std::uint64_t value) {
  value *= 0x9E3779B97F4A7C15U;
  return value ^ (value >> 32);
}

template <class Number>
Number load(const char* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

}  // namespace

TokenKey::TokenKey(std::string_view token) : text(token) {
  const char* bytes = text.data();
  const std::size_t size = text.size();
  if (size > kShort) {
    std::uint64_t hash = size;
    for (std::size_t at = 0; at + 8 < size; at += 8) hash = mix(hash ^ load<std::uint64_t>(bytes + at));
    hashed = mix(hash ^ load<std::uint64_t>(bytes + size - 8));
  } else if (size >= 4) {
    // Hashes the first four and the last four bytes of the token; in a token of less than eight bytes they overlap.
    hashed = mix(load<std::uint32_t>(bytes) | std::uint64_t{load<std::uint32_t>(bytes + size - 4)} << 32);
  } else if (size > 0) {
    const auto byte = [bytes](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(bytes[i])}; };
    hashed = mix(byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16 | std::uint64_t{size} << 24);
  }
}

void TokenNumbers::clear() {
  table_.clear();
  count_ = 0;
}

void TokenNumbers::number(std::span<const std::string_view> tokens, std::vector<std::uint32_t>& numbers) {
  numbers.clear();
  for (const std::string_view token : tokens) {
    TokenKey key(token);
    if (const auto* found = table_.find(key)) {
      numbers.push_back(found->id);
      continue;
    }
    if (count_ == kept_.size()) kept_.emplace_back();
    kept_[count_] = token;
    key.text = kept_[count_];
    numbers.push_back(table_.intern(key, count_));
  }
}

std::uint64_t NgramMatcher::Pair::hash() const {
  return mix(value);
}

NgramMatcher::Pair NgramMatcher::pair_key(std::uint32_t prefix, std::uint32_t token) {
  return {(std::uint64_t{prefix} << 32) | token};
}

void NgramMatcher::clear() {
  tokens_.clear();
  pairs_.clear();
  nodes_.clear();
  node_count_ = 0;
  sequence_ = 0;
}

void NgramMatcher::add_reference(std::span<const std::string_view> tokens) {
  ++sequence_;
  token_ids_.clear();
  prefix_ids_.clear();
  make_room(tokens.size());
  for (const std::string_view token : tokens) {
    token_ids_.push_back(tokens_.intern(TokenKey(token), node_count_));
    prefix_ids_.push_back(token_ids_.back());
    count_in_reference(token_ids_.back());
  }
  add_longer();
}

void NgramMatcher::add_longer() {
  const std::size_t length = token_ids_.size();
  for (std::size_t n = 2; n <= static_cast<std::size_t>(max_order_) && n <= length; ++n) {
    make_room(length);
    for (std::size_t i = 0; i + n <= length; ++i) {
      prefix_ids_[i] = pairs_.intern(pair_key(prefix_ids_[i], token_ids_[i + n - 1]), node_count_);
      count_in_reference(prefix_ids_[i]);
    }
  }
}

void NgramMatcher::match(std::span<const std::string_view> tokens, std::span<std::int64_t> matches) {
  ++sequence_;
  token_ids_.clear();
  for (const std::string_view token : tokens) {
    const auto* found = tokens_.find(TokenKey(token));
    token_ids_.push_back(found ? found->id : kAbsent);
    if (found) matches[0] += count_in_hypothesis(found->id);
  }
  prefix_ids_ = token_ids_;
  match_longer(matches);
}

void NgramMatcher::match_longer(std::span<std::int64_t> matches) {
  const std::size_t length = token_ids_.size();
  for (std::size_t n = 2; n <= static_cast<std::size_t>(max_order_) && n <= length; ++n) {
    // Whether any n-gram of this length n in the hypothesis is also in a reference. If none is, no longer n-gram can be
    // in a reference either, and the loop over n ends.
    bool any = false;
    for (std::size_t i = 0; i + n <= length; ++i) {
      std::uint32_t& prefix = prefix_ids_[i];
      const std::uint32_t last = token_ids_[i + n - 1];
      if (prefix == kAbsent) continue;
      const auto* found = last == kAbsent ? nullptr : pairs_.find(pair_key(prefix, last));
      prefix = found ? found->id : kAbsent;
      if (!found) continue;
      matches[n - 1] += count_in_hypothesis(found->id);
      any = true;
    }
    if (!any) return;
  }
}

}  // namespace heed
