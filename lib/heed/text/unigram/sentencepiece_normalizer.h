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
/// that the model's precompiled map lists (at each place the longest one), reduces runs of spaces to one space, and
/// writes spaces as U+2581. Immutable; any number of threads may use one object.
class SentencePieceNormalizer {
 public:
  /// Reads the normalisation rules `spec` of a model. The keys of the trie `verbatim` (the user-defined pieces) are
  /// copied unchanged; the numbers of these keys are not used. Throws Error with the file name `where` if the rules are
  /// damaged.
  SentencePieceNormalizer(const SentencePieceRules& spec, bool whitespace_as_suffix, PieceTrie verbatim,
                          const std::string& where);

  /// Replaces `out` by the normalised form of `text`. Each byte of ill-formed UTF-8 becomes U+FFFD. If `origins` is
  /// given, it gets an entry for each byte of `out`: the offset in `text` of the character or string from which the
  /// byte comes. One more entry at the end of `origins` is the offset behind the last such character or string.
  void normalize(std::string_view text, std::string& out, std::vector<std::size_t>* origins = nullptr) const;

 private:
  /// The first part of a text that is normalised as a unit: its normalised form, and the number of bytes of the text
  /// that it replaces.
  struct Part {
    std::string_view normal;
    std::size_t bytes;
  };
  /// Returns the normalised form of the first part of `text`. The part is a user-defined piece, a string that a rule
  /// replaces, or one character.
  Part first_part(std::string_view text) const;
  /// Sets `part` to the longest string at the start of `text` that a rule of the precompiled map replaces, with its
  /// replacement; returns false if no rule matches.
  bool longest_rule(std::string_view text, Part& part) const;
  /// Returns the element at `index` of the double-array trie that holds the normalisation rules; 0 outside the array.
  std::uint32_t unit(std::size_t index) const { return index < map_.size() ? map_[index] : 0; }
  void read_map(std::string_view blob, const std::string& where);
  /// Finds the ASCII bytes that neither a normalisation rule nor a user-defined piece changes, unless a byte beyond
  /// ASCII follows. Sets plain_ and plain_space_ accordingly.
  void find_plain_bytes();

  bool dummy_prefix_, squeeze_, suffix_;
  std::string_view space_;
  PieceTrie verbatim_;
  // The normalisation rules as a double-array trie of the library Darts-clone; empty if the model has no rules.
  std::vector<std::uint32_t> map_;
  // The replacement strings of all normalisation rules, each ended by a NUL.
  std::string replacements_;
  // For each ASCII byte except the space, whether normalisation leaves the byte unchanged if no byte beyond ASCII
  // follows; false for bytes beyond ASCII.
  std::array<bool, 256> plain_{};
  // Whether no normalisation rule changes a space that is not followed by a byte beyond ASCII; such a space becomes
  // space_ at once.
  bool plain_space_ = false;
};

}  // namespace heed
