#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/text/numbering.h"

namespace heed {

/// The merge operations of byte-pair encoding (Sennrich, Haddow and Birch 2016), best first, as subword-nmt's codes
/// files hold them.
struct BpeMerges {
  /// 0.1 and 0.2 differ in the end of a word: a symbol `</w>` of its own, or a mark on the last character.
  enum class Version { v0_1, v0_2 };
  Version version = Version::v0_2;
  std::vector<std::pair<std::string, std::string>> pairs;

  /// Reads a codes file: a line `#version: 0.2` (without it: 0.1), then `first second` a line. Throws Error naming the
  /// line. `limit`: the first so many merges (learn-bpe's `-s` of a shorter run); negative: all.
  static BpeMerges read(const std::string& path, std::int64_t limit = -1);
  /// The same from the text of such a file, named `where` in messages.
  static BpeMerges parse(std::string_view text, const std::string& where, std::int64_t limit = -1);
  /// The codes file.
  std::string text() const;
};

/// Cuts words with merge operations, exactly as subword-nmt 0.3.8 apply-bpe does. Thread-safe; frequent words are
/// remembered in a cache of bounded size.
class BpeEncoder {
 public:
  static constexpr std::string_view kDefaultSeparator = "@@";

  /// Whether a piece, with its separator, is allowed.
  using Allowed = std::function<bool(std::string_view)>;

  /// With `allowed`, merges that lead to other pieces are undone (apply-bpe's `--vocabulary`).
  explicit BpeEncoder(BpeMerges merges, std::string separator = std::string(kDefaultSeparator),
                      Allowed allowed = nullptr);
  ~BpeEncoder();

  /// Replaces `ends` by the byte offset of the end of every piece of `word` (not empty).
  void segment(std::string_view word, std::vector<std::size_t>& ends) const;

  const BpeMerges& merges() const { return merges_; }
  const std::string& separator() const { return separator_; }

 private:
  struct Rule {
    std::int32_t rank, merged;
  };
  /// A symbol of a word being merged: its bytes in the word and its neighbours, linked for long words.
  struct Node {
    std::int32_t symbol;
    std::size_t end;
    std::int32_t previous, next;
  };
  struct Cache;

  void index_merges();
  const Rule* rule(std::int32_t first, std::int32_t second) const;
  std::vector<Node> characters(std::string_view word) const;
  void merge_short(std::vector<Node>& nodes) const;
  void merge_long(std::vector<Node>& nodes) const;
  /// Two symbols that a third came from.
  struct Parents {
    std::int32_t first = kNoNumber, second = kNoNumber;
  };
  struct Part;
  bool take_apart(const Part& part, std::vector<Part>& open) const;
  void split_unknown(std::string_view word, std::vector<std::size_t>& ends) const;

  BpeMerges merges_;
  std::string separator_;
  Allowed allowed_;
  StringNumbering symbols_;
  PairNumbering pairs_;
  std::vector<Rule> rules_;       // per pair
  std::vector<Parents> parents_;  // per symbol
  std::unique_ptr<Cache> cache_;
};

/// Reads a vocabulary with counts (`piece count` a line, get-vocab's form) for BpeEncoder: the pieces with at least
/// `threshold` occurrences. As in apply-bpe, all are allowed where there is none. Throws Error naming the line.
BpeEncoder::Allowed read_counted_vocabulary(const std::string& path, std::int64_t threshold);

}  // namespace heed
