#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/config/fields.h"
#include "heed/text/moses/truecaser.h"

namespace heed {

/// How a raw line becomes tokens.
enum class TokenMode { moses, mteval_13a, intl, character, words, none };

template <>
struct EnumNames<TokenMode> {
  static constexpr std::pair<TokenMode, std::string_view> values[] = {
      {TokenMode::moses, "moses"},    {TokenMode::mteval_13a, "13a"}, {TokenMode::intl, "intl"},
      {TokenMode::character, "char"}, {TokenMode::words, "words"},    {TokenMode::none, "none"}};
};

/// Unicode normalisation form.
enum class NormalForm { none, nfc, nfkc };

template <>
struct EnumNames<NormalForm> {
  static constexpr std::pair<NormalForm, std::string_view> values[] = {
      {NormalForm::none, "none"}, {NormalForm::nfc, "nfc"}, {NormalForm::nfkc, "nfkc"}};
};

/// The first-stage text steps: what is done to a raw line before subwords, and undone after them. Stored with every
/// vocabulary and checkpoint.
struct TextSteps {
  TokenMode mode = TokenMode::moses;
  std::string language = "en";
  bool aggressive_hyphens = false;
  bool penn = false;
  bool skip_xml = false;
  bool escape = false;
  std::vector<std::string> protect = {};
  NormalForm normalize = NormalForm::none;
  bool normalize_punctuation = false;
  bool replace_unicode_punctuation = false;
  bool remove_nonprinting = false;
  bool lowercase = false;
  bool asr = false;
  Truecaser truecaser = {};  ///< read from the file that --truecase names; stored whole

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Text");
    visit(mode, {.name = "mode", .help = "how a line is split into tokens"});
    visit(language, {.name = "language",
                     .help = "language code: rules and abbreviations of the mode moses and of --normalize-punctuation",
                     .value = "CODE",
                     .letter = 'l'});
    visit(aggressive_hyphens,
          {.name = "aggressive-hyphens", .help = "split a-b into a @-@ b (mode moses)", .letter = 'a'});
    visit(penn, {.name = "penn", .help = "the Penn Treebank's tokens: do n't, ``quotes'', -LRB- (mode moses)"});
    visit(skip_xml, {.name = "skip-xml", .help = "leave lines that are one tag <...> as they are (mode moses)"});
    visit(escape, {.name = "escape", .help = "write & | < > ' \" [ ] as Moses' entities"});
    visit(protect, {.name = "protect",
                    .help = "regular expression whose matches stay whole (mode moses; may be repeated)",
                    .value = "REGEX",
                    .repeated = true});
    visit(normalize, {.name = "normalize", .help = "Unicode normalisation before everything else"});
    visit(normalize_punctuation,
          {.name = "normalize-punctuation", .help = "plain quotes, dashes and spaces, as normalize-punctuation.perl"});
    visit(replace_unicode_punctuation,
          {.name = "replace-unicode-punctuation", .help = "full-width punctuation to ASCII, before the step above"});
    visit(remove_nonprinting,
          {.name = "remove-nonprinting", .help = "control and unassigned characters become spaces"});
    visit(lowercase, {.name = "lowercase", .help = "lower-case the tokens"});
    visit(asr, {.name = "asr", .help = "with --truecase: lower-case first, as for recognised speech"});
  }

  bool operator==(const TextSteps&) const = default;
};

struct DetokenizeOptions {
  bool uppercase_first = false;  ///< detokenizer.perl's -u: a capital at the start of the line
  bool detruecase = false;       ///< a capital at the start of each sentence, also where the steps hold no truecaser
};

/// The text steps ready for use. Immutable after construction: one pipeline may serve any number of threads.
class TextPipeline {
 public:
  /// Throws UsageError that names the pattern when one of `steps.protect` is not a regular expression.
  explicit TextPipeline(const TextSteps& steps);

  const TextSteps& steps() const;

  /// Replaces `out` by the tokens of a raw line (valid UTF-8, no line end). Tokens are separated by single spaces; the
  /// mode `none` leaves the line's own spaces, and what the reference scripts leave stays as they leave it (a line of
  /// white space only comes out as it is; tokenizer.perl ends `.'` lines with a space), so split on runs of spaces.
  void tokenize(std::string_view line, std::string& out) const;
  std::string tokenize(std::string_view line) const;

  /// Raw text again: undoes truecasing and the mode (not the normalisation).
  std::string detokenize(std::string_view tokens, const DetokenizeOptions& options = {}) const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace heed
