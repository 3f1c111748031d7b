#pragma once

#include <string>
#include <string_view>

#include "heed/text/moses/nonbreaking_prefixes.h"

namespace heed {

/// The Penn Treebank's tokens as tokenizer.perl -penn makes them of a line, without its entities: directed quotes
/// (`` and ''), brackets by name (-LRB-), contractions in two (do n't, can not), slashes apart (and @/@ or), a full
/// stop split only where the line or an unknown abbreviation ends. Replaces `out`.
void tokenize_penn(std::string_view line, const NonbreakingPrefixes& prefixes, std::string& out);

/// Undoes what tokenize_penn does to words, in a line of tokens without entities and with spaces around it, as
/// detokenizer.perl -penn: slashes, contractions and brackets (also within words) come back. A substitution consumes
/// the space behind it, so that of "can not can not" only the first is joined. Quotes stay for the detokenizer.
void undo_penn(std::string& tokens);

}  // namespace heed
