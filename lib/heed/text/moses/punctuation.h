#pragma once

#include <string>
#include <string_view>

namespace heed {

// Three filters for raw text. Each function changes `line` as one of Moses' scripts does, byte for byte.

/// Replaces curly quotation marks, dashes and unusual spaces by plain ones, as Moses' normalize-punctuation.perl does.
/// Like that script, the function works on bytes and treats the end of the line as white space. Only the languages en,
/// cs (or cz), de, es and fr have rules of their own. If `penn` is true (the script's option -penn), ` and '' stay,
/// since they are quotation marks of the Penn Treebank.
void normalize_punctuation(std::string& line, std::string_view language, bool penn = false);

/// Replaces full-width and CJK punctuation and digits by ASCII characters, as Moses' replace-unicode-punctuation.perl
/// does.
void replace_unicode_punctuation(std::string& line);

/// Replaces every character of Unicode's general category C (control characters, unassigned code points) by a space, as
/// Moses' remove-non-printing-char.perl does.
void remove_nonprinting(std::string& line);

}  // namespace heed
