#pragma once

#include <string>
#include <string_view>

namespace heed {

// Moses' filters for raw text. Each function changes `line` as the script of Moses does, byte for byte.

/// Replaces curly quotes, dashes and unusual spaces by plain ones, as normalize-punctuation.perl does. Like the script,
/// the function works on bytes and takes the end of the line for white space. The rules differ for the languages en, cs
/// (or cz), de, es and fr only. `penn` is the script's -penn: ` and '' stay, since they are quotes of the Penn
/// Treebank.
void normalize_punctuation(std::string& line, std::string_view language, bool penn = false);

/// Replaces full-width and CJK punctuation and digits by ASCII, as replace-unicode-punctuation.perl does.
void replace_unicode_punctuation(std::string& line);

/// Replaces every character of Unicode's general category C (control characters, unassigned code points) by a space, as
/// remove-non-printing-char.perl does.
void remove_nonprinting(std::string& line);

}  // namespace heed
