#include "heed/run/bleu.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "heed/base/error.h"
#include "heed/base/streams.h"

using namespace heed;

namespace {

struct Outcome {
  int code = 0;
  std::string out, log;
};

/// Files that go when the test does.
class Files {
 public:
  Files() : folder_(std::filesystem::temp_directory_path() / ("heed_bleu_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Files() { std::filesystem::remove_all(folder_); }

  std::string add(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    OutputFile file(path);
    file.stream() << text;
    file.commit();
    return path;
  }

 private:
  std::filesystem::path folder_;
};

/// The tool as its command line would run it.
Outcome bleu(std::vector<std::string> words, const std::string& standard_input = "") {
  BleuToolOptions options;
  std::ostringstream unused, out, messages;
  if (!parse_command_line(bleu_tool_info(), FieldList::of(options), std::move(words), unused)) return {};
  std::istringstream in(standard_input);
  Log log(messages, "bleu");
  Outcome outcome;
  outcome.code = run_bleu(options, in, out, log);
  return {outcome.code, out.str(), messages.str()};
}

std::string message_of(std::vector<std::string> words, const std::string& standard_input = "") {
  try {
    bleu(std::move(words), standard_input);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const std::string kReference = "the cat sat on the mat .\na dog barked\n";
const std::string kHypothesis = "the cat sat on a mat .\na dog barked\n";

}  // namespace

TEST_CASE("a corpus is reported as JSON, as text, or as its number") {
  const Files files;
  const std::string ref = files.add("ref", kReference);
  const std::string text = bleu({ref, "-f", "text", "-w", "4"}, kHypothesis).out;
  CHECK(text.starts_with("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heed."));
  CHECK(text.ends_with(" = 53.8956 90.0/75.0/50.0/25.0 (BP = 1.000 ratio = 1.000 hyp_len = 10 ref_len = 10)\n"));
  CHECK(bleu({ref, "-b"}, kHypothesis).out == "53.9\n");
  CHECK(bleu({ref, "-b", "-w", "0"}, kHypothesis).out == "54\n");
  CHECK(bleu({ref}, kHypothesis)
            .out.starts_with("{\n \"name\": \"BLEU\",\n \"score\": 53.9,\n \"signature\": \"nrefs:1|"));
  CHECK(bleu({ref, "--signature"}).out == text.substr(5, text.find(" = ") - 5) + "\n");
}

TEST_CASE("several systems stand in one table; alone, their numbers one a line") {
  const Files files;
  const std::string ref = files.add("ref", kReference), one = files.add("one", kHypothesis),
                    two = files.add("two", kReference);
  CHECK(bleu({ref, "-i", one, two, "-b"}).out == "53.9\n100.0\n");
  const std::string table = bleu({ref, "-f", "text", "-i", one, two}).out;
  CHECK(table.find("│  53.9  │\n├") != std::string::npos);
  CHECK(table.find(two + " │ 100.0  │\n") != std::string::npos);
  CHECK(bleu({ref, "-i", one, two})
            .out.starts_with("[\n    {\n        \"system\": \"" + one + "\",\n        \"BLEU\": \"53.9\"\n"));
}

TEST_CASE("sentences: a line each") {
  const Files files;
  const std::string ref = files.add("ref", kReference);
  CHECK(bleu({ref, "-sl", "-b"}, kHypothesis).out == "48.9\n100.0\n");
  const std::string text = bleu({ref, "-sl"}, kHypothesis).out;
  CHECK(text.find("eff:yes") != std::string::npos);
  CHECK(text.find(" = 100.0 100.0/100.0/100.0/0.0 (BP") != std::string::npos);
  CHECK(bleu({ref, "-sl", "--no-effective-order", "-b"}, kHypothesis).out == "48.9\n0.0\n");
  const std::string json = bleu({ref, "-sl", "-f", "json"}, kHypothesis).out;
  CHECK(json.starts_with("{\"name\": \"BLEU\", \"score\": 48.9, "));
  CHECK(std::count(json.begin(), json.end(), '\n') == 2);
}

TEST_CASE("the textbook's score: a line each") {
  const Files files;
  const std::string ref = files.add("ref", "va !\nil est calme .\nje suis chez moi .\n");
  const std::string hyp = "va !\nil est un calme .\nje suis chez moi\n";
  CHECK(bleu({ref, "--d2l", "2"}, hyp).out == "1.000\n0.752\n0.779\n");
  CHECK(bleu({ref, "--d2l", "2", "-f", "json", "-w", "1"}, hyp)
            .out.starts_with("{\"name\": \"d2l\", \"max_order\": 2, \"score\": 1.0}\n"));
  CHECK(bleu({ref, "--d2l", "1", "-lc"}, "VA !\n\nx\n").out == "1.000\n0.000\n0.000\n");
  CHECK(bleu({files.add("joined", "va!\n"), "--d2l", "2", "-tok", "13a"}, "va !\n").out == "1.000\n");
}

TEST_CASE("--fail-under decides on the exact score, prints all the same and exits with 3") {
  const Files files;
  const std::string ref = files.add("ref", kReference);
  CHECK(bleu({ref, "-b", "--fail-under", "53.8"}, kHypothesis).code == 0);
  const Outcome below = bleu({ref, "-b", "--fail-under", "53.9"}, kHypothesis);
  CHECK(below.code == 3);
  CHECK(below.out == "53.9\n");
  CHECK(below.log.starts_with("bleu: warning: 53.895"));
  CHECK(below.log.ends_with(" is below --fail-under 53.9\n"));
  const Outcome lines = bleu({ref, "-sl", "-b", "--fail-under", "101"}, kHypothesis);
  CHECK(lines.code == 3);
  CHECK(lines.log.find("standard input:1: 48.") != std::string::npos);
  CHECK(lines.log.find("(the first of 2)") != std::string::npos);
}

TEST_CASE("the line contract: TAB is text, CRLF is read, .gz is read, nothing else ends a line") {
  const Files files;
  const std::string ref = files.add("ref", "a b\tc d\r\ne\u2028f\rg h\u0085i\n");
  CHECK(bleu({ref, "-b"}, "a b c d\ne f g h i").out == "100.0\n");
  const std::string packed = files.add("ref.gz", kReference);
  CHECK(bleu({packed, "-b", "-i", packed}).out == "100.0\n");
}

TEST_CASE("unequal and empty files are named, with both counts") {
  const Files files;
  const std::string ref = files.add("ref", kReference), longer = files.add("longer", "a\nb\nc\n");
  const std::string advice = " (line N of one is scored against line N of the other)";
  CHECK(message_of({ref}, "a\n") == "standard input: 1 line, but " + ref + " has 2 lines" + advice);
  CHECK(message_of({ref, "-i", longer}) == longer + ": 3 lines, but " + ref + " has 2 lines" + advice);
  CHECK(message_of({longer, ref}, "a\nb\nc\n") == ref + ": 2 lines, but " + longer + " has 3 lines" + advice);
  CHECK(message_of({ref}, "") == "standard input: 0 lines, but " + ref + " has 2 lines" + advice);
  CHECK(message_of({files.add("empty", "")}, "") == "standard input: no lines (nothing to score)");
  CHECK(message_of({ref + ".not"}, "a\n") == ref + ".not: cannot open: No such file or directory");
}

TEST_CASE("invalid UTF-8 is replaced, kept or refused as asked") {
  const Files files;
  const std::string ref = files.add("ref", "a b c d\xff\n");
  const Outcome replaced = bleu({ref, "-b"}, "a b c d\xff\n");
  CHECK(replaced.out == "100.0\n");
  CHECK(replaced.log.find(ref + ":1:8") != std::string::npos);
  CHECK(bleu({ref, "-b", "--on-invalid-utf8", "keep"}, "a b c d\xfe\n").out == "59.5\n");
  CHECK(message_of({ref, "--on-invalid-utf8", "fail"}, "a\n").find(ref + ":1:8") == 0);
}

TEST_CASE("options that contradict each other are refused") {
  const auto usage = [](std::vector<std::string> words, const std::string& message) {
    CAPTURE(message);
    CHECK_THROWS_WITH_AS(bleu(std::move(words)), message.c_str(), UsageError);
  };
  usage({}, "no reference (bleu REF... < HYP, or bleu REF... -i HYP; the references come first)");
  usage({"-"}, "standard input can be read only once (name a file for the other side: -i HYP)");
  usage({"r", "-i", "-", "-"}, "standard input can be read only once (name a file for the other side: -i HYP)");
  usage({"r", "-sl", "-i", "a", "b"}, "scores of single lines are for one system (give one HYP to -i)");
  usage({"r", "s", "--d2l", "2"}, "--d2l compares with one reference (give one REF)");
  for (const std::vector<std::string>& other : {std::vector<std::string>{"-s", "floor"},
                                                {"-sv", "1"},
                                                {"--max-order", "2"},
                                                {"--effective-order"},
                                                {"-sl"},
                                                {"--signature"}}) {
    std::vector<std::string> words = {"r", "--d2l", "2"};
    words.insert(words.end(), other.begin(), other.end());
    usage(words,
          "--d2l is a formula of its own (leave out --smooth-method, --smooth-value, --max-order, --effective-order, "
          "--sentence-level and --signature)");
  }
  usage({"r", "-m", "bleu"}, "unknown option -m (--help lists them)");
  usage({"r", "--max-order", "17"}, "--max-order 17: must be between 1 and 16");
  usage({"r", "-tok", "zh"}, "--tokenize 'zh': must be one of 13a, intl, char, none");
}

TEST_CASE("warnings: a smoothing value nobody uses, and text that looks tokenised") {
  const Files files;
  const std::string ref = files.add("ref", kReference);
  CHECK(bleu({ref, "-sv", "1"}, kHypothesis).log ==
        "bleu: warning: --smooth-value does nothing with --smooth-method exp (floor and add-k take one)\n");
  CHECK(bleu({ref, "-s", "floor", "-sv", "1"}, kHypothesis).log.empty());
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "so it is .\n";
  const std::string tokenised = files.add("tokenised", lines);
  CHECK(bleu({tokenised}, lines).log.find("standard input: 100 lines end in \" .\"") != std::string::npos);
  CHECK(bleu({tokenised, "--force"}, lines).log.empty());
  CHECK(bleu({tokenised, "-tok", "none"}, lines).log.empty());
}
