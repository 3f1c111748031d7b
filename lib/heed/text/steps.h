#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/config/fields.h"
#include "heed/text/moses/truecaser.h"
#include "heed/text/strings/scan.h"

namespace heed {

/// The tokeniser that splits a raw line into tokens: Moses' tokenizer.perl (moses), the tokeniser of the NIST script
/// mteval-v13a (mteval_13a), the international tokeniser of mteval-v14 (intl), one token for each character
/// (character), the words between white space (words) or between white space of ASCII (ascii_words), or no tokeniser
/// (none). Two modes read constituency trees in brackets: `trees` makes linear trees of them, and `leaves` takes their
/// words (see text/trees/linear_tree.h); `ascii_words` finds the same words in a sentence. Two modes are for models
/// that read images: in `labels` a whole line is one token, in which U+2581 stands for each space, and in `images` the
/// line is the path of an image, whose pieces are bytes (TextModel::of_images()).
enum class TokenMode { moses, mteval_13a, intl, character, words, ascii_words, none, trees, leaves, labels, images };

template <>
struct EnumNames<TokenMode> {
  static constexpr std::pair<TokenMode, std::string_view> values[] = {
      {TokenMode::moses, "moses"},    {TokenMode::mteval_13a, "13a"}, {TokenMode::intl, "intl"},
      {TokenMode::character, "char"}, {TokenMode::words, "words"},    {TokenMode::ascii_words, "ascii-words"},
      {TokenMode::none, "none"},      {TokenMode::trees, "trees"},    {TokenMode::leaves, "leaves"},
      {TokenMode::labels, "labels"},  {TokenMode::images, "images"}};
};

/// The Unicode normalisation form of a raw line; `none` leaves the characters as they are.
enum class NormalForm { none, nfc, nfkc };

template <>
struct EnumNames<NormalForm> {
  static constexpr std::pair<NormalForm, std::string_view> values[] = {
      {NormalForm::none, "none"}, {NormalForm::nfc, "nfc"}, {NormalForm::nfkc, "nfkc"}};
};

/// Returns the token of a label in TokenMode::labels: the line with U+2581 for each space.
std::string label_token(std::string_view line);

/// The text steps: what TextPipeline does to a raw line before the line is cut into subwords (tokenising, truecasing
/// and so on), and undoes after translation. Every vocabulary file and every checkpoint stores its text steps.
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
  bool function_tags = false;
  /// The truecase model (the usual spelling of each word), read from the file that --truecase names. Vocabulary files
  /// and checkpoints store the whole model.
  Truecaser truecaser = {};

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Text");
    visit(mode, {.name = "mode", .help = "how a line is split into tokens"});
    visit(language, {.name = "language",
                     .help = "language code, for the rules and abbreviations of moses and --normalize-punctuation",
                     .value = "CODE",
                     .letter = 'l'});
    visit(aggressive_hyphens,
          {.name = "aggressive-hyphens", .help = "split a-b into a @-@ b (mode moses)", .letter = 'a'});
    visit(penn, {.name = "penn", .help = "the Penn Treebank's tokens: do n't, ``quotes'', -LRB- (mode moses)"});
    visit(skip_xml, {.name = "skip-xml", .help = "leave a line that is a single tag <...> unchanged (mode moses)"});
    visit(escape, {.name = "escape", .help = "write & | < > ' \" [ ] as Moses' entities"});
    visit(protect, {.name = "protect",
                    .help = "regular expression whose matches stay whole (mode moses; may be repeated)",
                    .value = "REGEX",
                    .repeated = true});
    visit(normalize, {.name = "normalize", .help = "Unicode normalisation, before all other steps"});
    visit(normalize_punctuation, {.name = "normalize-punctuation",
                                  .help = "make quotes, dashes and spaces plain, as normalize-punctuation.perl does"});
    visit(replace_unicode_punctuation,
          {.name = "replace-unicode-punctuation",
           .help = "replace full-width punctuation by ASCII, before --normalize-punctuation"});
    visit(remove_nonprinting,
          {.name = "remove-nonprinting", .help = "replace control and unassigned characters by spaces"});
    visit(lowercase, {.name = "lowercase", .help = "lower-case the tokens"});
    visit(function_tags, {.name = "function-tags", .help = "keep the function tags of phrases: NP-SBJ (mode trees)"});
    visit(asr, {.name = "asr", .help = "with --truecase: lower-case first, as for recognised speech"});
  }

  bool operator==(const TextSteps&) const = default;
};

/// Returns, for the modes `trees` and `leaves`, the bytes of the tree `line` from which each token comes. Returns
/// nothing in other modes, and for a line that is a tree only after the steps before tokenisation.
std::vector<ByteSpan> places_in_tree(const TextSteps& steps, std::string_view line);

/// Options of TextPipeline::detokenize() that the caller chooses for each call, and that no vocabulary file stores.
struct DetokenizeOptions {
  /// Whether the first letter of the line becomes a capital (the option -u of Moses' detokenizer.perl).
  bool uppercase_first = false;
  /// Whether the first word of each sentence gets a capital, even if the text steps contain no truecase model.
  bool detruecase = false;
};

/// Turns raw lines into tokens and tokens into raw lines, as TextSteps say. Immutable after construction: any number of
/// threads may use one pipeline.
class TextPipeline {
 public:
  /// Prepares the pipeline for the text steps `steps`. Throws UsageError with the pattern if one of the protected
  /// patterns in `steps.protect` is not a regular expression.
  explicit TextPipeline(const TextSteps& steps);

  const TextSteps& steps() const;

  /// Replaces `out` by the tokens of `line` (raw text, valid UTF-8, without its line end). Single spaces separate the
  /// tokens, with three exceptions: the mode `none` keeps the spaces of the line, a line of white space only is copied,
  /// and the mode `moses` writes a space after the last token of a line that ends with a full stop and an apostrophe
  /// (as tokenizer.perl does). A caller should therefore split `out` at runs of spaces. The modes `trees` and `leaves`
  /// throw LineError for a line that is no tree.
  void tokenize(std::string_view line, std::string& out) const;
  std::string tokenize(std::string_view line) const;

  /// Returns raw text for a line of tokens: undoes truecasing and tokenisation (but not Unicode normalisation, which
  /// cannot be undone). A linear tree stays as it is, because its words are those of another line (tree_of_linear()).
  std::string detokenize(std::string_view tokens, const DetokenizeOptions& options = {}) const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace heed
