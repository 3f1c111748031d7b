#pragma once

#include <string>
#include <string_view>

#include "heed/text/moses/nonbreaking_prefixes.h"

namespace heed {

/// Replaces `out` by the tokens of `line` in the style of the Penn Treebank, as tokenizer.perl -penn makes them, but
/// without entities: directed quotes (`` and ''), names for brackets (-LRB-), contractions as two tokens (do n't, can
/// not), and slashes as tokens (and @/@ or). A full stop is split off only at the end of the line or behind a word that
/// is not an abbreviation.
void tokenize_penn(std::string_view line, const NonbreakingPrefixes& prefixes, std::string& out);

/// Undoes what tokenize_penn() does to words, as detokenizer.perl -penn does: slashes, contractions and brackets (also
/// within words) come back, while quotes stay for the detokeniser. `tokens` is a line of tokens without entities and
/// with a space at both ends. A match consumes the space behind it, so that of "can not can not" only the first pair is
/// joined.
void undo_penn(std::string& tokens);

}  // namespace heed
