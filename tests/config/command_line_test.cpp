#include "heed/config/command_line.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

using namespace heed;

enum class Shape { round, square, flat };

template <>
struct heed::EnumNames<Shape> {
  static constexpr std::pair<Shape, std::string_view> values[] = {
      {Shape::round, "round"}, {Shape::square, "square"}, {Shape::flat, "flat"}};
};

namespace {

constexpr auto kSolids = enum_names(Shape::round, Shape::square);

struct Options {
  int count = 4;
  double rate = 0.5;
  bool flag = true;
  bool bare = false, other = false;
  Shape shape = Shape::round;
  std::optional<int> limit;
  int best = 1;
  std::vector<std::string> sets;
  std::vector<std::string> words;
  std::vector<std::string> files;
  std::string output = "-";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Things");
    visit(count, {.name = "count", .help = "how many", .value = "N", .letter = 'c', .min = 1, .max = 100000});
    visit(rate, {.name = "rate", .help = "how fast", .value = "R", .alias = "ra", .min = 0});
    visit(flag, {.name = "flag", .help = "whether"});
    visit(bare, {.name = "bare", .help = "alone", .letter = 'b'});
    visit(other, {.name = "other", .help = "too", .letter = 'q', .alias = "ot"});
    visit(shape, {.name = "shape", .help = "which", .only = kSolids});
    visit(limit, {.name = "max-limit", .help = "until", .value = "N"});
    visit(best, {.name = "n-best", .help = "list", .value = "N", .min = 0, .max = 1000, .implicit = "5"});
    visit(sets, {.name = "train-sets", .help = "two", .value = "SRC TGT", .letter = 't'});
    visit(words, {.name = "word", .help = "one at a time", .value = "W", .repeated = true});
    visit(output, {.name = "output", .help = "where", .value = "FILE", .letter = 'o'});
    visit(files, {.name = "file", .help = "inputs", .value = "FILE", .positional = true});
  }
};

constexpr PeerOption kPeers[] = {{"lenpen", "rate", "fairseq"},
                                 {"max-epoch", "count 20", "fairseq"},
                                 {"x", "flag", "Moses"},
                                 {"devices", "", "Marian", "it runs on the CPU"}};

const ToolInfo kTool{
    .name = "shape", .purpose = "tests the parser", .usage = {"shape [options] [FILE...]"}, .peers = kPeers};

/// The options of a tool that takes no words outside of options.
struct NoWords {
  std::string input = "-";
  bool norm_first = false, norm_last = false, norm_middle = false, norm_any = false;
  int transformer_heads = 8, transformer_dim_ffn = 1, max_length = 1, beams = 1;
  std::vector<std::string> train_sets;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(input, {.name = "input", .help = "text", .value = "FILE", .letter = 'i'});
    visit(norm_first, {.name = "norm-first", .help = "."});
    visit(norm_last, {.name = "norm-last", .help = "."});
    visit(norm_middle, {.name = "norm-middle", .help = "."});
    visit(norm_any, {.name = "norm-any", .help = ".", .alias = "anynorm"});
    visit(transformer_heads, {.name = "transformer-heads", .help = "."});
    visit(transformer_dim_ffn, {.name = "transformer-dim-ffn", .help = "."});
    visit(max_length, {.name = "max-length", .help = "."});
    visit(beams, {.name = "beams", .help = ".", .value = "N", .letter = 'b', .implicit = "4"});
    visit(train_sets, {.name = "train-sets", .help = ".", .value = "SRC TGT", .letter = 't'});
  }
};

/// Returns the message of the UsageError for a command line of a tool with the options NoWords.
std::string refused(std::vector<std::string> words) {
  NoWords options;
  std::ostringstream out;
  try {
    parse_command_line(kTool, FieldList::of(options), std::move(words), out);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

Options parse(std::vector<std::string> words, std::string* printed = nullptr) {
  Options options;
  std::ostringstream out;
  parse_command_line(kTool, FieldList::of(options), std::move(words), out);
  if (printed) *printed = out.str();
  return options;
}

}  // namespace

TEST_CASE("values of every kind get in") {
  const Options o = parse({"-c", "10K", "--rate=2.5e-3", "--no-flag", "--shape", "square", "--max_limit", "7", "-t",
                           "a", "b", "-oX", "one", "two"});
  CHECK(o.count == 10000);
  CHECK(o.rate == 2.5e-3);
  CHECK(!o.flag);
  CHECK(o.shape == Shape::square);
  CHECK(o.limit == 7);
  CHECK(o.sets == std::vector<std::string>{"a", "b"});
  CHECK(o.files == std::vector<std::string>{"one", "two"});
}

TEST_CASE("words that belong to no option are positional, also around options and after --") {
  CHECK(parse({"one", "-c", "3", "two"}).files == std::vector<std::string>{"one", "two"});
  CHECK(parse({"--", "-c", "--rate"}).files == std::vector<std::string>{"-c", "--rate"});
  CHECK(parse({"-"}).files == std::vector<std::string>{"-"});
}

TEST_CASE("an optional value is taken only where it fits") {
  CHECK(parse({"--n-best"}).best == 5);
  CHECK(parse({"--n-best", "3"}).best == 3);
  const Options o = parse({"--n-best", "file"});
  CHECK(o.best == 5);
  CHECK(o.files == std::vector<std::string>{"file"});
  // A number is meant as the value, also where it is out of range.
  CHECK_THROWS_WITH_AS(parse({"--n-best", "5000"}), "--n-best 5000: must be between 0 and 1000", UsageError);
  CHECK_THROWS_WITH_AS(parse({"--n-best", "-1", "file"}), "--n-best -1: must be between 0 and 1000", UsageError);
  // In a tool that takes no words outside of options, any word is meant as the value.
  CHECK(refused({"--beams", "foo"}) == "--beams 'foo': not a whole number (digits, with K, M or G for thousands)");
  CHECK(refused({"-b", "foo"}) == "--beams 'foo': not a whole number (digits, with K, M or G for thousands)");
  CHECK(refused({"-b", "--norm-any"}).empty());
  CHECK(refused({"-b", "3", "foo"}) == "'foo' belongs to no option (-i foo or < foo reads a file)");
}

TEST_CASE("the last of two wins, and aliases work with one dash and with two") {
  CHECK(parse({"-c", "3", "--count", "4"}).count == 4);
  CHECK(parse({"-ra", "3"}).rate == 3);
  CHECK(parse({"--ra", "3"}).rate == 3);
}

TEST_CASE("errors name the option and help") {
  CHECK_THROWS_WITH_AS(parse({"--cuont", "3"}), "unknown option --cuont: did you mean --count?", UsageError);
  CHECK_THROWS_WITH_AS(parse({"--lenpen", "3"}), "unknown option --lenpen: did you mean --rate? (fairseq)", UsageError);
  CHECK_THROWS_WITH_AS(parse({"-z"}), "unknown option -z (--help lists them)", UsageError);
  CHECK_THROWS_WITH_AS(parse({"-c", "0"}), "--count 0: must be between 1 and 100000", UsageError);
  CHECK_THROWS_WITH_AS(parse({"-c", "x"}), "--count 'x': not a whole number (digits, with K, M or G for thousands)",
                       UsageError);
  CHECK_THROWS_WITH_AS(parse({"--rate", "-1"}), "--rate -1: must be at least 0", UsageError);
  CHECK_THROWS_WITH_AS(parse({"--shape", "oval"}), "--shape 'oval': must be one of round, square", UsageError);
  CHECK_THROWS_WITH_AS(parse({"--shape", "flat"}), "--shape 'flat': must be one of round, square", UsageError);
  CHECK_THROWS_AS(parse({"--count"}), UsageError);
}

TEST_CASE("numbers beyond 64 bits are too large, not negative or infinite") {
  using namespace fields_detail;
  const FieldInfo info{.name = "size", .help = "how large", .value = "N", .min = 1};
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min(),
                         kHigh = std::numeric_limits<std::int64_t>::max();
  CHECK(parse_integer(info, "9223372036854775807", kLow, kHigh) == kHigh);
  CHECK(parse_integer(info, "9223372036854K", kLow, kHigh) == 9223372036854000);
  for (const char* text : {"9223372036854775808", "9223372036854775807K", "9223372036854775.808K", "1e300"})
    CHECK_THROWS_WITH_AS(parse_integer(info, text, kLow, kHigh),
                         ("--size " + std::string(text) + ": too large").c_str(), UsageError);
  CHECK(parse_real(info, "1e3K") == 1e6);
  CHECK_THROWS_WITH_AS(parse_real(info, "1e308K"), "--size 1e308K: too large", UsageError);
}

TEST_CASE("what is no number has no sign") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(fields_detail::show_real(nan) == "nan");
  CHECK(fields_detail::show_real(std::copysign(nan, -1)) == "nan");
  CHECK(fields_detail::show_real(-1.5) == "-1.5");
}

TEST_CASE("an option is not taken as another option's value, unless it stands behind =") {
  CHECK_THROWS_WITH_AS(parse({"--output", "--no-flag"}),
                       "--output: needs a value before '--no-flag' (--output=--no-flag makes this word the value)",
                       UsageError);
  CHECK_THROWS_WITH_AS(parse({"-bo", "-q"}),
                       "--output: needs a value before '-q' (--output=-q makes this word the value)", UsageError);
  CHECK_THROWS_WITH_AS(parse({"-t", "--", "a"}),
                       "--train-sets: needs a value before '--' (--train-sets=-- makes this word the value)",
                       UsageError);
  CHECK_THROWS_AS(parse({"--word", "-c", "3"}), UsageError);
  CHECK_THROWS_WITH_AS(parse({"--config", "-b"}),
                       "--config: needs a value before '-b' (--config=-b makes this word the value)", UsageError);
  CHECK(parse({"--output=--no-flag"}).output == "--no-flag");
  CHECK(parse({"-o--", "-b"}).output == "--");
  CHECK(parse({"-o", "-", "-b"}).output == "-");
  CHECK(parse({"--max-limit", "-3"}).limit == -3);
  CHECK(parse({"-t", "a", "--", "b"}).sets == std::vector<std::string>{"a"});
}

TEST_CASE("an unknown option is looked for as another toolkit's, as a beginning, as parts, as a misspelling") {
  CHECK(refused({"--max-epoch=3"}) == "unknown option --max-epoch: did you mean --count 20? (fairseq)");
  CHECK(refused({"--max_epoch", "3"}) == "unknown option --max-epoch: did you mean --count 20? (fairseq)");
  CHECK(refused({"-max_epoch", "3"}) == "unknown option -max-epoch: did you mean --count 20? (fairseq)");
  CHECK(refused({"-x"}) == "unknown option -x: did you mean --flag? (Moses)");
  CHECK(refused({"--devices", "0"}) ==
        "unknown option --devices: heed has no such option (Marian): it runs on the CPU");
  CHECK(refused({"--inp", "x"}) == "unknown option --inp: did you mean --input?");
  CHECK(refused({"--conf", "x"}) == "unknown option --conf: did you mean --config?");
  CHECK(refused({"--heads", "x"}) == "unknown option --heads: did you mean --transformer-heads?");
  CHECK(refused({"--ffn-dim", "x"}) == "unknown option --ffn-dim: did you mean --transformer-dim-ffn?");
  CHECK(refused({"--max-source-length", "x"}) == "unknown option --max-source-length: did you mean --max-length?");
  CHECK(refused({"--transformer", "x"}) ==
        "unknown option --transformer: did you mean --transformer-heads or --transformer-dim-ffn?");
  CHECK(refused({"--inptu", "x"}) == "unknown option --inptu: did you mean --input?");
  CHECK(refused({"--norm"}) == "unknown option --norm (--help lists them)");  // four names begin with "norm"
  CHECK(refused({"--norm-m"}) == "unknown option --norm-m: did you mean --norm-middle?");
  CHECK(refused({"--no-first"}) == "unknown option --no-first: did you mean --no-norm-first?");
  CHECK(refused({"--lr", "x"}) == "unknown option --lr (--help lists them)");
  CHECK(refused({"-input", "x"}) == "unknown option -input: did you mean --input?");
  CHECK(refused({"-anynorm"}).empty());
  CHECK(refused({"---"}) == "unknown option --- (--help lists them)");
  CHECK(refused({"-zz"}) == "unknown option -zz (--help lists them)");
}

TEST_CASE("a word that belongs to no option is named, with what to do") {
  CHECK(refused({"--norm-any", "text.en"}) == "'text.en' belongs to no option (-i text.en or < text.en reads a file)");
  CHECK(refused({"--", "a", "b"}) == "'a' belongs to no option (-i a or < a reads a file)");
}

TEST_CASE("flags have letters: alone, together, before a word") {
  CHECK(parse({"-b"}).bare);
  CHECK(parse({"-b", "-c", "3"}).bare);
  CHECK(parse({"-bq"}).other);
  CHECK(parse({"-bc3"}).count == 3);
  CHECK(parse({"-ot"}).other);
  const Options o = parse({"-b", "word"});
  CHECK(o.bare);
  CHECK(o.files == std::vector<std::string>{"word"});
  CHECK_FALSE(parse({"-b", "--no-bare"}).bare);
}

TEST_CASE("--help shows live defaults and ranges, --dump-config is read back by --config") {
  std::string text;
  parse({"--help"}, &text);
  CHECK(text.find("-c, --count N") != std::string::npos);
  CHECK(text.find("how many (1..100000; default 4)") != std::string::npos);
  CHECK(text.find("--shape round|square") != std::string::npos);
  parse({"--dump-config", "-c", "9", "-t", "a", "b", "--no-flag"}, &text);
  const std::string path = (std::filesystem::temp_directory_path() / "heed_command_line_test.ini").string();
  std::ofstream(path) << text;
  const Options o = parse({"--config", path, "--rate", "9"});
  CHECK(o.count == 9);
  CHECK(o.sets == std::vector<std::string>{"a", "b"});
  CHECK(!o.flag);
  CHECK(o.rate == 9);
  std::ofstream(path) << "cuont = 3\n";
  CHECK_THROWS_WITH_AS(parse({"--config", path}), (path + ":1: unknown option --cuont: did you mean --count?").c_str(),
                       UsageError);
  std::filesystem::remove(path);
}

TEST_CASE("a configuration file keeps every value: quotes, comments, blanks, line ends") {
  const std::string path = (std::filesystem::temp_directory_path() / "heed_config_values_test.ini").string();
  const std::vector<std::string> hard = {"a#b", "#b", "a #b", " a ", "\"", "\"a\" # b", "\\d+\\\"", "a\nb", "", "\t"};
  for (const std::string& value : hard) {
    CAPTURE(value);
    std::string text;
    parse({"--dump-config", "--word", value, "--word", value}, &text);
    std::ofstream(path) << text;
    CHECK(parse({"--config", path}).words == std::vector<std::string>{value, value});
  }
  std::ofstream(path) << "; one comment\n# another\n\n word = a b # behind\r\nword=c#d\nword = \"# in\" # out\n";
  CHECK(parse({"--config", path}).words == std::vector<std::string>{"a b", "c#d", "# in"});
  const auto refused = [&](const std::string& line) {
    std::ofstream(path) << "\n" << line;
    try {
      parse({"--config", path});
    } catch (const UsageError& error) {
      return std::string(error.what()).substr(path.size());
    }
    return std::string();
  };
  CHECK(refused("word = \"a") == ":2: the quote \" is not closed");
  CHECK(refused("word = \"a\" b") == ":2: there is text behind the closing quote: 'b'");
  CHECK(refused("word") == ":2: 'word': a line is 'name = value'");
  CHECK(refused("count = x").starts_with(":2: --count 'x'"));
  std::filesystem::remove(path);
}

TEST_CASE("a configuration file has the command line's names, sections, and lists on one line") {
  const std::string path = (std::filesystem::temp_directory_path() / "heed_config_forms_test.ini").string();
  std::ofstream(path) << "[Things]\nmax_limit = 7\n[ more ]  # about it\ntrain_sets = a.en \"a b\" # two\n"
                         "train-sets = c#d\nword = a b\nfile = one two\n";
  const Options o = parse({"--config", path});
  CHECK(o.limit == 7);
  CHECK(o.sets == std::vector<std::string>{"a.en", "a b", "c#d"});
  CHECK(o.words == std::vector<std::string>{"a b"});
  CHECK(o.files == std::vector<std::string>{"one", "two"});
  const std::vector<std::string> hard = {"a b", "", "#x", "x\"y", "\"", "a\nb", "\t", "a#b"};
  std::string text;
  std::vector<std::string> words = {"--dump-config", "-t"};
  words.insert(words.end(), hard.begin(), hard.end());
  parse(words, &text);
  CHECK(text.find("train-sets = \"a b\" \"\" \"#x\" ") != std::string::npos);
  std::ofstream(path) << text;
  CHECK(parse({"--config", path}).sets == hard);
  const auto wrong = [&](const std::string& line) {
    std::ofstream(path) << line;
    try {
      parse({"--config", path});
    } catch (const UsageError& error) {
      return std::string(error.what()).substr(path.size());
    }
    return std::string();
  };
  CHECK(wrong("[Things") == ":1: '[Things': a section is '[name]'");
  CHECK(wrong("[a] count = 3") == ":1: '[a] count = 3': a section is '[name]'");
  CHECK(wrong("train-sets = \"a\"b") == ":1: there is text behind the closing quote: 'b'");
  CHECK(wrong("train-sets = a \"b") == ":1: the quote \" is not closed");
  CHECK(wrong("config = x") == ":1: 'config' is for the command line only");
  CHECK(wrong("no-flag = true") == ":1: 'no-flag': write 'flag = false'");
  CHECK(wrong("lenpen = 3") == ":1: unknown option --lenpen: did you mean --rate? (fairseq)");
  std::filesystem::remove(path);
}

TEST_CASE("lists grow when they are given again; repeated ones leave the words behind them alone") {
  const Options options = parse({"-t", "a", "b", "--word", "x", "f", "--word=y", "g", "-t", "c"});
  CHECK(options.sets == std::vector<std::string>{"a", "b", "c"});
  CHECK(options.words == std::vector<std::string>{"x", "y"});
  CHECK(options.files == std::vector<std::string>{"f", "g"});
}

TEST_CASE("a list of fields knows which ones were given") {
  Options options;
  FieldList fields = FieldList::of(options);
  std::ostringstream out;
  parse_command_line(kTool, fields, {"--count=4", "--no-flag", "f"}, out);
  CHECK(fields.given() == std::vector<std::string>{"count", "flag", "file"});
}
