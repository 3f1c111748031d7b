#include "heed/text/unigram/sentencepiece.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "heed/base/error.h"
#include "heed/base/random.h"
#include "heed/text/text_model.h"

using namespace heed;
using nlohmann::json;
using Kind = SentencePieceModel::Kind;

namespace {

const std::string kFolder = HEED_TEST_DATA "/text/reference/sentencepiece/";

/// Returns the answers of SentencePiece, which scripts/reference/make_sentencepiece_reference.py has stored.
const json& sentencepiece_reference() {
  static const json answers = json::parse(std::ifstream(kFolder + "pieces.json"));
  return answers;
}

std::string file_bytes(const std::string& name) {
  std::ifstream in(kFolder + name + ".model", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

SentencePiece read_model(const std::string& name) {
  return SentencePiece(SentencePieceModel::parse(file_bytes(name), name), name);
}

/// Returns heed's ids for SentencePiece's ids `theirs`.
std::vector<std::int32_t> ids_of(const SentencePieceModel& model, const json& theirs) {
  std::vector<std::int32_t> ours, out;
  std::int32_t next = kReservedIds;
  for (const auto& piece : model.pieces) {
    const bool text = piece.kind != Kind::unknown && piece.kind != Kind::control;
    const bool has_id = piece.kind == Kind::byte || (text && Vocabulary::is_piece(piece.text));
    ours.push_back(has_id ? next++ : kUnknownId);
  }
  for (const std::size_t id : theirs) out.push_back(ours.at(id));
  return out;
}

std::string decode(const SentencePiece& model, const json& pieces) {
  const std::vector<std::string> texts = pieces;
  return model.decode(std::vector<std::string_view>(texts.begin(), texts.end()));
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

SentencePieceModel small_model() {
  SentencePieceModel model;
  model.pieces = {{"<unk>", 0, Kind::unknown}, {"\u2581", -2}, {"a", -1}, {"b", -1.5f}, {"ab", -2}};
  return model;
}

void check_refused(const SentencePieceModel& model, const std::string& message) {
  CAPTURE(message);
  try {
    const SentencePiece refused(model, "x.model");
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("x.model: " + message) == 0);
  }
}

}  // namespace

TEST_CASE("SentencePiece's pieces, ids and texts come from its models") {
  for (const auto& [name, cases] : sentencepiece_reference()["models"].items()) {
    CAPTURE(name);
    const SentencePiece model = read_model(name);
    CHECK(cases.size() > 70);
    for (const json& test : cases) {
      const std::string line = test["line"];
      CAPTURE(line);
      std::vector<std::string> pieces;
      std::vector<std::string_view> views;
      std::vector<std::int32_t> ids;
      std::vector<int> words;
      model.encode(line, [&](std::string_view piece, std::int32_t id, int word) {
        pieces.emplace_back(piece);
        ids.push_back(id);
        words.push_back(word);
      });
      CHECK(json(pieces) == test["pieces"]);
      CHECK(ids == ids_of(model.model(), test["ids"]));
      CHECK(decode(model, pieces) == one_line(test["text"]));
      for (const std::string& piece : pieces) views.emplace_back(piece);
      CHECK(model.words_of(views) == words);
    }
  }
}

TEST_CASE("SentencePiece's n best segmentations") {
  for (const auto& [name, cases] : sentencepiece_reference()["models"].items()) {
    const SentencePiece model = read_model(name);
    for (const json& test : cases) {
      if (!test.contains("n_best")) continue;
      const std::string normal = model.normalize(std::string(test["line"]));
      CAPTURE(normal);
      json found;
      float last = 0;
      for (const PiecePath& path : model.unigram()->n_best(normal, 4)) {
        std::vector<std::string> pieces;
        model.pieces(normal, path.spans,
                     [&](std::string_view piece, std::int32_t, int) { pieces.emplace_back(piece); });
        found.push_back(pieces);
        if (found.size() > 1) CHECK(path.score <= doctest::Approx(last));
        last = path.score;
      }
      CHECK(found == test["n_best"]);
    }
  }
}

TEST_CASE("a .model file is a vocabulary as it stands, and a checkpoint keeps it") {
  const std::string path = kFolder + "unigram_bytes.model";
  const TextModel model = TextModel::read(path);
  const SentencePiece direct = read_model("unigram_bytes");
  CHECK(model.subwords().type() == SubwordType::sentencepiece);
  CHECK(model.vocabulary().pieces() == direct.vocabulary());
  const TextModel again = TextModel::from_parts(model.parts(), "model.h5:/text/source");
  for (const json& test : sentencepiece_reference()["models"]["unigram_bytes"]) {
    const std::string line = test["line"];
    const auto ids = model.encode(line);
    CHECK(ids == ids_of(direct.model(), test["ids"]));
    CHECK(again.encode(line) == ids);
    CHECK(model.decode(ids) == one_line(test["text_of_ids"]));
    CHECK(json(model.encode_pieces(line)) == test["pieces"]);
  }
  std::ostringstream out;
  again.write(out);
  CHECK(out.str() == file_bytes("unigram_bytes"));
  CHECK(again.parts().attributes == model.parts().attributes);

  TextModelParts parts = model.parts();
  parts.pieces.pop_back();
  CHECK_THROWS_WITH_AS(TextModel::from_parts(parts, "model.h5:/text/source"),
                       "model.h5:/text/source: the vocabulary is not that of its SentencePiece model (make it again)",
                       Error);
}

TEST_CASE("an unknown id reads as the model's unknown surface") {
  const TextModel spaces = TextModel::read(kFolder + "unigram_spaces.model");
  CHECK(spaces.decode(std::vector<std::int32_t>{kUnknownId}) == "[?]");
  CHECK(TextModel::read(kFolder + "bpe.model").decode(std::vector<std::int32_t>{kUnknownId}) == " \u2047 ");
}

TEST_CASE("damaged .model files are errors, wherever they are cut or changed") {
  for (const std::string name : {"unigram_bytes", "bpe", "word", "char"}) {
    const std::string whole = file_bytes(name);
    const auto use = [&](const std::string& bytes) {
      try {
        const SentencePiece model(SentencePieceModel::parse(bytes, "x.model"), "x.model");
        for (const char* line : {"The dog \uFF41 sleeps", "\u65E5\u672C \U0001F600"})
          model.encode(line, [](std::string_view, std::int32_t, int) {});
      } catch (const Error& error) {
        CHECK(std::string(error.what()).starts_with("x.model: "));
      }
    };
    for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 500) use(whole.substr(0, size));
    const RandomStream random(1, RandomUse::sampling);
    for (std::uint64_t i = 0; i < 400; ++i) {
      std::string changed = whole;
      for (std::uint64_t j = 0; j < 1 + i % 5; ++j)
        changed[random.below(changed.size(), 10 * i + 2 * j)] =
            static_cast<char>(random.below(256, 10 * i + 2 * j + 1));
      use(changed);
    }
  }
  CHECK_THROWS_WITH_AS(SentencePieceModel::parse("\n\x05 ab", "x.model"),
                       "x.model: is no SentencePiece model, or a damaged one (download it or train it again; "
                       "vocabularies of heed are made by build-vocab)",
                       Error);
  CHECK_THROWS_WITH_AS(SentencePieceModel::parse("\x12\x02\x18\x05", "x.model"),
                       "x.model: is a SentencePiece model of the unknown type number 5 (heed reads unigram, bpe, word "
                       "and char)",
                       Error);
}

TEST_CASE("pieces that make no model are refused") {
  SentencePieceModel model = small_model();
  CHECK_NOTHROW(SentencePiece(model, "x.model"));
  const auto with = [&](const SentencePieceModel::Piece& piece) {
    SentencePieceModel more = small_model();
    more.pieces.push_back(piece);
    return more;
  };
  check_refused({}, "is no SentencePiece model: it has no pieces");
  check_refused(with({"", -1}), "piece 5 '' is empty");
  check_refused(with({"a", -1}), "piece 5 'a' is there twice");
  check_refused(with({"c", std::numeric_limits<float>::infinity()}), "piece 5 'c' has no finite score");
  check_refused(with({"\xFF", -1}), "piece 5 '\xFF' is not UTF-8");
  check_refused(with({std::string(8000, 'c'), -1}), "piece 5 '" + std::string(60, 'c') + "' is too long");
  check_refused(with({"<none>", 0, Kind::unknown}), "has several unknown pieces");
  check_refused(with({"<0x41>", 0, Kind::byte}), "piece 5 '<0x41>' is a byte, but the model");
  model.pieces.erase(model.pieces.begin());
  check_refused(model, "has no unknown piece");
  model.byte_fallback = true;
  check_refused(model, "falls back to bytes, but lacks some of them");
  model = small_model();
  model.normalizer.precompiled_charsmap = std::string("\x00\x04\x00\x00", 4) + std::string(1024, '\0');
  check_refused(model, "its precompiled_charsmap is damaged");
  model = small_model();
  model.unk_surface = "\n";
  check_refused(model, "writes a line end");
}

TEST_CASE("a piece for a line end has no id, and one that reads like a reserved piece is unknown") {
  SentencePieceModel model = small_model();
  model.pieces.push_back({"\n", 0, Kind::user_defined});
  model.pieces.push_back({"<s>", 0, Kind::user_defined});
  model.pieces.push_back({"c", -3});
  const SentencePiece pieces(model, "x.model");
  CHECK(pieces.vocabulary() ==
        std::vector<std::string>{"<pad>", "<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "c"});
  std::vector<std::int32_t> ids;
  pieces.encode("a<s>c", [&](std::string_view, std::int32_t id, int) { ids.push_back(id); });
  CHECK(ids == std::vector<std::int32_t>{4, 5, kUnknownId, 8});
}

TEST_CASE("byte pieces that would end the line become a space") {
  const SentencePiece model = read_model("bpe_bytes");
  CHECK(model.decode(std::vector<std::string_view>{"<0x61>", "<0x0A>", "<0xE3>", "<0x62>"}) == "a \uFFFDb");
}
