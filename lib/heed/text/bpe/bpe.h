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

/// The mark of the end of a word.
inline constexpr std::string_view kWordEnd = "</w>";

/// The merge operations of byte-pair encoding (Sennrich, Haddow and Birch 2016) in the order in which they were learnt.
/// A merge operation joins a pair of symbols: with the pair `e st</w>` the word `r e st</w>` becomes `r est</w>`. The
/// rank of a merge is its index in `pairs`; the merge of the lowest rank is applied first. The text `</w>` marks the
/// end of a word.
struct BpeMerges {
  /// The two versions of the format of a codes file, which lists the merges. In version 0.1 a word ends with the
  /// separate symbol `</w>`; in version 0.2 `</w>` is part of the word's last character.
  enum class Version { v0_1, v0_2 };
  Version version = Version::v0_2;
  std::vector<std::pair<std::string, std::string>> pairs = {};
  /// Whether a word is first split into bytes instead of characters. The codes file then begins with the line
  /// `#version: 0.2 byte`; version 0.1 has no merges of bytes.
  bool bytes = false;

  /// Reads a codes file: a line `#version: 0.2` (a file without this line has version 0.1), then on each line one
  /// pair, with a space between its two symbols. Reads only the first `limit` merges, or all if `limit` is negative;
  /// the first merges of a long run of learn-bpe are the merges of a shorter run. `bytes` says that the symbols are
  /// bytes, whatever the first line says. Throws Error with the line's number for a line that is no merge, and for
  /// `bytes` with version 0.1.
  static BpeMerges read(const std::string& path, std::int64_t limit = -1, bool bytes = false);
  /// Reads merges from `text`, the content of a codes file, as read() does from a file. Error messages use `where` as
  /// the file's name.
  static BpeMerges parse(std::string_view text, const std::string& where, std::int64_t limit = -1, bool bytes = false);
  /// Returns the content of a codes file that lists these merges: the line `#version: ...` and one line for each pair.
  std::string text() const;
};

/// The random numbers for subword regularisation, which cuts a word into different pieces each time the word occurs in
/// the training text. The caller makes one SubwordSampler for each line of text, so that a line's segmentation depends
/// only on the seed and the line's number.
struct SubwordSampler {
  /// For BPE (not for a unigram model): the probability that a merge is left out (BPE-dropout; Provilkov, Emelianenko
  /// and Voita 2020).
  double dropout = 0;
  /// For a unigram model (not for BPE): a segmentation of probability p is drawn with a probability proportional to
  /// p^alpha (Kudo 2018).
  double alpha = 0;
  RandomStream stream;
  std::uint64_t drawn = 0;  ///< how many random numbers have been taken from `stream` so far

  /// Returns the next random number, uniformly distributed in [0, 1).
  double next() { return stream.uniform(drawn++); }
};

/// The options of BpeEncoder, which cuts words into pieces.
struct BpeOptions {
  /// The type of a function that gets a piece of a word, and returns whether the encoder may output the piece. A piece
  /// that is not the last piece of its word is passed with the separator, as in `lo@@`.
  using Allowed = std::function<bool(std::string_view)>;

  std::string separator = "@@";  ///< the mark at the end of each piece except a word's last piece
  /// If this function is not null, each piece for which the function returns false is split again into the symbols from
  /// which the piece was merged. subword-nmt's apply-bpe does the same with the option `--vocabulary`.
  Allowed allowed = nullptr;
  Glossaries glossaries = {};  ///< regular expressions for the parts of words that must not be split
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
  /// piece except the last piece of a token ends with the separator, as in `wid@@ est`.
  void append(std::string_view tokens, std::string& out, SubwordSampler* sampler = nullptr) const;

  const BpeMerges& merges() const { return merges_; }
  const std::string& separator() const { return options_.separator; }

 private:
  /// One merge of two symbols: `merged` is the id of the symbol that replaces the two symbols, and `rank` is the index
  /// of the merge in BpeMerges::pairs. The merge of the lowest rank is applied first.
  struct Rule {
    std::int32_t rank, merged;
  };
  /// A hash table with open addressing that finds the Rule for a pair of symbols. Most look-ups read one cache line.
  class Rules {
   public:
    void reserve(std::size_t pairs);
    /// Adds the pair of the symbols `first` and `second` to the table if the table does not hold the pair. Returns a
    /// pointer to the pair's Rule, which the caller fills in, and whether the pair is new. The caller must not add more
    /// pairs than the number that was given to reserve().
    std::pair<Rule*, bool> add(std::int32_t first, std::int32_t second);
    /// Returns the Rule for the pair of the symbols `first` and `second`, or a Rule with the rank kNoRank when no merge
    /// joins the two symbols.
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
    // The slots of the hash table. The number of slots is a power of two; at most half of the slots are used.
    std::vector<Slot> slots_ = std::vector<Slot>(2);
    // A 64-bit hash, shifted right by `shift_` bits, is the index of the slot at which the search for a pair begins.
    int shift_ = 63;
    // A Bloom filter of the pairs in the hash table. The hash of each pair sets one bit, and the filter has at least
    // eight bits for each pair. Most pairs of neighbouring symbols have no Rule, and the filter finds that out without
    // reading a slot. The filter fits in the processor's first-level cache.
    std::vector<std::uint64_t> filter_ = std::vector<std::uint64_t>(1);
    // A 64-bit hash, shifted right by `filter_shift_` bits, is the index of the hash's bit in the Bloom filter filter_.
    int filter_shift_ = 58;
  };
  /// One symbol of a word to which merges are applied. `symbol` is the symbol's id, and `end` the byte offset in the
  /// word at which the symbol ends. `previous` and `next` are the indices of the neighbouring nodes; only
  /// merge_linked() uses these two indices.
  struct Node {
    std::int32_t symbol;
    std::size_t end;
    std::int32_t previous, next;
  };
  /// What the cache stores for a word that was cut before: the number of the word's pieces, and for each piece the byte
  /// offset in the word at which the piece ends.
  struct Pieces {
    static constexpr std::size_t kMost = 16;  // words with more than 16 pieces are not cached
    std::uint8_t count = 0, ends[kMost];
  };
  using Cache = WordCache<Pieces, 45>;

  static constexpr std::int32_t kNoRank = std::numeric_limits<std::int32_t>::max();

  /// Fills the look-up tables symbols_, rules_, parents_, ascii_ and final_ascii_ from the list of merges in merges_.
  void index_merges();
  /// Calls take(symbol, end) for each character of a word. `symbol` is the id of the character's symbol, or kNoId for a
  /// character that no merge contains; `end` is the byte offset in the word at which the character ends.
  template <class Take>
  void characters(std::string_view word, Take&& take) const;
  void merge_short(std::string_view word, std::vector<std::size_t>& ends) const;
  void merge_long(std::string_view word, std::vector<std::size_t>& ends) const;
  void merge_linked(std::vector<Node>& nodes) const;
  void merge_at_random(std::string_view word, std::vector<std::size_t>& ends, SubwordSampler& sampler) const;
  void merge_some(std::vector<Node>& nodes, std::size_t first, std::size_t last, SubwordSampler& sampler,
                  std::vector<Node>& out) const;
  /// The ids of the two symbols from which a merge makes a symbol. Both ids are kNoId if no merge makes the symbol.
  struct Parents {
    std::int32_t first = kNoId, second = kNoId;
  };
  struct Part;  // a piece of a word, which split_unknown() may split into smaller pieces
  bool take_apart(const Part& part, std::vector<Part>& open) const;
  void split_unknown(std::string_view word, std::vector<std::size_t>& ends) const;
  void segment_anew(std::string_view word, std::vector<std::size_t>& ends, SubwordSampler* sampler) const;
  template <class Take>
  void segment_cached(Cache& cache, std::string_view word, std::uint64_t hash, std::vector<std::size_t>& ends,
                      Take&& take) const;
  void segment_part(std::string_view part, std::vector<std::size_t>& ends, SubwordSampler* sampler) const;

  BpeMerges merges_;
  BpeOptions options_;
  // An interner, which gives the text of each symbol in merges_ an id. The id stands for the symbol in the other
  // tables.
  StringIds symbols_;
  // For each ASCII character the id of the character's symbol: in ascii_ the symbol inside a word, in final_ascii_ the
  // symbol at the end of a word. The id is kNoId if no merge contains the symbol.
  std::array<std::int32_t, 128> ascii_, final_ascii_;
  Rules rules_;
  // parents_[id] holds the ids of the two symbols from which a merge makes the symbol with the id `id`.
  std::vector<Parents> parents_;
  // A number that no other BpeEncoder of this process has. Each thread finds the thread's cache for this BpeEncoder by
  // the number.
  std::uint64_t identity_;
};

/// Splits a line such as `the 12` at the space, and returns the text (a word or a piece of a word) and the count. The
/// returned text is a view into `line`. Throws Error with the position `where` if the line has another form.
std::pair<std::string_view, std::int64_t> parse_counted(std::string_view line, const Position& where);

/// Reads a file of pieces with counts, and returns a function for BpeOptions::allowed that allows the pieces with a
/// count of `threshold` or more. Each line of the file is a piece, a space and a count, as subword-nmt's get-vocab
/// writes. If no piece has such a count, returns nullptr, which allows all pieces, as subword-nmt's apply-bpe does.
/// Throws Error with the line number of a wrong line.
BpeOptions::Allowed read_counted_vocabulary(const std::string& path, std::int64_t threshold);

}  // namespace heed
