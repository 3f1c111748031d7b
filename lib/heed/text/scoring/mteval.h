#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/config/fields.h"

namespace heed {

/// The tokenisers that BLEU can be computed with: the tokeniser of the NIST script mteval-v13a (v13a), the
/// international tokeniser of mteval-v14 (intl), one token for each character (character), one token for each Chinese
/// character and the rules of v13a for other text (chinese), and the words between white space (none).
enum class MtevalMode { v13a, intl, character, chinese, none };

template <>
struct EnumNames<MtevalMode> {
  static constexpr std::pair<MtevalMode, std::string_view> values[] = {{MtevalMode::v13a, "13a"},
                                                                       {MtevalMode::intl, "intl"},
                                                                       {MtevalMode::character, "char"},
                                                                       {MtevalMode::chinese, "zh"},
                                                                       {MtevalMode::none, "none"}};
};

/// Splits lines into tokens exactly as sacreBLEU 2.6 does. Each token is a view of the line, since sacreBLEU's regular
/// expressions only insert spaces. (If an entity such as &quot; had to be decoded, the view points into a buffer of
/// this object.) The views are valid until the next call, and only as long as the line itself.
///
/// Character properties are those of the ICU library that heed is built with (ICU 72 has Unicode 15). Since then,
/// Unicode has added 1,008 numbers, marks and symbols, which the Python package `regex` of sacreBLEU knows; the mode
/// `intl` does not split at them yet. Ill-formed bytes count as letters.
class MtevalTokenizer {
 public:
  explicit MtevalTokenizer(MtevalMode mode) : mode_(mode) {}

  MtevalMode mode() const { return mode_; }
  /// Returns the tokens of `line`, as views that are valid until the next call.
  const std::vector<std::string_view>& tokens(std::string_view line);
  /// Returns the tokens of `line`, separated by single spaces, as sacreBLEU's tokeniser does. In the mode `character`,
  /// spaces separate all characters of the line, white space characters included; in the mode `none`, the line is
  /// returned unchanged.
  std::string line(std::string_view line);

 private:
  /// Splits `line` by the rules of the tokeniser v13a. If `padded` is true, the rules treat the line as if a space
  /// stood before it and a space behind it.
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
