#include "heed/text/moses/moses_tokenizer.h"

#include "heed/text/moses/penn_tokenizer.h"
#include "heed/text/strings/scan.h"
#include "heed/text/strings/unicode.h"

namespace heed {

MosesTokenizer::MosesTokenizer(const Options& options)
    : options_(options),
      apostrophes_(apostrophes_of(options.language)),
      prefixes_(options.language),
      protected_(options.protect) {}

void MosesTokenizer::tokenize(std::string_view line, std::string& out) const {
  if (is_blank(line) || (options_.skip_xml && is_tag(line))) {
    out.assign(line);
    return;
  }
  bool may_escape = true;
  if (options_.penn)
    tokenize_penn(line, prefixes_, out);
  else
    may_escape = tokenize_words(line, out);
  if (!options_.escape || !may_escape) return;
  thread_local std::string escaped;
  escape_special(out, escaped);
  out.swap(escaped);
}

bool MosesTokenizer::tokenize_words(std::string_view line, std::string& out) const {
  // Each rule of the tokeniser reads one of these two buffers and writes the other; then the buffers are swapped. A
  // rule runs only if the character that it changes occurs in the line.
  thread_local std::string text, next;
  const bool deleted = collapse_space(line, text);
  std::vector<std::string> matches;
  if (!protected_.empty()) {
    text.insert(0, 1, ' ').push_back(' ');  // tokenizer.perl adds these spaces, which a pattern may match
    matches = protected_.find(text);
    hide_protected(matches, text);
  }
  if (deleted || !protected_.empty()) squeeze_spaces(text);
  const FoundCharacters found = separate_symbols(text, options_.language, next);
  text.swap(next);
  if (options_.aggressive_hyphens && found.hyphen) {
    split_hyphens(text, next);
    text.swap(next);
  }
  const bool multi_dots = has_multi_dots(text, found);
  if (multi_dots) {
    hide_multi_dots(text, next);
    text.swap(next);
  }
  if (found.comma) {
    separate_commas(text, next);
    text.swap(next);
  }
  if (found.apostrophe) {
    separate_apostrophes(text, apostrophes_, next);
    text.swap(next);
  }
  separate_full_stops(text, prefixes_, out);
  if (!matches.empty()) restore_protected(matches, out);
  if (multi_dots || !matches.empty()) restore_multi_dots(out);
  return found.escaped || !matches.empty();
}

}  // namespace heed
