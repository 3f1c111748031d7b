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

/// A TextModel taken apart, for storing it elsewhere than in a vocabulary file: TextModel::from_parts puts it together
/// again, losing nothing.
struct TextModelParts {
  std::vector<std::string> pieces;  ///< in id order, the reserved ones too
  /// Type bpe: the merges as a codes file; unigram: a line with the score of every piece that is not reserved;
  /// sentencepiece: the `.model` file. Otherwise empty.
  std::string subword_model;
  std::string truecase_model;  ///< Truecaser::text(); empty without one
  /// `type`, `separator`, `byte-fallback`, `user-symbols` and the fields of TextSteps, by option name.
  std::vector<std::pair<std::string, FieldValue>> attributes;
};

/// "en,de" at its commas. Throws UsageError for what cannot be a code.
std::vector<std::string> split_languages(const std::string& languages);

/// The whole way from a raw line to ids and back: first-stage steps, subwords, vocabulary. Immutable and cheap to copy;
/// one model serves any number of threads.
///
/// A joint vocabulary may serve two languages (`build-vocab --language en,de`): source() and target() pick the steps of
/// the first and the last one. They are the model itself where there is one language only, so callers with one
/// vocabulary or two always take source() of the first and target() of the last.
class TextModel {
 public:
  /// Reads a vocabulary file of build-vocab, or a `.model` file of SentencePiece. Throws Error naming file and line.
  static TextModel read(const std::string& path);
  /// `where` is what messages name: a checkpoint and the group in it.
  /// With `other`, whose pieces and subword model must be the same, these are shared and not made again.
  static TextModel from_parts(const TextModelParts& parts, const std::string& where, const TextModel* other = nullptr);
  TextModel(const TextSteps& steps, Subwords subwords, std::shared_ptr<const Vocabulary> vocabulary);

  /// Of the language in force only.
  TextModelParts parts() const;
  /// The vocabulary file, the same bytes every time; all languages, whichever is in force.
  void write(std::ostream& out) const;

  const Vocabulary& vocabulary() const;
  const Subwords& subwords() const;
  /// The steps in force; `language` is one code.
  const TextSteps& steps() const;
  std::int32_t size() const { return vocabulary().size(); }

  std::vector<std::string> languages() const;
  TextModel source() const { return with_language(languages().front()); }
  TextModel target() const { return with_language(languages().back()); }
  /// Throws Error that names the languages there are.
  TextModel with_language(const std::string& code) const;

  /// The ids of a raw line (valid UTF-8), without `</s>`; unknown pieces are kUnknownId.
  std::vector<std::int32_t> encode(std::string_view raw) const { return encode_tokens(tokens_of(raw)); }
  /// The same from first-stage tokens, separated by spaces.
  std::vector<std::int32_t> encode_tokens(std::string_view tokens, SubwordSampler* sampler = nullptr) const;
  /// The pieces of a raw line; unknown ones as they stand in the text.
  std::vector<std::string> encode_pieces(std::string_view raw) const;

  /// Raw text from ids: the pieces joined to tokens, then detokenised. `<pad>`, `<s>` and `</s>` are left out; unknown
  /// ids throw Error.
  std::string decode(std::span<const std::int32_t> ids) const { return detokenize(join(ids)); }
  /// First-stage tokens from ids, separated by spaces: for tokenised BLEU and `--no-detokenize`.
  std::string join(std::span<const std::int32_t> ids) const;
  /// The index of the token each id belongs to (reserved ids other than `<unk>`: -1), for alignments between words.
  std::vector<int> words_of(std::span<const std::int32_t> ids) const;

  /// First-stage tokens of a raw line, separated by single spaces.
  std::string tokens_of(std::string_view raw) const;
  void tokens_of(std::string_view raw, std::string& out) const { pipeline_.tokenize(raw, out); }
  std::string detokenize(std::string_view tokens, const DetokenizeOptions& options = {}) const;

 private:
  struct Shared;
  TextModel(std::shared_ptr<const Shared> shared, const TextSteps& steps);
  const std::string& stored_languages() const;
  const std::shared_ptr<const Vocabulary>& shared_vocabulary() const;

  std::shared_ptr<const Shared> shared_;
  TextPipeline pipeline_;  // with one language
};

}  // namespace heed
