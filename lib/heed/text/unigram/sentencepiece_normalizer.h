#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/unigram/piece_trie.h"
#include "heed/text/unigram/sentencepiece_model.h"

namespace heed {

/// Normalises text as SentencePiece 0.2.3 does, byte for byte, before the text is cut into pieces: replaces the strings
/// that the model's precompiled map lists (the longest one that matches), reduces runs of spaces to one space, and
/// writes spaces as U+2581. Immutable; any number of threads may use one object.
class SentencePieceNormalizer {
 public:
  /// Reads the rules `spec` of a model. The keys of `verbatim` (user-defined pieces) are copied unchanged; their
  /// numbers do not matter. Throws Error with `where` if the map is damaged.
  SentencePieceNormalizer(const SentencePieceRules& spec, bool whitespace_as_suffix, PieceTrie verbatim,
                          const std::string& where);

  /// Replaces `out` by the normalised text. Each byte of ill-formed UTF-8 becomes U+FFFD. If `origins` is given, it
  /// gets, for each byte of `out`, the offset of the byte of `text` that it comes from; and one more entry, the offset
  /// at which the last byte's origin ends.
  void normalize(std::string_view text, std::string& out, std::vector<std::size_t>* origins = nullptr) const;

 private:
  /// The first part of a text: its normalised form, and the number of bytes of the text that it replaces.
  struct Part {
    std::string_view normal;
    std::size_t bytes;
  };
  /// Returns the first part of `text`: a user-defined piece, the match of a rule, or one character.
  Part first_part(std::string_view text) const;
  /// Sets `part` to the longest match of the map's rules at the start of `text`; returns false if no rule matches.
  bool longest_rule(std::string_view text, Part& part) const;
  /// The unit at `index` of the double array; 0 outside the array.
  std::uint32_t unit(std::size_t index) const { return index < map_.size() ? map_[index] : 0; }
  void read_map(std::string_view blob, const std::string& where);
  /// Sets plain_ and plain_space_: finds the ASCII bytes that neither a rule nor a user-defined piece changes, unless a
  /// byte beyond ASCII follows.
  void find_plain_bytes();

  bool dummy_prefix_, squeeze_, suffix_;
  std::string_view space_;
  PieceTrie verbatim_;
  // The rules as a double array of the library Darts-clone; empty if the model has no rules.
  std::vector<std::uint32_t> map_;
  std::string replacements_;       // the normalised strings of the rules, each ended by a NUL
  std::array<bool, 256> plain_{};  // for each ASCII byte, whether it stays unchanged if no byte beyond ASCII follows
  // Whether a space becomes space_ without a look at the rules, if no byte beyond ASCII follows the space.
  bool plain_space_ = false;
};

}  // namespace heed
