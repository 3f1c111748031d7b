#include "heed/text/text_model.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "heed/text/bpe/bpe.h"

using namespace heed;

namespace {

std::shared_ptr<const Vocabulary> with_reserved(const std::vector<std::string>& pieces) {
  std::vector<std::string> all = {"<pad>", "<unk>", "<s>", "</s>"};
  all.insert(all.end(), pieces.begin(), pieces.end());
  return std::make_shared<const Vocabulary>(all);
}

TextSteps words_steps() {
  TextSteps steps;
  steps.mode = TokenMode::words;
  return steps;
}

TextModel bpe_model(const TextSteps& steps = words_steps()) {
  const BpeMerges merges{BpeMerges::Version::v0_2, {{"l", "o"}, {"lo", "w</w>"}, {"e", "r</w>"}}};
  return TextModel(steps, Subwords(std::make_shared<const BpeEncoder>(merges)),
                   with_reserved({"low", "lo@@", "w@@", "er", "n@@", "e@@", "w"}));
}

struct TemporaryFile {
  std::string path = std::filesystem::temp_directory_path() / ("heed_text_model_" + std::to_string(::getpid()));
  explicit TemporaryFile(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

std::string file_text(const TextModel& model) {
  std::ostringstream out;
  model.write(out);
  return out.str();
}

std::string read_error(const std::string& text) {
  const TemporaryFile file(text);
  try {
    TextModel::read(file.path);
  } catch (const Error& error) {
    const std::string what = error.what();
    CHECK(what.starts_with(file.path));
    return what.substr(file.path.size());
  }
  return "no error";
}

}  // namespace

TEST_CASE("words: known ones have ids, others are unknown, reserved names in the text are no reserved ids") {
  const TextModel model(words_steps(), Subwords(), with_reserved({"a", "dog", "."}));
  CHECK(model.size() == 7);
  CHECK(model.encode("a  dog barks .") == std::vector<std::int32_t>{4, 5, kUnknownId, 6});
  CHECK(model.encode("<s> </s> <pad>") == std::vector<std::int32_t>{1, 1, 1});
  CHECK(model.encode("").empty());
  CHECK(model.decode(std::vector<std::int32_t>{2, 4, 5, 1, 3}) == "a dog <unk>");
  CHECK(model.words_of(std::vector<std::int32_t>{4, 1, 3}) == std::vector<int>{0, 1, -1});
  CHECK_THROWS_WITH_AS(model.decode(std::vector<std::int32_t>{7}), "id 7 is not in the vocabulary of 7 pieces", Error);
}

TEST_CASE("bpe: pieces carry the separator, and join to the words again") {
  const TextModel model = bpe_model();
  CHECK(model.encode_pieces("lower low new") ==
        std::vector<std::string>{"lo@@", "w@@", "er", "low", "n@@", "e@@", "w"});
  const auto ids = model.encode("lower low new");
  CHECK(ids == std::vector<std::int32_t>{5, 6, 7, 4, 8, 9, 10});
  CHECK(model.join(ids) == "lower low new");
  CHECK(model.words_of(ids) == std::vector<int>{0, 0, 0, 1, 2, 2, 2});
}

TEST_CASE("char: one piece a character, a piece of its own between words") {
  const TextModel model(words_steps(), Subwords(SubwordType::characters), with_reserved({"<space>", "a", "é", "."}));
  const auto ids = model.encode("é a ab");
  CHECK(ids == std::vector<std::int32_t>{6, 4, 5, 4, 5, kUnknownId});
  CHECK(model.words_of(ids) == std::vector<int>{0, 0, 1, 1, 2, 2});
  CHECK(model.decode(std::vector<std::int32_t>{6, 4, 5}) == "é a");
}

TEST_CASE("the pieces that end a word: whole words, the last pieces of BPE's words, the parts of speech of trees") {
  const auto ends = [](const TextModel& model) {
    const std::optional<PieceSet> set = model.word_ends();
    REQUIRE(set);
    std::vector<std::int32_t> out;
    for (std::int32_t id = 0; id < model.size(); ++id)
      if (set->contains(id)) out.push_back(id);
    return out;
  };
  using Ids = std::vector<std::int32_t>;
  CHECK(ends(TextModel(words_steps(), Subwords(), with_reserved({"a", "dog"}))) == Ids{kUnknownId, 4, 5});
  CHECK(ends(bpe_model()) == Ids{kUnknownId, 4, 7, 10});
  TextSteps trees;
  trees.mode = TokenMode::trees;
  CHECK(ends(TextModel(trees, Subwords(), with_reserved({"(NP", "NN", ")NP", "-LRB-"}))) == Ids{5, 7});
  CHECK(!TextModel(words_steps(), Subwords(SubwordType::characters), with_reserved({"<space>", "a"})).word_ends());
}

TEST_CASE("a vocabulary file gives the same model again, byte for byte") {
  TextSteps steps = words_steps();
  steps.lowercase = true;
  steps.protect = {"<[a-z]+>", "x y"};
  steps.language = "en,de";
  const TextModel model = bpe_model(steps);
  const std::string text = file_text(model);
  CHECK(text.starts_with("heed-vocabulary 1\ntype: bpe\nseparator: @@\nmode: words\nlanguage: en,de\n"));
  CHECK(text.find("\nmerges: 3\nl o\nlo w</w>\ne r</w>\npieces: 11\n<pad>\n") != std::string::npos);
  const TemporaryFile file(text);
  const TextModel again = TextModel::read(file.path);
  CHECK(file_text(again) == text);
  CHECK(again.source().steps().language == "en");
  CHECK(again.target().steps().language == "de");
  CHECK(again.target().steps().protect == steps.protect);
  CHECK(file_text(again.target()) == text);
  CHECK(again.encode("lower") == model.encode("lower"));
  CHECK_THROWS_WITH_AS(again.with_language("fr"),
                       "the vocabulary has no text steps for the language 'fr' (it has: en,de)", Error);
}

TEST_CASE("a vocabulary file may have CRLF line ends; a CR at the end of a piece is text otherwise") {
  const TextModel model(words_steps(), Subwords(), with_reserved({"a\r", "b"}));
  const TemporaryFile file(file_text(model));
  CHECK(TextModel::read(file.path).vocabulary().pieces()[4] == "a\r");
  std::string crlf;
  for (const char c : file_text(TextModel(words_steps(), Subwords(), with_reserved({"a", "b"}))))
    crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const TemporaryFile windows(crlf);
  CHECK(TextModel::read(windows.path).encode("b a") == std::vector<std::int32_t>{5, 4});
}

TEST_CASE("a file of very many values in its header is read in time in proportion to its length") {
  std::string text = "heed-vocabulary 1\ntype: unigram\nmode: words\n", scores, pieces;
  constexpr int count = 200000;
  for (int i = 0; i < count; ++i) {
    const std::string symbol = "s" + std::to_string(i);
    text += "user-symbols: " + symbol + "\n";
    scores += "-1\n";
    pieces += symbol + "\n";
  }
  text += "scores: " + std::to_string(count) + "\n" + scores + "pieces: " + std::to_string(count + 4) +
          "\n<pad>\n<unk>\n<s>\n</s>\n" + pieces;
  const TemporaryFile file(text);
  const TextModel model = TextModel::read(file.path);
  CHECK(model.encode_pieces("s7 s199999")[1] == "s7");
  CHECK(model.subwords().sentencepiece()->model().pieces.back().kind == SentencePieceModel::Kind::user_defined);
}

TEST_CASE("parts rebuild the model of one language") {
  TextSteps steps = words_steps();
  steps.language = "en,de";
  steps.protect = {"a b"};
  const TextModel model = bpe_model(steps).target();
  TextModelParts parts = model.parts();
  CHECK(parts.subword_model == "#version: 0.2\nl o\nlo w</w>\ne r</w>\n");
  for (auto& [name, value] : parts.attributes) std::replace(name.begin(), name.end(), '-', '_');
  const TextModel again = TextModel::from_parts(parts, "model.h5:/text/target");
  CHECK(again.steps() == model.steps());
  CHECK(again.languages() == std::vector<std::string>{"de"});
  CHECK(again.encode("lower") == model.encode("lower"));
  parts.attributes.emplace_back("colour", true);
  CHECK_THROWS_WITH_AS(TextModel::from_parts(parts, "model.h5:/text/target"),
                       "model.h5:/text/target: unknown text step 'colour' (made by another version of heed?)", Error);
}

TEST_CASE("a vocabulary of images is in checkpoints only, and has a piece for each byte") {
  const TextModel images = TextModel::of_images();
  CHECK(read_error(file_text(images)) ==
        ": has the mode images, which only checkpoints have (build-vocab makes "
        "vocabularies)");
  TextModelParts parts = images.parts();
  CHECK(TextModel::from_parts(parts, "m.h5:/text/source").encode("\xFF") == std::vector<std::int32_t>{259});
  parts.pieces.pop_back();
  CHECK_THROWS_WITH_AS(TextModel::from_parts(parts, "m.h5:/text/source"),
                       "m.h5:/text/source: the vocabulary of the mode images has 260 pieces, but this one has 259 "
                       "(make the checkpoint again)",
                       Error);
}

TEST_CASE("files that are no vocabulary are named with what to do") {
  CHECK(read_error("") == ": is empty (build-vocab makes vocabularies)");
  CHECK(read_error("hello\n").starts_with(":1: is no vocabulary of heed: it does not start with 'heed-vocabulary 1'"));
  CHECK(read_error("#version: 0.2\ne r\n").starts_with(":1: is a file of BPE codes, no vocabulary"));
  CHECK(read_error("\x89HDF\r\n").starts_with(":1: is an HDF5 file, no vocabulary"));
  CHECK(read_error("heed-vocabulary 2\n") == ":1: is a vocabulary of version 2; this heed reads version 1");
  const std::string head = "heed-vocabulary 1\ntype: words\n";
  CHECK(read_error(head + "mode: klingon\n").starts_with(":3: --mode 'klingon': must be one of moses, 13a, intl"));
  CHECK(read_error(head + "mode: words\nmode: none\npieces: 4\n") == ":4: --mode: takes one value");
  CHECK(read_error(head + "mode: klingon\nno colon\n").starts_with(":3: --mode 'klingon'"));
  CHECK(read_error(head + "shape: round\n") == ":3: unknown text step 'shape' (made by another version of heed?)");
  CHECK(read_error(head).starts_with(":2: the file ends in its header"));
  CHECK(read_error(head + "pieces: many\n").starts_with(":3: 'many' is no number of lines"));
  CHECK(read_error(head + "pieces: 9\n<pad>\n").starts_with(":4: the file ends after 1 of 9 pieces"));
  CHECK(read_error(head + "pieces: 4\n<pad>\n<unk>\n<s>\nx\n").starts_with(": piece 3: is not the reserved </s>"));
  const std::string reserved = "<pad>\n<unk>\n<s>\n</s>\n";
  CHECK(read_error(head + "pieces: 6\n" + reserved + "a\na\n").starts_with(": piece 5: 'a' is there twice"));
  CHECK(read_error(head + "pieces: 5\n" + reserved + "a b\n").starts_with(": piece 4: 'a b' cannot be a piece"));
  CHECK(read_error(head + "pieces: 4\n" + reserved + "b\n").starts_with(":8: there are more lines than pieces"));
  CHECK_THROWS_WITH_AS(TextModel::read("/nonexistent/vocab"),
                       "/nonexistent/vocab: cannot open: No such file or directory", Error);
}
