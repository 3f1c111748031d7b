#include "heed/run/attention_tokens.h"

#include <string_view>
#include <utility>

#include "heed/text/strings/unicode.h"

namespace heed {
namespace {

constexpr const char* kStart = "<s>";
constexpr const char* kEnd = "</s>";

void add_word(AttentionTokens& tokens, const std::string& token) {
  tokens.pieces.push_back(token);
  tokens.words.word_of.push_back(static_cast<int>(tokens.words.words.size()));
  tokens.words.words.push_back(token);
}

}  // namespace

PieceSentence encode(const TextModel& model, const std::string& raw, const Position& where) {
  if (is_blank(raw)) return {};
  try {
    const std::string tokens = model.tokens_of(raw);
    return {model.encode_tokens(tokens), model.subwords().split(tokens)};
  } catch (const LineError& error) {
    throw error.at(where.file, where.line, raw);
  }
}

PieceSentence from_ids(const TextModel& model, std::vector<std::int32_t> ids) {
  PieceSentence out{std::move(ids), {}};
  for (const std::int32_t id : out.ids) out.pieces.emplace_back(model.vocabulary().piece(id));
  return out;
}

AttentionTokens tokens_of(const TextModel& model, const std::vector<std::string>& pieces, bool start, bool end) {
  AttentionTokens out{.marks = {start, end}};
  if (start) add_word(out, kStart);
  const std::vector<std::string_view> views(pieces.begin(), pieces.end());
  const std::vector<int> words = model.subwords().words_of(views);
  for (std::size_t from = 0, to = 0; from < views.size(); from = to) {
    while (to < views.size() && words[to] == words[from]) ++to;
    std::string word = model.subwords().join(
        {views.begin() + static_cast<std::ptrdiff_t>(from), views.begin() + static_cast<std::ptrdiff_t>(to)});
    word.resize(word.find_last_not_of(' ') + 1);
    out.pieces.insert(out.pieces.end(), views.begin() + static_cast<std::ptrdiff_t>(from),
                      views.begin() + static_cast<std::ptrdiff_t>(to));
    out.words.word_of.insert(out.words.word_of.end(), to - from, static_cast<int>(out.words.words.size()));
    out.words.words.push_back(word.empty() ? pieces[from] : word);
  }
  if (end) add_word(out, kEnd);
  return out;
}

}  // namespace heed
