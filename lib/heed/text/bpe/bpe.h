#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/random.h"
#include "heed/text/bpe/glossaries.h"
#include "heed/text/strings/string_ids.h"
#include "heed/text/strings/word_cache.h"

namespace heed {

/// The merge operations of byte-pair encoding (Sennrich, Haddow and Birch 2016) in the order in which they were learnt.
/// A merge operation joins a pair of symbols: with the pair `e st</w>` the word `r e st</w>` becomes `r est</w>`. The
/// rank of a merge is its index in `pairs`; the merge of the lowest rank is applied first.
struct BpeMerges {
  /// Versions of codes files. In version 0.1 a word ends with the separate symbol `</w>`; in version 0.2 `</w>` is part
  /// of the word's last character.
  enum class Version { v0_1, v0_2 };
  Version version = Version::v0_2;
  std::vector<std::pair<std::string, std::string>> pairs = {};
  /// Whether a word is first split into bytes instead of characters (`#version: 0.2 byte`; only in version 0.2).
  bool bytes = false;

  /// Reads a codes file: a line `#version: 0.2` (a file without this line has version 0.1), then on each line one
  /// pair, with a space between its two symbols. Reads only the first `limit` merges, or all if `limit` is negative;
  /// the first merges of a long run of learn-bpe are the merges of a shorter run. `bytes` says that the symbols are
  /// bytes, whatever the first line says. Throws Error with the line's number for a line that is no merge, and for
  /// `bytes` with version 0.1.
  static BpeMerges read(const std::string& path, std::int64_t limit = -1, bool bytes = false);
  /// Reads the text of a codes file as read() does. Messages call the file `where`.
  static BpeMerges parse(std::string_view text, const std::string& where, std::int64_t limit = -1, bool bytes = false);
  /// Returns the text of a codes file with these merges.
  std::string text() const;
};

/// The random numbers of subword regularisation, which cuts the same word differently each time. The caller makes one
/// SubwordSampler for each line of text, so that a line's segmentation depends only on the seed and the line's number.
struct SubwordSampler {
  /// For BPE: the probability that a merge is left out (BPE-dropout; Provilkov, Emelianenko and Voita 2020).
  double dropout = 0;
  /// For a unigram model: a segmentation of probability p is drawn with a probability proportional to p^alpha (Kudo
  /// 2018).
  double alpha = 0;
  RandomStream stream;
  std::uint64_t drawn = 0;  ///< how many numbers of `stream` have been used

  /// Returns the next random number, uniformly distributed in [0, 1).
  double next() { return stream.uniform(drawn++); }
};

/// The options of BpeEncoder.
struct BpeOptions {
  /// A function that returns whether a piece is allowed. A piece inside a word is given with its separator, as in
  /// `lo@@`.
  using Allowed = std::function<bool(std::string_view)>;

  std::string separator = "@@";  ///< the mark at the end of each piece except a word's last piece
  /// If not null: pieces that are not allowed are split again into the symbols that they were merged from (apply-bpe's
  /// `--vocabulary`).
  Allowed allowed = nullptr;
  Glossaries glossaries = {};  ///< expressions for parts of words that are not split
};

/// Cuts words into pieces by merge operations, exactly as subword-nmt 0.3.8's apply-bpe does. Several threads may use
/// one BpeEncoder; each thread has a cache of fixed size for words that it has already cut, so that no thread waits.
class BpeEncoder {
 public:
  explicit BpeEncoder(BpeMerges merges, BpeOptions options = {});

  /// Cuts `word`, which is not empty, and replaces `ends` by the byte offsets at which the pieces end: for `wid@@ est`
  /// the ends are 3 and 6. With a sampler, merges are left out at random, and a word of more than 1,024 characters is
  /// merged in parts of 1,024 characters.
  void segment(std::string_view word, std::vector<std::size_t>& ends, SubwordSampler* sampler = nullptr) const;

  /// Cuts tokens that are separated by spaces, and appends the pieces to `out` with single spaces between them. Each
  /// piece except a token's last ends with the separator.
  void append(std::string_view tokens, std::string& out, SubwordSampler* sampler = nullptr) const;

  const BpeMerges& merges() const { return merges_; }
  const std::string& separator() const { return options_.separator; }

 private:
  /// The result of a merge of two symbols, and the rank of the merge. The merge of the lowest rank is applied first.
  struct Rule {
    std::int32_t rank, merged;
  };
  /// A hash table with open addressing from pairs of symbols to rules. Most look-ups read one cache line.
  class Rules {
   public:
    void reserve(std::size_t pairs);
    /// Returns the rule of a pair, to be filled in by the caller, and whether the pair is new in the table. The caller
    /// adds no more pairs than reserve() was told.
    std::pair<Rule*, bool> add(std::int32_t first, std::int32_t second);
    /// Returns the rule of a pair, or a rule of rank kNoRank when the pair has no rule.
    const Rule& find(std::int32_t first, std::int32_t second) const {
      static constexpr Rule kNone{kNoRank, kNoId};
      const std::uint64_t bit = hash_of(first, second) >> filter_shift_;
      return (filter_[bit / 64] >> bit % 64 & 1) != 0 ? slots_[slot_of(first, second)].rule : kNone;
    }

   private:
    struct Slot {
      std::int32_t first = kNoId, second = kNoId;
      Rule rule{kNoRank, kNoId};
    };
    static std::uint64_t hash_of(std::int32_t first, std::int32_t second) {
      const std::uint64_t key =
          static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) << 32 | static_cast<std::uint32_t>(second);
      return key * 0x9E3779B97F4A7C15u;
    }
    std::size_t slot_of(std::int32_t first, std::int32_t second) const {
      std::size_t slot = hash_of(first, second) >> shift_;
      while (slots_[slot].rule.rank != kNoRank && (slots_[slot].first != first || slots_[slot].second != second))
        slot = (slot + 1) & (slots_.size() - 1);
      return slot;
    }
    std::vector<Slot> slots_ = std::vector<Slot>(2);  // the size is a power of two; at most half of the slots are used
    int shift_ = 63;                                  // a hash shifted right by this is a slot's index
    // A Bloom filter: one bit is set for the hash of each pair, with at least eight bits for each pair. Most pairs have
    // no rule, and the filter finds that out without reading a slot. The filter fits in the processor's first-level
    // cache.
    std::vector<std::uint64_t> filter_ = std::vector<std::uint64_t>(1);
    int filter_shift_ = 58;  // a hash shifted right by this is a bit's index in filter_
  };
  /// A symbol of a word that is being merged. `end` is the byte offset of the symbol's end in the word; `previous` and
  /// `next` are the indices of the neighbouring nodes, which only merge_linked() uses.
  struct Node {
    std::int32_t symbol;
    std::size_t end;
    std::int32_t previous, next;
  };
  /// The value of the cache of words: the byte offsets at which the pieces of a short word end.
  struct Pieces {
    static constexpr std::size_t kMost = 16;  // a word with more pieces is not cached
    std::uint8_t count = 0, ends[kMost];
  };
  using Cache = WordCache<Pieces, 45>;

  static constexpr std::int32_t kNoRank = std::numeric_limits<std::int32_t>::max();

  /// Fills symbols_, rules_, parents_ and the tables of ASCII characters from merges_.
  void index_merges();
  /// Calls take(symbol, byte offset of its end) for each character of a word. The symbol is kNoId for a character that
  /// no merge contains.
  template <class Take>
  void characters(std::string_view word, Take&& take) const;
  void merge_short(std::string_view word, std::vector<std::size_t>& ends) const;
  void merge_long(std::string_view word, std::vector<std::size_t>& ends) const;
  void merge_linked(std::vector<Node>& nodes) const;
  void merge_at_random(std::string_view word, std::vector<std::size_t>& ends, SubwordSampler& sampler) const;
  void merge_some(std::vector<Node>& nodes, std::size_t first, std::size_t last, SubwordSampler& sampler,
                  std::vector<Node>& out) const;
  /// The two symbols that a merged symbol is split into; both are kNoId for a symbol that no merge makes.
  struct Parents {
    std::int32_t first = kNoId, second = kNoId;
  };
  struct Part;  // a piece that split_unknown() may split
  bool take_apart(const Part& part, std::vector<Part>& open) const;
  void split_unknown(std::string_view word, std::vector<std::size_t>& ends) const;
  void segment_anew(std::string_view word, std::vector<std::size_t>& ends, SubwordSampler* sampler) const;
  template <class Take>
  void segment_cached(Cache& cache, std::string_view word, std::uint64_t hash, std::vector<std::size_t>& ends,
                      Take&& take) const;
  void segment_part(std::string_view part, std::vector<std::size_t>& ends, SubwordSampler* sampler) const;

  BpeMerges merges_;
  BpeOptions options_;
  StringIds symbols_;  // the symbols of the merges: from texts to numbers and back
  // For each ASCII character its symbol inside a word, and its symbol at the end of a word.
  std::array<std::int32_t, 128> ascii_, final_ascii_;
  Rules rules_;
  std::vector<Parents> parents_;  // for each symbol the two symbols that it is split into
  std::uint64_t identity_;        // a number that no other BpeEncoder of the process has; a key of the threads' caches
};

/// Splits a line `piece count` or `word count`. The returned view points into `line`. Throws Error with the position
/// `where` if the line has another form.
std::pair<std::string_view, std::int64_t> parse_counted(std::string_view line, const Position& where);

/// Reads a vocabulary with counts for BpeOptions::allowed. Each line is `piece count`, as subword-nmt's get-vocab
/// writes. The returned function allows the pieces that occur at least `threshold` times. If no piece does, returns
/// nullptr, which allows all pieces, as apply-bpe does. Throws Error with the number of a wrong line.
BpeOptions::Allowed read_counted_vocabulary(const std::string& path, std::int64_t threshold);

}  // namespace heed
