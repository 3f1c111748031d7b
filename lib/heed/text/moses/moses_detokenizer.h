#pragma once

#include <string>
#include <string_view>

namespace heed {

/// Moses' detokenizer.perl, byte for byte on valid UTF-8. Immutable and shared by threads.
class MosesDetokenizer {
 public:
  /// The script's own rules are those of cs, en, fi, fr, it and ko. `unescape` reads Moses' entities, as the script
  /// always does. `penn` is its -penn, whose rules are the same for every language.
  explicit MosesDetokenizer(std::string language, bool unescape = true, bool penn = false);

  /// The text of a line of tokens. A line of white space and one that is a tag (<...>) come out as they are.
  /// `uppercase_first` is the script's -u.
  std::string detokenize(std::string_view tokens, bool uppercase_first = false) const;

 private:
  std::string language_;
  bool unescape_, penn_;
};

}  // namespace heed
