#include "heed/text/text_model.h"

#include <algorithm>
#include <cstdio>

#include "heed/text/bpe/bpe.h"
#include "heed/text/trees/linear_tree.h"

namespace heed {
namespace {

/// Returns a copy of the text steps `steps` in which the language is the code `code`.
TextSteps with_code(TextSteps steps, const std::string& code) {
  steps.language = code;
  return steps;
}

}  // namespace

std::vector<std::string> split_languages(const std::string& languages) {
  std::vector<std::string> codes;
  for (std::size_t at = 0; at <= languages.size();) {
    const std::size_t end = std::min(languages.find(',', at), languages.size());
    codes.push_back(languages.substr(at, end - at));
    if (codes.back().empty() || codes.back().find_first_of(" \t\r\n:") != std::string::npos)
      throw UsageError("--language '" + languages + "': must be a code such as en, or codes with commas between them");
    at = end + 1;
  }
  return codes;
}

/// The data that all copies of a TextModel share, even if the copies use different languages of the vocabulary.
struct TextModel::Shared {
  // The text steps as a vocabulary file stores them: `language` may list several codes, such as "en,de".
  TextSteps steps;
  Subwords subwords;
  std::shared_ptr<const Vocabulary> vocabulary;
};

TextModel::TextModel(const TextSteps& steps, Subwords subwords, std::shared_ptr<const Vocabulary> vocabulary)
    : TextModel(std::make_shared<const Shared>(Shared{steps, std::move(subwords), std::move(vocabulary)}),
                with_code(steps, split_languages(steps.language).front())) {}

TextModel TextModel::of_images() {
  std::vector<std::string> pieces;
  for (std::int32_t id = 0; id < kReservedIds; ++id) pieces.emplace_back(reserved_piece(id));
  for (int byte = 0; byte < 256; ++byte) {
    char piece[8];
    std::snprintf(piece, sizeof piece, "<0x%02X>", byte);
    pieces.emplace_back(piece);
  }
  TextSteps steps;
  steps.mode = TokenMode::images;
  return {steps, Subwords(), std::make_shared<const Vocabulary>(pieces)};
}

bool TextModel::can_be_label(std::string_view line) {
  return Vocabulary::is_piece(label_token(line));
}

TextModel TextModel::of_labels(const std::vector<std::string>& labels) {
  TextSteps steps;
  steps.mode = TokenMode::labels;
  std::vector<std::string> pieces;
  for (std::int32_t id = 0; id < kReservedIds; ++id) pieces.emplace_back(reserved_piece(id));
  for (const std::string& label : labels) pieces.push_back(label_token(label));
  return {steps, Subwords(), std::make_shared<const Vocabulary>(pieces, "labels")};
}

TextModel::TextModel(std::shared_ptr<const Shared> shared, const TextSteps& steps)
    : shared_(std::move(shared)), pipeline_(steps) {}

const std::shared_ptr<const Vocabulary>& TextModel::shared_vocabulary() const {
  return shared_->vocabulary;
}

const Vocabulary& TextModel::vocabulary() const {
  return *shared_vocabulary();
}

const Subwords& TextModel::subwords() const {
  return shared_->subwords;
}

const TextSteps& TextModel::steps() const {
  return pipeline_.steps();
}

const std::string& TextModel::stored_languages() const {
  return shared_->steps.language;
}

std::vector<std::string> TextModel::languages() const {
  return split_languages(stored_languages());
}

TextModel TextModel::with_language(const std::string& code) const {
  const auto codes = languages();
  if (std::find(codes.begin(), codes.end(), code) == codes.end())
    throw Error("the vocabulary has no text steps for the language '" + code + "' (it has: " + stored_languages() +
                ")");
  return TextModel(shared_, with_code(shared_->steps, code));
}

std::vector<std::int32_t> TextModel::encode_tokens(std::string_view tokens, SubwordSampler* sampler) const {
  std::vector<std::int32_t> ids;
  if (steps().mode == TokenMode::images) {
    for (const char c : tokens) ids.push_back(kReservedIds + static_cast<unsigned char>(c));
    return ids;
  }
  if (const SentencePiece* pieces = subwords().sentencepiece()) {
    pieces->encode(
        tokens, [&](std::string_view, std::int32_t id, int) { ids.push_back(id); }, sampler);
  } else {
    subwords().split(
        tokens, [&](std::string_view piece, int) { ids.push_back(vocabulary().id(piece)); }, sampler);
  }
  return ids;
}

std::vector<std::string> TextModel::encode_pieces(std::string_view raw) const {
  return shared_->subwords.split(tokens_of(raw));
}

std::string TextModel::join(std::span<const std::int32_t> ids) const {
  std::vector<std::string_view> pieces;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= size())
      throw Error("id " + std::to_string(id) + " is not in the vocabulary of " + std::to_string(size()) + " pieces");
    if (id == kUnknownId && subwords().sentencepiece()) {
      pieces.emplace_back(subwords().sentencepiece()->unknown_piece());
    } else if (id >= kReservedIds || id == kUnknownId) {
      pieces.emplace_back(vocabulary().piece(id));
    }
  }
  return subwords().join(pieces);
}

std::vector<int> TextModel::words_of(std::span<const std::int32_t> ids) const {
  std::vector<std::string_view> pieces;
  for (const std::int32_t id : ids)
    if (id >= kReservedIds || id == kUnknownId) pieces.emplace_back(vocabulary().piece(id));
  const std::vector<int> words = shared_->subwords.words_of(pieces);
  std::vector<int> out;
  std::size_t next = 0;
  for (const std::int32_t id : ids) out.push_back(id >= kReservedIds || id == kUnknownId ? words[next++] : -1);
  return out;
}

std::optional<PieceSet> TextModel::word_ends() const {
  const bool trees = steps().mode == TokenMode::trees;
  const SubwordType type = subwords().type();
  if (!trees && type != SubwordType::bpe && type != SubwordType::words) return {};
  PieceSet out(size());
  if (!trees) out.add(kUnknownId);
  for (std::int32_t id = kReservedIds; id < size(); ++id) {
    const std::string_view piece = vocabulary().piece(id);
    // The words of two equal pieces are two words where the first one ends its word.
    const bool ends =
        trees ? kind_of_linear_token(piece) == LinearTreeToken::word : subwords().words_of({piece, piece}).back() == 1;
    if (ends) out.add(id);
  }
  return out;
}

std::string TextModel::tokens_of(std::string_view raw) const {
  return pipeline_.tokenize(raw);
}

std::string TextModel::detokenize(std::string_view tokens, const DetokenizeOptions& options) const {
  return pipeline_.detokenize(tokens, options);
}

}  // namespace heed
