#include "heed/run/translate.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "../checkpoint/random_checkpoint.h"
#include "test_device.h"

using namespace heed;

namespace {

using Words = std::vector<std::string>;

TextModel text_model(const Words& words) {
  Words pieces = {"<pad>", "<unk>", "<s>", "</s>"};
  pieces.insert(pieces.end(), words.begin(), words.end());
  return {TextSteps{}, Subwords(SubwordType::words), std::make_shared<const Vocabulary>(pieces)};
}

/// A folder of models that the destructor removes.
struct Models {
  std::filesystem::path path;
  Models() : path(std::filesystem::temp_directory_path() / ("heed_translate_" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(path);
  }
  ~Models() { std::filesystem::remove_all(path); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return path / name;
  }
  std::string model(std::uint64_t seed = 1, TransformerConfig config = tiny_config(), float scale = 1,
                    const Words& words = {"the", "a", "cat", "dog", "sat", "ran", "home", "I", "'m", ".", ",",
                                          "?"}) const {
    const TextModel text = text_model(words);
    Checkpoint checkpoint = random_checkpoint(config, text, text, seed);
    for (float& x : checkpoint.parameters.flat()) x *= scale;
    const std::string name = path / ("model" + std::to_string(count_++) + ".h5");
    save_checkpoint(name, checkpoint);
    return name;
  }

 private:
  mutable int count_ = 0;
};

struct Translation {
  std::string out, log;
};

/// Runs `translate` with the arguments `options`, as the program would. The outputs are short, so that the tests are
/// quick.
void translate(const Words& options, std::istream& in, std::ostream& out, std::ostream& messages) {
  TranslateOptions parsed;
  Words words = {"--max-output-length", "12"};
  words.insert(words.end(), options.begin(), options.end());
  parse_command_line(translate_tool_info(), FieldList::of(parsed), words, out);
  Log log(messages, "translate");
  const int code = run_translate(parsed, in, out, log);
  CHECK(code == 0);
}

Translation translate(const Words& options, const std::string& input) {
  std::istringstream in(input);
  std::ostringstream out, messages;
  translate(options, in, out, messages);
  return {out.str(), messages.str()};
}

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Words split(const std::string& text, const std::string& separator) {
  Words out;
  for (std::size_t at = 0, end = 0; end != std::string::npos && at < text.size(); at = end + separator.size()) {
    end = text.find(separator, at);
    out.push_back(text.substr(at, end == std::string::npos ? end : end - at));
  }
  return out;
}

Words lines_of(const std::string& text) {
  return split(text, "\n");
}

std::vector<double> numbers(const std::string& text, const std::string& separator) {
  std::vector<double> out;
  for (const std::string& word : split(text, separator))
    if (!word.empty()) out.push_back(std::stod(word));
  return out;
}

/// Returns lines of many lengths; some are empty or blank.
std::string many_lines(int count) {
  const Words words = {"the", "a", "cat", "dog", "sat", "ran", "home", "unknown", "?", "."};
  std::string out;
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < i % 13; ++j) out += words[static_cast<std::size_t>(i * 7 + j * j * 3) % words.size()] + " ";
    out += i % 11 == 5 ? " \t \n" : "\n";
  }
  return out;
}

/// An input whose lines are computed when they are read. `next` returns a line, or nothing at the end. With `idle` the
/// input never reports a line as ready.
class Source : public std::streambuf {
 public:
  Source(std::function<std::string()> next, bool idle) : next_(std::move(next)), idle_(idle) {}

 protected:
  int_type underflow() override {
    text_ = next_();
    if (text_.empty()) return traits_type::eof();
    setg(text_.data(), text_.data(), text_.data() + text_.size());
    return traits_type::to_int_type(text_[0]);
  }
  std::streamsize showmanyc() override { return idle_ ? 0 : 1; }

 private:
  std::function<std::string()> next_;
  bool idle_;
  std::string text_;
};

std::int64_t count_lines(const std::ostringstream& out) {
  const auto text = out.view();
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

TEST_CASE("translate: N lines in, the same N lines out for any batches, look-ahead and threads") {
  const Models models;
  const std::string input = many_lines(150);
  const Words show = {"-m", models.model(), "--scores", "--word-scores", "--alignment", "soft"};
  for (const Words& search : {Words{"-b", "1"}, Words{"-b", "3"}, Words{"--search", "sample"},
                              Words{"--precision", "bfloat16"}, Words{"--precision", "int8"}}) {
    const std::string alone = translate(show + search + Words{"--mini-batch", "1", "-j", "1"}, input).out;
    CHECK(lines_of(alone).size() == 150);
    for (const Words& way : {Words{"-j", "1"}, Words{"-j", "3", "--mini-batch", "7"}, Words{"--mini-batch-words", "20"},
                             Words{"--maxi-batch", "1"}, Words{"--maxi-batch", "40", "-j", "2"}})
      CHECK(translate(show + search + way, input).out == alone);
    const Words lines = lines_of(input), translations = lines_of(alone);
    for (const std::size_t i : {12U, 77U, 149U})
      CHECK(translate(show + search, lines[i] + "\n").out == translations[i] + "\n");
  }
}

TEST_CASE("translate: bfloat16 and int8 score translations nearly as float32 does") {
  const Models models;
  const std::string input = many_lines(60);
  const Words model = {"-m", models.model(), "--no-detokenize"};
  const std::string exact = translate(model, input).out;
  const Words score = {"-m", models.model(), "--score", models.file("reference", exact)};
  const Words scores = lines_of(translate(score, input).out);
  for (const char* precision : {"bfloat16", "int8"}) {
    CAPTURE(precision);
    const Words others = lines_of(translate(score + Words{"--precision", precision}, input).out);
    REQUIRE(others.size() == scores.size());
    CHECK(others != scores);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      difference += std::abs(std::stod(others[i]) - std::stod(scores[i]));
      size += std::abs(std::stod(scores[i]));
    }
    CHECK(difference < 0.03 * size);
  }
}

TEST_CASE("translate: empty and blank lines stay empty, the last line needs no end, no line gives none") {
  const Models models;
  const Words model = {"-m", models.model()};
  CHECK(translate(model, "").out.empty());
  CHECK(translate(model, "\n  \n\t\n\xC2\xA0\n").out == "\n\n\n\n");
  CHECK(translate(model, "the cat").out == translate(model, "the cat\r\n").out);
  CHECK(translate(model + Words{"--scores", "--alignment"}, "\n").out == " ||| 0.0000 ||| \n");
}

TEST_CASE("translate: n-best lists are Moses', scores add up, the best is what is printed without") {
  const Models models;
  const Words model = {"-m", models.model(), "--no-detokenize"};
  const auto found = translate(model + Words{"--n-best", "3", "--word-scores"}, "the cat sat .\n\na dog\n");
  const Words lines = lines_of(found.out);
  REQUIRE(lines.size() == 7);
  CHECK(lines[3] == "1 |||  ||| F0= 0.0000 ||| 0.0000 ||| WordScores=");
  const Words best = lines_of(translate(model, "the cat sat .\n\na dog\n").out);
  double last = 0;
  for (const std::size_t i : {0U, 1U, 2U, 4U, 5U, 6U}) {
    const Words parts = split(lines[i], " ||| ");
    REQUIRE(parts.size() == 5);
    CHECK(parts[0] == (i < 3 ? "0" : "2"));
    if (i % 4 == 0) CHECK(parts[1] == best[i < 3 ? 0 : 2]);
    const double sum = std::stod(parts[2].substr(4)), score = std::stod(parts[3]);
    double total = 0;
    const auto pieces = numbers(parts[4].substr(11), " ");
    for (const double x : pieces) total += x;
    CHECK(sum == doctest::Approx(total).epsilon(0.001));
    CHECK(score == doctest::Approx(sum / static_cast<double>(pieces.size())).epsilon(0.001));
    if (i % 4 != 0) CHECK(score <= last);
    last = score;
  }
  CHECK_THROWS_WITH_AS(translate(model + Words{"--n-best", "5"}, ""),
                       "--n-best 5 is more than --beam-size 4 (raise --beam-size)", UsageError);
}

TEST_CASE("translate: hard and threshold alignments are what the soft one says") {
  const Models models;
  const Words model = {"-m", models.model(), "--no-detokenize"};
  const std::string input = "the cat sat.\nI'm home\n";
  const Words soft = lines_of(translate(model + Words{"--alignment", "soft"}, input).out);
  const Words hard = lines_of(translate(model + Words{"--alignment"}, input).out);
  const Words above = lines_of(translate(model + Words{"--alignment", "0.2"}, input).out);
  REQUIRE(soft.size() == 2);
  for (std::size_t line = 0; line < 2; ++line) {
    const Words rows = split(split(soft[line], " ||| ").at(1), " ");
    CHECK(rows.size() == split(split(soft[line], " ||| ").at(0), " ").size());
    std::string best, links;
    for (std::size_t t = 0; t < rows.size(); ++t) {
      const auto weights = numbers(rows[t], ",");
      REQUIRE(weights.size() == (line == 0 ? 4 : 3));
      const auto strongest = std::max_element(weights.begin(), weights.end()) - weights.begin();
      best += (t > 0 ? " " : "") + std::to_string(strongest) + "-" + std::to_string(t);
      for (std::size_t s = 0; s < weights.size(); ++s) {
        CHECK(weights[s] >= 0);
        if (weights[s] >= 0.2) links += (links.empty() ? "" : " ") + std::to_string(s) + "-" + std::to_string(t);
      }
    }
    CHECK(split(hard[line], " ||| ").at(1) == best);
    CHECK(split(above[line] + " ", " ||| ").at(1) == links + " ");
  }
  for (const char* wrong : {"foo", "0", "1.5", "0.2x", "nan"})
    CHECK_THROWS_WITH_AS(
        translate(model + Words{"--alignment", wrong}, ""),
        (std::string("--alignment '") + wrong + "': must be hard, soft or a threshold above 0 and at most 1").c_str(),
        UsageError);
}

TEST_CASE("translate: --score gives what the search said") {
  const Models models;
  const Words model = {"-m", models.model(), "--pretokenized", "--search", "sample", "--temperature", "3"};
  const std::string input = many_lines(40);
  const Words found = lines_of(translate(model + Words{"--no-detokenize", "--word-scores", "--scores"}, input).out);
  std::string reference;
  for (const std::string& line : found) reference += split(line, " ||| ").at(0) + "\n";
  const Words score = {"--score", models.file("reference", reference)};
  const Words scores = lines_of(translate(model + score + Words{"--word-scores"}, input).out);
  REQUIRE(scores.size() == 40);
  int ended = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const Words said = split(found[i], " ||| "), now = split(scores[i], " ||| ");
    const auto pieces = numbers(said.at(2).substr(11), " ");
    // Skips hypotheses that ended at the length limit, without </s>.
    if (pieces.empty() || pieces.size() != split(said[0], " ").size() + 1) continue;
    ++ended;
    CHECK(std::stod(now.at(0)) == doctest::Approx(std::stod(said[1])).epsilon(0.001));
    CHECK(numbers(now.at(1).substr(11), " ").size() == pieces.size());
  }
  CHECK(ended > 3);
  CHECK(translate(model + score + Words{"--word-scores", "--mini-batch", "3", "-j", "2"}, input).out ==
        translate(model + score + Words{"--word-scores"}, input).out);
}

TEST_CASE("translate: unequal files to score are an error with both names and counts, after the lines that have both") {
  const Models models;
  const Words model = {"-m", models.model(), "--score"};
  const std::string two = models.file("two", "the cat\na dog\n"), text = models.file("text", "cat\ndog\ncat\ncat\n");
  std::istringstream shorter("the\n"), none("");
  std::ostringstream out, log;
  CHECK_THROWS_WITH_AS(
      translate(model + Words{two}, shorter, out, log),
      ("standard input: has 1 line, but " + two + " has 2 lines (each line needs one translation to score)").c_str(),
      Error);
  CHECK(count_lines(out) == 1);
  CHECK_THROWS_WITH_AS(
      translate(model + Words{two, "-i", text}, none, out, log),
      (two + ": has 2 lines, but " + text + " has 4 lines (each line needs one translation to score)").c_str(), Error);
  CHECK(count_lines(out) == 3);
}

TEST_CASE("translate: overlong lines, each --on-long") {
  const Models models;
  const Words model = {"-m", models.model(), "--max-length", "3"};
  const std::string input = "the cat\nthe cat sat home .\na dog ran\na dog ran home\n";
  const auto crop = translate(model, input);
  CHECK(crop.out == translate(model, "the cat\nthe cat sat\na dog ran\na dog ran\n").out);
  CHECK(crop.log ==
        "translate: warning: standard input:2: a line of more than 3 pieces, only the beginning was translated; "
        "such lines: 2 (--max-length and --on-long decide)\n");
  const auto copy = translate(model + Words{"--on-long", "copy"}, input);
  CHECK(lines_of(copy.out).at(1) == "the cat sat home .");
  CHECK(lines_of(copy.out).at(2) == lines_of(crop.out).at(2));
  CHECK(copy.log.find("pieces, copied; such lines: 2") != std::string::npos);
  const auto empty = translate(model + Words{"--on-long", "empty"}, input);
  CHECK(lines_of(empty.out).at(1).empty());
  CHECK(empty.log.find("pieces, left empty; such lines: 2") != std::string::npos);
  std::istringstream in(input);
  std::ostringstream out, log;
  CHECK_THROWS_WITH_AS(translate(model + Words{"--on-long", "fail"}, in, out, log),
                       "standard input:2: has 5 pieces, more than the longest that is translated, 3 (see --max-length; "
                       "--on-long crop, copy or empty goes on)",
                       Error);
  CHECK(count_lines(out) == 1);
  const std::string reference = models.file("reference", "a\na\na cat sat home\na\n");
  const auto scored = translate(model + Words{"--score", reference}, input);
  CHECK(lines_of(scored.out).size() == 4);
  CHECK(scored.log.find("only the beginning was scored; such lines: 3") != std::string::npos);
  CHECK_THROWS_WITH_AS(translate(model + Words{"--score", reference, "--on-long", "copy"}, input),
                       "--on-long copy has nothing to copy with --score (take crop, empty or fail)", UsageError);
}

TEST_CASE("translate: learned positions end, lines and translations with them") {
  const Models models;
  TransformerConfig config = tiny_config();
  config.positions = PositionEncoding::learned;
  config.max_positions = 6;
  const Words model = {"-m", models.model(3, config), "--no-detokenize"};
  const auto found =
      translate(model + Words{"--alignment", "--min-output-length", "5"}, "a cat sat home a cat sat\na\n");
  CHECK(found.log.find("a line of more than 5 pieces, only the beginning was translated") != std::string::npos);
  for (const std::string& line : lines_of(found.out)) CHECK(split(split(line, " ||| ").at(0), " ").size() == 5);
  CHECK_THROWS_WITH_AS(translate(model + Words{"--min-output-length", "9"}, ""),
                       "--min-output-length 9 is more than the model's 6 positions allow", UsageError);
}

TEST_CASE("translate: tokens in, tokens out") {
  const Models models;
  const Words model = {"-m", models.model()};
  CHECK(translate(model, "I'm home.\n").out == translate(model + Words{"--pretokenized"}, "I 'm  home .\n").out);
  bool differ = false;
  const std::string input = many_lines(60);
  const Words raw = lines_of(translate(model, input).out);
  const Words tokens = lines_of(translate(model + Words{"--no-detokenize"}, input).out);
  const TextModel text = text_model({});
  REQUIRE(raw.size() == tokens.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    CHECK(raw[i] == text.detokenize(tokens[i]));
    differ = differ || raw[i] != tokens[i];
  }
  CHECK(differ);
}

TEST_CASE("translate: a model twice is that model; models of different vocabularies are no ensemble") {
  const Models models;
  const std::string one = models.model(1), other = models.model(2);
  const std::string small = models.model(1, tiny_config(), 1, {"a", "b"});
  const std::string input = many_lines(30);
  const std::string alone = translate({"-m", one}, input).out, both = translate({"-m", one, other}, input).out;
  CHECK(translate({"-m", one, one}, input).out == alone);
  CHECK(both != alone);
  CHECK(both == translate({"-m", other, one}, input).out);
  CHECK(both == translate({"-m", one, other, "-j", "2", "--mini-batch", "4"}, input).out);
  const std::string reference = models.file("reference", input);
  const auto once = lines_of(translate({"-m", one, "--score", reference}, input).out);
  const auto twice = lines_of(translate({"-m", one, one, "--score", reference}, input).out);
  REQUIRE(once.size() == 30);
  for (std::size_t i = 0; i < 30; ++i) CHECK(std::stod(once[i]) == doctest::Approx(std::stod(twice.at(i))));
  CHECK_THROWS_WITH_AS(translate({"-m", one, small}, input),
                       (small + ": its source vocabulary or text steps differ from those of " + one +
                        " (an ensemble's models must be trained with the same vocabularies)")
                           .c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(translate({"-m", one, reference}, input),
                       ("--models: '" + reference + "' is not a checkpoint (text to translate is given with -i " +
                        reference + " or < " + reference + ")")
                           .c_str(),
                       UsageError);
}

TEST_CASE("translate: samples are those of seed and line, whatever stands beside it; temperature 0 is greedy") {
  const Models models;
  const Words model = {"-m", models.model()}, sample = {"--search", "sample"};
  const std::string input = many_lines(30);
  const std::string first = translate(model + sample, input).out;
  CHECK(first == translate(model + sample + Words{"--seed", "1"}, input).out);
  CHECK(first != translate(model + sample + Words{"--seed", "2"}, input).out);
  const Words repeated = lines_of(translate(model + sample, "a cat\na dog\na cat\n").out);
  CHECK(repeated.at(0) == repeated.at(2));
  const std::string greedy = translate(model + Words{"-b", "1"}, input).out;
  CHECK(translate(model + sample + Words{"--temperature", "0"}, input).out == greedy);
  CHECK(translate(model + sample + Words{"--top-k", "1"}, input).out == greedy);
  CHECK(translate(model + sample + Words{"--top-p", "0"}, input).out == greedy);
  CHECK(lines_of(translate(model + sample + Words{"--n-best", "6"}, "a cat\n").out).size() == 6);
}

TEST_CASE("translate: a line of a megabyte, and bytes that are no text") {
  const Models models;
  const Words model = {"-m", models.model(), "-b", "1"};
  std::string big;
  while (big.size() < (1 << 20)) big += "the cat ";
  const auto found = translate(model, "a dog\n" + big + "\nran\n");
  CHECK(lines_of(found.out).size() == 3);
  CHECK(found.log.find("standard input:2: a line of more than 1000 pieces") != std::string::npos);
  CHECK(translate(model, std::string(1 << 20, 'x') + "\n").log.empty());  // a single long piece

  const std::string bad = "a dog\nthe \xFF cat\n";
  const auto replaced = translate(model, bad);
  CHECK(replaced.out == translate(model, "a dog\nthe \xEF\xBF\xBD cat\n").out);
  CHECK(replaced.log.find("standard input:2:5: invalid UTF-8 replaced by U+FFFD") != std::string::npos);
  CHECK(lines_of(translate(model + Words{"--on-invalid-utf8", "keep"}, bad).out).size() == 2);
  std::istringstream in(bad);
  std::ostringstream out, log;
  CHECK_THROWS_AS(translate(model + Words{"--on-invalid-utf8", "fail"}, in, out, log), Error);
  CHECK(count_lines(out) == 1);  // the lines before the error are written
}

TEST_CASE("translate: when the input pauses, all that came is answered") {
  const Models models;
  std::ostringstream out, log;
  int given = 0;
  Source source(
      [&]() -> std::string {
        CHECK(count_lines(out) == given);
        return ++given <= 5 ? "the cat\n" : "";
      },
      true);
  std::istream in(&source);
  translate({"-m", models.model()}, in, out, log);
  CHECK(count_lines(out) == 5);
}

TEST_CASE("translate: the first lines of a long input come soon, then more at once, --maxi-batch at most") {
  /// Records the number of lines at each flush.
  struct FlushedLines : std::stringbuf {
    std::vector<std::int64_t> counts;
    std::size_t flushed = 0;
    int sync() override {
      const std::string all = str();
      counts.push_back(std::count(all.begin() + static_cast<std::ptrdiff_t>(flushed), all.end(), '\n'));
      flushed = all.size();
      return 0;
    }
  };
  const Models models;
  const std::string model = models.model();
  for (const auto& [threads, expected] : {std::pair("1", std::vector<std::int64_t>{8, 32, 128, 300, 300, 132}),
                                          std::pair("2", std::vector<std::int64_t>{16, 64, 256, 300, 264})}) {
    std::istringstream in(many_lines(900));
    FlushedLines buffer;
    std::ostream out(&buffer);
    std::ostringstream messages;
    translate({"-m", model, "-j", threads, "--maxi-batch", "300"}, in, out, messages);
    CHECK(buffer.counts == expected);
  }
}

TEST_CASE("translate: no more lines are held than --maxi-batch, and fewer where they are huge") {
  const Models models;
  const Words model = {"-m", models.model(), "-b", "1", "--max-output-length", "2"};
  const auto most_held = [&](int lines, const std::string& line, const Words& options) {
    std::ostringstream out, log;
    std::int64_t given = 0, most = 0;
    Source source(
        [&]() -> std::string {
          most = std::max(most, given - count_lines(out));
          return given < lines ? (++given, line) : "";
        },
        false);
    std::istream in(&source);
    translate(model + options, in, out, log);
    CHECK(count_lines(out) == lines);
    return most;
  };
  CHECK(most_held(5000, "a cat\n", {"--maxi-batch", "100"}) <= 101);
  CHECK(most_held(40, std::string(1 << 20, 'x') + "\n", {}) <= 18);
}

TEST_CASE("translate: weights that give no numbers are an error, a vocabulary without words an empty line") {
  const Models models;
  const Words model = {"-m", models.model(1, tiny_config(), 1e25F)};
  const std::string reference = models.file("reference", "a\n");
  for (const Words& options : {Words{}, Words{"--search", "sample"}, Words{"--score", reference}})
    CHECK_THROWS_WITH_AS(
        translate(model + options, "the cat\n"),
        "the model's scores are not numbers (NaN): its weights are damaged or far too large (train it again)", Error);
  const Words mute = {"-m", models.model(1, tiny_config(), 1, {}), "--min-output-length", "2"};
  CHECK(translate(mute, "the cat\n").out == "\n");
  CHECK(translate(mute + Words{"--search", "sample"}, "the cat\n").out == "\n");
}

TEST_CASE("translate: what is wrong with the command line or the input is said before a model is read") {
  CHECK_THROWS_WITH_AS(translate({}, ""), "needs a model: -m MODEL.h5 (train makes one)", UsageError);
  CHECK_THROWS_WITH_AS(translate({"-m", "/none.h5", "-i", "/none.txt"}, ""),
                       "/none.txt: cannot open: No such file or directory", Error);
  CHECK_THROWS_WITH_AS(translate({"-m", "/none.h5", "--score", "/none.txt"}, ""),
                       "/none.txt: cannot open: No such file or directory", Error);
  CHECK_THROWS_WITH_AS(translate({"-m", "/none.h5"}, ""), "/none.h5: cannot open: No such file or directory", Error);
}

TEST_CASE("translate: with a shortlist nothing else is produced, whatever stands beside a line") {
  const Models models;
  const std::string model = models.model(), other = models.model(2), input = many_lines(100);
  const std::string list = models.file("list", "heed-shortlist 1\n . 9\nthe a 0.5\ncat dog 0.5\ncat home 0.1\n");
  for (const Words& search :
       {Words{"-b", "1"}, Words{"-b", "3", "--n-best", "2"}, Words{"--search", "sample"}, Words{"-m", model, other},
        Words{"--precision", "bfloat16"}, Words{"--precision", "int8"}}) {
    const Words way = Words{"-m", model, "--shortlist", list, "--no-detokenize"} + search;
    const std::string alone = translate(way + Words{"--mini-batch", "1", "-j", "1"}, input).out;
    for (const Words& batches : {Words{"-j", "3", "--mini-batch", "7"}, Words{"--mini-batch-words", "20", "-j", "1"}})
      CHECK(translate(way + batches, input).out == alone);
    for (const std::string& token : split(translate(way, "the cat\n").out, " ")) {
      CAPTURE(token);
      CHECK(token != "sat");
      CHECK(token != "ran");
      CHECK(token != "I");
      CHECK(token != "?");
    }
  }
  const std::string all = models.file("all",
                                      "heed-shortlist 1\n the 1\n a 1\n cat 1\n dog 1\n sat 1\n ran 1\n home 1\n I 1\n "
                                      "'m 1\n . 1\n , 1\n ? 1\na a 1\n");
  const Words show = {"-m", model, "--word-scores", "--alignment", "soft", "--n-best", "3"};
  CHECK(translate(show + Words{"--shortlist", all}, input).out == translate(show, input).out);
}

TEST_CASE("translate: a shortlist of other pieces is told of, or refused") {
  const Models models;
  const std::string model = models.model();
  const std::string list = models.file("list", "heed-shortlist 1\ncat dog 0.5\nchat dog 0.5\n chien 3\n");
  const Translation found = translate({"-m", model, "--shortlist", list}, "cat\n");
  CHECK(found.log == "translate: warning: " + list +
                         ":3: the model has no such piece; 2 of 3 such lines of the shortlist are left out\n");
  std::istringstream in("cat\n");
  std::ostringstream out, messages;
  CHECK_THROWS_WITH_AS(
      translate({"-m", model, "--shortlist", models.file("none", "heed-shortlist 1\nchat dog 1\n")}, in, out, messages),
      doctest::Contains("holds no pair of pieces that the model knows"), Error);
  CHECK_THROWS_WITH_AS(translate({"-m", model, "--shortlist", list, "--score", list}, in, out, messages),
                       "--shortlist: has no use with --score, which asks for pieces that may not be in it", UsageError);
}

TEST_CASE("translate: a draft model changes nothing but the speed, whatever it guesses") {
  const Models models;
  TransformerConfig small = tiny_config();
  small.dim_emb = 8;
  const std::string model = models.model(), other = models.model(7, small), input = many_lines(kTestsBriefly ? 12 : 60);
  const std::string list =
      models.file("list", "heed-shortlist 1\n . 9\n ran 1\nthe a 0.5\ncat dog 0.5\ncat home 0.1\n");
  const Words show = {"-m", model, "-b", "1", "--scores", "--word-scores", "--alignment", "soft"};
  for (const Words& way :
       {Words{}, Words{"--precision", "bfloat16"}, Words{"--precision", "int8"}, Words{"--shortlist", list},
        Words{"--n-best", "1", "--length-penalty", "0.5"}, Words{"--min-output-length", "4"},
        Words{"--max-output-length", "1"}, Words{"--max-length", "3"}}) {
    const std::string expected = translate(show + way, input).out;
    for (const std::string& draft : {model, other})
      for (const Words& batches : {Words{"--mini-batch", "1", "-j", "1"}, Words{"--mini-batch", "1", "-j", "3"},
                                   Words{"--maxi-batch", "1", "-j", "2"}, Words{"--mini-batch", "2"},
                                   Words{"--draft-length", "1", "--mini-batch", "1"}})
        CHECK(translate(show + way + batches + Words{"--draft-model", draft}, input).out == expected);
  }
}

TEST_CASE("translate: --stats says what the draft model did, and a note when it was not used") {
  const Models models;
  const std::string model = models.model();
  const Words draft = {
      "-m", model, "-b", "1", "--draft-model", model, "--min-output-length", "12", "--max-output-length", "12"};
  const std::string alone = translate(draft + Words{"--stats", "--maxi-batch", "1"}, "the cat\n\na dog\n").log;
  CAPTURE(alone);
  const std::size_t at = alone.find("translate: the draft model was used for 2 of 3 lines: ");
  REQUIRE(at != std::string::npos);
  int right = 0, guessed = 0;
  double pieces = 0;
  REQUIRE(
      std::sscanf(alone.c_str() + at,
                  "translate: the draft model was used for 2 of 3 lines: %d of %d guessed tokens were right; a step "
                  "of the model gave %lf tokens",
                  &right, &guessed, &pieces) == 3);
  CHECK(right > 0);
  CHECK(guessed >= right);
  // The two lines have 12 tokens each. Those that were not guessed took a step each.
  CHECK(pieces == doctest::Approx(24.0 / (24 - right)).epsilon(0.006));
  CHECK(alone.find("expected") == std::string::npos);
  const std::string together = translate(draft + Words{"--stats", "-j", "1"}, "the cat\n\na dog\n").log;
  CHECK(
      together.find("translate: the draft model was used for 0 of 3 lines: it is for lines that come one at a time") !=
      std::string::npos);
  CHECK(together.find("guessed tokens") == std::string::npos);
  CHECK(translate(draft, "\n").log.empty());
}

TEST_CASE("translate: a draft model that does not fit is refused") {
  const Models models;
  const std::string model = models.model(), small = models.model(1, tiny_config(), 1, {"a", "b"});
  const Words draft = {"-m", model, "--draft-model", model};
  const auto refuses = [&](const Words& options, const std::string& message) {
    CAPTURE(message);
    CHECK_THROWS_WITH_AS(translate(draft + options, "the cat\n"), message.c_str(), UsageError);
  };
  refuses({}, "--draft-model: needs greedy search (add -b 1)");
  refuses({"--search", "sample"},
          "--draft-model: has no use with --search sample (leave --search sample out and add -b 1)");
  refuses({"--score", model}, "--draft-model: has no use with --score, which translates nothing");
  refuses({"-b", "1", "-m", model},
          "--draft-model: drafts for one model, but 2 are given (leave --draft-model or the ensemble out)");
  CHECK_THROWS_WITH_AS(translate({"-m", model, "-b", "1", "--draft-model", small}, "the cat\n"),
                       (small + ": its source vocabulary or text steps differ from those of " + model +
                        " (train the draft model with the same vocabularies)")
                           .c_str(),
                       Error);
}
