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

/// The merge operations of byte-pair encoding (Sennrich, Haddow and Birch 2016), best first, as subword-nmt's codes
/// files hold them.
struct BpeMerges {
  /// 0.1 and 0.2 differ in the end of a word: a symbol `</w>` of its own, or a mark on the last character.
  enum class Version { v0_1, v0_2 };
  Version version = Version::v0_2;
  std::vector<std::pair<std::string, std::string>> pairs = {};
  /// The first symbols of a word are its bytes, not its characters (`#version: 0.2 byte`, version 0.2 only).
  bool bytes = false;

  /// Reads a codes file: a line `#version: 0.2` (without it: 0.1), then `first second` a line. Throws Error naming the
  /// line. `limit`: the first so many merges (learn-bpe's `-s` of a shorter run); negative: all. `bytes`: the symbols
  /// are bytes whatever the first line says; throws Error for version 0.1.
  static BpeMerges read(const std::string& path, std::int64_t limit = -1, bool bytes = false);
  /// The same from the text of such a file, named `where` in messages.
  static BpeMerges parse(std::string_view text, const std::string& where, std::int64_t limit = -1, bool bytes = false);
  /// The codes file.
  std::string text() const;
};

/// Subword regularisation: other segmentations of the same words, drawn with random numbers of a stream. One object a
/// line, so that what a line becomes depends on the seed and its number only.
struct SubwordSampler {
  double dropout = 0;  ///< probability of leaving out a merge (BPE-dropout; Provilkov, Emelianenko and Voita 2020)
  double alpha = 0;    ///< of a unigram model: segmentations have the probability p^alpha / sum (Kudo 2018)
  RandomStream stream;
  std::uint64_t drawn = 0;

  /// Uniform in [0, 1).
  double next() { return stream.uniform(drawn++); }
};

/// How BpeEncoder cuts words, apart from the merges.
struct BpeOptions {
  /// Whether a piece, with its separator, is allowed.
  using Allowed = std::function<bool(std::string_view)>;

  std::string separator = "@@";
  Allowed allowed = nullptr;   ///< merges that lead to other pieces are undone (apply-bpe's `--vocabulary`)
  Glossaries glossaries = {};  ///< parts that stay whole
};

/// Cuts words with merge operations, exactly as subword-nmt 0.3.8 apply-bpe does. Thread-safe; each thread remembers
/// words it has cut in a cache of fixed size, so that threads never wait for each other.
class BpeEncoder {
 public:
  explicit BpeEncoder(BpeMerges merges, BpeOptions options = {});

  /// Replaces `ends` by the byte offset of the end of every piece of `word` (not empty). With a sampler, merges are
  /// left out at random; a word of more than 1,024 characters is then merged in parts of that length.
  void segment(std::string_view word, std::vector<std::size_t>& ends, SubwordSampler* sampler = nullptr) const;

  /// Appends the pieces of space-separated tokens with a space between them, the separator behind each but a token's
  /// last.
  void append(std::string_view tokens, std::string& out, SubwordSampler* sampler = nullptr) const;

  const BpeMerges& merges() const { return merges_; }
  const std::string& separator() const { return options_.separator; }

 private:
  /// What two symbols become; the lower rank comes first.
  struct Rule {
    std::int32_t rank, merged;
  };
  /// The rules by their two symbols, in open addressing: a look-up touches one cache line, mostly.
  class Rules {
   public:
    void reserve(std::size_t pairs);
    /// The place of a pair's rule, and whether it was added now. Never more pairs than reserved.
    std::pair<Rule*, bool> add(std::int32_t first, std::int32_t second);
    /// rank kNoRank where there is none.
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
    std::vector<Slot> slots_ = std::vector<Slot>(2);  // a power of two, at most half of them taken
    int shift_ = 63;
    // Bits of the pairs' hashes, eight or more a pair: small enough for the nearest cache, and most look-ups end here.
    std::vector<std::uint64_t> filter_ = std::vector<std::uint64_t>(1);
    int filter_shift_ = 58;
  };
  /// A symbol of a word being merged: its bytes in the word and its neighbours, linked for long words.
  struct Node {
    std::int32_t symbol;
    std::size_t end;
    std::int32_t previous, next;
  };
  /// The byte ends of the pieces of a word.
  struct Pieces {
    static constexpr std::size_t kMost = 16;
    std::uint8_t count = 0, ends[kMost];
  };
  using Cache = WordCache<Pieces, 45>;

  static constexpr std::int32_t kNoRank = std::numeric_limits<std::int32_t>::max();

  void index_merges();
  /// Calls take(symbol, byte end) for the characters of a word.
  template <class Take>
  void characters(std::string_view word, Take&& take) const;
  void merge_short(std::string_view word, std::vector<std::size_t>& ends) const;
  void merge_long(std::string_view word, std::vector<std::size_t>& ends) const;
  void merge_linked(std::vector<Node>& nodes) const;
  void merge_at_random(std::string_view word, std::vector<std::size_t>& ends, SubwordSampler& sampler) const;
  void merge_some(std::vector<Node>& nodes, std::size_t first, std::size_t last, SubwordSampler& sampler,
                  std::vector<Node>& out) const;
  /// Two symbols that a third came from.
  struct Parents {
    std::int32_t first = kNoId, second = kNoId;
  };
  struct Part;
  bool take_apart(const Part& part, std::vector<Part>& open) const;
  void split_unknown(std::string_view word, std::vector<std::size_t>& ends) const;
  void segment_anew(std::string_view word, std::vector<std::size_t>& ends, SubwordSampler* sampler) const;
  template <class Take>
  void segment_cached(Cache& cache, std::string_view word, std::uint64_t hash, std::vector<std::size_t>& ends,
                      Take&& take) const;
  void segment_part(std::string_view part, std::vector<std::size_t>& ends, SubwordSampler* sampler) const;

  BpeMerges merges_;
  BpeOptions options_;
  StringIds symbols_;
  std::array<std::int32_t, 128> ascii_, final_ascii_;  // the symbols of ASCII characters within and at the end of words
  Rules rules_;
  std::vector<Parents> parents_;  // per symbol
  std::uint64_t identity_;        // of this encoder among all of the process, for the threads' caches
};

/// A line of `piece count`, or of `word count`. The view is into the line. Throws Error at `where`.
std::pair<std::string_view, std::int64_t> parse_counted(std::string_view line, const Position& where);

/// Reads a vocabulary with counts (`piece count` a line, get-vocab's form) for BpeEncoder: the pieces with at least
/// `threshold` occurrences. As in apply-bpe, all are allowed where there is none. Throws Error naming the line.
BpeOptions::Allowed read_counted_vocabulary(const std::string& path, std::int64_t threshold);

}  // namespace heed
