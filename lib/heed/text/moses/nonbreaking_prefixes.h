#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace heed {

/// The abbreviations of a language: the words whose full stop belongs to the word, such as "Dr.". The lists come from
/// Moses, which calls these words nonbreaking prefixes; tokenizer.perl uses the same lists.
class NonbreakingPrefixes {
 public:
  /// What a full stop behind a word means.
  enum class Kind {
    none,
    always,         ///< the full stop always belongs to the word: Dr. Smith
    before_number,  ///< the full stop belongs to the word if a number follows: No. 5
  };

  /// Loads Moses' list of abbreviations for `language` (a language code). A language for which Moses has no list gets
  /// the English list, as in tokenizer.perl.
  explicit NonbreakingPrefixes(std::string_view language);

  /// Returns what a full stop behind `word` means. `word` comes without its full stop.
  Kind find(std::string_view word) const {
    const auto found = words_.find(word);
    return found == words_.end() ? Kind::none : found->second;
  }

 private:
  // The abbreviations of the language; the keys point into the text of the list, which is compiled into the program.
  std::unordered_map<std::string_view, Kind> words_;
};

/// Returns whether Moses has a list of abbreviations for `language`. If Moses has no such list, NonbreakingPrefixes
/// uses the English list.
bool has_nonbreaking_prefixes(std::string_view language);

}  // namespace heed
