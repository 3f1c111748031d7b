#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/config/fields.h"
#include "heed/text/steps.h"
#include "heed/text/strings/piece_set.h"
#include "heed/text/strings/vocabulary.h"
#include "heed/text/subwords.h"

namespace heed {

/// The contents of a TextModel as strings and lists, in the form in which a checkpoint stores the model.
/// TextModel::parts() returns the parts of a model, and TextModel::from_parts() makes an equal model from the parts.
struct TextModelParts {
  std::vector<std::string>
      pieces;  ///< all pieces of the vocabulary, the reserved ones included, in the order of their ids
  /// The data of the subword model. Type bpe: the text of a codes file; type unigram: one line for each piece that is
  /// not reserved, with the piece's score; type sentencepiece: the bytes of the `.model` file; other types: empty.
  std::string subword_model;
  /// The truecase model in the format of its file (one line for each word); empty if the text model does not truecase.
  std::string truecase_model;
  /// The names and values of the other options of the model: `type`, `separator`, `byte-fallback`, `user-symbols` and
  /// all fields of TextSteps. The names are the names of build-vocab's options.
  std::vector<std::pair<std::string, FieldValue>> attributes;
};

/// Splits a list of language codes such as "en,de" at its commas. Throws UsageError if a code is empty, or holds white
/// space or a colon.
std::vector<std::string> split_languages(const std::string& languages);

/// Turns raw lines into vocabulary ids and ids into raw lines. A raw line passes through the text steps (tokenising and
/// so on), which make tokens; the subword model, which cuts tokens into pieces; and the vocabulary, which gives each
/// piece an id. Immutable and cheap to copy; any number of threads may use one model.
///
/// One vocabulary may serve two languages (`build-vocab --language en,de`). source() returns the model with the text
/// steps of the first language, target() the model with the text steps of the last language. With a single language,
/// source() and target() return the same model; callers can therefore always ask for source() of the source vocabulary
/// and target() of the target vocabulary.
class TextModel {
 public:
  /// Reads a vocabulary file that build-vocab wrote, or a `.model` file of SentencePiece. If the file is malformed,
  /// throws Error with the file, the line and the reason.
  static TextModel read(const std::string& path);
  /// Makes a text model of `parts`. In error messages, `where` names the checkpoint and the group of the checkpoint
  /// that holds the parts. If `other` is given, the new model shares the vocabulary and the subword model of `other`
  /// instead of making its own; the caller guarantees that they equal those in `parts`.
  static TextModel from_parts(const TextModelParts& parts, const std::string& where, const TextModel* other = nullptr);
  TextModel(const TextSteps& steps, Subwords subwords, std::shared_ptr<const Vocabulary> vocabulary);

  /// Makes the source model of models that read images (TokenMode::images): a piece for each byte. The pieces of a path
  /// are its bytes, and the pieces of an image are its samples.
  static TextModel of_images();
  /// Makes a text model of labels (TokenMode::labels), each a line of any text without line ends. Throws Error if a
  /// label cannot be a piece, or occurs twice.
  static TextModel of_labels(const std::vector<std::string>& labels);
  /// Returns whether a line can be a label: it is valid UTF-8, not empty, and none of the reserved pieces.
  static bool can_be_label(std::string_view line);

  /// Returns the contents of the text model, for a checkpoint. The text steps in the result have only one language: the
  /// language that this model uses.
  TextModelParts parts() const;
  /// Writes the vocabulary file; equal models give equal bytes. The file lists all languages of the vocabulary, not
  /// only the language that this model uses.
  void write(std::ostream& out) const;

  const Vocabulary& vocabulary() const;
  const Subwords& subwords() const;
  /// Returns the text steps that this model applies to raw lines; their `language` is one code, not a list of codes.
  const TextSteps& steps() const;
  std::int32_t size() const { return vocabulary().size(); }

  /// Returns the codes of all languages that the vocabulary serves.
  std::vector<std::string> languages() const;
  TextModel source() const { return with_language(languages().front()); }
  TextModel target() const { return with_language(languages().back()); }
  /// Returns the same model with the text steps (normalising, tokenising and so on; see steps.h) of the language
  /// `code`. Throws Error that lists the vocabulary's languages if `code` is not among them.
  TextModel with_language(const std::string& code) const;

  /// Returns the ids of the pieces of `raw` (a raw line of valid UTF-8), without an id for `</s>` at the end. A piece
  /// that the vocabulary lacks gets kUnknownId.
  std::vector<std::int32_t> encode(std::string_view raw) const { return encode_tokens(tokens_of(raw)); }
  /// Returns the ids of the pieces of `tokens`, a line that the text steps have already split into tokens, with spaces
  /// between the tokens. With a `sampler`, the segmentation into pieces is drawn at random.
  std::vector<std::int32_t> encode_tokens(std::string_view tokens, SubwordSampler* sampler = nullptr) const;
  /// Applies the text steps to the raw line `raw` and returns the pieces of the line. A piece that the vocabulary lacks
  /// is returned with its own text, not as `<unk>`.
  std::vector<std::string> encode_pieces(std::string_view raw) const;

  /// Returns the raw text of `ids`: joins the pieces to tokens and detokenises the tokens. `<pad>`, `<s>` and `</s>`
  /// are left out. Throws Error if an id is outside the vocabulary.
  std::string decode(std::span<const std::int32_t> ids) const { return detokenize(join(ids)); }
  /// Joins the pieces with the ids `ids` to tokens, and returns the tokens with spaces between them, not detokenised.
  /// Used for tokenised BLEU and for translate's --no-detokenize.
  std::string join(std::span<const std::int32_t> ids) const;
  /// Returns, for each id, the index of the token that contains the id's piece, or -1 for `<pad>`, `<s>` and `</s>`. A
  /// word alignment is made from an alignment of pieces with these indices.
  std::vector<int> words_of(std::span<const std::int32_t> ids) const;

  /// Returns the pieces that end a word, so that the words of a sentence can be counted by its ids alone: in linear
  /// trees the parts of speech, in other texts the last pieces of tokens; `<unk>` counts as a token. Returns nothing
  /// where a piece does not tell whether it ends a token: only the pieces of BPE and whole words do.
  std::optional<PieceSet> word_ends() const;

  /// Applies the text steps to the raw line `raw` and returns the tokens, separated by single spaces.
  std::string tokens_of(std::string_view raw) const;
  void tokens_of(std::string_view raw, std::string& out) const { pipeline_.tokenize(raw, out); }
  std::string detokenize(std::string_view tokens, const DetokenizeOptions& options = {}) const;

 private:
  struct Shared;
  TextModel(std::shared_ptr<const Shared> shared, const TextSteps& steps);
  const std::string& stored_languages() const;
  const std::shared_ptr<const Vocabulary>& shared_vocabulary() const;

  std::shared_ptr<const Shared> shared_;
  // Applies the text steps of the language that this model uses.
  TextPipeline pipeline_;
};

}  // namespace heed
