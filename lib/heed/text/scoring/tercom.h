#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/text/scoring/mteval.h"

namespace heed {

/// How TercomTokenizer changes a line before it splits the line at white space.
struct TercomOptions {
  bool normalized = false;  ///< decode entities such as &quot;, and make punctuation marks separate words
  bool no_punct = false;    ///< remove the marks . , ? : ; ! " ( )
  /// Applies the options `normalized` and `no_punct` to Asian text as well: with `normalized`, Chinese characters and
  /// Asian punctuation marks become separate words; with `no_punct`, Asian and full-width punctuation marks are
  /// removed.
  bool asian_support = false;
  bool case_sensitive = false;  ///< compare words in their own case; if false, the line is lower-cased
};

/// Splits lines into the words that the metric TER compares, as sacreBLEU 2.6 does, whose rules come from Tercom, the
/// original program for TER. The returned words are valid until the next call.
class TercomTokenizer {
 public:
  explicit TercomTokenizer(const TercomOptions& options) : options_(options) {}

  /// Returns the words of `line`, as views that are valid until the next call.
  const std::vector<std::string_view>& tokens(std::string_view line);
  /// Tokenises `line`, then tokenises the resulting words again, and returns the result. sacreBLEU does so with
  /// reference translations; the second time decodes "&amp;lt;" further and splits more words.
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
