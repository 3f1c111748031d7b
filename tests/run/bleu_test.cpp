#include "heed/run/bleu.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "heed/base/error.h"
#include "heed/base/streams.h"

using namespace heed;

namespace {

struct Outcome {
  int code = 0;
  std::string out, log;
};

/// A folder of files that the destructor removes.
class Files {
 public:
  Files() : folder_(std::filesystem::temp_directory_path() / ("heed_bleu_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Files() { std::filesystem::remove_all(folder_); }

  const std::filesystem::path& folder() const { return folder_; }

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

/// Runs `bleu` with the arguments `words`, as the program would.
Outcome bleu(std::vector<std::string> words, const std::string& standard_input = "") {
  BleuToolOptions options;
  FieldList fields = FieldList::of(options);
  std::ostringstream unused, out, messages;
  if (!parse_command_line(bleu_tool_info(), fields, std::move(words), unused)) return {};
  options.given = fields.given();
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

TEST_CASE("short signatures are sacreBLEU's, and stay out of a score's JSON") {
  const Files files;
  const std::string ref = files.add("ref", kReference);
  const std::string text =
      bleu({ref, "-sh", "-f", "text", "-m", "bleu", "chrf", "ter", "-ci", "-cin", "9"}, kHypothesis).out;
  CHECK(text.find("BLEU|#:1|bs:9|rs:12345|c:mixed|e:no|tok:13a|s:exp|v:heed.") != std::string::npos);
  CHECK(text.find("chrF2|#:1|bs:9|rs:12345|c:mixed|e:yes|nc:6|nw:0|s:no|v:heed.") != std::string::npos);
  CHECK(text.find("TER|#:1|bs:9|rs:12345|c:lc|t:tercom|nr:no|pn:yes|as:no|v:heed.") != std::string::npos);
  CHECK(bleu({ref, "--short"}, kHypothesis).out == bleu({ref}, kHypothesis).out);
  CHECK(bleu({ref, "--short", "--signature"}).out.starts_with("#:1|c:mixed|"));
}

TEST_CASE("--num-refs: a line of the reference file holds several references") {
  const Files files;
  const std::string one = files.add("one", kReference), two = files.add("two", "a cat\tlay down\nthe dog  barked\n");
  const std::string both =
      files.add("both", "the cat sat on the mat .\ta cat\tlay down\na dog barked\tthe dog  barked \n");
  for (const std::string metric : {"bleu", "chrf", "ter"})
    CHECK(bleu({both, "--num-refs", "2", "-m", metric, "-w", "9"}, kHypothesis).out ==
          bleu({one, two, "-m", metric, "-w", "9"}, kHypothesis).out);
  CHECK(bleu({both, "-nr", "2", "--worst", "1", "-f", "tsv"}, kHypothesis).out.find("\treference\treference\n") !=
        std::string::npos);
  CHECK(message_of({both, "-nr", "3"}, kHypothesis) ==
        both + ":2: 2 references instead of 3 (TABs stand between them)");
  CHECK_THROWS_WITH_AS(bleu({one, two, "-nr", "2"}), "--num-refs splits the lines of one file (give one REF)",
                       UsageError);
  // An empty line of a file is a reference, and so is an empty field, also the last one.
  const std::string empty = files.add("empty", "\n\n"),
                    ends = files.add("ends", "the cat sat on the mat .\t\na dog barked\t\n");
  for (const std::string metric : {"bleu", "chrf", "ter"})
    CHECK(bleu({ends, "-nr", "2", "-m", metric, "-w", "9"}, kHypothesis).out ==
          bleu({one, empty, "-m", metric, "-w", "9"}, kHypothesis).out);
  CHECK(bleu({files.add("begins", "\t\ta\n"), "-nr", "3", "-m", "exact", "-b"}, "\n").out == "100.0\n");
}

TEST_CASE("intervals of several metrics stand below each other") {
  const Files files;
  std::string reference, hypothesis;
  for (int i = 0; i < 40; ++i) {
    reference += "the cat number " + std::to_string(i) + " sat on the mat\n";
    hypothesis += "the cat number " + std::to_string(i) + (i % 4 == 0 ? " lay" : " sat") + " on the mat\n";
  }
  const std::string ref = files.add("ref", reference);
  const std::string out = bleu({ref, "-m", "bleu", "ter", "-ci", "-b", "-f", "text"}, hypothesis).out;
  const std::size_t second = out.find('\n') + 1;
  CHECK(out.starts_with("89.1 (\u03bc = "));
  CHECK(out.substr(second).starts_with(" 3.1 (\u03bc = "));
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
  CHECK(below.log == "bleu: warning: BLEU 53.896 is below --fail-under 53.9\n");
  CHECK(bleu({ref, "-b", "--fail-under", "60"}, kHypothesis).log ==
        "bleu: warning: BLEU 53.90 is below --fail-under 60.0\n");
  const Outcome lines = bleu({ref, "-sl", "-b", "--fail-under", "101"}, kHypothesis);
  CHECK(lines.code == 3);
  CHECK(lines.log.find("standard input:1: BLEU 48.") != std::string::npos);
  CHECK(lines.log.find("(the first of 2)") != std::string::npos);
}

TEST_CASE("--fail-under looks at the metric that -m names first, in whatever order the scores are printed") {
  const Files files;
  const std::string ref = files.add("ref", kReference), hyp = files.add("hyp", kHypothesis);
  const Outcome above = bleu({ref, "-i", hyp, "-m", "ter", "bleu", "-b", "-f", "text", "--fail-under", "5"});
  CHECK(above.code == 3);
  CHECK(above.out == "53.9\n10.0\n");
  CHECK(above.log == "bleu: warning: TER 10.00 is above --fail-under 5.0\n");
  CHECK(bleu({ref, "-i", hyp, "-m", "bleu", "ter", "-b", "--fail-under", "5"}).code == 0);
  CHECK(bleu({ref, "-i", hyp, "-m", "exact", "chrf", "bleu", "-b", "-f", "text", "--fail-under", "52"}).log ==
        "bleu: warning: exact 50.00 is below --fail-under 52.0\n");
  const std::string junit = bleu({ref, "-i", hyp, "-m", "ter", "bleu", "-f", "junit", "--fail-under", "5"}).out;
  CHECK(junit.find("name=\"TER\">\n    <failure message=\"TER 10.00 is above --fail-under 5.0\"/>") !=
        std::string::npos);
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
  CHECK(message_of({ref}, "a\n") == "standard input: has 1 line, but " + ref + " has 2 lines" + advice);
  CHECK(message_of({ref, "-i", longer}) == ref + ": has 2 lines, but " + longer + " has 3 lines" + advice);
  CHECK(message_of({longer, ref}, "a\nb\nc\n") == ref + ": has 2 lines, but " + longer + " has 3 lines" + advice);
  CHECK(message_of({ref}, "") == "standard input: has 0 lines, but " + ref + " has 2 lines" + advice);
  CHECK(message_of({files.add("empty", "")}, "") == "standard input: no lines (nothing to score)");
  CHECK(message_of({ref + ".not"}, "a\n") == ref + ".not: cannot open: No such file or directory");
}

TEST_CASE("any number of threads says the same in every mode, in the order of the lines") {
  std::string reference, hypothesis;
  for (int i = 0; i < 3000; ++i) {
    reference += "the cat number " + std::to_string(i * 7919 % 1000) + " sat on the mat and slept\n";
    hypothesis +=
        "the cat number " + std::to_string(i * 104729 % 1000) + " slept" + (i % 3 == 0 ? " on a mat\n" : "\n");
  }
  const Files files;
  const std::string ref = files.add("ref", reference);
  for (const auto& mode : std::vector<std::vector<std::string>>{{"-m", "bleu", "chrf", "ter"},
                                                                {"--sentence-level", "-f", "tsv"},
                                                                {"--d2l", "3"},
                                                                {"--worst", "20"},
                                                                {"--by-length"},
                                                                {"--multi-bleu"},
                                                                {"--confidence", "--confidence-n", "50"}}) {
    CAPTURE(mode[0]);
    const auto with_threads = [&](const std::string& threads) {
      std::vector<std::string> words = {ref, "-j", threads};
      words.insert(words.end(), mode.begin(), mode.end());
      return bleu(words, hypothesis).out;
    };
    const std::string one = with_threads("1");
    CHECK(!one.empty());
    CHECK(with_threads("2") == one);
    CHECK(with_threads("5") == one);
  }
}

TEST_CASE("the scores of lines before an error are written") {
  const Files files;
  const std::string line = "the cat sat on the mat\n";
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += line;
  const std::string ref = files.add("ref", lines);
  BleuToolOptions options;
  std::ostringstream unused, out, messages;
  REQUIRE(
      parse_command_line(bleu_tool_info(), FieldList::of(options), {ref, "--sentence-level", "-b", "-j", "3"}, unused));
  std::istringstream in(lines + line);
  Log log(messages, "bleu");
  CHECK_THROWS_WITH_AS(run_bleu(options, in, out, log), doctest::Contains(" has 101 lines ("), Error);
  const std::string written = out.str();
  CHECK(std::count(written.begin(), written.end(), '\n') == 100);
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
  usage({"r", "-m", "evalb", "--evalb-params", "-"},
        "standard input can be read only once (name a file for the other side: -i HYP)");
  usage({"r", "-i", "-", "-"}, "standard input can be read only once (name a file for the other side: -i HYP)");
  usage({"r", "-sl", "-i", "a", "b"}, "scores of single lines are for one system (give one HYP to -i)");
  usage({"r", "s", "--d2l", "2"}, "--d2l compares with one reference (give one REF)");
  const std::string d2l =
      "--d2l is a formula of its own (leave out --smooth-method, --smooth-value, --max-order, --effective-order, "
      "--force, --signature, --short and --sentence-level)";
  const std::string multi_bleu =
      "--multi-bleu prints its own line of tokenised text (leave out --smooth-method, --smooth-value, --max-order, "
      "--effective-order, --force, --signature, --short, --format, --score-only, --width and --tokenize)";
  for (const std::vector<std::string>& other : {std::vector<std::string>{"-s", "exp"},
                                                {"-sv", "1"},
                                                {"--max-order", "2"},
                                                {"--effective-order"},
                                                {"--force"},
                                                {"-sh"},
                                                {"--signature"}}) {
    std::vector<std::string> words = {"r", "--d2l", "2"};
    words.insert(words.end(), other.begin(), other.end());
    usage(words, d2l);
    words = {"r", "--multi-bleu"};
    words.insert(words.end(), other.begin(), other.end());
    usage(words, multi_bleu);
  }
  usage({"r", "--d2l", "2", "-sl"}, d2l);
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"-f", "text"}, {"-b"}, {"-w", "2"}, {"-tok", "none"}}) {
    std::vector<std::string> words = {"r", "--multi-bleu"};
    words.insert(words.end(), other.begin(), other.end());
    usage(words, multi_bleu);
  }
  usage({"r", "-m", "blue"}, "--metrics 'blue': must be one of bleu, chrf, ter, exact, evalb");
  usage({"r", "-sl", "-m", "bleu", "chrf"}, "lines have one score (give one metric to -m)");
  usage({"r", "-sl", "--worst", "3"},
        "give one of --sentence-level, --d2l, --multi-bleu, --worst, --by-length and --evalb-table");
  usage({"r", "--worst", "3", "-i", "a", "b"},
        "--multi-bleu, --worst, --by-length and --evalb-table are for one system (give one HYP to -i)");
  usage({"r", "--d2l", "2", "-m", "chrf"}, "--d2l and --multi-bleu are kinds of BLEU (leave out -m)");
  usage({"r", "-sl", "-ci"},
        "tests of significance are for a corpus (leave out --sentence-level, --d2l, --multi-bleu, --worst, "
        "--by-length and --evalb-table)");
  usage({"r", "-sl", "-f", "junit"}, "--format junit is for a corpus");
  usage({"r", "-m", "evalb", "--evalb-table", "-sh"},
        "--evalb-table prints what evalb prints (leave out --format, --score-only, --width, --signature and --short)");
  usage({"r", "-b", "-f", "tsv"}, "--score-only prints numbers without a table (leave out --format tsv)");
  usage({"r", "-b", "-sl", "-f", "tsv"}, "--score-only prints numbers without a table (leave out --format tsv)");
  usage({"r", "-b", "-f", "junit"}, "--score-only prints numbers without a table (leave out --format junit)");
  const std::string tested =
      "--score-only leaves out what a paired test finds (leave out --score-only, or give --fail-drop)";
  usage({"r", "-b", "-i", "a", "b", "--paired-ar"}, tested);
  usage({"r", "-b", "-i", "a", "b", "--paired-bs"}, tested);
  usage({"r", "-b", "--baseline", "b"}, tested);
  usage({"r", "--paired-bs"}, "a paired test compares systems (give several HYP to -i, or --baseline)");
  usage({"r", "--paired-bs", "--paired-ar", "-i", "a", "b"}, "give one of --paired-bs and --paired-ar");
  usage({"r", "-ci", "-i", "a", "b"}, "--confidence is for one system (of several, --paired-bs gives intervals too)");
  usage({"r", "--fail-drop", "1"}, "--fail-drop needs --baseline HYP");
  usage({"r", "-i", "a", "b", "a"}, "the system a is given twice");
  usage({"r", "-m", "chrf", "--chrf-char-order", "0"},
        "chrF needs n-grams (--chrf-char-order or --chrf-word-order above 0)");
  usage({"r", "--max-order", "17"}, "--max-order 17: must be between 1 and 16");
  usage({"r", "-tok", "ja"}, "--tokenize 'ja': must be one of 13a, intl, char, zh, none");
}

TEST_CASE("warnings: options that do nothing, and text that looks tokenised") {
  const Files files;
  const std::string ref = files.add("ref", kReference);
  CHECK(bleu({ref, "-sv", "1"}, kHypothesis).log ==
        "bleu: warning: --smooth-value does nothing with --smooth-method exp (floor and add-k take one)\n");
  CHECK(bleu({ref, "-s", "floor", "-sv", "1"}, kHypothesis).log.empty());
  for (const std::vector<std::string>& mode : {std::vector<std::string>{"-sl"}, {"--worst", "1"}, {"--by-length"}}) {
    std::vector<std::string> words = {ref, "--force"};
    words.insert(words.end(), mode.begin(), mode.end());
    CHECK(bleu(words, kHypothesis).log ==
          "bleu: warning: --force does nothing without the score of a corpus (leave out --sentence-level, --worst and "
          "--by-length)\n");
    words[1] = "--no-force";
    CHECK(bleu(words, kHypothesis).log.empty());
  }
  const std::string short_names =
      "bleu: warning: --short does nothing without a signature in the output (--signature)\n";
  CHECK(bleu({ref, "-sh"}, kHypothesis).log == short_names);
  CHECK(bleu({ref, "-sh", "-sl", "-f", "tsv"}, kHypothesis).log == short_names);
  CHECK(bleu({ref, "-sh", "-f", "tsv"}, kHypothesis).log.empty());
  CHECK(bleu({ref, "-sh", "--signature"}).log.empty());
  CHECK(bleu({ref, "-m", "ter", "--ter-asian-support"}, kHypothesis).log ==
        "bleu: warning: --ter-asian-support does nothing without --ter-normalized or --ter-no-punct\n");
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "so it is .\n";
  const std::string tokenised = files.add("tokenised", lines);
  CHECK(bleu({tokenised}, lines).log.find("standard input: 100 lines end in \" .\"") != std::string::npos);
  CHECK(bleu({tokenised, "--force"}, lines).log.empty());
  CHECK(bleu({tokenised, "-tok", "none"}, lines).log.empty());
}

TEST_CASE("what sacreBLEU's command line prints of metrics, intervals, systems and tests, to the last digit") {
  std::ifstream in(HEED_TEST_DATA "/metrics/reference/scores.json");
  REQUIRE(in);
  const auto reference = nlohmann::json::parse(in);
  const Files files;
  const auto& corpus = reference["corpora"][0];
  const auto write = [&](const std::string& name, const nlohmann::json& lines) {
    std::string text;
    for (const auto& line : lines) text += line.get<std::string>() + "\n";
    files.add(name, text);
  };
  write("ref", corpus["references"][0]);
  write("ref2", corpus["references"][1]);
  for (const int i : {0, 1, 2})
    write(std::vector<std::string>{"one", "two", "three"}[static_cast<std::size_t>(i)], corpus["systems"][i]);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(files.folder());  // the reports contain the files' names
  for (const auto& test : reference["reports"]) {
    CAPTURE(test["arguments"].dump());
    auto words = test["arguments"].get<std::vector<std::string>>();
    words.insert(words.end(), {"-j", "2"});
    std::string out = bleu(words).out, expected = test["output"];
    // sacreBLEU writes another version, and explains tests in other words; these parts are not compared.
    out = std::regex_replace(out, std::regex("heed\\.[0-9.]+"), "2.6.0");
    const auto explained = out.find("\n---");
    if (const auto signatures = out.find("\n-----------------\nMetric"); signatures != std::string::npos)
      out.erase(explained + 1, signatures - explained);
    CHECK(out == expected);
  }
  std::filesystem::current_path(before);
}

TEST_CASE("--worst shows the lines that score worst, the worst first") {
  const Files files;
  const std::string ref = files.add("ref", "the cat sat on the mat\na dog\tbarked\nit rains\n");
  const std::string hyp = "the cat sat on the mat\na cat barked\nno\n";
  CHECK(bleu({ref, "--worst", "2", "-f", "tsv", "-m", "ter"}, hyp).out ==
        "line\tTER\thypothesis\treference\n3\t100.0\tno\tit rains\n2\t33.3\ta cat barked\ta dog\\tbarked\n");
  CHECK(bleu({ref, "--worst", "1", "-m", "chrf"}, hyp).out ==
        "line 3: chrF2 = 8.3\n  hypothesis: no\n  reference:  it rains\n");
  const std::string json = bleu({ref, "--worst", "9", "-f", "json"}, hyp).out;
  CHECK(std::count(json.begin(), json.end(), '\n') == 3);
  CHECK(
      json.ends_with("{\"line\": 1, \"BLEU\": 100.0, \"hypothesis\": \"the cat sat on the mat\", "
                     "\"references\": [\"the cat sat on the mat\"]}\n"));
}

TEST_CASE("--by-length scores by the reference's number of words") {
  const Files files;
  const std::string ref = files.add("ref", "a b c d\n1 2 3 4 5 6 7 8 9 10\na b c d e\n");
  const std::string hyp = "a b c d\n1 2 3 4 5 6 7 8 9 11\na b c d x\n";
  CHECK(bleu({ref, "--by-length", "-m", "bleu", "ter"}, hyp).out ==
        "words  lines  BLEU   TER\n0-9        2  79.8  11.1\n10-19      1  88.0  10.0\n");
  CHECK(bleu({ref, "--by-length", "-m", "ter", "-f", "tsv"}, hyp).out ==
        "words\tlines\tTER\n0-9\t2\t11.1\n10-19\t1\t10.0\n");
  CHECK(bleu({ref, "--by-length", "-m", "ter", "-f", "json"}, hyp).out ==
        "[\n {\"words\": \"0-9\", \"lines\": 2, \"TER\": 11.1},\n {\"words\": \"10-19\", \"lines\": 1, "
        "\"TER\": 10.0}\n]\n");
}

TEST_CASE("--multi-bleu prints multi-bleu.perl's line") {
  const Files files;
  const std::string ref = files.add("ref", kReference), other = files.add("other", "The cat sat on a mat .\n\n");
  CHECK(bleu({ref, "--multi-bleu"}, kHypothesis).out ==
        "BLEU = 53.90, 90.0/75.0/50.0/25.0 (BP=1.000, ratio=1.000, hyp_len=10, ref_len=10)\n");
  CHECK(bleu({ref, other, "--multi-bleu", "-lc"}, kHypothesis).out ==
        "BLEU = 100.00, 100.0/100.0/100.0/100.0 (BP=1.000, ratio=1.000, hyp_len=10, ref_len=10)\n");
  CHECK(bleu({ref, "--multi-bleu"}, "the\u00a0cat\n\n").out ==
        "BLEU = 0.00, 0.0/0.0/0.0/0.0 (BP=0.000, ratio=0.100, hyp_len=1, ref_len=10)\n");
  // multi-bleu.perl splits at ASCII white space only.
  CHECK(bleu({ref, "--multi-bleu"}, "a \u00a0\u2003\nb\n").out.find("hyp_len=3") != std::string::npos);
  const Outcome nothing = bleu({files.add("nothing", "\n\n"), "--multi-bleu"}, kHypothesis);
  CHECK(nothing.out == "BLEU = 0, 0/0/0/0 (BP=0, ratio=0, hyp_len=0, ref_len=0)\n");
  CHECK(nothing.code == 1);
}

TEST_CASE("--fail-drop fails where the loss is larger and significant") {
  const Files files;
  std::string reference, half;
  for (int i = 0; i < 100; ++i) {
    reference += "the cat number " + std::to_string(i) + " sat on the mat\n";
    half += "the cat number " + std::to_string(i) + (i % 2 == 0 ? " sat on the mat\n" : " lay on the rug\n");
  }
  const std::string ref = files.add("ref", reference), good = files.add("good", reference),
                    bad = files.add("bad", half);
  const auto gate = [&](const std::string& baseline, const std::string& system, std::vector<std::string> more) {
    more.insert(more.begin(), {ref, "--baseline", baseline, "-i", system});
    return bleu(more);
  };
  const Outcome dropped = gate(good, bad, {"--fail-drop", "1", "-f", "tsv"});
  CHECK(dropped.code == 3);
  CHECK(
      dropped.out.starts_with("system\tmetric\tscore\tconfidence_mean\tconfidence_interval\tp_value\tsignature\n"
                              "Baseline: " +
                              good + "\tBLEU\t100.0\t"));
  CHECK(dropped.log.find(" worse than 100.0 of the baseline (p = 0.0010; --fail-drop 1.0)") != std::string::npos);
  CHECK(gate(good, bad, {"--fail-drop", "90"}).code == 0);
  CHECK(gate(bad, good, {"--fail-drop", "0"}).code == 0);
  CHECK(gate(good, bad, {"--fail-drop", "1", "-m", "ter", "--paired-ar", "--paired-ar-n", "200"}).code == 3);
  CHECK(gate(bad, good, {"--fail-drop", "1", "-m", "ter"}).code == 0);
  const Outcome junit = gate(good, bad, {"--fail-drop", "1", "-f", "junit"});
  CHECK(junit.out.find("<testsuite name=\"bleu\" tests=\"2\" failures=\"1\">") != std::string::npos);
  CHECK(bleu({ref, "-i", bad, "-m", "ter", "--fail-under", "10"}).log.find(" is above --fail-under 10.0") !=
        std::string::npos);
  // The second "good" is left out: a system is compared only once.
  CHECK(bleu({ref, "-i", good, bad, good, "--paired-bs"}).out.find("\"system\"") != std::string::npos);
  CHECK(gate(good, bad, {"--fail-drop", "1", "-b"}).code == 3);
  // A test case that fails in both ways is one failure, with both messages.
  const std::string both = gate(good, bad, {"--fail-under", "99", "--fail-drop", "1", "-f", "junit"}).out;
  CHECK(both.find(" failures=\"1\">") != std::string::npos);
  const std::size_t failure = both.find("<failure message=\"");
  CHECK(both.find("<failure", failure + 1) == std::string::npos);
  const std::string messages = both.substr(failure, both.find("/>", failure) - failure);
  CHECK(messages.find(" is below --fail-under 99.0; ") != std::string::npos);
  CHECK(messages.ends_with("; --fail-drop 1.0)\""));
}

TEST_CASE("an option that changes nothing gets a warning that says what it needs") {
  const Files files;
  const std::string ref = files.add("ref", kReference);
  const auto warning = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {ref, "-b"});
    return bleu(words, kHypothesis).log;
  };
  CHECK(warning({"--chrf-beta", "3"}) == "bleu: warning: --chrf-beta does nothing without -m chrf\n");
  CHECK(warning({"--ter-no-punct"}) == "bleu: warning: --ter-no-punct does nothing without -m ter\n");
  CHECK(warning({"-m", "chrf", "-lc"}) == "bleu: warning: --lowercase does nothing without -m bleu\n");
  CHECK(warning({"--confidence-n", "10"}) == "bleu: warning: --confidence-n does nothing without --confidence\n");
  CHECK(warning({"--paired-bs-n", "10"}) == "bleu: warning: --paired-bs-n does nothing without --paired-bs\n");
  CHECK(warning({"--seed", "7"}) ==
        "bleu: warning: --seed does nothing without --confidence, --paired-bs or --paired-ar\n");
  CHECK(warning({"-m", "bleu", "chrf", "--chrf-beta", "3", "-lc"}).empty());
}
