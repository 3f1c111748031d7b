#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/text/scoring/mteval.h"

namespace heed {

/// What TercomTokenizer does besides splitting at white space.
struct TercomOptions {
  bool normalized = false;  ///< decode entities, and make punctuation separate words
  bool no_punct = false;    ///< remove . , ? : ; ! " ( )
  /// Applies `normalized` and `no_punct` to Asian text as well: `normalized` makes Chinese characters and Asian
  /// punctuation separate words, `no_punct` removes Asian and full-width punctuation.
  bool asian_support = false;
  bool case_sensitive = false;  ///< do not lower-case the line
};

/// Splits lines into the words that TER compares, as sacreBLEU 2.6 does (after Tercom, the original program for TER).
/// The returned words are valid until the next call.
class TercomTokenizer {
 public:
  explicit TercomTokenizer(const TercomOptions& options) : options_(options) {}

  /// Returns the words of `line`.
  const std::vector<std::string_view>& tokens(std::string_view line);
  /// Returns the words of `line` after tokenising twice: sacreBLEU tokenises the words of a reference again, which
  /// decodes "&amp;lt;" a second time and splits more.
  const std::vector<std::string_view>& tokens_of_tokens(std::string_view line);

 private:
  void prepare(std::string_view line);
  void normalize();
  void normalize_asian();
  void remove_punctuation();

  TercomOptions options_;
  MtevalTokenizer splitter_{MtevalMode::none};
  std::string text_, next_;
};

}  // namespace heed
