#pragma once

#include <string>
#include <string_view>

namespace heed {

/// Makes the first letter of `text` a capital if only punctuation and white space are before it.
void uppercase_first_letter(std::string& text);

/// Turns tokens into plain text as Moses' detokenizer.perl does, byte for byte on valid UTF-8. Immutable; any number of
/// threads may use one detokeniser.
class MosesDetokenizer {
 public:
  /// Makes a detokeniser for `language` (a language code). detokenizer.perl has special rules for Czech, English,
  /// Finnish, French, Italian and Korean (cs, en, fi, fr, it, ko). If `unescape` is true, Moses' entities such as
  /// &quot; become characters, as they always do in detokenizer.perl. `penn` is the option -penn of detokenizer.perl,
  /// whose rules are the same for every language.
  explicit MosesDetokenizer(std::string language, bool unescape = true, bool penn = false);

  /// Returns the plain text of a line of tokens. A line of white space, and a line that is a single tag (<...>), are
  /// returned unchanged. If `uppercase_first` is true, the first letter becomes a capital (the option -u of
  /// detokenizer.perl).
  std::string detokenize(std::string_view tokens, bool uppercase_first = false) const;

 private:
  std::string language_;
  bool unescape_, penn_;
};

}  // namespace heed
