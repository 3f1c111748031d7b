#include "heed/text/bpe/bpe_exact_merge.h"

#include <algorithm>
#include <span>

namespace heed {

template <class Cell>
void BpeExactMerger::merge(BpeText<Cell>& text, BpeMerge& merge, BpePairs::Id id, const BpePairs::List& blocks,
                           bool all_stored) {
  const Key key = merge.key();
  const auto found = corrections_.find(key);
  const Corrections corrections =
      found == corrections_.end() ? Corrections() : std::move(corrections_.extract(found).mapped());
  if (merge.again && !all_stored) find_unstored(text, merge.merged);
  if (recut_.empty()) recut_.resize(text.words());
  std::vector<std::uint32_t> places;
  PostingLists::Reader reader(pairs_.posting_lists(), blocks);
  for (std::uint32_t place = 0; reader.next(place);) places.push_back(place);
  for (const auto& [word, by] : corrections) places.push_back(text.block_of(word));
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::vector<Cell> merged;
  for (const std::uint32_t place : places) {
    merged.clear();
    text.each_word(place, [&](Word word, std::int64_t count, std::span<const Cell> symbols) {
      old_.assign(symbols.begin(), symbols.end());
      new_ = old_;
      std::int64_t there = 0;
      for (std::size_t i = 0; i + 1 < old_.size(); ++i) there += old_[i] == merge.first && old_[i + 1] == merge.second;
      const auto correction = corrections.find(word);
      if (there + (correction == corrections.end() ? 0 : correction->second) > 0) {
        merge_word(merge, word, count, place);
      } else if (there > 0) {
        correct(key, word, -there);
        pairs_.posting_lists().append(pairs_[id].blocks, place);
      }
      if (there > 0) recut_[word] = true;
      merged.push_back(symbols.data()[-1]);
      merged.insert(merged.end(), new_.begin(), new_.end());
      merged.push_back(text.kEnd);
    });
    auto& block = text.block(place);
    std::copy(merged.begin(), merged.end(), text.cells(block));
    block.length = static_cast<std::uint32_t>(merged.size());
  }
  apply();
}

/// Merges in new_, and changes the frequencies and the index as the reference does: what is around every merged symbol
/// gains, even around one that stood there before.
void BpeExactMerger::merge_word(BpeMerge& merge, Word word, std::int64_t count, std::uint32_t block) {
  std::vector<std::pair<Key, std::int64_t>> index;  // its changes, less those of the text
  const auto change = [&](Key key, std::int64_t places) {
    index.emplace_back(key, places);
    if (key != merge.key()) changes_[key].by += places * count;
  };
  const auto lose = [&](Symbol first, Symbol second) { change(BpePairs::key_of(first, second), -1); };
  const auto gain = [&](Symbol first, Symbol second) {
    const Key key = BpePairs::key_of(first, second);
    change(key, 1);
    pairs_.posting_lists().append(changes_[key].blocks, block);
  };
  const auto size = old_.size();
  new_.clear();
  for (std::size_t i = 0; i < size;) {
    if (old_[i] != merge.first || i + 1 >= size || old_[i + 1] != merge.second) {
      new_.push_back(old_[i++]);
      continue;
    }
    if (i > 0) lose(old_[i - 1], merge.first);
    const bool again = i + 3 < size && old_[i + 2] == merge.first && old_[i + 3] == merge.second;
    if (i + 2 < size && !again) lose(merge.second, old_[i + 2]);
    new_.push_back(merge.merged);
    ++merge.made;
    i += 2;
  }
  for (std::size_t i = 0; i < new_.size(); ++i) {
    if (new_[i] != merge.merged) continue;
    if (i > 0) gain(new_[i - 1], merge.merged);
    if (i + 1 < new_.size() && new_[i + 1] != merge.merged) gain(merge.merged, new_[i + 1]);
  }
  // What the index had of the pair being merged was forgotten first.
  for (std::size_t i = 0; i + 1 < size; ++i)
    if (old_[i] != merge.first || old_[i + 1] != merge.second)
      index.emplace_back(BpePairs::key_of(old_[i], old_[i + 1]), 1);
  for (std::size_t i = 0; i + 1 < new_.size(); ++i) index.emplace_back(BpePairs::key_of(new_[i], new_[i + 1]), -1);
  std::sort(index.begin(), index.end());
  for (std::size_t i = 0; i < index.size();) {
    std::int64_t sum = 0;
    const Key key = index[i].first;
    for (; i < index.size() && index[i].first == key; ++i) sum += index[i].second;
    correct(key, word, sum);
  }
}

/// Counts the pairs with the merged symbol that are not stored, before the merge.
template <class Cell>
void BpeExactMerger::find_unstored(const BpeText<Cell>& text, Symbol merged) {
  for (std::uint32_t block = 0; block < text.blocks(); ++block)
    text.each_word(block, [&](Word, std::int64_t count, std::span<const Cell> symbols) {
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        const auto first = static_cast<Symbol>(symbols[i]), second = static_cast<Symbol>(symbols[i + 1]);
        if ((first != merged && second != merged) || pairs_.find(first, second) != kNoId) continue;
        BpePairs::Occurrences& found = unstored_[BpePairs::key_of(first, second)];
        found.count += count;
        pairs_.posting_lists().append(found.blocks, block);
      }
    });
}

/// Counts what the merge has changed.
void BpeExactMerger::apply() {
  for (const auto& [key, each] : changes_) {
    if (each.blocks.empty()) continue;
    const auto unstored = unstored_.find(key);
    pairs_.follow(key, unstored == unstored_.end() ? nullptr : &unstored->second);
  }
  for (auto& [key, each] : changes_) {
    if (each.blocks.empty()) {
      pairs_.decrease(BpePairs::first_of(key), BpePairs::second_of(key), -each.by);
      continue;
    }
    const BpePairs::Id id = pairs_.add(key);
    BpePairs::Pair& pair = pairs_[id];
    pair.current += each.by;
    pair.is_current = true;
    PostingLists::Reader reader(pairs_.posting_lists(), each.blocks);
    for (std::uint32_t place = 0; reader.next(place);) pairs_.posting_lists().append(pair.blocks, place);
    pairs_.posting_lists().clear(each.blocks);
    pairs_.push(id);
  }
  changes_.clear();
  for (auto& [key, found] : unstored_) pairs_.posting_lists().clear(found.blocks);
  unstored_.clear();
}

template void BpeExactMerger::merge(BpeText<std::uint16_t>&, BpeMerge&, BpePairs::Id, const BpePairs::List&, bool);
template void BpeExactMerger::merge(BpeText<std::uint32_t>&, BpeMerge&, BpePairs::Id, const BpePairs::List&, bool);

}  // namespace heed
