#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/config/fields.h"

namespace heed {

/// The tokenisers that BLEU is computed with: mteval-v13a's (v13a), mteval-v14's international one (intl), one token
/// for each character (character), each Chinese character apart and v13a's rules for the rest (chinese), and the text's
/// own white space (none).
enum class MtevalMode { v13a, intl, character, chinese, none };

template <>
struct EnumNames<MtevalMode> {
  static constexpr std::pair<MtevalMode, std::string_view> values[] = {{MtevalMode::v13a, "13a"},
                                                                       {MtevalMode::intl, "intl"},
                                                                       {MtevalMode::character, "char"},
                                                                       {MtevalMode::chinese, "zh"},
                                                                       {MtevalMode::none, "none"}};
};

/// Splits lines into tokens exactly as sacreBLEU 2.6 does. sacreBLEU's regular expressions only ever insert spaces, so
/// that a token is a view: of the line or, if an entity was decoded, of a buffer in this object. The views are valid
/// until the next call, and no longer than the line itself.
///
/// Character properties are those of the ICU library that heed is built with (ICU 72 has Unicode 15). Unicode has added
/// 1,008 numbers, marks and symbols since, which Python's `regex` knows; the mode `intl` does not split at them yet.
/// Ill-formed bytes count as letters.
class MtevalTokenizer {
 public:
  explicit MtevalTokenizer(MtevalMode mode) : mode_(mode) {}

  MtevalMode mode() const { return mode_; }
  /// Returns the tokens of `line`.
  const std::vector<std::string_view>& tokens(std::string_view line);
  /// Returns the line that sacreBLEU's tokeniser returns: the tokens, separated by single spaces. In the mode
  /// `character` all characters, white space too, are separated by spaces; in the mode `none` the line is unchanged.
  std::string line(std::string_view line);

 private:
  /// Splits `line` by v13a's rules. If `padded` is true, the rules see a space before the line and a space behind it.
  void split_13a(std::string_view line, bool padded);
  void split_chinese(std::string_view line);
  void split_intl(std::string_view line);
  void split_characters(std::string_view line, bool keep_space);
  void split_space(std::string_view line);

  MtevalMode mode_;
  std::string decoded_;
  std::vector<std::string_view> tokens_;
};

/// Returns `text` without the white space at its end, as Python's str.rstrip() does, which sacreBLEU applies to every
/// line that it scores.
std::string_view strip_trailing_space(std::string_view text);

/// Returns the length in bytes of the white space character (by Python's str.isspace()) that starts at text[at]; 0 if
/// no white space starts there.
std::size_t space_length(std::string_view text, std::size_t at);

}  // namespace heed
