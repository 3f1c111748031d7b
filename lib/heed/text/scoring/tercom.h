#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/text/scoring/mteval.h"

namespace heed {

/// What TER's tokeniser does besides splitting at white space.
struct TercomOptions {
  bool normalized = false;  ///< decode entities and split punctuation off words
  bool no_punct = false;    ///< remove . , ? : ; ! " ( )
  bool asian_support =
      false;  ///< with the two above: split Chinese characters, treat Asian and full-width marks likewise
  bool case_sensitive = false;  ///< no lower-casing
};

/// Splits lines into the words TER is computed on, as sacreBLEU 2.6 does after Tercom. The words live until the next
/// call.
class TercomTokenizer {
 public:
  explicit TercomTokenizer(const TercomOptions& options) : options_(options) {}

  const std::vector<std::string_view>& tokens(std::string_view line);
  /// The tokens of the line's tokens: sacreBLEU tokenises a reference twice, which decodes "&amp;lt;" and splits more.
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
