#pragma once

#include <string>
#include <string_view>

#include "heed/text/moses/nonbreaking_prefixes.h"

namespace heed {

/// How tokenizer.perl splits a word at an apostrophe. The language of the text decides.
enum class Apostrophes {
  right,     ///< the apostrophe starts the second token: I 'm, the 1990 's (for the language en)
  left,      ///< the apostrophe ends the first token: l' homme (for the languages fr, it, ga, ca)
  inside,    ///< a word is not split at an apostrophe within it (for the languages so, tdt)
  separate,  ///< every apostrophe becomes a token of its own (for all other languages)
};

/// Returns how tokenizer.perl splits words at apostrophes in `language` (a language code).
Apostrophes apostrophes_of(std::string_view language);

// Each function below is one rule of Moses' tokenizer.perl 1.1, in the order in which the tokeniser applies the rules.
// A rule reads UTF-8 text and replaces `out`. In tokenizer.perl, a rule is a regular expression with a substitution. A
// match of such an expression includes the characters before and after the text that changes, and the next match cannot
// use these characters again: "a match consumes its neighbours". The functions below therefore leave text unchanged
// wherever tokenizer.perl does for this reason.

/// Returns whether `line` is a single tag, <...>. tokenizer.perl copies such a line unchanged if its option -x is
/// given; detokenizer.perl always does.
bool is_tag(std::string_view line);

/// Replaces each run of white space in `line` by a single space, removes white space at both ends, and deletes the
/// characters U+0000 to U+001F. Returns whether a character was deleted; only then can `out` have spaces at its ends,
/// or several spaces in a row where a deleted character stood between them.
bool collapse_space(std::string_view line, std::string& out);

/// Replaces each run of spaces in `text` by a single space, and removes the spaces at both ends.
void squeeze_spaces(std::string& text);

/// Says which characters occur in a text, so that the tokeniser can skip the rules that have nothing to change.
struct FoundCharacters {
  bool hyphen = false, comma = false, apostrophe = false, full_stop = false;
  bool escaped = false;  ///< a character that escape_special() replaces by an entity
  bool mark = false;     ///< the letter U, without which a text has no DOTMULTI (the placeholder of hide_multi_dots())
};

/// Puts a space on both sides of every character of `text` except letters, digits, white space and the marks . ' ` , -
/// (some languages have more exceptions). Returns which characters the text has, so that later rules can be skipped.
FoundCharacters separate_symbols(std::string_view text, std::string_view language, std::string& out);

/// Replaces each hyphen between two letters or digits by " @-@ ": "a-b" becomes "a @-@ b".
void split_hyphens(std::string_view text, std::string& out);

/// Replaces each run of two or more full stops by a placeholder, a word of letters (DOTDOTMULTI for two,
/// DOTDOTDOTMULTI for three), so that no later rule splits the run.
void hide_multi_dots(std::string_view text, std::string& out);
/// Replaces each placeholder that hide_multi_dots() has written (such as DOTDOTMULTI) by the run of full stops for
/// which it stands.
void restore_multi_dots(std::string& text);
/// Returns whether `text` has a run of two or more full stops, or the word DOTMULTI, which restore_multi_dots() would
/// replace by full stops.
bool has_multi_dots(std::string_view text, const FoundCharacters& found);

/// Puts a space on both sides of each comma, except a comma within a number (5,300).
void separate_commas(std::string_view text, std::string& out);

/// Puts a space before each apostrophe, behind it, or on both sides, as `style` (which depends on the language) says.
void separate_apostrophes(std::string_view text, Apostrophes style, std::string& out);

/// Returns whether the full stop behind `word` belongs to the word, as in an abbreviation. `word` comes without its
/// full stop; `next` is the rest of the line, from the next word on.
bool keeps_full_stop(std::string_view word, std::string_view next, const NonbreakingPrefixes& prefixes);

/// Puts a space before each full stop that does not belong to its word (see keeps_full_stop()), and replaces each run
/// of spaces by one space. As in tokenizer.perl, a full stop and an apostrophe at the end of the line become " . ' ",
/// with a space at the end.
void separate_full_stops(std::string_view text, const NonbreakingPrefixes& prefixes, std::string& out);

/// Replaces the characters & | < > ' " [ ] by Moses' entities, such as &quot;.
void escape_special(std::string_view text, std::string& out);

/// Replaces Moses' entities, such as &quot;, by their characters. The older entities &bar; &bra; &ket; are also
/// replaced. The result is not searched again: &amp;lt; becomes &lt;.
void unescape_special(std::string_view text, std::string& out);

/// Returns the character of the entity of Moses (such as &quot;) that starts at the offset `at`, and moves `at` behind
/// the entity. If no entity starts at `at`, returns NUL and leaves `at` as it is.
char entity_at(std::string_view text, std::size_t& at);

}  // namespace heed
