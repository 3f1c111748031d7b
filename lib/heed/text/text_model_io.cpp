#include <algorithm>
#include <boost/iostreams/filter/gzip.hpp>
#include <charconv>
#include <istream>

#include "heed/base/line_io.h"
#include "heed/base/streams.h"
#include "heed/text/bpe/bpe.h"
#include "heed/text/strings/string_ids.h"
#include "heed/text/text_model.h"
#include "heed/text/unigram/sentencepiece.h"

// The format of a vocabulary file. "name: value" lines come first; a name whose value is a count is followed by that
// many lines.
//
//     heed-vocabulary 1
//     type: bpe
//     separator: @@          for the type bpe only
//     byte-fallback: true    for the type unigram only, like user-symbols, which has one line for each symbol
//     mode: moses            and every other field of TextSteps; a list field has one line for each item
//     truecase: 2300         only with a truecase model, whose 2300 lines follow
//     the (812/1020) The (208)
//     ...
//     codes-version: 0.2     for the type bpe only: the version of the codes file
//     merges: 10000          for the type bpe only; the merges of a codes file follow, without its version line
//     e n</w>
//     ...
//     scores: 9750           for the type unigram only; the scores of the pieces that are not reserved follow
//     -2.7182818             "unused" is the score of a piece that --pad-to-multiple added
//     ...
//     pieces: 9754           all pieces follow, in the order of their ids, to the end of the file
//     <pad>
//     ...
//
// A `.model` file of SentencePiece is also read as a vocabulary.

namespace heed {
namespace {

constexpr std::string_view kFirstLine = "heed-vocabulary 1";
constexpr std::string_view kAdvice = " (build-vocab makes vocabularies)";
constexpr std::string_view kUnusedScore = "unused";
constexpr std::size_t kMostModelBytes = std::size_t{512} << 20;

/// Returns the texts that a vocabulary file stores for the option value `value`: one text for a single value, or one
/// text for each item of a list.
std::vector<std::string> value_texts(const FieldValue& value) {
  struct Visitor {
    std::vector<std::string> operator()(bool flag) const { return {flag ? "true" : "false"}; }
    std::vector<std::string> operator()(std::int64_t number) const { return {std::to_string(number)}; }
    std::vector<std::string> operator()(double number) const { return {fields_detail::show_real(number)}; }
    std::vector<std::string> operator()(const std::string& text) const { return {text}; }
    std::vector<std::string> operator()(const std::vector<std::string>& list) const { return list; }
  };
  return std::visit(Visitor(), value);
}

/// The options of a text model, collected from the lines of a vocabulary file or from the attributes of a checkpoint.
struct Attributes {
  SubwordType type = SubwordType::words;
  std::string separator = BpeOptions().separator;
  bool byte_fallback = false;
  std::vector<std::string> user_symbols;
  TextSteps steps;

  /// Sets the option `name` (with - or _ between its words) to the text or texts `values`. Throws UsageError for a
  /// value out of range and Error for an unknown name.
  void set(std::string name, std::span<const std::string> values) {
    std::replace(name.begin(), name.end(), '_', '-');
    if (name == "separator" && values.size() == 1) {
      separator = values[0];
    } else if (name == "user-symbols") {
      user_symbols.assign(values.begin(), values.end());
    } else if (name == "byte-fallback") {
      const FieldInfo info{.name = "byte-fallback", .help = {}};
      byte_fallback = fields_detail::parse_one<bool>(info, fields_detail::single(info, values));
    } else if (name == "type" && values.size() == 1 && values[0] == kSentencePieceType) {
      type = SubwordType::sentencepiece;
    } else if (name == "type") {
      const FieldInfo info{.name = "type", .help = {}};
      type = fields_detail::parse_one<SubwordType>(info, fields_detail::single(info, values));
    } else {
      const FieldList fields = FieldList::of(steps);
      const Field* field = fields.find(name);
      if (!field) throw Error("unknown text step '" + name + "' (made by another version of heed?)");
      field->set_text(values);
    }
  }
};

float parse_score(std::string_view line, const std::string& where) {
  float score = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), score);
  if (error != std::errc() || end != line.data() + line.size())
    throw Error(Position{where}, "'" + std::string(line.substr(0, 60)) + "' is no score" + std::string(kAdvice));
  return score;
}

/// Makes the unigram model whose pieces are in `vocabulary`. `scores` has one line for each piece that is not reserved,
/// with the piece's score. Throws Error if there are more or fewer scores than such pieces, or a score is not a number.
std::shared_ptr<const SentencePiece> make_unigram(const Attributes& attributes, std::string_view scores,
                                                  const Vocabulary& vocabulary, const std::string& where) {
  using PieceKind = SentencePieceModel::Kind;
  SentencePieceModel model;
  model.byte_fallback = attributes.byte_fallback;
  model.pieces.push_back({std::string(reserved_piece(kUnknownId)), 0, PieceKind::unknown});
  StringIds user_symbols;
  for (const std::string& symbol : attributes.user_symbols) user_symbols.add(symbol);
  std::size_t at = 0;
  for (std::int32_t id = kReservedIds; id < vocabulary.size(); ++id) {
    const std::size_t end = std::min(scores.find('\n', at), scores.size());
    if (at == scores.size()) throw Error(Position{where}, "there are fewer scores than pieces" + std::string(kAdvice));
    const std::string_view line = scores.substr(at, end - at);
    at = std::min(end + 1, scores.size());
    const std::string_view piece = vocabulary.piece(id);
    const bool user = user_symbols.find(piece) != kNoId;
    const bool byte = attributes.byte_fallback && byte_of_piece(piece) >= 0;
    if (line == kUnusedScore) {
      model.pieces.push_back({std::string(piece), 0, PieceKind::unused});
      continue;
    }
    model.pieces.push_back({std::string(piece), parse_score(line, where),
                            user   ? PieceKind::user_defined
                            : byte ? PieceKind::byte
                                   : PieceKind::normal});
  }
  if (at != scores.size()) throw Error(Position{where}, "there are more scores than pieces" + std::string(kAdvice));
  return std::make_shared<const SentencePiece>(std::move(model), where);
}

/// Makes the subword model that `attributes` and the data `subword_model` describe. In a BPE model, a merged piece that
/// the vocabulary lacks is cut into smaller pieces again, so that only characters that the vocabulary lacks become
/// `<unk>`.
Subwords make_subwords(const Attributes& attributes, std::string_view subword_model,
                       const std::shared_ptr<const Vocabulary>& vocabulary, const std::string& where) {
  if (attributes.type == SubwordType::sentencepiece) {
    auto pieces = std::make_shared<const SentencePiece>(SentencePieceModel::parse(subword_model, where), where);
    if (pieces->vocabulary() != vocabulary->pieces())
      throw Error(Position{where}, "the vocabulary is not that of its SentencePiece model (make it again)");
    return Subwords(std::move(pieces));
  }
  if (attributes.type == SubwordType::unigram)
    return Subwords(make_unigram(attributes, subword_model, *vocabulary, where));
  if (attributes.type != SubwordType::bpe) return Subwords(attributes.type);
  const auto allowed = [vocabulary](std::string_view piece) { return vocabulary->contains(piece); };
  return Subwords(std::make_shared<const BpeEncoder>(
      BpeMerges::parse(subword_model, where), BpeOptions{.separator = attributes.separator, .allowed = allowed}));
}

/// Reads a `.model` file of SentencePiece. The text steps of the resulting text model change nothing (mode `none`),
/// because SentencePiece cuts raw lines.
TextModel read_sentencepiece(std::istream& in, const std::string& path) {
  std::string bytes, block(std::size_t{1} << 16, '\0');
  try {
    while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
      bytes.append(block, 0, static_cast<std::size_t>(in.gcount()));
      if (bytes.size() > kMostModelBytes)
        throw Error(Position{path}, "is too large for a SentencePiece model" + std::string(kAdvice));
    }
  } catch (const boost::iostreams::gzip_error&) {
    throw Error(Position{path}, "the gzip data is damaged or cut short (make the file again)");
  }
  auto pieces = std::make_shared<const SentencePiece>(SentencePieceModel::parse(bytes, path), path);
  auto vocabulary = std::make_shared<const Vocabulary>(pieces->vocabulary(), path);
  TextSteps steps;
  steps.mode = TokenMode::none;
  return TextModel(steps, Subwords(std::move(pieces)), std::move(vocabulary));
}

/// Reads a vocabulary file line by line. Only a line feed (LF) ends a line; a carriage return (CR) before the LF
/// belongs to the line, because a piece may end with a CR. But if the first line ends in CR LF, a Windows editor has
/// changed all line ends, and the CR is removed from every line.
class Lines {
 public:
  explicit Lines(const std::string& path) : in_(open_input(path)), where_{input_name(path)} {}

  std::istream& stream() { return *in_; }
  /// Returns the first byte of the vocabulary file without consuming the byte; negative if the file is empty.
  int first_byte() {
    try {
      return in_->peek();
    } catch (const boost::iostreams::gzip_error&) {
      fail("the gzip data is damaged or cut short (make the file again)");
    }
  }

  /// Replaces `line` by the next line of the vocabulary file; returns false at the end of the file.
  bool next(std::string& line) {
    try {
      if (!std::getline(*in_, line)) return false;
    } catch (const boost::iostreams::gzip_error&) {
      fail("the gzip data is damaged or cut short (make the file again)");
    }
    if (++where_.line == 1) {
      take_byte_order_mark(line, where_);
      crlf_ = line.ends_with('\r');
    }
    if (crlf_ && line.ends_with('\r')) line.pop_back();
    return true;
  }
  /// Returns the position of the line that next() returned last: the file and the line number.
  const Position& where() const { return where_; }
  [[noreturn]] void fail(const std::string& what) const { throw Error(where_, what); }

 private:
  std::unique_ptr<std::istream> in_;
  Position where_;
  bool crlf_ = false;
};

/// Returns the integer that `text` spells, a number of lines. Throws Error with the current line of the file unless
/// `text` is an integer that is 0 or more.
std::int64_t parse_count(const Lines& lines, const std::string& text) {
  std::int64_t count = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 0)
    lines.fail("'" + text + "' is no number of lines" + std::string(kAdvice));
  return count;
}

/// Calls take(line) for each of the next `count` lines of a vocabulary file. Throws Error if the file ends earlier; the
/// message says how many lines were read, and names their content by `what` (for example "merges").
template <class Take>
void take_lines(Lines& lines, std::int64_t count, const char* what, Take take) {
  std::string line;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!lines.next(line))
      lines.fail("the file ends after " + std::to_string(i) + " of " + std::to_string(count) + " " + what +
                 " (cut short? make it again with build-vocab)");
    take(line);
  }
}

/// Throws Error unless `line` is the first line of a vocabulary file. If the file is an HDF5 file, a file of BPE codes,
/// or a vocabulary of another version, the message says so.
void check_first_line(const Lines& lines, const std::string& line) {
  if (line == kFirstLine) return;
  if (line.starts_with("\x89HDF")) lines.fail("is an HDF5 file, no vocabulary" + std::string(kAdvice));
  if (line.starts_with("#version:"))
    lines.fail(
        "is a file of BPE codes, no vocabulary (give it to tokenize --codes, or make a vocabulary with build-vocab)");
  if (line.starts_with("heed-vocabulary "))
    lines.fail("is a vocabulary of version " + line.substr(16) + "; this heed reads version 1");
  lines.fail("is no vocabulary of heed: it does not start with '" + std::string(kFirstLine) + "'" +
             std::string(kAdvice));
}

}  // namespace

TextModel TextModel::read(const std::string& path) {
  Lines lines(path);
  if (SentencePieceModel::may_start_with(lines.first_byte())) return read_sentencepiece(lines.stream(), path);
  std::string line;
  if (!lines.next(line)) throw Error(Position{input_name(path)}, "is empty" + std::string(kAdvice));
  check_first_line(lines, line);
  Attributes attributes;
  std::string merges = "#version: 0.2\n", scores;
  std::vector<std::string> pieces;
  // The values of the header lines read last, which all have the name list_name, and the position of the last of them.
  std::vector<std::string> list;
  std::string list_name;
  Position list_end;
  const auto set_list = [&] {
    try {
      if (!list.empty()) attributes.set(list_name, list);
    } catch (const Error& error) {
      throw Error(list_end, error.what());
    }
    list.clear();
  };
  bool done = false;
  while (!done && lines.next(line)) {
    const auto colon = line.find(':');
    const std::string name = line.substr(0, colon);
    if (name != list_name) set_list();
    if (colon == std::string::npos) lines.fail("'" + line.substr(0, 60) + "': a header line is 'name: value'");
    const std::string value = line.substr(std::min(colon + 2, line.size()));
    if (name == "codes-version") {
      merges = "#version: " + value + "\n";
    } else if (name == "merges") {
      take_lines(lines, parse_count(lines, value), "merges", [&](const std::string& merge) { merges += merge + "\n"; });
    } else if (name == "scores") {
      take_lines(lines, parse_count(lines, value), "scores", [&](const std::string& score) { scores += score + "\n"; });
    } else if (name == "truecase") {
      std::string truecase;
      take_lines(lines, parse_count(lines, value), "lines of the truecase model",
                 [&](const std::string& spellings) { truecase += spellings + "\n"; });
      attributes.steps.truecaser = Truecaser::parse(truecase, path + ": truecase");
    } else if (name == "pieces") {
      take_lines(lines, parse_count(lines, value), "pieces",
                 [&](const std::string& piece) { pieces.push_back(piece); });
      done = true;
    } else {
      list_name = name;
      list.push_back(value);
      list_end = lines.where();
    }
  }
  set_list();
  if (!done) lines.fail("the file ends in its header (cut short? make it again with build-vocab)");
  if (lines.next(line)) lines.fail("there are more lines than pieces (make it again with build-vocab)");
  if (attributes.steps.mode == TokenMode::images)
    throw Error(Position{input_name(path)}, "has the mode images, which only checkpoints have" + std::string(kAdvice));
  const auto vocabulary = std::make_shared<const Vocabulary>(pieces, path);
  const std::string& subword_model = attributes.type == SubwordType::unigram ? scores : merges;
  return TextModel(attributes.steps, make_subwords(attributes, subword_model, vocabulary, path), vocabulary);
}

TextModel TextModel::from_parts(const TextModelParts& parts, const std::string& where, const TextModel* other) {
  Attributes attributes;
  for (const auto& [name, value] : parts.attributes) {
    try {
      attributes.set(name, value_texts(value));
    } catch (const Error& error) {
      throw Error(Position{where}, error.what());
    }
  }
  if (!parts.truecase_model.empty())
    attributes.steps.truecaser = Truecaser::parse(parts.truecase_model, where + ": truecase_model");
  if (other) return TextModel(attributes.steps, other->subwords(), other->shared_vocabulary());
  const auto vocabulary = std::make_shared<const Vocabulary>(parts.pieces, where);
  if (attributes.steps.mode == TokenMode::images && vocabulary->size() != of_images().size())
    throw Error(Position{where}, "the vocabulary of the mode images has " + std::to_string(of_images().size()) +
                                     " pieces, but this one has " + std::to_string(vocabulary->size()) +
                                     " (make the checkpoint again)");
  return TextModel(attributes.steps, make_subwords(attributes, parts.subword_model, vocabulary, where), vocabulary);
}

namespace {

/// Adds the scores of a unigram model, and its options `byte-fallback` and `user-symbols`, to `parts`.
void add_unigram(const SentencePieceModel& model, TextModelParts& parts) {
  std::vector<std::string> user_symbols;
  for (const auto& piece : model.pieces) {
    if (piece.kind == SentencePieceModel::Kind::unknown) continue;
    if (piece.kind == SentencePieceModel::Kind::user_defined) user_symbols.push_back(piece.text);
    if (piece.kind == SentencePieceModel::Kind::unused) {
      parts.subword_model.append(kUnusedScore).append(1, '\n');
      continue;
    }
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, piece.score).ptr;
    parts.subword_model.append(text, end).append(1, '\n');
  }
  parts.attributes.emplace_back("byte-fallback", model.byte_fallback);
  parts.attributes.emplace_back("user-symbols", user_symbols);
}

}  // namespace

TextModelParts TextModel::parts() const {
  TextModelParts parts;
  parts.pieces = vocabulary().pieces();
  parts.attributes.emplace_back("type", std::string(subwords().type_name()));
  if (subwords().type() == SubwordType::sentencepiece) parts.subword_model = subwords().sentencepiece()->model().source;
  if (subwords().type() == SubwordType::unigram) add_unigram(subwords().sentencepiece()->model(), parts);
  if (const BpeEncoder* bpe = subwords().bpe()) {
    parts.subword_model = bpe->merges().text();
    parts.attributes.emplace_back("separator", bpe->separator());
  }
  parts.truecase_model = steps().truecaser.text();
  TextSteps copy = steps();
  const FieldList fields = FieldList::of(copy);
  for (const Field& field : fields.all()) parts.attributes.emplace_back(std::string(field.info.name), field.get());
  return parts;
}

void TextModel::write(std::ostream& out) const {
  TextModelParts stored = parts();
  if (subwords().type() == SubwordType::sentencepiece) {
    out << stored.subword_model;
    return;
  }
  out << kFirstLine << '\n';
  for (const auto& [name, value] : stored.attributes) {
    if (name == "language") {
      out << "language: " << stored_languages() << '\n';
      continue;
    }
    for (const std::string& text : value_texts(value)) out << name << ": " << text << '\n';
  }
  if (const std::string& spellings = stored.truecase_model; !spellings.empty())
    out << "truecase: " << std::count(spellings.begin(), spellings.end(), '\n') << '\n' << spellings;
  if (const BpeEncoder* bpe = subwords().bpe()) {
    const bool old = bpe->merges().version == BpeMerges::Version::v0_1;
    out << "codes-version: " << (old ? "0.1" : "0.2") << "\nmerges: " << bpe->merges().pairs.size() << '\n';
    for (const auto& [first, second] : bpe->merges().pairs) out << first << ' ' << second << '\n';
  }
  if (subwords().type() == SubwordType::unigram)
    out << "scores: " << size() - kReservedIds << '\n' << stored.subword_model;
  out << "pieces: " << size() << '\n';
  for (std::int32_t id = 0; id < size(); ++id) out << vocabulary().piece(id) << '\n';
}

}  // namespace heed
