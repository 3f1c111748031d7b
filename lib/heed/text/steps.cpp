#include "heed/text/steps.h"

#include <algorithm>

#include "heed/base/error.h"
#include "heed/text/moses/moses_detokenizer.h"
#include "heed/text/moses/moses_rules.h"
#include "heed/text/moses/moses_tokenizer.h"
#include "heed/text/moses/punctuation.h"
#include "heed/text/scoring/mteval.h"
#include "heed/text/strings/unicode.h"
#include "heed/text/trees/linear_tree.h"

namespace heed {
namespace {

/// The character U+2581, which stands for a space in a label.
constexpr std::string_view kLabelSpace = "\xE2\x96\x81";

MosesTokenizer::Options moses_options(const TextSteps& steps) {
  return {.language = steps.language,
          .aggressive_hyphens = steps.aggressive_hyphens,
          .escape = steps.escape,
          .penn = steps.penn,
          .skip_xml = steps.skip_xml,
          .protect = steps.protect};
}

MtevalMode mteval_mode(TokenMode mode) {
  switch (mode) {
    case TokenMode::mteval_13a:
      return MtevalMode::v13a;
    case TokenMode::intl:
      return MtevalMode::intl;
    default:
      return MtevalMode::character;
  }
}

/// Cleans `line` as Moses' escape-special-chars.perl does before it writes entities: deletes the characters U+0000 to
/// U+001F, replaces each run of spaces by one space, and removes the spaces at both ends.
void clean_spaces(std::string& line) {
  std::erase_if(line, [](char c) { return c >= 0 && c < ' '; });
  squeeze_spaces(line);
}

/// Returns the text of a line of tokens that the mode `char` made. The mode `char` puts a space between all characters
/// of a line, spaces included, so that in each run of spaces every second space is a character of the text.
std::string join_characters(std::string_view tokens) {
  std::string out;
  for (std::size_t at = 0; at < tokens.size();) {
    const std::size_t spaces = std::min(tokens.find_first_not_of(' ', at), tokens.size());
    const std::size_t end = std::min(tokens.find(' ', spaces), tokens.size());
    out.append((spaces - at) / 2, ' ').append(tokens.substr(spaces, end - spaces));
    at = end;
  }
  return out;
}

}  // namespace

struct TextPipeline::Parts {
  explicit Parts(const TextSteps& chosen)
      : steps(chosen),
        tokenizer(moses_options(chosen)),
        detokenizer(chosen.language, chosen.mode == TokenMode::moses || chosen.escape, chosen.penn) {}

  /// Applies the steps that come before tokenisation to `line`: Unicode normalisation, plain punctuation, removal of
  /// control characters, lower case.
  void prepare(std::string& line) const {
    if (steps.normalize == NormalForm::nfc) line = to_nfc(line);
    if (steps.normalize == NormalForm::nfkc) line = to_nfkc(line);
    if (steps.replace_unicode_punctuation) heed::replace_unicode_punctuation(line);
    if (steps.normalize_punctuation) heed::normalize_punctuation(line, steps.language, steps.penn);
    if (steps.remove_nonprinting) heed::remove_nonprinting(line);
    if (steps.lowercase && steps.mode != TokenMode::moses) line = to_lower(line);
  }

  /// Replaces `out` by the tokens of `line` and applies the steps that come after tokenisation: entities and
  /// truecasing.
  void split(std::string_view line, std::string& out) const {
    switch (steps.mode) {
      case TokenMode::moses:
        tokenizer.tokenize(line, out);
        // In the mode `moses`, the line is lower-cased after the tokeniser has run: the tokeniser's list of
        // abbreviations, and its test whether the next word starts with a lower-case letter, need the original case.
        if (steps.lowercase) out = to_lower_perl(out);
        break;
      case TokenMode::mteval_13a:
      case TokenMode::intl:
        // sacreBLEU removes the white space at the end of a line before it tokenises the line. In the mode `intl` this
        // matters: a full stop behind a number is a token of its own only if a character follows.
        out = MtevalTokenizer(mteval_mode(steps.mode)).line(strip_trailing_space(line));
        break;
      case TokenMode::character:
        out = MtevalTokenizer(mteval_mode(steps.mode)).line(line);
        break;
      case TokenMode::words:
        join_words(line, out);
        break;
      case TokenMode::ascii_words:
        out.clear();
        for (const std::string_view word : words_of_line(line)) {
          if (!out.empty()) out += ' ';
          out += word_in_tree(word);
        }
        break;
      case TokenMode::none:
        out.assign(line);
        if (steps.escape) clean_spaces(out);
        break;
      case TokenMode::trees:
        linearize_tree(line, steps.function_tags, out);
        break;
      case TokenMode::leaves:
        tree_leaves(line, out);
        break;
      case TokenMode::labels:
        out = label_token(line);
        break;
      case TokenMode::images:
        out.assign(line);
        break;
    }
    thread_local std::string next;
    if (steps.escape && steps.mode != TokenMode::moses) {
      escape_special(out, next);
      out.swap(next);
    }
    if (!steps.truecaser.empty()) {
      steps.truecaser.apply(out, steps.asr, next);
      out.swap(next);
    }
  }

  /// Returns the raw text of a line of tokens. The words keep their case, except that the first letter becomes a
  /// capital if `uppercase_first` is true: join() does not undo truecasing.
  std::string join(std::string_view tokens, bool uppercase_first) const {
    std::string plain;
    switch (steps.mode) {
      case TokenMode::moses:
      case TokenMode::mteval_13a:
      case TokenMode::intl:
        return detokenizer.detokenize(tokens, uppercase_first);
      case TokenMode::character:
        plain = join_characters(tokens);
        break;
      case TokenMode::words:
      case TokenMode::ascii_words:
      case TokenMode::none:
      case TokenMode::trees:
      case TokenMode::leaves:
      case TokenMode::images:
        plain = tokens;
        break;
      case TokenMode::labels:
        plain = tokens;
        for (std::size_t at = 0; (at = plain.find(kLabelSpace, at)) != std::string::npos; ++at)
          plain.replace(at, kLabelSpace.size(), " ");
        break;
    }
    if (steps.escape) {
      std::string unescaped;
      unescape_special(plain, unescaped);
      plain = std::move(unescaped);
    }
    if (uppercase_first) uppercase_first_letter(plain);
    return plain;
  }

  /// Returns whether prepare() can change a line; if not, tokenize() need not copy the line.
  bool changes_line() const {
    return steps.normalize != NormalForm::none || steps.replace_unicode_punctuation || steps.normalize_punctuation ||
           steps.remove_nonprinting || steps.lowercase;
  }

  TextSteps steps;
  MosesTokenizer tokenizer;
  MosesDetokenizer detokenizer;
};

std::string label_token(std::string_view line) {
  std::string out;
  for (const char c : line) {
    if (c == ' ')
      out += kLabelSpace;
    else
      out += c;
  }
  return out;
}

std::vector<ByteSpan> places_in_tree(const TextSteps& steps, std::string_view line) {
  std::vector<ByteSpan> places;
  std::string tokens;
  try {
    if (steps.mode == TokenMode::trees) linearize_tree(line, steps.function_tags, tokens, &places);
    if (steps.mode == TokenMode::leaves) tree_leaves(line, tokens, &places);
  } catch (const LineError&) {
    places.clear();
  }
  return places;
}

TextPipeline::TextPipeline(const TextSteps& steps) : parts_(std::make_shared<const Parts>(steps)) {}

const TextSteps& TextPipeline::steps() const {
  return parts_->steps;
}

void TextPipeline::tokenize(std::string_view line, std::string& out) const {
  if (!parts_->changes_line()) return parts_->split(line, out);
  std::string prepared(line);
  parts_->prepare(prepared);
  parts_->split(prepared, out);
}

std::string TextPipeline::tokenize(std::string_view line) const {
  std::string out;
  tokenize(line, out);
  return out;
}

std::string TextPipeline::detokenize(std::string_view tokens, const DetokenizeOptions& options) const {
  if (!options.detruecase && parts_->steps.truecaser.empty()) return parts_->join(tokens, options.uppercase_first);
  std::string upper;
  detruecase(tokens, upper);
  return parts_->join(upper, options.uppercase_first);
}

}  // namespace heed
