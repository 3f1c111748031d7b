#include "heed/text/subwords.h"

#include "heed/base/utf8.h"
#include "heed/text/bpe/bpe.h"

namespace heed {

std::string_view Subwords::separator() const {
  return bpe_ ? std::string_view(bpe_->separator()) : std::string_view();
}

void Subwords::cut(std::string_view token, std::vector<std::size_t>& ends, SubwordSampler* sampler) const {
  if (bpe_) {
    bpe_->segment(token, ends, sampler);
    return;
  }
  ends.clear();
  for (std::size_t at = 0; at < token.size();) {
    decode_utf8(token, at);
    ends.push_back(at);
  }
}

std::vector<std::string> Subwords::split(std::string_view tokens) const {
  std::vector<std::string> pieces;
  split(tokens, [&](std::string_view piece, int) { pieces.emplace_back(piece); });
  return pieces;
}

void Subwords::append_pieces(std::string_view tokens, std::string& out, SubwordSampler* sampler) const {
  if (sentencepiece_) {
    const std::size_t start = out.size();
    const auto append = [&](std::string_view piece, std::int32_t, int) {
      if (out.size() > start) out += ' ';
      out += piece;
    };
    return sentencepiece_->encode(tokens, append, sampler);
  }
  if (bpe_) return bpe_->append(tokens, out, sampler);
  std::string_view space;
  split_spans(tokens, [&](std::string_view piece, int, ByteSpan) {
    out.append(space).append(piece);
    space = " ";
  });
}

std::string Subwords::join(const std::vector<std::string_view>& pieces) const {
  if (sentencepiece_) return sentencepiece_->decode(pieces);
  std::string out;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::string_view piece = pieces[i];
    switch (type_) {
      case SubwordType::words:
        out.append(piece).append(1, ' ');
        break;
      case SubwordType::characters:
        if (piece == kSpacePiece) {
          out.append(1, ' ');
        } else {
          out.append(piece);
        }
        break;
      case SubwordType::bpe:
        if (piece.ends_with(separator())) {
          out.append(piece.substr(0, piece.size() - separator().size()));
        } else {
          out.append(piece).append(1, ' ');
        }
        break;
      case SubwordType::unigram:
      case SubwordType::sentencepiece:
        break;
    }
  }
  if (type_ != SubwordType::characters && out.ends_with(' ')) out.pop_back();
  return out;
}

std::vector<int> Subwords::words_of(const std::vector<std::string_view>& pieces) const {
  if (sentencepiece_) return sentencepiece_->words_of(pieces);
  std::vector<int> words;
  words.reserve(pieces.size());
  int word = 0;
  for (const std::string_view piece : pieces) {
    words.push_back(word);
    const bool ends = type_ == SubwordType::words || (type_ == SubwordType::characters && piece == kSpacePiece) ||
                      (type_ == SubwordType::bpe && !piece.ends_with(separator()));
    if (ends) ++word;
  }
  return words;
}

}  // namespace heed
