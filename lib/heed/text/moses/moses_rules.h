#pragma once

#include <string>
#include <string_view>

#include "heed/text/moses/nonbreaking_prefixes.h"

namespace heed {

/// What tokenizer.perl does with an apostrophe.
enum class Apostrophes {
  right,     ///< I 'm, the 1990 's (en)
  left,      ///< l' homme (fr, it, ga, ca)
  inside,    ///< stays within words (so, tdt)
  separate,  ///< always a token of its own (every other language)
};

Apostrophes apostrophes_of(std::string_view language);

// The rules of tokenizer.perl 1.1, one function a rule, in the order in which they apply. Each reads UTF-8 text and
// replaces `out`. Where the script's substitutions consume the characters around a match, so that the next match
// cannot see them, these functions do the same.

/// Whether a line is one tag, <...>: the scripts leave such lines alone.
bool is_tag(std::string_view line);

/// White space collapsed to single spaces, none at the ends, then U+0000-U+001F deleted (which joins their neighbours).
/// Returns whether a character was deleted: spaces may then be at the ends, or side by side.
bool collapse_space(std::string_view line, std::string& out);

/// Runs of spaces become one, and none stays at either end.
void squeeze_spaces(std::string& text);

/// ASCII characters that later rules look for.
struct FoundCharacters {
  bool hyphen = false, comma = false, apostrophe = false, full_stop = false;
  bool escaped = false;  ///< one that escape_special() replaces
  bool mark = false;     ///< a letter of the word that hide_multi_dots() puts in
};

/// Spaces around every character that is no letter, digit, space or one of . ' ` , - (and a few per language). Returns
/// what is in the text.
FoundCharacters separate_symbols(std::string_view text, std::string_view language, std::string& out);

/// a-b becomes a @-@ b between letters and digits.
void split_hyphens(std::string_view text, std::string& out);

/// Two full stops or more become one word of letters, so that no later rule takes them apart...
void hide_multi_dots(std::string_view text, std::string& out);
/// ... and come back.
void restore_multi_dots(std::string& text);
/// Whether either has something to do.
bool has_multi_dots(std::string_view text, const FoundCharacters& found);

/// Commas apart, except within numbers (5,300).
void separate_commas(std::string_view text, std::string& out);

void separate_apostrophes(std::string_view text, Apostrophes style, std::string& out);

/// Whether a word's full stop stays: `word` without it, `next` the rest of the line behind the one space after it.
bool keeps_full_stop(std::string_view word, std::string_view next, const NonbreakingPrefixes& prefixes);

/// Splits the full stop from each word it does not belong to, and leaves single spaces; with the script's special case
/// for a line's end: .' becomes " . ' ", the last space included.
void separate_full_stops(std::string_view text, const NonbreakingPrefixes& prefixes, std::string& out);

/// Moses' entities for & | < > ' " [ ].
void escape_special(std::string_view text, std::string& out);

/// The reverse, with the legacy &bar; &bra; &ket; too; what &amp; gives is not read again.
void unescape_special(std::string_view text, std::string& out);

/// The character of the entity at `at`, which moves behind it; NUL where there is none.
char entity_at(std::string_view text, std::size_t& at);

}  // namespace heed
