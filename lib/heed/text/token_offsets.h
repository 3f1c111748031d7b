#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "heed/text/strings/scan.h"

namespace heed {

/// Finds the bytes of a raw line that a token comes from. The tokens of `"Hi," he said` may be `&quot; Hi , &quot; he
/// said`; the first token comes from byte 0 and the token `Hi` from bytes 1 and 2.
///
/// The tokeniser does not say what it changed, so TokenOffsets compares the two lines afterwards: it aligns the
/// characters of the raw line with the characters of the tokens, white space left out. The alignment is a shortest edit
/// script (Myers 1986, "An O(ND) difference algorithm and its variations"). The search for edits starts anew after each
/// longer run of equal characters, so that the time grows with the length of the line only. Upper and lower case,
/// full-width forms, and different shapes of quotes and dashes count as equal. A character that replaces other text (an
/// entity, a ligature) comes from all of the text that was replaced.
class TokenOffsets {
 public:
  /// Aligns `tokens` with `raw`. `raw` may hold ill-formed UTF-8, for which `tokens` has U+FFFD. If `escaped` is true,
  /// each of Moses' entities in `tokens` (such as &quot;) counts as one character.
  TokenOffsets(std::string_view raw, std::string_view tokens, bool escaped);

  /// Returns the bytes of the raw line that the bytes `tokens` of the token line come from. For text that a text step
  /// has inserted, the span is empty (`begin` equals `end`) and stands at the place of the insertion.
  ByteSpan source(ByteSpan tokens) const;

 private:
  /// A character of the token line, as bytes of that line (`token`) and as the bytes of the raw line it comes from
  /// (`raw`).
  struct Origin {
    ByteSpan token, raw;
  };
  std::vector<Origin> origins_;
};

}  // namespace heed
