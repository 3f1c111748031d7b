#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace heed {

/// Whether the full stop after a word belongs to it: the abbreviations tokenizer.perl knows for a language.
class NonbreakingPrefixes {
 public:
  enum class Kind {
    none,
    always,         ///< Dr. Smith
    before_number,  ///< No. 5
  };

  /// A language without a list of its own gets the English one, as tokenizer.perl does.
  explicit NonbreakingPrefixes(std::string_view language);

  /// The kind of a word given without its full stop.
  Kind find(std::string_view word) const {
    const auto found = words_.find(word);
    return found == words_.end() ? Kind::none : found->second;
  }

 private:
  std::unordered_map<std::string_view, Kind> words_;  // views into the compiled-in lists
};

/// Whether there is a list for the language (otherwise English stands in).
bool has_nonbreaking_prefixes(std::string_view language);

}  // namespace heed
