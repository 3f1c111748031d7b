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
  // The numbers of the blocks of words to search: the blocks that hold the pair, and the blocks with a word for which
  // subword-nmt's learn-bpe has recorded a wrong number of occurrences of the pair.
  std::vector<std::uint32_t> blocks_to_search;
  PostingLists::Reader reader(pairs_.posting_lists(), blocks);
  for (std::uint32_t number = 0; reader.next(number);) blocks_to_search.push_back(number);
  for (const auto& [word, by] : corrections) blocks_to_search.push_back(text.block_of(word));
  std::sort(blocks_to_search.begin(), blocks_to_search.end());
  blocks_to_search.erase(std::unique(blocks_to_search.begin(), blocks_to_search.end()), blocks_to_search.end());
  std::vector<Cell> new_cells;  // the content of one block of words after the merge
  for (const std::uint32_t number : blocks_to_search) {
    new_cells.clear();
    text.each_word(number, [&](Word word, std::int64_t count, std::span<const Cell> symbols) {
      old_.assign(symbols.begin(), symbols.end());
      new_ = old_;
      std::int64_t occurrences = 0;
      for (std::size_t i = 0; i + 1 < old_.size(); ++i)
        occurrences += old_[i] == merge.first && old_[i + 1] == merge.second;
      const auto correction = corrections.find(word);
      if (occurrences + (correction == corrections.end() ? 0 : correction->second) > 0) {
        merge_word(merge, word, count, number);
      } else if (occurrences > 0) {
        // subword-nmt's learn-bpe has not recorded that this word holds the pair. So learn-bpe leaves the pair unmerged
        // in the word, and so does heed.
        correct(key, word, -occurrences);
        pairs_.posting_lists().append(pairs_[id].blocks, number);
      }
      if (occurrences > 0) recut_[word] = true;
      new_cells.push_back(symbols.data()[-1]);  // the cell before the first symbol, which holds the word's count
      new_cells.insert(new_cells.end(), new_.begin(), new_.end());
      new_cells.push_back(text.kEnd);
    });
    auto& block = text.block(number);
    std::copy(new_cells.begin(), new_cells.end(), text.cells(block));
    block.length = static_cast<std::uint32_t>(new_cells.size());
  }
  apply();
}

/// Applies a merge to the word with the symbols old_, and stores the result in new_. Adds to changes_ how subword-nmt's
/// learn-bpe changes the frequencies of the pairs: learn-bpe counts the pairs around every merged symbol in the word as
/// new, even around a merged symbol that the word held before the merge. If learn-bpe's number of occurrences of a pair
/// in the word then differs from the true number, records the difference with correct(). `count` says how often the
/// word occurs, and `block` is the number of the block that holds the word.
void BpeExactMerger::merge_word(BpeMerge& merge, Word word, std::int64_t count, std::uint32_t block) {
  // For each pair of this word: the change of the number of occurrences that subword-nmt's learn-bpe has recorded for
  // the word, minus the change of the number of occurrences in the word. A pair may have several entries, which are
  // added up at the end of this function.
  std::vector<std::pair<Key, std::int64_t>> index_minus_text;
  const auto change = [&](Key key, std::int64_t occurrences) {
    index_minus_text.emplace_back(key, occurrences);
    if (key != merge.key()) changes_[key].by += occurrences * count;
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
  // Subtract the changes of the word: the word has lost each pair of old_ and gained each pair of new_. The pair that
  // is being merged is skipped in old_, because subword-nmt's learn-bpe sets its number of occurrences in the word to
  // 0, as the merge does in the word.
  for (std::size_t i = 0; i + 1 < size; ++i)
    if (old_[i] != merge.first || old_[i + 1] != merge.second)
      index_minus_text.emplace_back(BpePairs::key_of(old_[i], old_[i + 1]), 1);
  for (std::size_t i = 0; i + 1 < new_.size(); ++i)
    index_minus_text.emplace_back(BpePairs::key_of(new_[i], new_[i + 1]), -1);
  std::sort(index_minus_text.begin(), index_minus_text.end());
  for (std::size_t i = 0; i < index_minus_text.size();) {
    std::int64_t sum = 0;
    const Key key = index_minus_text[i].first;
    for (; i < index_minus_text.size() && index_minus_text[i].first == key; ++i) sum += index_minus_text[i].second;
    correct(key, word, sum);
  }
}

/// Prepares a merge whose symbol, `merged`, existed before the merge. Counts in the whole text the pairs that contain
/// this symbol and are not stored in BpePairs, and adds them and their occurrences to unstored_.
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

/// Adds the changes of the last merge, which are in changes_, to the frequencies in pairs_. A pair that gained
/// occurrences becomes followed: pairs_ then holds the frequency that subword-nmt's learn-bpe has. Empties changes_ and
/// unstored_.
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
    for (std::uint32_t number = 0; reader.next(number);) pairs_.posting_lists().append(pair.blocks, number);
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
