#include "heed/run/tokenize.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "heed/base/random.h"
#include "heed/checkpoint/checkpoint.h"
#include "heed/model/transformer.h"
#include "heed/run/build_vocab.h"
#include "scratch_folder.h"

using namespace heed;

namespace {

std::string slurp(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

struct ToolResult {
  int code;
  std::string out, log;
};

/// Runs a program's function with the arguments `words`, as the program would.
template <class Options, class Run>
ToolResult call(const ToolInfo& tool, Run run, std::vector<std::string> words, const std::string& input) {
  Options options;
  FieldList fields = FieldList::of(options);
  std::istringstream in(input);
  std::ostringstream out, messages;
  parse_command_line(tool, fields, std::move(words), out);
  if constexpr (requires { options.given; }) options.given = fields.given();
  Log log(messages, std::string(tool.name), options.common.verbose ? Verbosity::verbose : Verbosity::normal);
  const int code = run(options, in, out, log);
  return {code, out.str(), messages.str()};
}

ToolResult tokenize(std::vector<std::string> words, const std::string& input) {
  return call<TokenizeOptions>(tokenize_tool_info(), run_tokenize, std::move(words), input);
}

ToolResult build_vocab(std::vector<std::string> words, const std::string& input = "") {
  return call<BuildVocabOptions>(build_vocab_tool_info(), run_build_vocab, std::move(words), input);
}

std::string usage_error(std::vector<std::string> words) {
  try {
    tokenize(std::move(words), "");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

std::string vocab_error(std::vector<std::string> words, const std::string& input = "a\n") {
  try {
    build_vocab(std::move(words), input);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::string> pieces_of(const std::string& vocabulary) {
  std::istringstream in(vocabulary);
  std::vector<std::string> pieces;
  bool begun = false;
  for (std::string line; std::getline(in, line);) {
    if (begun) pieces.push_back(line);
    begun = begun || line.starts_with("pieces: ");
  }
  return pieces;
}

const std::string kEnglish = "The lower house is low.\nNew houses, new rows!\nThe newest row is the lowest.\n";
const std::string kGerman = "Das Haus am 3. Mai ist neu.\nNeue Häuser, neue Reihen!\n";

}  // namespace

TEST_CASE("tokenize and back, in every mode that comes back") {
  CHECK(tokenize({}, "Hello, world!\n\nIt's me.\n").out == "Hello , world !\n\nIt 's me .\n");
  CHECK(tokenize({"-d"}, "Hello , world !\n\nIt 's me .\n").out == "Hello, world!\n\nIt's me.\n");
  CHECK(tokenize({"-d", "--uppercase-first"}, "hello , world !\n").out == "Hello, world!\n");
  CHECK(tokenize({"-d", "--uppercase-first", "--mode", "words"}, "hello , world !\n").out == "Hello , world !\n");
  CHECK(tokenize({"--mode", "char"}, "ab\n").out == "a b\n");
  CHECK(tokenize({"--mode", "words", "--lowercase"}, " A  b.\n").out == "a b.\n");
  CHECK(tokenize({"--mode", "none"}, " A  b.\r\nlast").out == " A  b.\nlast\n");
  CHECK(tokenize({"-l", "de"}, "am 3. Mai\n").out == "am 3. Mai\n");
  CHECK(tokenize({"--protect", "<b>"}, "a<b>c\n").out == "a <b> c\n");
}

TEST_CASE("tokenize with subword-nmt's codes") {
  const ScratchFolder folder;
  const std::string codes = folder.file("codes", "#version: 0.2\nl o\nlo w</w>\ne r</w>\n");
  CHECK(tokenize({"-c", codes}, "low lower, x\n").out == "low lo@@ w@@ er , x\n");
  CHECK(tokenize({"-c", codes, "--merges", "1"}, "low\n").out == "lo@@ w\n");
  CHECK(tokenize({"-c", codes, "--separator", "~"}, "lower\n").out == "lo~ w~ er\n");
  CHECK(tokenize({"--mode", "none", "-c", codes}, "  low  lower \n  \n\n").out == "  low lo@@ w@@ er \n  \n\n");
  CHECK(tokenize({"-d", "-c", codes}, "low lo@@ w@@ er , x\n").out == "low lower, x\n");
  CHECK(tokenize({"-d", "--separator", "~"}, "lo~ w~ er\n").out == "lower\n");
  const std::string counts = folder.file("counts", "lo@@ 5\nw 9\nlow 2\n");
  CHECK(tokenize({"-c", codes, "--vocabulary", counts}, "low\n").out == "low\n");
  CHECK(tokenize({"-c", codes, "--vocabulary", counts, "--vocabulary-threshold", "3"}, "low\n").out == "lo@@ w\n");
  CHECK_THROWS_WITH_AS(
      tokenize({"-c", codes, "--vocabulary", codes}, ""),
      (codes + ":1: '#version: 0.2' is no piece with a count (build-vocab --counts-output writes such a "
               "file)")
          .c_str(),
      Error);
}

TEST_CASE("a bpe vocabulary: pieces, ids and back; its size; unknown characters") {
  const ScratchFolder folder;
  const std::string text = folder.file("text", kEnglish);
  const ToolResult built =
      build_vocab({"--merges", "20", "--codes-output", folder / "codes", "--counts-output", folder / "counts", text});
  const std::string vocabulary = folder.file("vocab", built.out);
  CHECK(slurp(folder / "codes").starts_with("#version: 0.2\n"));
  const std::string pieces = tokenize({"-m", vocabulary}, kEnglish).out;
  CHECK(pieces == tokenize({"-c", folder / "codes"}, kEnglish).out);
  CHECK(tokenize({"-d", "-m", vocabulary}, pieces).out == kEnglish);
  const std::string ids = tokenize({"-m", vocabulary, "--output-format", "id"}, kEnglish).out;
  CHECK(tokenize({"-d", "-m", vocabulary, "--output-format", "id"}, ids).out == kEnglish);
  CHECK(tokenize({"-m", vocabulary, "--output-format", "id"}, "\xE8\xAA\x9E\n").out == "1\n");
  CHECK_THROWS_WITH_AS(tokenize({"-d", "-m", vocabulary, "--output-format", "id"}, "4 5\n4 x\n"),
                       "standard input:2:3: 'x' is no id (--output-format id reads numbers)", Error);
  CHECK_THROWS_AS(tokenize({"-d", "-m", vocabulary, "--output-format", "id"}, "4 9999\n"), Error);
  // The counts file has only pieces that occur, and the vocabulary begins with the same pieces.
  CHECK(slurp(folder / "counts").find(" 0\n") == std::string::npos);
  const auto listed = pieces_of(built.out);
  CHECK(std::find(listed.begin(), listed.end(), "l@@") != listed.end());
  // Any number of threads gives the same bytes.
  CHECK(build_vocab({"--merges", "20", "-j", "3", text}).out == built.out);
  CHECK(build_vocab({"--merges", "20"}, kEnglish).out == built.out);
}

TEST_CASE("a joint vocabulary has the rules of each language") {
  const ScratchFolder folder;
  const std::string en = folder.file("en", kEnglish), de = folder.file("de", kGerman);
  const std::string vocabulary =
      folder.file("vocab", build_vocab({"-l", "en,de", "--merges", "30", "--write-vocabulary", folder / "v.en",
                                        folder / "v.de", "--", en, de})
                               .out);
  CHECK(tokenize({"-m", vocabulary, "-l", "de"}, kGerman).out ==
        tokenize({"-m", vocabulary, "--language=de"}, kGerman).out);
  CHECK(usage_error({"-m", vocabulary}) ==
        vocabulary + " serves several languages: en, de (choose one with --language)");
  CHECK_THROWS_WITH_AS(
      tokenize({"-m", vocabulary, "-l", "fr"}, ""),
      (vocabulary + ": the vocabulary has no text steps for the language 'fr' (it has: en,de)").c_str(), Error);
  CHECK(slurp(folder / "v.de").find("3@@ 1\n") != std::string::npos);
  CHECK(slurp(folder / "v.en").find("3@@ ") == std::string::npos);
}

TEST_CASE("a checkpoint: the source side, the target side with -d, the side of a language") {
  const ScratchFolder folder;
  TextSteps steps;
  steps.mode = TokenMode::words;
  const auto pieces =
      std::make_shared<const Vocabulary>(std::vector<std::string>{"<pad>", "<unk>", "<s>", "</s>", "a", "b"});
  const TextModel source(steps, Subwords(), pieces);
  steps.language = "fr";
  const TextModel target(steps, Subwords(SubwordType::characters), pieces);
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 6;
  config.dim_emb = config.dim_ffn = 8;
  config.heads = config.enc_depth = config.dec_depth = 1;
  const auto model = std::make_shared<const Transformer<float>>(config);
  ParameterValues<float> parameters(model->layout());
  save_checkpoint(folder / "m.h5", {model, std::move(parameters), source, target});
  CHECK(tokenize({"-m", folder / "m.h5"}, "ab a\n").out == "ab a\n");
  CHECK(tokenize({"-m", folder / "m.h5", "-l", "fr"}, "ab a\n").out == "a b <space> a\n");
  CHECK(tokenize({"-m", folder / "m.h5", "-d"}, "a b <space> a\n").out == "ab a\n");
  CHECK(tokenize({"-m", folder / "m.h5", "-d", "-l", "en"}, "a b\n").out == "a b\n");
  CHECK_THROWS_WITH_AS(tokenize({"-m", folder / "m.h5", "-l", "de"}, ""),
                       ((folder / "m.h5") + ": translates from 'en' to 'fr' and has no text steps for 'de'").c_str(),
                       Error);
}

TEST_CASE("words and characters: minimal frequency, sizes, warnings") {
  const std::string text = "b a a\na c c\n\n";
  CHECK(pieces_of(build_vocab({"--type", "words"}, text).out) ==
        std::vector<std::string>{"<pad>", "<unk>", "<s>", "</s>", "a", "c", "b"});
  CHECK(pieces_of(build_vocab({"--type", "words", "--min-frequency", "2"}, text).out).size() == 6);
  CHECK(pieces_of(build_vocab({"--type", "words", "-s", "5"}, text).out).size() == 5);
  const ToolResult less = build_vocab({"--type", "words", "-s", "1K"}, text);
  CHECK(less.log.find("warning: the text gives 7 pieces only, fewer than --max-size 1000") != std::string::npos);
  const ScratchFolder folder;
  const ToolResult characters =
      build_vocab({"--type", "char", "--mode", "words", "--counts-output", folder / "counts"}, "ab a\nb\n");
  CHECK(slurp(folder / "counts") == "a 2\nb 2\n<space> 1\n");
  const std::string vocabulary = folder.file("vocab", characters.out);
  CHECK(tokenize({"-m", vocabulary}, "ab a\n").out == "a b <space> a\n");
  CHECK(tokenize({"-d", "-m", vocabulary}, "a b <space> a\n").out == "ab a\n");
  CHECK(tokenize({"--check", "-m", vocabulary}, "ab a\n\nb\n").code == 0);
  const ToolResult cut = build_vocab({"--type", "bpe", "-s", "6"}, "abc\n");
  CHECK(cut.log.find("warning: --max-size leaves out 1 of 3 pieces") != std::string::npos);
  CHECK(build_vocab({"-s", "500"}, kEnglish).log.find("merges only, fewer than asked for") != std::string::npos);
  CHECK(pieces_of(build_vocab({"-s", "30"}, kEnglish).out).size() == 30);
  // Names of reserved pieces in the text, such as <s>, are ordinary text and therefore unknown.
  CHECK(pieces_of(build_vocab({"--type", "words", "--mode", "words"}, "<s> a\n").out).size() == 5);
}

TEST_CASE("a character vocabulary always has <space>, and a vocabulary without it has unknown pieces") {
  const std::string text = "aab\nab a\nccb\n", only_words = "ab\na\n";
  const auto pieces = [](std::vector<std::string> options, const std::string& input) {
    options.insert(options.end(), {"--type", "char", "--mode", "words"});
    std::string out;
    const std::vector<std::string> all = pieces_of(build_vocab(std::move(options), input).out);
    for (std::size_t i = 4; i < all.size(); ++i) out += (i > 4 ? " " : "") + all[i];
    return out;
  };
  CHECK(pieces({}, text) == "a b c <space>");
  CHECK(pieces({"-s", "7"}, text) == "a b <space>");
  CHECK(pieces({"-s", "5"}, text) == "<space>");
  CHECK(pieces({"--min-frequency", "2"}, text) == "a b c <space>");
  CHECK(pieces({"--character-coverage", "0.7"}, text) == "a b <space>");
  CHECK(pieces({"--character-coverage", "1"}, text) == "a b c <space>");
  CHECK(pieces({}, only_words) == "a b <space>");
  CHECK(pieces({"-s", "6"}, only_words) == "a <space>");
  CHECK(pieces({"-s", "6"}, "a b a\n") == "<space> a");
  const ToolResult dev = [&] {
    const ScratchFolder folder;
    return build_vocab({"--type", "char", "--mode", "words", "-s", "8", "--dev", folder.file("dev", "b b\n")}, text);
  }();
  CHECK(dev.log.find("       5    66.667 %") != std::string::npos);  // `<space>` is known, and `b` is not
  const ScratchFolder folder;
  std::string old = build_vocab({"--type", "char", "--mode", "words"}, "ab\n").out;
  old.replace(old.find("pieces: 7"), 9, "pieces: 6");
  old.erase(old.find("<space>\n"), 8);
  CHECK(tokenize({"--stats", "-m", folder.file("old", old)}, "a b\n").log.ends_with("unknown 1 (33.333 %)\n"));
}

TEST_CASE("check names the lines that do not come back") {
  const ToolResult kept = tokenize({"--check"}, "Hello, world!\nfine\n");
  CHECK(kept.code == 0);
  CHECK(kept.out.empty());
  const ToolResult lost = tokenize({"--check", "-v"}, "fine\ntwo  spaces\nfine\n a\n");
  CHECK(lost.code == 1);
  CHECK(lost.out == "2\n4\n");
  CHECK(lost.log ==
        "tokenize: standard input:2: comes back as: two spaces\n"
        "tokenize: standard input:4: comes back as: a\n"
        "tokenize: 2 of 4 lines do not come back the same (--verbose shows what they become)\n");
}

TEST_CASE("stats count lines, tokens, pieces and unknown pieces") {
  const ScratchFolder folder;
  const std::string codes = folder.file("codes", "#version: 0.2\nl o\nlo w</w>\n");
  CHECK(tokenize({"--stats", "-c", codes}, "low lox\n\n").log ==
        "tokenize: 2 lines, 2 tokens, 3 pieces (1.500 a token, 1.5 a line), longest line 3 pieces\n");
  const std::string vocabulary = folder.file("vocab", build_vocab({"--type", "words"}, "a b\n").out);
  CHECK(tokenize({"--stats", "-m", vocabulary}, "a b c a\n").log ==
        "tokenize: 1 lines, 4 tokens, 4 pieces (1.000 a token, 4.0 a line), longest line 4 pieces, unknown 1 (25.000 "
        "%)\n");
}

TEST_CASE("a model fixes the steps, and options that would do nothing are errors") {
  CHECK(usage_error({"-m", "v", "--lowercase"}) ==
        "--lowercase: --model says this already (leave it out, or leave out --model)");
  CHECK(usage_error({"-m", "v", "--mode", "moses"}).starts_with("--mode: --model says this already"));
  CHECK(usage_error({"-m", "v", "-c", "codes"}).starts_with("--codes: --model says this already"));
  for (const std::string option : {"--merges=5", "--vocabulary=v", "--separator=x", "--glossaries=x", "--bytes"})
    CHECK(usage_error({"-m", "v", option}) ==
          option.substr(0, option.find('=')) + ": --model says this already (leave it out, or leave out --model)");
  CHECK(usage_error({"--merges", "5"}) == "--merges: needs --codes");
  CHECK(usage_error({"--vocabulary", "v"}) == "--vocabulary: needs --codes");
  CHECK(usage_error({"--separator", "x"}) == "--separator: needs --codes or --detokenize");
  CHECK(usage_error({"--uppercase-first"}) == "--uppercase-first: needs --detokenize");
  CHECK(usage_error({"--output-format", "id"}) == "--output-format id: needs --model, which numbers the pieces");
  CHECK(usage_error({"--check", "-d"}) == "--check: goes both ways itself; leave --detokenize out");
  for (const std::string separator : {" ", "\n", "@@\n"})
    CHECK(usage_error({"-d", "--separator", separator}) ==
          "--separator '" + separator + "': cannot hold a space or a line end");
  for (const std::vector<std::string>& use : {std::vector<std::string>{"-c", "codes"}, {"-d"}})
    CHECK(usage_error({use[0], use.size() > 1 ? use[1] : "-q", "--separator", ""}) ==
          "--separator '': cannot be empty, because a piece without a mark looks like a word");
  CHECK(usage_error({"--stats", "-d"}) == "--stats: has no use with --detokenize");
  for (const std::string option : {"--merges", "--vocabulary", "--glossaries"})
    CHECK(usage_error({"-d", "-c", "codes", option, "1"}) == option + ": has no use with --detokenize");
  for (const std::string option : {"--uppercase-first", "--detruecase"})
    CHECK(usage_error({"-d", "--mode", "trees", option}) == option + ": would change the labels of --mode trees");
  CHECK(usage_error({"-m", "v", "-d", "--separator", "~"}) ==
        "--separator: --model says this already (leave it out, or leave out --model)");
  CHECK(usage_error({"--train-truecaser", "t", "--output-format", "tsv"}) ==
        "--train-truecaser: has no use with --output-format");
  for (const std::string format : {"tsv", "jsonl"})
    CHECK(usage_error({"--output-format", format, "--on-invalid-utf8", "keep"}) ==
          "--on-invalid-utf8 keep: --output-format " + format +
              " is UTF-8 and shows invalid bytes as U+FFFD (use replace or fail)");
  CHECK(usage_error({"-l", "en,de"}) == "--language 'en,de': must be one code");
  for (const char* option : {"--model", "--codes", "--protected", "--truecase"})
    CHECK(usage_error({option, "-"}) ==
          std::string(option) + " - reads standard input, and so does the input (give files)");
}

TEST_CASE("build-vocab: what cannot be is said") {
  CHECK(vocab_error({}, "").starts_with("standard input: there are no words in it"));
  CHECK(vocab_error({}, "\n \n").starts_with("standard input: there are no words in it"));
  CHECK(vocab_error({"--type", "words", "--merges", "3"}) == "--merges: --type words has no merges");
  CHECK(vocab_error({"--type", "char", "--codes-output", "x"}) == "--codes-output: --type char has no merges");
  CHECK(vocab_error({"-l", "en,de"}) ==
        "--language lists 2 codes for 1 texts (give one for all of them, or one for each)");
  CHECK(vocab_error({"-l", "en,"}).starts_with("--language 'en,': must be a code such as en"));
  for (const char* option : {"--input", "--dev", "--protected", "--truecase"})
    CHECK(vocab_error({"-i", "-", option, "-"}) ==
          std::string(option) + " - reads standard input, and so does --input (give files)");
  CHECK(vocab_error({"--on-invalid-utf8", "keep"}) ==
        "--on-invalid-utf8 keep: the merges of --type bpe are UTF-8 (use replace or fail)");
  CHECK(vocab_error({"--type", "unigram", "--user-symbols", "<x>,a\u2581"}) ==
        "--user-symbols '<x>,a\u2581': 'a\u2581' cannot be a symbol (different strings without spaces or U+2581, with "
        "commas between them)");
  CHECK(vocab_error({"--type", "unigram", "--user-symbols", "<x>,<0x41>", "--byte-fallback"}) ==
        "--user-symbols: '<0x41>' is a piece of --byte-fallback already (leave it out)");
  CHECK(vocab_error({"--codes-output", "-"}) ==
        "standard output (-) can take only one output (name a file for the other output)");
  CHECK(vocab_error({"--write-vocabulary", "a", "b"}).starts_with("--write-vocabulary names 2 files for 1 texts"));
  CHECK(vocab_error({"--type", "subword"}) == "--type 'subword': must be one of words, bpe, unigram, char, trees");
  CHECK(vocab_error({"--max-size", "4"}) == "--max-size 4: must be between 5 and 1000000000");
  CHECK(vocab_error({"--max-size", "2G"}) == "--max-size 2G: must be between 5 and 1000000000");
}

TEST_CASE("a truecase model is learnt, applied alone and with tokens, and undone") {
  const ScratchFolder folder;
  const std::string text = "We saw the dog.\nThe dog saw us in Paris.\nIs the dog here?\n";
  const ToolResult learnt = tokenize({"--train-truecaser", folder / "model"}, text);
  CHECK(learnt.out.empty());
  CHECK(slurp(folder / "model") == "dog (3/3)\nhere (1/1)\nin (1/1)\nParis (1/1)\nsaw (2/2)\nthe (2/2)\nus (1/1)\n");
  CHECK(tokenize({"--truecase", folder / "model"}, "The dog. Us!\n\n").out == "the dog . us !\n\n");
  CHECK(tokenize({"--mode", "none", "--truecase", folder / "model"}, "The dog . Us\n").out == "the dog . us\n");
  CHECK(tokenize({"--asr", "--truecase", folder / "model"}, "THE DOG IN PARIS\n").out == "the dog in Paris\n");
  CHECK(tokenize({"-d", "--truecase", folder / "model"}, "the dog . us !\n").out == "The dog. Us!\n");
  CHECK(tokenize({"-d", "--detruecase"}, "the dog . us !\n").out == "The dog. Us!\n");
  CHECK(tokenize({"-d", "--mode", "none", "--detruecase"}, "the dog . us !\n").out == "The dog . Us !\n");
  CHECK(tokenize({"--check", "--truecase", folder / "model"}, text).code == 0);
  // For a text of many lines, any number of threads learns the same model.
  std::string many;
  for (int i = 0; i < 5000; ++i) many += text;
  tokenize({"--train-truecaser", folder / "one", "-j", "1"}, many);
  tokenize({"--train-truecaser", folder / "three", "-j", "3"}, many);
  CHECK(slurp(folder / "one") == slurp(folder / "three"));
  CHECK(slurp(folder / "one").starts_with("dog (15000/15000)\n"));
}

TEST_CASE("a vocabulary and a checkpoint carry the truecase model") {
  const ScratchFolder folder;
  tokenize({"--train-truecaser", folder / "model"}, kEnglish);
  const std::string vocabulary = folder.file(
      "vocab", build_vocab({"--merges", "20", "--truecase", folder / "model"}, "The house.\nNew house.\n").out);
  CHECK(slurp(vocabulary).find("\ntruecase: 11\nhouse (1/1)\n") != std::string::npos);
  std::filesystem::remove(folder / "model");
  const std::string pieces = tokenize({"-m", vocabulary}, "The House.\n").out;
  CHECK(pieces.find("house") != std::string::npos);
  CHECK(tokenize({"-d", "-m", vocabulary}, pieces).out == "The house.\n");
  const TextModel model = TextModel::read(vocabulary);
  const TextModel again = TextModel::from_parts(model.parts(), "parts");
  CHECK(again.steps() == model.steps());
  CHECK_FALSE(again.steps().truecaser.empty());
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = model.size();
  config.dim_emb = config.dim_ffn = 8;
  config.heads = config.enc_depth = config.dec_depth = 1;
  const auto network = std::make_shared<const Transformer<float>>(config);
  save_checkpoint(folder / "m.h5", {network, ParameterValues<float>(network->layout()), model, model});
  CHECK(tokenize({"-m", folder / "m.h5"}, "The House.\n").out == pieces);
  CHECK(tokenize({"-d", "-m", folder / "m.h5"}, pieces).out == "The house.\n");
}

TEST_CASE("truecasing that makes no sense is said") {
  const ScratchFolder folder;
  const std::string model = folder.file("model", "the (1/1)\n"), bad = folder.file("bad", "the\n");
  CHECK(usage_error({"--detruecase"}) == "--detruecase: needs --detokenize");
  CHECK(usage_error({"--asr"}) == "--asr: needs --truecase");
  CHECK(usage_error({"--possibly-use-first-token"}) == "--possibly-use-first-token: needs --train-truecaser");
  CHECK(usage_error({"--train-truecaser", "x", "--check"}) == "--train-truecaser: has no use with --check");
  CHECK(usage_error({"--truecase", model, "--lowercase"}) ==
        "--truecase: --lowercase leaves nothing to do (leave one out)");
  CHECK(vocab_error({"-l", "en,de", "--truecase", model, "a", "b"})
            .starts_with("--truecase: a model serves one language"));
  CHECK_THROWS_WITH_AS(tokenize({"--truecase", bad}, ""), doctest::Contains("bad:1: is no line of a truecase model"),
                       Error);
}

TEST_CASE("entities without Moses' tokens, as the scripts that escape and unescape") {
  CHECK(tokenize({"--mode", "none", "--escape"}, "  a<b>\t&amp; \n").out == "a&lt;b&gt;&amp;amp;\n");
  CHECK(tokenize({"--mode", "none", "--escape", "-d"}, "a  &lt;b&gt; &amp;amp;\n").out == "a  <b> &amp;\n");
  CHECK(tokenize({"--mode", "words", "--escape"}, "a [b]\n").out == "a &#91;b&#93;\n");
  CHECK(tokenize({"--mode", "13a", "--escape", "-d"}, "a &#91; b &#93;\n").out == "a [b]\n");
}

TEST_CASE("the lines before malformed ones are written") {
  std::istringstream in("a, b\nc \xFF\nd\n");
  TokenizeOptions options;
  options.utf8.on_invalid_utf8 = InvalidUtf8::fail;
  std::ostringstream out, messages;
  Log log(messages, "tokenize", Verbosity::normal);
  CHECK_THROWS_AS(run_tokenize(options, in, out, log), Error);
  CHECK(out.str() == "a , b\n");
}

TEST_CASE("Moses' options where there is nothing for them to do are errors") {
  CHECK(usage_error({"--mode", "13a", "-a"}) == "--aggressive-hyphens: has a use with --mode moses only");
  CHECK(usage_error({"--mode", "none", "--skip-xml"}) == "--skip-xml: has a use with --mode moses only");
  CHECK(usage_error({"--penn", "--protect", "x"}) == "--protect: --penn has no use for it");
  CHECK(usage_error({"--penn", "--mode", "words"}) ==
        "--penn: has a use with --mode moses, or --mode none --normalize-punctuation");
}

TEST_CASE("tsv and jsonl tell where pieces come from, in bytes of the line as it was read") {
  const ScratchFolder folder;
  const std::string codes = folder.file("codes", "#version: 0.2\nl o\nlo w</w>\n");
  const ToolResult tsv =
      tokenize({"-c", codes, "--lowercase", "--output-format", "tsv"}, "Low\xff  slow.\n\n\xc3\x89 \\\n");
  CHECK(tsv.code == 0);
  CHECK(tsv.out ==
        "low \xef\xbf\xbd s@@ low .\t0:3 3:4 6:7 7:10 10:11\t0 1 2 2 3\n\t\t\n\xc3\xa9 \\\\\t0:2 3:4\t0 1\n");
  CHECK(tsv.log.find("1:4: invalid UTF-8 replaced") != std::string::npos);
  const std::string vocab = folder.file("vocab", build_vocab({"--type", "words", "--mode", "words"}, "a b\n").out);
  const ToolResult json = tokenize({"-m", vocab, "--output-format", "jsonl"}, " b \"\n");
  CHECK(json.out ==
        "{\"pieces\": [\"b\", \"\\\"\"], \"offsets\": [[1, 2], [3, 4]], \"words\": [0, 1], \"ids\": [5, 1]}\n");
  const std::string characters =
      folder.file("characters", build_vocab({"--type", "char", "--mode", "words"}, "ab c\n").out);
  CHECK(tokenize({"-m", characters, "--output-format", "tsv"}, "  ab \t c\n").out ==
        "a b <space> c\t2:3 3:4 4:7 7:8\t0 0 0 1\t5 6 4 7\n");
  CHECK(tokenize({"--mode", "none", "--output-format", "tsv"}, "a\tb\\\rc\n").out == "a\\tb\\\\\\rc\t0:6\t0\n");
}

TEST_CASE("tsv and jsonl of trees tell the places of brackets, parts of speech and words") {
  const ScratchFolder folder;
  const std::string tree = "(S (NP (NN NP) (NN low)) (VP (NN S)))\n";
  CHECK(tokenize({"--mode", "trees", "--output-format", "tsv"}, tree).out ==
        "(S (NP NN NN )NP (VP NN )VP )S\t0:2 3:6 8:10 16:18 23:24 25:28 30:32 35:36 36:37\t0 1 2 3 4 5 6 7 8\n");
  const std::string codes = folder.file("codes", "#version: 0.2\nl o\n");
  CHECK(tokenize({"--mode", "leaves", "-c", codes, "--output-format", "tsv"}, tree).out ==
        "N@@ P lo@@ w S\t11:12 12:13 19:21 21:22 33:34\t0 0 1 1 2\n");
}

TEST_CASE("dropout gives every line its own random numbers, whatever the threads, and pieces that join again") {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 500; ++i) text += "low slow lower slowest\n";
  const std::string codes = folder.file("codes", "#version: 0.2\nl o\nlo w</w>\nlo w\ne r</w>\n");
  const auto with = [&](std::string threads, std::string seed) {
    return tokenize({"-c", codes, "--dropout", "0.5", "--seed", std::move(seed), "-j", std::move(threads)}, text).out;
  };
  const std::string once = with("1", "3");
  CHECK(once == with("4", "3"));
  CHECK(once != with("1", "4"));
  CHECK(once.find("low s@@ low") != std::string::npos);
  CHECK(once.find("l@@ o@@ w s@@ l") != std::string::npos);
  CHECK(tokenize({"-d", "-c", codes}, once).out == text);
  const std::string vocab =
      folder.file("vocab", build_vocab({"--merges", "3", "--mode", "words"}, "low low low slow slow\n").out);
  CHECK(tokenize({"-m", vocab}, "slow low\n").out != tokenize({"-m", vocab, "--dropout", "1"}, "slow low\n").out);
  const std::string words = folder.file("words", build_vocab({"--type", "words"}, "a b\n").out);
  CHECK(usage_error({"-m", words, "--dropout", "0.5"}) ==
        "--dropout: the type of the vocabulary, words, has no merges that can be left out");
  CHECK(usage_error({"-d", "-c", codes, "--dropout", "0.5"}) == "--dropout: has no use with --detokenize");
}

TEST_CASE("merges of bytes and glossaries through the tool") {
  const ScratchFolder folder;
  const std::string codes = folder.file("codes", "#version: 0.2\n\xc3 \xa9</w>\n");
  const ToolResult cut = tokenize({"-c", codes, "--bytes", "--mode", "none"}, "\xc3\xa9 \xc3\xa8\n");
  CHECK(cut.out == "\xc3\xa9 \xc3@@ \xa8\n");
  CHECK(tokenize({"-d", "-c", codes, "--bytes", "--mode", "none", "--on-invalid-utf8", "keep"}, cut.out).out ==
        "\xc3\xa9 \xc3\xa8\n");
  const std::string marked = folder.file("marked", "#version: 0.2 byte\n\xc3 \xa9</w>\n");
  for (const std::string format : {"tsv", "jsonl"}) {
    const std::string message = "--output-format " + format +
                                ": is UTF-8, but merges of bytes give pieces that are parts of a character (use "
                                "--output-format piece)";
    CHECK(usage_error({"-c", codes, "--bytes", "--output-format", format}) == message);
    CHECK(usage_error({"-c", marked, "--output-format", format}) == message);
  }
  const std::string merges = folder.file("merges", "#version: 0.2\nU S\n");
  CHECK(tokenize({"-c", merges, "--glossaries", "USA", "[0-9]+"}, "1934USABUSA\n").out == "1934@@ USA@@ B@@ USA\n");
}

TEST_CASE("words with counts, characters counted in, sizes that are a multiple") {
  const ScratchFolder folder;
  const std::string text = "low low lower\nnew newer low slow\n";
  const std::string counts = folder / "counts", codes = folder / "codes", again = folder / "again";
  build_vocab({"--type", "words", "--mode", "words", "--counts-output", counts}, text);
  build_vocab({"--mode", "words", "--merges", "4", "--codes-output", codes}, text);
  const ToolResult dict =
      build_vocab({"--mode", "words", "--merges", "4", "--codes-output", again, "--dict-input", counts});
  CHECK(dict.code == 0);
  CHECK(slurp(codes) == slurp(again));
  CHECK(vocab_error({"--dict-input"}, "low 3\nnew\n").starts_with("standard input:2: 'new' is no piece with a count"));
  CHECK(vocab_error({"--dict-input"}, "low 0\n").starts_with("standard input: there are no words in it"));
  // The characters l o w e n s occur within words and w r at their ends: eight characters.
  build_vocab({"--mode", "words", "--merges", "12", "--total-symbols", "--codes-output", again}, text);
  CHECK(slurp(codes) == slurp(again));
  CHECK(vocab_error({"--mode", "words", "--merges", "7", "--total-symbols"}, text)
            .starts_with("the text has 8 different characters"));
  const std::string padded = build_vocab({"--type", "words", "--mode", "words", "--pad-to-multiple", "8"}, text).out;
  CHECK(padded.find("pieces: 16\n") != std::string::npos);
  CHECK(padded.ends_with("<unused5>\n<unused6>\n"));
}

TEST_CASE("many unused pieces are added in time in proportion to their number") {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i) + (i % 1000 < 999 ? " " : "\n");
  text += "<unused1>\n";
  const std::string built = build_vocab({"--type", "words", "--mode", "words", "--pad-to-multiple", "65536"}, text).out;
  CHECK(pieces_of(built).size() == 4 * 65536);
  CHECK(built.find("\n<unused0>\n<unused2>\n") != std::string::npos);
}

TEST_CASE("counts of --dict-input: the largest text, and a text that is too large") {
  const std::string too_large =
      ": the counts up to this line describe a text of more than 10^15 bytes, which is too large to learn from (divide "
      "all counts by the same number)";
  for (const std::string type : {"words", "bpe", "unigram"}) {
    CAPTURE(type);
    const std::vector<std::string> options = {"--type", type, "--dict-input"};
    // With the space after each word, 2 * 2 + 3 * (10^15 / 3 - 1) = 10^15 bytes.
    const std::string most = "a 2\nab 333333333333332\n";
    CHECK(build_vocab(options, most).log.find(" 333,333,333,333,334 words ") != std::string::npos);
    CHECK(vocab_error(options, most + "b 1\n") == "standard input:3" + too_large);
    CHECK(vocab_error(options, "a 1\nab 9223372036854775807\n") == "standard input:2" + too_large);
    CHECK(vocab_error(options, std::string(1000, 'a') + " 999000999001\n") == "standard input:1" + too_large);
  }
}

TEST_CASE("--dev tells how sizes cover a text") {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "w" + std::to_string(i % 20) + " common\n";
  const std::string dev = folder.file("dev", "w1 w2 common x\n\nw3 w19\n");
  const std::vector<std::string> options = {"--type", "words", "--mode", "words", "-s", "16", "--dev", dev};
  const ToolResult table = build_vocab(options, text);
  CHECK(table.out.find("pieces: 16\n") != std::string::npos);
  std::vector<std::string> with_json = options;
  with_json.insert(with_json.end(), {"--format", "json"});
  const ToolResult json = build_vocab(with_json, text);
  CHECK(json.out == table.out);
  // The sizes are 5, 8, 16 and 25 (25 holds all words): first `common`, then the most frequent words in byte order.
  const auto start = json.log.find("[\n");
  REQUIRE(start != std::string::npos);
  CHECK(json.log.substr(start) ==
        "[\n"
        " {\"size\": 5, \"unknown_rate\": 0.833333, \"pieces_per_word\": 1, \"length_99th_percentile\": 4},\n"
        " {\"size\": 8, \"unknown_rate\": 0.666667, \"pieces_per_word\": 1, \"length_99th_percentile\": 4},\n"
        " {\"size\": 16, \"unknown_rate\": 0.666667, \"pieces_per_word\": 1, \"length_99th_percentile\": 4},\n"
        " {\"size\": 25, \"unknown_rate\": 0.166667, \"pieces_per_word\": 1, \"length_99th_percentile\": 4}\n"
        "]\n");
  // The text has more characters than a quarter and a half of 32 pieces have room for.
  const std::vector<std::string> unigram = {"--type", "unigram", "--mode", "words", "-s", "32", "--dev", dev};
  const ToolResult small = build_vocab(unigram, text);
  CHECK(small.out.find("pieces: 32\n") != std::string::npos);
  const std::string why =
      "the text has 16 different characters, more than there is room for (4); a larger --max-size or a lower "
      "--character-coverage is needed";
  CHECK(small.log.find("\n       8  " + why + "\n      16  the text has 16 different") != std::string::npos);
  std::vector<std::string> unigram_json = unigram;
  unigram_json.insert(unigram_json.end(), {"--format", "json"});
  const std::string log = build_vocab(unigram_json, text).log;
  const auto rows = nlohmann::json::parse(log.substr(log.find("[\n")));
  REQUIRE(rows.size() == 4);
  CHECK(rows[0] == nlohmann::json{{"size", 8}, {"error", why}});
  CHECK(rows[2]["size"] == 32);
}

TEST_CASE("random bytes: as many lines out as in, whatever is done to them") {
  const ScratchFolder folder;
  const RandomStream stream(5, RandomUse::shuffle);
  std::string bytes;
  for (std::uint64_t i = 0; i < 60000; ++i) {
    // Of nine kinds of bytes one is a line feed, and one is white space or an ASCII mark; the others are random bytes.
    const std::uint64_t kind = stream.below(9, 2 * i), value = stream.below(256, 2 * i + 1);
    bytes += kind == 0 ? '\n' : kind == 1 ? " \t\r\v\f\0'\"-.&<"[value % 13] : static_cast<char>(value);
  }
  const auto feeds = std::count(bytes.begin(), bytes.end(), '\n') + (bytes.back() == '\n' ? 0 : 1);
  const std::string codes = folder.file("codes", "#version: 0.2\na b\n");
  const std::vector<std::vector<std::string>> ways = {
      {},
      {"-d"},
      {"--mode", "none"},
      {"--mode", "words"},
      {"--mode", "13a"},
      {"--mode", "intl"},
      {"--mode", "char"},
      {"--penn", "--escape"},
      {"--normalize", "nfkc", "--normalize-punctuation", "--replace-unicode-punctuation", "--remove-nonprinting"},
      {"-l", "fr", "--protect", "<[^>]*>", "--skip-xml", "-a"},
      {"-c", codes},
      {"-c", codes, "--bytes", "--on-invalid-utf8", "keep"},
      {"-c", codes, "--output-format", "tsv"},
      {"--output-format", "jsonl"}};
  for (const auto& options : ways) {
    CAPTURE(options.empty() ? std::string("no options") : options.back());
    const std::string out = tokenize(options, bytes).out;
    CHECK(std::count(out.begin(), out.end(), '\n') == feeds);
    CHECK(out.back() == '\n');
  }
}

TEST_CASE("a unigram vocabulary: pieces, ids and back, through a checkpoint too") {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 30; ++i) text += kEnglish;
  const std::string english = folder.file("en", text), german = folder.file("de", kGerman);
  const auto build = [&](std::string threads) {
    return build_vocab({"--type", "unigram", "-s", "340", "--byte-fallback", "--user-symbols", "<a>,est", "-l", "en,de",
                        "--pad-to-multiple", "8", "-j", std::move(threads), english, german});
  };
  const ToolResult built = build("1");
  CHECK(built.out == build("3").out);
  const auto pieces = pieces_of(built.out);
  CHECK(pieces.size() % 8 == 0);
  CHECK(pieces[4] == "<a>");
  CHECK(pieces[6] == "<0x00>");
  CHECK(built.out.find("\ntype: unigram\n") != std::string::npos);
  CHECK(built.out.find("\nlanguage: en,de\n") != std::string::npos);
  CHECK(built.out.find("\nuser-symbols: <a>\nuser-symbols: est\n") != std::string::npos);
  const std::string vocabulary = folder.file("vocab", built.out);
  CHECK(slurp(vocabulary) == [&] {
    std::ostringstream again;
    TextModel::read(vocabulary).write(again);
    return again.str();
  }());

  const std::vector<std::string> model = {"-m", vocabulary, "-l", "en"};
  const auto with = [&](std::vector<std::string> more, const std::string& input) {
    more.insert(more.end(), model.begin(), model.end());
    return tokenize(std::move(more), input);
  };
  const std::string strange = "The newest \u65E5\u672C row!\n";
  const ToolResult cut = with({"--stats"}, strange);
  CHECK(cut.out.find("\u2581The ") == 0);
  CHECK(cut.out.find(" est ") != std::string::npos);
  CHECK(cut.out.find(" <0xE6> <0x97> <0xA5> <0xE6> ") != std::string::npos);
  CHECK(cut.log.find("5 tokens") != std::string::npos);
  CHECK(cut.log.find("unknown 0 ") != std::string::npos);
  CHECK(with({"-d"}, cut.out).out == strange);
  const std::string ids = with({"--output-format", "id"}, strange).out;
  CHECK(with({"-d", "--output-format", "id"}, ids).out == strange);
  CHECK(with({"--check", "--output-format", "id"}, text + strange).code == 0);
  CHECK(with({"--output-format", "tsv"}, "The est!\n").out.starts_with("\u2581The \u2581 est "));
  CHECK(with({"--output-format", "tsv"}, "The est!\n").out.find("\t0:3 4:4 4:7 ") != std::string::npos);

  const TextModel text_model = TextModel::read(vocabulary).source();
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = text_model.size();
  config.dim_emb = config.dim_ffn = 8;
  config.heads = config.enc_depth = config.dec_depth = 1;
  const auto network = std::make_shared<const Transformer<float>>(config);
  save_checkpoint(folder / "m.h5", {network, ParameterValues<float>(network->layout()), text_model, text_model});
  CHECK(tokenize({"-m", folder / "m.h5"}, strange).out == cut.out);
  CHECK(tokenize({"-m", folder / "m.h5", "--output-format", "id"}, strange).out == ids);
  CHECK(tokenize({"-d", "-m", folder / "m.h5"}, cut.out).out == strange);
}

TEST_CASE("segmentations of a unigram model: the n best, and samples") {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 30; ++i) text += kEnglish;
  const std::string vocabulary = folder.file("vocab", build_vocab({"--type", "unigram", "-s", "60"}, text).out);
  const ToolResult best = tokenize({"-m", vocabulary, "--n-best", "3"}, "the lower\n\nrow\n");
  CHECK(best.out.starts_with("0 ||| "));
  CHECK(best.out.find("\n1 |||  ||| 0.0000\n2 ||| ") != std::string::npos);
  CHECK(best.out.find("\n0 ||| ") != std::string::npos);
  const std::string first = tokenize({"-m", vocabulary}, "the lower\n").out;
  CHECK(best.out.starts_with("0 ||| " + first.substr(0, first.size() - 1) + " ||| -"));
  CHECK(tokenize({"-m", vocabulary, "--n-best", "2", "--output-format", "id"}, "row\n").out.starts_with("0 ||| "));

  const auto sample = [&](std::string alpha, std::string seed, std::string threads) {
    return tokenize({"-m", vocabulary, "--sample-alpha", std::move(alpha), "--seed", std::move(seed), "-j",
                     std::move(threads)},
                    text)
        .out;
  };
  CHECK(sample("0.1", "1", "1") == sample("0.1", "1", "3"));
  CHECK(sample("0.1", "1", "1") != sample("0.1", "2", "1"));
  CHECK(sample("1000", "1", "1") == tokenize({"-m", vocabulary}, text).out);
  CHECK(tokenize({"-d", "-m", vocabulary}, sample("0", "1", "1")).out == text);

  const std::string words = folder.file("words", build_vocab({"--type", "words"}, "a b\n").out);
  CHECK(usage_error({"-m", words, "--n-best", "2"})
            .ends_with("words is no unigram model (build-vocab --type unigram makes one)"));
  CHECK(usage_error({"--sample-alpha", "1"}) == "--sample-alpha: needs --model, a unigram model");
  CHECK(usage_error({"--seed", "1"}) == "--seed: needs --dropout or --sample-alpha");
  CHECK(usage_error({"-m", vocabulary, "--n-best", "2", "-d"}) == "--n-best: has no use with --detokenize");
  CHECK(usage_error({"-m", vocabulary, "--n-best", "2", "--output-format", "tsv"}) ==
        "--n-best: writes pieces or ids, not tsv or jsonl");
  CHECK(usage_error({"-m", vocabulary, "--dropout", "0.1"}) ==
        "--dropout: the type of the vocabulary, unigram, has no merges that can be left out");
}

TEST_CASE("build-vocab: options of the unigram model") {
  const std::string text = "ab ab ab ab ab ab ab ab ab \u00E9\n";
  CHECK(build_vocab({"--type", "char", "--character-coverage", "0.9"}, text).out.find("\u00E9") == std::string::npos);
  CHECK(build_vocab({"--type", "unigram", "--character-coverage", "1"}, text).out.find("\u00E9") != std::string::npos);
  CHECK(build_vocab({"--type", "unigram", "--character-coverage", "0.9"}, text).out.find("\u00E9") ==
        std::string::npos);
  CHECK(build_vocab({"--type", "unigram"}, text).log.find("pieces only, fewer than --max-size 8000") !=
        std::string::npos);
  CHECK(vocab_error({"--type", "unigram", "-s", "6"}, text)
            .starts_with("the text has 4 different characters, more than there is room for (2)"));
  CHECK(vocab_error({"--type", "unigram", "-s", "200", "--byte-fallback"}) ==
        "--max-size 200: the reserved pieces, bytes and user symbols take 260 already (a larger one is needed)");
  CHECK(vocab_error({"--type", "char", "--byte-fallback"}) ==
        "--byte-fallback: --type char has no such thing (--type unigram has)");
  CHECK(vocab_error({"--user-symbols", "a"}) == "--user-symbols: --type bpe has no such thing (--type unigram has)");
  CHECK(
      vocab_error({"--type", "unigram", "--user-symbols", "a,,b"}).starts_with("--user-symbols 'a,,b': '' cannot be"));
  CHECK(vocab_error({"--type", "unigram", "--merges", "3"}) == "--merges: --type unigram has no merges");
}

TEST_CASE("a SentencePiece model through the tool, and one that is damaged") {
  const ScratchFolder folder;
  const std::string model = HEED_TEST_DATA "/text/reference/sentencepiece/unigram_bytes.model";
  const std::string line = "  The dog  sleeps \uFF41\u65E5<sep>\n";
  const ToolResult cut = tokenize({"-m", model, "--stats"}, line);
  CHECK(cut.out == "\u2581the \u2581do g \u2581sleep s \u2581a <0xE6> <0x97> <0xA5> <sep>\n");
  CHECK(tokenize({"-d", "-m", model}, cut.out).out == "the dog sleeps a\u65E5<sep>\n");
  CHECK(tokenize({"-m", model, "--check"}, "the dog\nThe dog\n").out == "2\n");
  CHECK(tokenize({"-m", model, "--output-format", "tsv"}, " A \uFF41\n").out.find("\t") != std::string::npos);
  CHECK_THROWS_WITH_AS(tokenize({"-m", folder.file("cut", slurp(model).substr(0, 5000))}, ""),
                       doctest::Contains("cut: is no SentencePiece model, or a damaged one"), Error);
  CHECK_THROWS_WITH_AS(tokenize({"-m", folder.file("text", "\nno model\n")}, ""),
                       doctest::Contains("text: is no SentencePiece model, or a damaged one"), Error);
}

TEST_CASE("SentencePiece's extra options and its normaliser alone") {
  const std::string folder = HEED_TEST_DATA "/text/reference/sentencepiece/";
  std::ifstream in(folder + "options.json");
  REQUIRE(in);
  const nlohmann::json models = nlohmann::json::parse(in)["models"];
  CHECK(models.size() == 3);
  for (const auto& [name, cases] : models.items()) {
    CAPTURE(name);
    const std::string model = folder + name + ".model";
    CHECK(cases.size() > 30);
    for (const auto& test : cases) {
      const std::string line = test["line"].get<std::string>() + "\n";
      CAPTURE(line);
      CHECK(tokenize({"-m", model, "--normalize-only"}, line).out == test["normalized"].get<std::string>() + "\n");
      for (const std::string options : {"reverse:bos:eos", "unk"}) {
        std::string pieces;
        for (const std::string piece : test[options]) pieces += (pieces.empty() ? "" : " ") + piece;
        CHECK(tokenize({"-m", model, "--extra-options", options}, line).out == pieces + "\n");
      }
    }
  }
}

TEST_CASE("extra options follow each other, and --detokenize applies them to what it reads") {
  const std::string folder = HEED_TEST_DATA "/text/reference/sentencepiece/", model = folder + "unigram_bytes.model";
  const auto cut = [&](std::vector<std::string> words, const std::string& text) {
    words.insert(words.begin(), {"-m", model});
    return tokenize(std::move(words), text).out;
  };
  CHECK(cut({}, "the dog\n") == "\u2581the \u2581do g\n");
  CHECK(cut({"--extra-options", "bos:eos:reverse"}, "the dog\n") == "</s> g \u2581do \u2581the <s>\n");
  CHECK(cut({"--extra-options", ""}, "the dog\n") == "\u2581the \u2581do g\n");
  const std::string ids = cut({"--extra-options", "reverse:bos:eos", "--output-format", "id"}, "the dog\n");
  CHECK(ids.starts_with("2 "));
  CHECK(ids.ends_with(" 3\n"));
  CHECK(cut({"-d", "--extra-options", "reverse", "--output-format", "id"}, ids) == "the dog\n");
  CHECK(cut({"-d", "--extra-options", "reverse:bos"}, "</s> g \u2581do \u2581the <s>\n") == "the dog\n");
  CHECK(cut({"--check", "--extra-options", "reverse:bos:eos"}, "the dog\n") == "");
  CHECK(cut({"--n-best", "1", "--extra-options", "eos:reverse"}, "the dog\n")
            .starts_with("0 ||| </s> g \u2581do \u2581the ||| "));
  CHECK(tokenize({"-d", "-m", folder + "word.model", "--extra-options", "unk"}, "\u2581the \u2581zzz\n").out ==
        "the \u2047 \n");

  const auto error = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"-m", model});
    return usage_error(std::move(words));
  };
  CHECK(error({"--extra-options", "reverse:end"}) ==
        "--extra-options 'reverse:end': 'end' is none of reverse, bos, eos and unk (put a colon between several)");
  CHECK(error({"--extra-options", "bos", "--output-format", "tsv"}) ==
        "--extra-options: changes pieces or ids, not tsv or jsonl");
  CHECK(error({"--normalize-only", "-d"}) == "--normalize-only: has no use with --detokenize");
  CHECK(usage_error({"--normalize-only"}) == "--normalize-only: needs --model, a SentencePiece model");
  const ScratchFolder files;
  const std::string words = files.file("words", build_vocab({"--type", "words"}, "a b\n").out);
  CHECK(usage_error({"-m", words, "--extra-options", "bos"}) ==
        "--extra-options: " + words + " holds no SentencePiece model");
  std::string without = slurp(model);
  for (std::size_t at = 0; (at = without.find("<s>", at)) != std::string::npos;) without[at + 1] = 'S';
  const std::string no_start = files.file("no_start.model", without);
  CHECK_THROWS_WITH_AS(tokenize({"-m", no_start, "--extra-options", "bos"}, ""),
                       (no_start + ": has no piece '<s>', which --extra-options bos needs (leave bos out)").c_str(),
                       Error);
}

TEST_CASE(
    "build-vocab --shortlist: parallel pieces in, from files, gzip or standard input, links instead of learning") {
  const ScratchFolder folder;
  const std::string source = folder.file("s", "das haus\ndas buch\nein buch\n\n"),
                    target = folder.file("t", "the house\nthe book\r\na book\n\n");
  const ToolResult learnt = build_vocab({"--shortlist", source, target, "--best", "1", "--frequent", "2"});
  CHECK(learnt.out ==
        "heed-shortlist 1\n book 2\n the 2\nbuch book " + learnt.out.substr(learnt.out.find("buch book ") + 10));
  for (const char* line : {"\nbuch book 0.", "\ndas the 0.", "\nein a 0.", "\nhaus house 0."})
    CHECK(learnt.out.find(line) != std::string::npos);
  CHECK(learnt.log == "build-vocab: 4 sentence pairs, 4 and 4 different pieces, 10 pairs of them\n");
  CHECK(build_vocab({"--shortlist", source, "-", "--best", "1", "--frequent", "2", "-j", "3"}, slurp(target)).out ==
        learnt.out);
  CHECK(build_vocab({"--shortlist", source, target, "--best", "1", "--frequent", "2", "--iterations", "1"}).out !=
        learnt.out);
  const std::string links = folder.file("a", "0-0  1-1\n0-0\n1-0 \n\n");
  CHECK(build_vocab({"--shortlist", source, target, "--frequent", "0", "--alignments", links}).out ==
        "heed-shortlist 1\nbuch a 1\ndas the 1\nhaus house 1\n");
}

TEST_CASE("build-vocab --shortlist: texts that are not parallel, links that lead nowhere, options that do not fit") {
  const ScratchFolder folder;
  const std::string source = folder.file("s", "a b\nc\n"), target = folder.file("t", "x\ny z\n"),
                    longer = folder.file("longer", "x\ny\nz\n"), blank = folder.file("blank", " \n\n");
  const auto error = [](std::vector<std::string> words) { return vocab_error(std::move(words), ""); };
  const std::string rule = " (line N of each belongs to line N of the others)";
  CHECK(error({"--shortlist", source, longer}) == source + ": has 2 lines, but " + longer + " has 3 lines" + rule);
  CHECK(error({"--shortlist", longer, target}) == target + ": has 2 lines, but " + longer + " has 3 lines" + rule);
  CHECK(error({"--shortlist", source, blank}).starts_with(blank + ": there are no pieces in it ("));
  CHECK(error({"--shortlist", source, target, "--alignments", folder.file("1", "0-0\n")})
            .starts_with(folder / "1: has 1 line, but "));
  CHECK(error({"--shortlist", source, target, "--alignments", folder.file("2", "0-0\n0-0 0-x\n")})
            .starts_with(folder / "2:2:5: '0-x' is no link, source-target from 0 ("));
  for (const char* wrong : {"1", "-", "0-", "-1-0", "0--1", "0-0-0", "0:0", "99999999999999999999-0"})
    CHECK(error({"--shortlist", source, target, "--alignments", folder.file("3", std::string(wrong) + "\n\n")})
              .starts_with(folder / "3:1:1: '"));
  CHECK(error({"--shortlist", source, target, "--alignments", folder.file("4", "1-0\n1-0\n")}) ==
        folder / "4:2:1: '1-0' leads out of the sentences of 1 and 2 pieces (align the same two texts)");
  CHECK(error({"--shortlist", source}) ==
        "--shortlist: names 1 text (a source and a target text of pieces are needed)");
  CHECK(error({"--shortlist", source, target, "-s", "50"}) == "--max-size: has no use with --shortlist");
  CHECK(error({"--shortlist", source, target, "--type", "words"}) == "--type: has no use with --shortlist");
  CHECK(error({"--best", "3"}) == "--best: needs --shortlist");
  CHECK(error({"--shortlist", source, target, "--alignments", source, "--iterations", "3"}) ==
        "--iterations: has no use with --alignments");
  CHECK(error({"--shortlist", "-", "-"}) == "--shortlist - reads standard input, and so does --shortlist (give files)");
}
