#include "heed/text/strings/word_counts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "heed/base/error.h"
#include "heed/base/lanes.h"
#include "heed/text/strings/string_ids.h"

namespace heed {
namespace {

// kFirstSlots is the number of slots of the smallest hash table. Words of at most kShort bytes are compared as two
// numbers of eight bytes. kMostShares limits how many threads share the counting of words: the share of a word is
// stored in a byte.
constexpr std::size_t kFirstSlots = 1024, kShort = WordTable::kReadAhead, kMostShares = 255;

/// Returns the bytes of a short word (at most kReadAhead = 16 bytes) as two numbers of eight bytes; the missing bytes
/// are zeros. Always reads 16 bytes from the address `word` on, even if the word is shorter.
std::pair<std::uint64_t, std::uint64_t> short_word(const char* word, std::size_t size) {
  // An array of 16 bytes 0xFF and then 16 bytes 0. The 16 bytes from the index 16 - size on are a bit mask that keeps
  // the first `size` bytes of a word.
  static constexpr auto kKept = [] {
    std::array<unsigned char, 2 * kShort> kept{};
    for (std::size_t i = 0; i < kShort; ++i) kept[i] = 0xFF;
    return kept;
  }();
  const auto read = [](const void* at) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at, 8);
    return bytes;
  };
  const unsigned char* const kept = kKept.data() + kShort - size;
  return {read(word) & read(kept), read(word + 8) & read(kept + 8)};
}

}  // namespace

std::uint32_t WordTable::hash_of(const char* word, std::size_t size) {
  if (size > kShort) {
    const std::uint64_t hash = heed::hash_of({word, size});
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
  }
  constexpr std::uint64_t kFirst = 0x9E3779B97F4A7C15u, kSecond = 0xD6E8FEB86659FD93u;
  const auto [low, high] = short_word(word, size);
  std::uint64_t hash = (low ^ size) * kFirst;
  hash = (hash ^ hash >> 32 ^ high) * kSecond;
  hash = (hash ^ hash >> 32) * kFirst;
  return static_cast<std::uint32_t>(hash >> 32);
}

bool WordTable::is(Place place, const char* word, std::size_t size) const {
  const char* const record = at(place);
  if (size > kShort) return this->word(place) == std::string_view(word, size);
  return static_cast<std::uint8_t>(record[4]) == size && short_word(record + 5, size) == short_word(word, size);
}

std::string_view WordTable::word(Place place) const {
  const char* const record = at(place);
  const auto size = static_cast<std::uint8_t>(record[4]);
  if (size != kLongWord) return {record + 5, size};
  std::uint32_t length = 0;
  std::memcpy(&length, record + 5, 4);
  return {record + 9, length};
}

std::int64_t WordTable::count(Place place) const {
  std::uint32_t count = 0;
  std::memcpy(&count, at(place), 4);
  return count == kLargeCount ? large_counts_.at(place) : count;
}

void WordTable::add_to(Place place, std::int64_t by) {
  std::uint32_t count = 0;
  std::memcpy(&count, at(place), 4);
  if (count == kLargeCount) {
    large_counts_[place] += by;
    return;
  }
  const std::int64_t sum = count + by;
  if (sum >= kLargeCount) large_counts_[place] = sum;
  count = static_cast<std::uint32_t>(std::min<std::int64_t>(sum, kLargeCount));
  std::memcpy(at(place), &count, 4);
}

std::pair<WordTable::Place, bool> WordTable::add(const char* word, std::size_t size, std::uint32_t hash,
                                                 std::int64_t count) {
  if (6 * (words_ + 1) > 5 * slot_count_) grow();
  for (std::size_t at = first_slot(hash);; at = slot_after(at)) {
    Slot& found = slot(at);
    const bool is_new = found.empty();
    if (is_new) found = {~store(word, size), hash};
    if (!is_new && (found.hash != hash || !is(found.place(), word, size))) continue;
    add_to(found.place(), count);
    return {found.place(), is_new};
  }
}

WordTable::Place WordTable::store(const char* word, std::size_t size) {
  const bool is_long = size >= kLongWord;
  const std::size_t bytes = (is_long ? 9 : 5) + size;
  std::size_t chunk = chunks_.size() - 1;
  if (used_ + bytes + kReadAhead > kChunk) {
    const std::size_t added = (bytes + kReadAhead + kChunk - 1) / kChunk;
    chunk = chunks_.size();
    if ((chunk + added) * kUnitsOfChunk > kNoPlace || size > std::size_t{0xFFFFFFFF})
      throw Error("a table of words is full (too much text)");
    memory_.push_back({Pages(added * kChunk), chunk + added});
    for (std::size_t i = 0; i < added; ++i) chunks_.push_back(memory_.back().pages.data() + i * kChunk);
    used_ = 0;
  }
  char* const record = chunks_[chunk] + used_;
  const auto place = static_cast<Place>(chunk * kUnitsOfChunk + used_ / kUnit);
  // If the new word needs several chunks of memory, `used_` marks the last of these chunks as full, so that no other
  // record is stored behind the word.
  used_ = chunk + 1 < chunks_.size() ? kChunk : used_ + (bytes + kUnit - 1) / kUnit * kUnit;
  record[4] = static_cast<char>(is_long ? kLongWord : size);
  if (is_long) {
    const auto length = static_cast<std::uint32_t>(size);
    std::memcpy(record + 5, &length, 4);
  }
  std::memcpy(record + bytes - size, word, size);
  ++words_;
  return place;
}

/// Replaces the hash table by a table that is a quarter larger. The memory of the old table is freed from front to back
/// while the new table is written from front to back, so that both tables together need hardly more memory than the new
/// table alone.
void WordTable::grow() {
  // The memory of the old table is freed in steps of this many slots: 2 MiB, which is one huge page.
  constexpr std::size_t kForgotten = std::size_t{1} << 18;
  const std::size_t old_count = slot_count_;
  slot_count_ = std::max(kFirstSlots, old_count + old_count / 4);
  Pages old(slot_count_ * sizeof(Slot), PageSize::huge);
  std::swap(old, slots_);
  for (std::size_t i = 0; i < old_count; ++i) {
    if (i % kForgotten == 0 && i > 0) old.forget((i - kForgotten) * sizeof(Slot), i * sizeof(Slot));
    const Slot entry = reinterpret_cast<const Slot*>(old.data())[i];
    if (entry.empty()) continue;
    std::size_t at = first_slot(entry.hash);
    while (!slot(at).empty()) at = slot_after(at);
    slot(at) = entry;
  }
}

void WordTable::forget_before(Place place) {
  for (; memory_[forgotten_].chunks <= place / kUnitsOfChunk; ++forgotten_) memory_[forgotten_].pages = {};
}

WordCounts::Place WordCounts::add(std::string_view word, std::int64_t count) {
  std::array<char, kShort> copy{};
  const char* text = word.data();
  if (word.size() <= kShort) {
    word.copy(copy.data(), word.size());
    text = copy.data();
  }
  const auto [place, is_new] = tables_.front().add(text, word.size(), WordTable::hash_of(text, word.size()), count);
  if (is_new) places_.push_back(place);
  total_ += count;
  return place;
}

void WordCounts::add_to(Place place, std::int64_t count) {
  tables_.front().add_to(place, count);
  total_ += count;
}

std::vector<std::size_t> WordCounts::by_count() const {
  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return count(a) > count(b); });
  return order;
}

WordCounter::WordCounter(int threads)
    : parts_(static_cast<std::size_t>(threads)), new_words_(std::min(parts_.size(), kMostShares)) {
  for (Part& part : parts_) part.words.resize(new_words_.size());
  counts_.tables_ = std::vector<WordTable>(new_words_.size());
}

/// Splits `text`, a section of the whole text, into words. The hash of a word says to which share (the words that one
/// thread counts) the word belongs; the word is appended to the share's list in part.words.
void WordCounter::split(std::string_view text, Part& part) {
  using L = Lanes<std::uint8_t>;
  constexpr std::size_t kBits = 64;
  // hash_of() and the search for separators read some bytes behind a word, and must not read behind the end of `text`.
  // So the last bytes of `text` are copied with zeros behind them, and words that start in these bytes are read from
  // the copy.
  const std::size_t tail = text.size() - std::min(text.size(), kBits + kShort);
  part.ends.emplace_back(text.substr(tail)).append(kBits + kShort, '\0');
  const char* const tail_text = part.ends.back().data() - tail;
  const std::size_t shares = part.words.size();
  std::size_t start = 0;
  bool empty = true;
  // Appends the word with the bytes from `start` to `end` - 1 to the list of the share to which the word belongs.
  const auto take = [&](std::size_t end) {
    const char* const word = (start >= tail ? tail_text : text.data()) + start;
    const std::size_t size = end - start;
    const std::uint32_t hash = WordTable::hash_of(word, size);
    part.words[(hash & 0xFFFFu) * shares >> 16].push_back(
        {word, static_cast<std::uint32_t>(size), hash, part.position++});
    empty = false;
  };
  for (std::size_t at = 0; at < text.size(); at += kBits) {
    const auto* const here =
        reinterpret_cast<const std::uint8_t*>((at + kBits > text.size() ? tail_text : text.data()) + at);
    std::uint64_t separators = 0;
    for (std::size_t i = 0; i < kBits; i += L::kCount) {
      const L::Vector some = L::load(here + i);
      separators |= std::uint64_t{L::bits((some == ' ') | (some == '\n'))} << i;
    }
    for (; separators != 0; separators &= separators - 1) {
      const std::size_t end = at + static_cast<std::size_t>(std::countr_zero(separators));
      if (end > start) take(end);
      start = end + 1;
      const bool ends_line = text[end] == '\n';
      part.sentences += ends_line && !empty;
      empty |= ends_line;
    }
  }
  if (start < text.size()) take(text.size());
  part.sentences += !empty;
}

/// Counts the words of one share (the words that one thread counts) in all parts of the text. Appends the words that
/// were not in the share's table before to new_words_[share]. Empties the share's lists of words.
void WordCounter::count(std::size_t share) {
  // The slot of a word in the hash table is prefetched into the processor's cache when 16 other words are still to be
  // counted before the word, and the record of the word when 8 other words are still to be counted.
  constexpr std::size_t kSlotAhead = 16, kWordAhead = 8;
  WordTable& table = counts_.tables_[share];
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    std::vector<Word>& words = parts_[p].words[share];
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i + kSlotAhead < words.size()) table.prefetch_slot(words[i + kSlotAhead].hash);
      if (i + kWordAhead < words.size()) table.prefetch_word(words[i + kWordAhead].hash);
      const auto [place, is_new] = table.add(words[i].text, words[i].size, words[i].hash, 1);
      if (is_new) new_words_[share].push_back({p, words[i].position, place});
    }
    words.clear();
  }
}

/// Appends the words in new_words_ to counts_ in the order in which the words first occur in the text. new_words_ has a
/// sorted list for each share (the words that one thread counts), and the loop merges these lists: it repeatedly takes
/// the earliest of the first words that are left in each list. Empties new_words_.
void WordCounter::list_new_words() {
  std::vector<std::size_t> next(new_words_.size(), 0);
  for (;;) {
    const NewWord* earliest = nullptr;
    std::size_t share = 0;
    for (std::size_t i = 0; i < new_words_.size(); ++i) {
      if (next[i] == new_words_[i].size()) continue;
      const NewWord& word = new_words_[i][next[i]];
      if (earliest && std::pair(earliest->part, earliest->position) < std::pair(word.part, word.position)) continue;
      earliest = &word;
      share = i;
    }
    if (!earliest) break;
    ++next[share];
    counts_.places_.push_back(earliest->place);
    if (new_words_.size() > 1) counts_.shares_.push_back(static_cast<std::uint8_t>(share));
  }
  for (auto& words : new_words_) words.clear();
  for (Part& part : parts_) {
    counts_.total_ += std::exchange(part.position, 0);
    part.ends.clear();
  }
}

void WordCounter::add(const std::vector<std::string_view>& pieces, const RunOnThreads& run) {
  if (parts_.size() == 1) {
    for (const std::string_view piece : pieces) {
      split(piece, parts_[0]);
      count(0);
      list_new_words();
    }
    return;
  }
  run([&](int thread) {
    const std::size_t part = static_cast<std::size_t>(thread), parts = parts_.size();
    for (std::size_t i = part * pieces.size() / parts; i < (part + 1) * pieces.size() / parts; ++i)
      split(pieces[i], parts_[part]);
  });
  run([&](int thread) {
    if (static_cast<std::size_t>(thread) < new_words_.size()) count(static_cast<std::size_t>(thread));
  });
  list_new_words();
}

std::int64_t WordCounter::sentences() const {
  std::int64_t sum = 0;
  for (const Part& part : parts_) sum += part.sentences;
  return sum;
}

WordCounts WordCounter::take() {
  return std::exchange(counts_, {});
}

}  // namespace heed
