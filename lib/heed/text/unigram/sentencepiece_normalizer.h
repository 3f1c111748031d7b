#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/unigram/piece_trie.h"
#include "heed/text/unigram/sentencepiece_model.h"

namespace heed {

/// SentencePiece's normaliser: replaces what its precompiled map lists, longest first, squeezes spaces and writes them
/// as U+2581, byte for byte as SentencePiece 0.2.3. Immutable; serves any number of threads.
class SentencePieceNormalizer {
 public:
  /// `verbatim`: the pieces that are taken out of the text as they stand (user-defined symbols), with any numbers.
  /// Throws Error that names `where` for a map that is damaged.
  SentencePieceNormalizer(const SentencePieceRules& spec, bool whitespace_as_suffix, PieceTrie verbatim,
                          const std::string& where);

  /// Replaces `out` by the normalised text. Ill-formed UTF-8 becomes U+FFFD, one for each byte. `origins` gets the byte
  /// of `text` that each byte of `out` comes from, and where the last one ends.
  void normalize(std::string_view text, std::string& out, std::vector<std::size_t>* origins = nullptr) const;

 private:
  /// What the text at `at` starts with, normalised, and the number of bytes that it takes.
  struct Part {
    std::string_view normal;
    std::size_t bytes;
  };
  Part first_part(std::string_view text) const;
  bool longest_rule(std::string_view text, Part& part) const;
  std::uint32_t unit(std::size_t index) const { return index < map_.size() ? map_[index] : 0; }
  void read_map(std::string_view blob, const std::string& where);
  void find_plain_bytes();

  bool dummy_prefix_, squeeze_, suffix_;
  std::string_view space_;
  PieceTrie verbatim_;
  std::vector<std::uint32_t> map_;  // a Darts-clone double array; empty: no rules
  std::string replacements_;        // each ended by a NUL
  std::array<bool, 256> plain_{};   // per ASCII byte: stays as it is where no byte beyond ASCII follows
  bool plain_space_ = false;        // the same of a space, which is then squeezed and written as space_
};

}  // namespace heed
