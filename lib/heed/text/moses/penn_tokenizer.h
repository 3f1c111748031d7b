#pragma once

#include <string>
#include <string_view>

#include "heed/text/moses/nonbreaking_prefixes.h"

namespace heed {

/// Replaces `out` by the tokens of `line` in the style of the Penn Treebank, as tokenizer.perl -penn makes them, but
/// without writing entities. Quotation marks become `` and '', brackets get names (-LRB-), contractions become two
/// tokens (do n't, can not), and a slash between two words becomes a token (and @/@ or). A full stop becomes a token
/// only at the end of the line or behind a word that is not an abbreviation.
void tokenize_penn(std::string_view line, const NonbreakingPrefixes& prefixes, std::string& out);

/// Undoes the changes that tokenize_penn() makes to slashes, contractions and brackets (also within words), as
/// detokenizer.perl -penn does. Quotation marks stay as they are; the detokeniser changes them later. `tokens` is a
/// line of tokens without entities and with a space at both ends. As in detokenizer.perl, joining a contraction uses up
/// the space behind it, so that of "can not can not" only the first pair is joined.
void undo_penn(std::string& tokens);

}  // namespace heed
