#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/config/fields.h"

namespace heed {

/// The tokenisers BLEU is computed on: mteval-v13a's, mteval-v14's international one, one token a character,
/// Chinese characters apart with v13a's rules for the rest, and the text's own whitespace.
enum class MtevalMode { v13a, intl, character, chinese, none };

template <>
struct EnumNames<MtevalMode> {
  static constexpr std::pair<MtevalMode, std::string_view> values[] = {{MtevalMode::v13a, "13a"},
                                                                       {MtevalMode::intl, "intl"},
                                                                       {MtevalMode::character, "char"},
                                                                       {MtevalMode::chinese, "zh"},
                                                                       {MtevalMode::none, "none"}};
};

/// Splits lines into tokens exactly as sacreBLEU 2.6 does. Its regular expressions only ever insert spaces, so a token
/// is a view: into the line, or into this object where an entity was decoded. The views live until the next call or
/// the end of the line's own memory, whichever comes first.
///
/// Properties are those of the ICU in use (72: Unicode 15; the 1,008 numbers, marks and symbols added since, which
/// Python's `regex` knows, do not split in `intl` yet). Ill-formed bytes count as letters.
class MtevalTokenizer {
 public:
  explicit MtevalTokenizer(MtevalMode mode) : mode_(mode) {}

  MtevalMode mode() const { return mode_; }
  const std::vector<std::string_view>& tokens(std::string_view line);
  /// The line sacreBLEU's tokeniser returns: the tokens with one space between, but every character with a space
  /// between (white space too) in `character`, and the line as it is in `none`.
  std::string line(std::string_view line);

 private:
  /// `padded`: the rules see a space at both ends.
  void split_13a(std::string_view line, bool padded);
  void split_chinese(std::string_view line);
  void split_intl(std::string_view line);
  void split_characters(std::string_view line, bool keep_space);
  void split_space(std::string_view line);

  MtevalMode mode_;
  std::string decoded_;
  std::vector<std::string_view> tokens_;
};

/// Without the white space at its end: Python's str.rstrip(), which sacreBLEU applies to every line it scores.
std::string_view strip_trailing_space(std::string_view text);

/// Length in bytes of the white space (Python's str.isspace()) that starts at `text[at]`; 0 where there is none.
std::size_t space_length(std::string_view text, std::size_t at);

}  // namespace heed
