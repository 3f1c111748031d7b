#include "heed/text/strings/string_ids.h"

#include <algorithm>
#include <bit>

#include "heed/base/error.h"

namespace heed {
namespace {

constexpr std::size_t kFirstIdSlots = 1024;

constexpr std::size_t kLongestText = (std::size_t{1} << 28) - 1, kMostBytes = (std::size_t{1} << 36) - 1;

}  // namespace

std::size_t StringIds::slot_of(std::string_view text, std::uint32_t hash) const {
  std::size_t at = hash & (slots_.size() - 1);
  for (;; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.id == kNoId) return at;
    if (slot.hash == hash && slot.length == text.size() &&
        std::memcmp(bytes_.data() + slot.start, text.data(), text.size()) == 0)
      return at;
  }
}

std::int32_t StringIds::add(std::string_view text, std::uint64_t full_hash) {
  if (2 * (ends_.size() + 1) > slots_.size()) grow();
  const auto hash = static_cast<std::uint32_t>(full_hash);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.id == kNoId) {
    if (text.size() > kLongestText || bytes_.size() > kMostBytes)
      throw Error("a table of words is full (too much text)");
    slot = {hash, size(), bytes_.size() & kMostBytes, text.size() & kLongestText};
    bytes_.append(text);
    ends_.push_back(bytes_.size());
  }
  return slot.id;
}

std::int32_t StringIds::find(std::string_view text) const {
  return slots_.empty() ? kNoId : slots_[slot_of(text, static_cast<std::uint32_t>(hash_of(text)))].id;
}

void StringIds::grow() {
  std::vector<Slot> old(std::max(kFirstIdSlots, 2 * slots_.size()));
  old.swap(slots_);
  for (const Slot& entry : old) {
    if (entry.id == kNoId) continue;
    std::size_t slot = entry.hash & (slots_.size() - 1);
    while (slots_[slot].id != kNoId) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = entry;
  }
}

std::int32_t PairIds::add(std::int32_t first, std::int32_t second) {
  if (3 * (keys_.size() + 1) > 2 * slots_.size()) grow();
  const std::uint64_t wanted = key_of(first, second);
  Slot& slot = slots_[slot_of(wanted)];
  if (slot.id == kNoId) {
    slot = {wanted, size()};
    keys_.push_back(wanted);
  }
  return slot.id;
}

void PairIds::grow() {
  slots_.assign(std::max(kFirstIdSlots, 2 * slots_.size()), {});
  shift_ = 64 - std::countr_zero(slots_.size());
  for (std::size_t i = 0; i < keys_.size(); ++i) slots_[slot_of(keys_[i])] = {keys_[i], static_cast<std::int32_t>(i)};
}

}  // namespace heed
