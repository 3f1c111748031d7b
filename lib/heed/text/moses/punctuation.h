#pragma once

#include <string>
#include <string_view>

namespace heed {

// Moses' filters for raw text, byte for byte. They change the line in place.

/// normalize-punctuation.perl: plain quotes, dashes and spaces. As the script, it works on bytes and takes the line's
/// end for white space; of languages it knows en, cs (cz), and de, es, fr for numbers. `penn` is its -penn: ` and ''
/// stay quotes of the Penn Treebank.
void normalize_punctuation(std::string& line, std::string_view language, bool penn = false);

/// replace-unicode-punctuation.perl: full-width and CJK punctuation and digits to ASCII.
void replace_unicode_punctuation(std::string& line);

/// remove-non-printing-char.perl: every character of general category C becomes a space.
void remove_nonprinting(std::string& line);

}  // namespace heed
