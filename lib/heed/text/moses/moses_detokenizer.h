#pragma once

#include <string>
#include <string_view>

namespace heed {

/// Turns tokens into plain text as Moses' detokenizer.perl does, byte for byte on valid UTF-8. Immutable; any number of
/// threads may use one detokeniser.
class MosesDetokenizer {
 public:
  /// Makes a detokeniser for `language` (a language code); the script has rules of their own for cs, en, fi, fr, it and
  /// ko. If `unescape` is true, Moses' entities become characters, which the script always does. `penn` is the script's
  /// -penn, whose rules are the same for every language.
  explicit MosesDetokenizer(std::string language, bool unescape = true, bool penn = false);

  /// Returns the plain text of a line of tokens. A line of white space, and a line that is a single tag (<...>), are
  /// returned unchanged. `uppercase_first` is the script's -u: the first letter becomes a capital.
  std::string detokenize(std::string_view tokens, bool uppercase_first = false) const;

 private:
  std::string language_;
  bool unescape_, penn_;
};

}  // namespace heed
