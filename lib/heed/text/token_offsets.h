#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "heed/text/strings/scan.h"

namespace heed {

/// Finds the bytes of a raw line that a token comes from. Example: the tokens of the raw line `"Hi," he said` may be
/// `&quot; Hi , &quot; he said`; the token `&quot;` comes from byte 0 and the token `Hi` from bytes 1 and 2.
///
/// The tokeniser does not say what it changed, so TokenOffsets compares the raw line with the line of tokens
/// afterwards: it aligns the characters of the two lines, without the white space between tokens. The alignment is a
/// shortest edit script (Myers 1986, "An O(ND) difference algorithm and its variations"). The search for edits starts
/// anew after each longer run of equal characters, so that the time grows in proportion to the length of the line.
/// Upper and lower case, full-width and half-width forms, and different shapes of quotes and dashes count as equal. A
/// character that replaces other text (an entity, a ligature) comes from all of the text that was replaced.
class TokenOffsets {
 public:
  /// Aligns the characters of the line of tokens `tokens` with the characters of the raw line `raw`. `raw` may hold
  /// ill-formed UTF-8, which is U+FFFD in `tokens`. If `escaped` is true, each of Moses' entities in `tokens` (such as
  /// &quot;) counts as one character. `places` may give the bytes of `raw` from which each token comes (see
  /// places_in_tree()): then each token is aligned with these bytes alone. If there are more or fewer places than
  /// tokens, the whole lines are aligned.
  TokenOffsets(std::string_view raw, std::string_view tokens, bool escaped, std::span<const ByteSpan> places = {});

  /// Returns the bytes of the raw line from which the bytes `tokens` of the line of tokens come. For the space between
  /// two tokens, these are the bytes between the two tokens in the raw line. For text that a text step has inserted,
  /// the result is empty (`begin` equals `end`) and stands at the place of the insertion.
  ByteSpan source(ByteSpan tokens) const;

 private:
  /// Aligns the characters of `tokens` in the span `token` with the characters of `raw` in the span `place`.
  void align(std::string_view raw, ByteSpan place, std::string_view tokens, ByteSpan token, bool escaped);

  /// A character of the line of tokens: `token` is its bytes in that line, and `raw` is the bytes of the raw line from
  /// which the character comes.
  struct Origin {
    ByteSpan token, raw;
  };
  std::vector<Origin> origins_;
  std::size_t raw_size_;
};

}  // namespace heed
