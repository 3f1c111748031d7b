#pragma once

#include <string>
#include <string_view>

#include "heed/text/moses/nonbreaking_prefixes.h"

namespace heed {

/// How tokenizer.perl splits a word at an apostrophe; the language decides.
enum class Apostrophes {
  right,     ///< the apostrophe starts the second token: I 'm, the 1990 's (en)
  left,      ///< the apostrophe ends the first token: l' homme (fr, it, ga, ca)
  inside,    ///< no split within a word (so, tdt)
  separate,  ///< every apostrophe is a token (all other languages)
};

/// Returns how tokenizer.perl treats apostrophes in `language` (a language code).
Apostrophes apostrophes_of(std::string_view language);

// Each function below is one rule of Moses' tokenizer.perl 1.1, in the order in which the tokeniser applies the rules.
// A rule reads UTF-8 text and replaces `out`. In the script a rule is a regular expression with a substitution. A match
// of such an expression includes the characters before and after the text that changes, and the next match cannot use
// these characters again ("a match consumes its neighbours"). The functions leave out the same matches.

/// Returns whether a line is a single tag, <...>. tokenizer.perl copies such lines with -x, detokenizer.perl always.
bool is_tag(std::string_view line);

/// Replaces each run of white space by a single space, removes white space at both ends, and deletes the characters
/// U+0000 to U+001F (the characters before and after them become neighbours). Returns whether a character was deleted;
/// only then can `out` have spaces at its ends or several spaces in a row.
bool collapse_space(std::string_view line, std::string& out);

/// Replaces each run of spaces in `text` by a single space, and removes the spaces at both ends.
void squeeze_spaces(std::string& text);

/// Says which characters occur in a text, so that the tokeniser can skip the rules that have nothing to change.
struct FoundCharacters {
  bool hyphen = false, comma = false, apostrophe = false, full_stop = false;
  bool escaped = false;  ///< a character that escape_special() replaces
  bool mark = false;     ///< the letter U, which the placeholder of hide_multi_dots() contains
};

/// Puts a space on both sides of every character except letters, digits, white space and . ' ` , - (some languages have
/// more exceptions). Returns which characters the text has.
FoundCharacters separate_symbols(std::string_view text, std::string_view language, std::string& out);

/// Replaces each hyphen between two letters or digits by " @-@ ": "a-b" becomes "a @-@ b".
void split_hyphens(std::string_view text, std::string& out);

/// Replaces each run of two or more full stops by a placeholder, a word of letters (DOTDOTMULTI for two,
/// DOTDOTDOTMULTI for three), so that no later rule splits the run.
void hide_multi_dots(std::string_view text, std::string& out);
/// Replaces the placeholders of hide_multi_dots() by full stops again.
void restore_multi_dots(std::string& text);
/// Returns whether `text` has a run of full stops, or a placeholder that restore_multi_dots() would replace.
bool has_multi_dots(std::string_view text, const FoundCharacters& found);

/// Puts a space on both sides of each comma, except a comma within a number (5,300).
void separate_commas(std::string_view text, std::string& out);

/// Puts spaces around apostrophes as `style` says.
void separate_apostrophes(std::string_view text, Apostrophes style, std::string& out);

/// Returns whether the full stop behind `word` belongs to the word, as in an abbreviation. `word` comes without its
/// full stop; `next` is the rest of the line behind the space that follows the full stop.
bool keeps_full_stop(std::string_view word, std::string_view next, const NonbreakingPrefixes& prefixes);

/// Puts a space before each full stop that does not belong to its word (see keeps_full_stop), and leaves single spaces.
/// A line that ends in .' gets the script's special treatment: the end becomes " . ' ", with the space at the end.
void separate_full_stops(std::string_view text, const NonbreakingPrefixes& prefixes, std::string& out);

/// Replaces the characters & | < > ' " [ ] by Moses' entities, such as &quot;.
void escape_special(std::string_view text, std::string& out);

/// Replaces Moses' entities by their characters, the older names &bar; &bra; &ket; included. Each entity is replaced
/// once: &amp;lt; becomes &lt;.
void unescape_special(std::string_view text, std::string& out);

/// Returns the character of the entity at `at`, and moves `at` behind the entity. Returns NUL, without moving `at`, if
/// no entity is at `at`.
char entity_at(std::string_view text, std::size_t& at);

}  // namespace heed
