#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/config/fields.h"
#include "heed/text/steps.h"
#include "heed/text/strings/vocabulary.h"
#include "heed/text/subwords.h"

namespace heed {

/// The contents of a TextModel as strings and lists, from which a checkpoint stores it. TextModel::parts() makes them,
/// and TextModel::from_parts() makes an equal model of them.
struct TextModelParts {
  std::vector<std::string> pieces;  ///< the vocabulary's pieces in the order of their ids, the reserved pieces included
  /// The data of the subword model. Type bpe: the text of a codes file; type unigram: a line with the score of every
  /// piece that is not reserved; type sentencepiece: the bytes of the `.model` file; other types: empty.
  std::string subword_model;
  std::string truecase_model;  ///< the truecase model in its file format; empty without a truecase model
  /// Names and values of `type`, `separator`, `byte-fallback`, `user-symbols` and all fields of TextSteps. The names
  /// are those of build-vocab's options.
  std::vector<std::pair<std::string, FieldValue>> attributes;
};

/// Splits a list of language codes such as "en,de" at its commas. Throws UsageError if a code is empty, or holds white
/// space or a colon.
std::vector<std::string> split_languages(const std::string& languages);

/// Turns raw lines into vocabulary ids and ids into raw lines: text steps, then subwords, then vocabulary. Immutable
/// and cheap to copy; any number of threads may use one model.
///
/// One vocabulary may serve two languages (`build-vocab --language en,de`). source() returns the model with the text
/// steps of the first language, target() the model with those of the last language. With a single language, source()
/// and target() return the same model; callers can therefore always ask for source() of the source vocabulary and
/// target() of the target vocabulary.
class TextModel {
 public:
  /// Reads a vocabulary file that build-vocab wrote, or a `.model` file of SentencePiece. Throws Error with the file
  /// and line of what is wrong.
  static TextModel read(const std::string& path);
  /// Makes a model of `parts`. `where` names the checkpoint, and the group within the checkpoint, in error messages. If
  /// `other` is given, the new model shares the vocabulary and the subword model of `other` instead of making its own;
  /// the caller guarantees that they are equal.
  static TextModel from_parts(const TextModelParts& parts, const std::string& where, const TextModel* other = nullptr);
  TextModel(const TextSteps& steps, Subwords subwords, std::shared_ptr<const Vocabulary> vocabulary);

  /// Returns the contents of the model; of the text steps only those of the language in use.
  TextModelParts parts() const;
  /// Writes the vocabulary file; equal models give equal bytes. The file lists all languages of the vocabulary,
  /// whichever language is in use.
  void write(std::ostream& out) const;

  const Vocabulary& vocabulary() const;
  const Subwords& subwords() const;
  /// The text steps in use; their `language` is one code, not a list.
  const TextSteps& steps() const;
  std::int32_t size() const { return vocabulary().size(); }

  /// The codes of all languages that the vocabulary serves.
  std::vector<std::string> languages() const;
  TextModel source() const { return with_language(languages().front()); }
  TextModel target() const { return with_language(languages().back()); }
  /// Returns the same model with the text steps of the language `code`. Throws Error that lists the vocabulary's
  /// languages if `code` is not among them.
  TextModel with_language(const std::string& code) const;

  /// Returns the ids of `raw` (a line of valid UTF-8), without an id for `</s>`. A piece that the vocabulary lacks gets
  /// kUnknownId.
  std::vector<std::int32_t> encode(std::string_view raw) const { return encode_tokens(tokens_of(raw)); }
  /// Returns the ids of tokens that the text steps have made, separated by spaces. With a `sampler`, the segmentation
  /// into pieces is drawn at random.
  std::vector<std::int32_t> encode_tokens(std::string_view tokens, SubwordSampler* sampler = nullptr) const;
  /// Returns the pieces of `raw`; pieces that the vocabulary lacks keep their own text.
  std::vector<std::string> encode_pieces(std::string_view raw) const;

  /// Returns the raw text of `ids`: joins the pieces to tokens and detokenises the tokens. `<pad>`, `<s>` and `</s>`
  /// are left out. Throws Error if an id is outside the vocabulary.
  std::string decode(std::span<const std::int32_t> ids) const { return detokenize(join(ids)); }
  /// Returns the tokens of `ids`, separated by spaces and not detokenised: for tokenised BLEU and translate's
  /// --no-detokenize.
  std::string join(std::span<const std::int32_t> ids) const;
  /// Returns, for each id, the index of the token that the id belongs to, or -1 for `<pad>`, `<s>` and `</s>`.
  /// Alignments between words need it.
  std::vector<int> words_of(std::span<const std::int32_t> ids) const;

  /// Returns the tokens of `raw` after the text steps, separated by single spaces.
  std::string tokens_of(std::string_view raw) const;
  void tokens_of(std::string_view raw, std::string& out) const { pipeline_.tokenize(raw, out); }
  std::string detokenize(std::string_view tokens, const DetokenizeOptions& options = {}) const;

 private:
  struct Shared;
  TextModel(std::shared_ptr<const Shared> shared, const TextSteps& steps);
  const std::string& stored_languages() const;
  const std::shared_ptr<const Vocabulary>& shared_vocabulary() const;

  std::shared_ptr<const Shared> shared_;
  TextPipeline pipeline_;  // the text steps of the language in use
};

}  // namespace heed
