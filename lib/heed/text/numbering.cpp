#include "heed/text/numbering.h"

#include <algorithm>
#include <bit>

namespace heed {
namespace {

constexpr std::size_t kFirstSlots = 1024;

std::uint32_t short_hash_of(std::string_view text) {
  return static_cast<std::uint32_t>(hash_of(text));
}

}  // namespace

std::size_t StringNumbering::slot_of(std::string_view text, std::uint32_t hash) const {
  std::size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot].number != kNoNumber && (slots_[slot].hash != hash || (*this)[slots_[slot].number] != text))
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

std::int32_t StringNumbering::add(std::string_view text) {
  if (2 * (ends_.size() + 1) > slots_.size()) grow();
  const std::uint32_t hash = short_hash_of(text);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.number == kNoNumber) {
    slot = {hash, size()};
    bytes_.append(text);
    ends_.push_back(bytes_.size());
  }
  return slot.number;
}

std::int32_t StringNumbering::find(std::string_view text) const {
  return slots_.empty() ? kNoNumber : slots_[slot_of(text, short_hash_of(text))].number;
}

void StringNumbering::grow() {
  std::vector<Slot> old(std::max(kFirstSlots, 2 * slots_.size()));
  old.swap(slots_);
  for (const Slot& entry : old) {
    if (entry.number == kNoNumber) continue;
    std::size_t slot = entry.hash & (slots_.size() - 1);
    while (slots_[slot].number != kNoNumber) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = entry;
  }
}

std::int32_t PairNumbering::add(std::int32_t first, std::int32_t second) {
  if (3 * (keys_.size() + 1) > 2 * slots_.size()) grow();
  const std::uint64_t wanted =
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) << 32 | static_cast<std::uint32_t>(second);
  Slot& slot = slots_[slot_of(wanted)];
  if (slot.number == kNoNumber) {
    slot = {wanted, size()};
    keys_.push_back(wanted);
  }
  return slot.number;
}

void PairNumbering::grow() {
  slots_.assign(std::max(kFirstSlots, 2 * slots_.size()), {});
  shift_ = 64 - std::countr_zero(slots_.size());
  for (std::size_t i = 0; i < keys_.size(); ++i) slots_[slot_of(keys_[i])] = {keys_[i], static_cast<std::int32_t>(i)};
}

}  // namespace heed
