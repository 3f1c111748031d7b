#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "heed/text/strings/scan.h"

namespace heed {

/// Where in a raw line its tokens come from: an alignment of the characters of both, white space aside, by a shortest
/// edit script (Myers 1986) that begins anew after each longer run of equal characters, so that its time grows with the
/// length of the line. Case, full-width forms and shapes of quotes and dashes count as equal; what was replaced as a
/// whole (an entity, a ligature) comes from all of what it replaced.
class TokenOffsets {
 public:
  /// `raw` may hold ill-formed UTF-8, for which `tokens` has U+FFFD. `escaped`: Moses' entities in the tokens are a
  /// character each.
  TokenOffsets(std::string_view raw, std::string_view tokens, bool escaped);

  /// The bytes of the raw line that a part of the tokens comes from; for a part that came from nowhere, the place where
  /// it was put in (`begin` is `end`).
  ByteSpan source(ByteSpan tokens) const;

 private:
  /// A character of the tokens and where it comes from.
  struct Origin {
    ByteSpan token, raw;
  };
  std::vector<Origin> origins_;
};

}  // namespace heed
