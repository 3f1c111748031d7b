#include "heed/text/moses_tokenizer.h"

#include "heed/text/penn_tokenizer.h"
#include "heed/text/scan.h"
#include "heed/text/unicode.h"

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
  if (options_.penn)
    tokenize_penn(line, prefixes_, out);
  else
    tokenize_words(line, out);
  if (!options_.escape) return;
  thread_local std::string escaped;
  escape_special(out, escaped);
  out.swap(escaped);
}

void MosesTokenizer::tokenize_words(std::string_view line, std::string& out) const {
  // Two buffers take turns as the input and output of a rule; a rule runs only where its character occurs.
  thread_local std::string text, next;
  collapse_space(line, text);
  std::vector<std::string> matches;
  if (!protected_.empty()) {
    matches = protected_.find(text);
    hide_protected(matches, text);
  }
  squeeze_spaces(text);
  separate_symbols(text, options_.language, next);
  text.swap(next);
  if (options_.aggressive_hyphens && contains(text, '-')) {
    split_hyphens(text, next);
    text.swap(next);
  }
  if (has_multi_dots(text)) {
    hide_multi_dots(text, next);
    text.swap(next);
  }
  if (contains(text, ',')) {
    separate_commas(text, next);
    text.swap(next);
  }
  if (contains(text, '\'')) {
    separate_apostrophes(text, apostrophes_, next);
    text.swap(next);
  }
  separate_full_stops(text, prefixes_, out);
  restore_protected(matches, out);
  restore_multi_dots(out);
}

}  // namespace heed
