#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <variant>

#include "heed/config/command_line.h"
#include "heed/config/config_file.h"

using namespace heed;

enum class Figure { circle, large_circle, square };

template <>
struct heed::EnumNames<Figure> {
  static constexpr std::pair<Figure, std::string_view> values[] = {
      {Figure::circle, "circle"}, {Figure::large_circle, "large-circle"}, {Figure::square, "square"}};
};

namespace {

struct Circle {
  double radius = 1;
  int line_width = 1;
  bool dotted = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(radius, {.name = "radius", .help = "size", .value = "R", .letter = 'r', .alias = "rad", .preset = true});
    visit(line_width, {.name = "line-width", .help = "of the line", .preset = true});
    visit(dotted, {.name = "dotted", .help = "draw dots"});
  }
};

struct Square {
  int side = 4;
  int line_width = 3;
  std::vector<std::string> corners;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(side, {.name = "side", .help = "size", .value = "N", .preset = true});
    visit(line_width, {.name = "line-width", .help = "of the line", .preset = true});
    visit(corners, {.name = "corners", .help = "names of corners", .value = "NAME"});
  }
};

using Config = std::variant<Circle, Square>;

Config preset(Figure shape) {
  if (shape == Figure::square) return Square{};
  return shape == Figure::circle ? Circle{} : Circle{.radius = 100, .line_width = 2};
}

/// The options of a tool whose option --shape decides which other options there are, and their defaults.
struct Drawing {
  std::string output = "-";
  Figure shape = Figure::circle;
  Config config = preset(Figure::circle);
  bool quiet = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(output, {.name = "output", .help = "where", .value = "FILE", .letter = 'o'});
    visit.section("Figure");
    const Figure before = shape;
    visit(shape, {.name = "shape", .help = "what to draw", .alias = "sh", .selects = true});
    if (shape != before) config = preset(shape);
    std::visit([&](auto& chosen) { chosen.fields(visit); }, config);
    visit.section("Common");
    visit(quiet, {.name = "quiet", .help = "say nothing", .letter = 'q'});
  }

  const Circle& circle() const { return std::get<Circle>(config); }
  const Square& square() const { return std::get<Square>(config); }
};

constexpr PeerOption kDrawPeers[] = {{"side", "line-width", "XFig"}, {"dashes", "dotted", "XFig"}};
const ToolInfo kDraw{.name = "draw", .purpose = "draws", .usage = {"draw [options]"}, .peers = kDrawPeers};

struct Parsed {
  Drawing options;
  std::string out;
  std::vector<std::string> given;
};

Parsed parse_drawing(std::vector<std::string> words) {
  Parsed parsed;
  std::ostringstream out;
  FieldList fields = FieldList::of(parsed.options);
  parse_command_line(kDraw, fields, std::move(words), out);
  parsed.out = out.str();
  parsed.given = fields.given();
  return parsed;
}

/// Returns the message of the UsageError for a command line.
std::string refused_drawing(std::vector<std::string> words) {
  try {
    parse_drawing(std::move(words));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// A configuration file that exists as long as the object.
class Ini {
 public:
  explicit Ini(const std::string& text) { std::ofstream(path_) << text; }
  ~Ini() { std::filesystem::remove(path_); }
  Ini(const Ini&) = delete;
  Ini& operator=(const Ini&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / ("heed_selection_test." + std::to_string(::getpid())));
};

/// Visits the fields of a struct, and sets the selecting field to `square` while it visits this field.
struct Setter {
  std::vector<std::string_view> names;
  void section(std::string_view) {}
  void operator()(Figure& shape, const FieldInfo& info) {
    names.push_back(info.name);
    shape = Figure::square;
  }
  template <class T>
  void operator()(T&, const FieldInfo& info) {
    names.push_back(info.name);
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the selecting option decides which options there are, and their defaults") {
  CHECK(parse_drawing({}).options.circle().radius == 1);
  CHECK(parse_drawing({"--radius", "2"}).options.circle().radius == 2);
  CHECK(parse_drawing({"--shape", "large-circle"}).options.circle().radius == 100);
  CHECK(parse_drawing({"--shape", "large-circle"}).options.circle().line_width == 2);
  const Parsed square = parse_drawing({"--shape", "square", "--side", "7", "--corners", "a", "b", "-q", "-o", "x"});
  CHECK(square.options.shape == Figure::square);
  CHECK(square.options.square().side == 7);
  CHECK(square.options.square().line_width == 3);
  CHECK(square.options.square().corners == std::vector<std::string>{"a", "b"});
  CHECK(square.options.quiet);
  CHECK(square.options.output == "x");
  CHECK(square.given == std::vector<std::string>{"output", "shape", "side", "corners", "quiet"});
}

TEST_CASE("the selecting option may stand anywhere, in each form; the last of two wins") {
  CHECK(parse_drawing({"--side", "7", "--shape", "square"}).options.square().side == 7);
  CHECK(parse_drawing({"--side=7", "--shape=square"}).options.square().side == 7);
  CHECK(parse_drawing({"--side=7", "-q", "--sh", "square"}).options.square().side == 7);
  CHECK(parse_drawing({"-sh=square", "--side=7"}).options.square().side == 7);
  CHECK(parse_drawing({"-sh", "square", "--side=7"}).options.square().side == 7);
  CHECK(parse_drawing({"--shape", "square", "--radius", "3", "--shape", "large-circle"}).options.circle().radius == 3);
  CHECK(parse_drawing({"--shape", "large-circle", "--shape", "circle"}).options.circle().radius == 1);
  CHECK(parse_drawing({"--output=--shape=square"}).options.shape == Figure::circle);
}

TEST_CASE("a wrong value of the selecting option gets the usual message") {
  CHECK(refused_drawing({"--shape", "oval"}) == "--shape 'oval': must be one of circle, large-circle, square");
  CHECK(refused_drawing({"--shape=oval", "--side", "3"}) ==
        "--shape 'oval': must be one of circle, large-circle, square");
  CHECK(refused_drawing({"--shape=oval", "--shape=square"}) ==
        "--shape 'oval': must be one of circle, large-circle, square");
  CHECK(refused_drawing({"--shape="}) == "--shape '': must be one of circle, large-circle, square");
  CHECK(contains(refused_drawing({"--shape"}), "'--shape'"));
  CHECK(refused_drawing({"--shape", "--quiet"}) ==
        "--shape: needs a value before '--quiet' (--shape=--quiet makes this word the value)");
  CHECK(refused_drawing({"--output", "--shape", "square"}).starts_with("--output: needs a value before '--shape'"));
  CHECK(contains(refused_drawing({"--config=", "--side=3"}), "--side: is an option of --shape square"));
  CHECK(refused_drawing({"--", "--shape", "oval"}) == "'--shape' belongs to no option (usage: draw [options])");
  const Ini ini("quiet = true\nshape = oval\nside = 3\n");
  const std::string place = ini.path() + ":2: --shape 'oval': must be one of circle, large-circle, square";
  CHECK(refused_drawing({"--config", ini.path()}) == place);
  CHECK(refused_drawing({"--config", ini.path(), "--shape", "square"}) == place);
}

TEST_CASE("an option of another selection is refused with the selections that have it") {
  CHECK(refused_drawing({"--side", "3"}) ==
        "--side: is an option of --shape square, not of circle (draw --shape square --help lists its options)");
  const std::string radius =
      "is an option of --shape circle and large-circle, not of square (draw --shape circle --help lists its options)";
  CHECK(refused_drawing({"--shape=square", "--radius=3"}) == "--radius: " + radius);
  CHECK(refused_drawing({"--radius", "3", "--shape", "square"}) == "--radius: " + radius);
  CHECK(refused_drawing({"--shape", "square", "--rad", "3"}) == "--radius: " + radius);
  CHECK(refused_drawing({"--shape", "square", "-rad", "3"}) == "--radius: " + radius);
  CHECK(refused_drawing({"--shape", "square", "-radius", "3"}) == "--radius: " + radius);
  CHECK(refused_drawing({"--shape", "square", "-r3"}) == "-r: " + radius);
  CHECK(refused_drawing({"--shape", "square", "-r", "3"}) == "-r: " + radius);
  CHECK(refused_drawing({"--shape", "square", "-qr", "3"}) == "-r: " + radius);
  CHECK(refused_drawing({"--shape", "square", "--no_dotted"}) == "--no-dotted: " + radius);
  CHECK(refused_drawing({"-radius", "3"}) == "unknown option -radius: did you mean --radius?");
  // Options that no selection has.
  CHECK(refused_drawing({"--shape", "square", "--no-radius"}) == "unknown option --no-radius (--help lists them)");
  CHECK(refused_drawing({"--shape", "square", "--sidee", "3"}) == "unknown option --sidee: did you mean --side?");
  CHECK(refused_drawing({"--shape", "square", "--dashes"}) == "unknown option --dashes: did you mean --dotted? (XFig)");
  CHECK(refused_drawing({"--shape", "square", "-z"}) == "unknown option -z (--help lists them)");
}

TEST_CASE("after a refused option, the options are those of the chosen selection") {
  Drawing options;
  FieldList fields = FieldList::of(options);
  std::ostringstream out;
  CHECK_THROWS_AS(parse_command_line(kDraw, fields, {"--shape", "large-circle", "--side", "3"}, out), UsageError);
  CHECK(options.shape == Figure::large_circle);
  CHECK(options.circle().radius == 100);
  CHECK(fields.find("radius")->get_text() == std::vector<std::string>{"100"});
  CHECK(parse_command_line(kDraw, fields, {"--shape", "square", "--side", "3"}, out));
  CHECK(options.square().side == 3);
}

TEST_CASE("a configuration file selects, unless the command line does") {
  const Ini ini("line_width = 9\nside = 8  # units\nshape = large-circle\nshape = \"square\" # at last\n");
  const Parsed parsed = parse_drawing({"--config", ini.path(), "--corners", "a"});
  CHECK(parsed.options.shape == Figure::square);
  CHECK(parsed.options.square().side == 8);
  CHECK(parsed.options.square().line_width == 9);
  CHECK(parsed.given == std::vector<std::string>{"shape", "side", "line-width", "corners"});
  CHECK(parse_drawing({"--config=" + ini.path(), "--side=2"}).options.square().side == 2);
  CHECK(
      refused_drawing({"--config", ini.path(), "--radius", "3"}) ==
      "--radius: is an option of --shape circle and large-circle, not of square (draw --shape circle --help lists its "
      "options)");
  CHECK(refused_drawing({"--config", ini.path(), "--shape", "large-circle"}) ==
        ini.path() +
            ":2: --side: is an option of --shape square, not of large-circle (draw --shape square --help lists its "
            "options)");
  const Ini other("shape = square\nline-width = 1\n");
  const Parsed circle = parse_drawing({"--config", other.path(), "--shape", "circle"});
  CHECK(circle.options.shape == Figure::circle);
  CHECK(circle.options.circle().line_width == 1);
}

TEST_CASE("a line of a configuration file with another selection's option is named, whatever line selected before") {
  const Ini ini("shape = circle\nside = 8\n");
  CHECK(refused_drawing({"--config", ini.path(), "--shape", "large-circle"}) ==
        ini.path() +
            ":2: --side: is an option of --shape square, not of large-circle (draw --shape square --help lists its "
            "options)");
}

TEST_CASE("a configuration file that is a pipe is read once") {
  const std::string text = "# a comment\nside = 8\nshape = square\n";
  for (const bool typed : {false, true}) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
    std::vector<std::string> words = {"--config", "/dev/fd/" + std::to_string(ends[0])};
    if (typed) words.insert(words.end(), {"--shape", "square"});
    const Parsed parsed = parse_drawing(words);
    ::close(ends[0]);
    CHECK(parsed.options.square().side == 8);
    CHECK(parsed.given.size() == 2);
  }
}

TEST_CASE("--help shows the options of the selection with their defaults") {
  const std::string circle = parse_drawing({"--help"}).out, square = parse_drawing({"--help", "--shape", "square"}).out;
  CHECK(contains(circle, "size (also -rad; default 1)\n"));
  CHECK(contains(circle, "of the line (default 1)\n"));
  CHECK_FALSE(contains(circle, "--side"));
  CHECK(contains(square, "size (default 4)\n"));
  CHECK(contains(square, "of the line (default 3)\n"));
  CHECK_FALSE(contains(square, "--radius"));
  CHECK_FALSE(contains(square, "--dotted"));
  CHECK(contains(square, "what to draw (also -sh; default circle)\n"));
  CHECK(contains(parse_drawing({"--shape", "large-circle", "--radius", "5", "--help"}).out,
                 "size (also -rad; default 100)\n"));
  CHECK(square.find("--output") < square.find("Figure:"));
  CHECK(square.find("--corners") < square.find("Common:"));
  const Ini ini("shape = square\n");
  CHECK(parse_drawing({"--config", ini.path(), "--help"}).out == square);
}

TEST_CASE("a dumped configuration leaves defaults of the selection out, and can be used with another one") {
  CHECK(parse_drawing({"--dump-config"}).out ==
        "# Options\noutput = -\n\n# Figure\nshape = circle\ndotted = false\n\n# Common\nquiet = false\n");
  const std::string dumped = parse_drawing({"--dump-config", "--line-width=5", "--dotted", "--radius=1"}).out;
  CHECK(
      dumped ==
      "# Options\noutput = -\n\n# Figure\nshape = circle\nline-width = 5\ndotted = true\n\n# Common\nquiet = false\n");
  const Ini ini(dumped);
  const Parsed large = parse_drawing({"--config", ini.path(), "--shape", "large-circle"});
  CHECK(large.options.shape == Figure::large_circle);
  CHECK(large.options.circle().radius == 100);
  CHECK(large.options.circle().line_width == 5);
  CHECK(large.options.circle().dotted);
  CHECK(parse_drawing({"--config", ini.path(), "--dump-config"}).out == dumped);
  // 1 is the radius of circle, but not of large-circle.
  const std::string small = parse_drawing({"--dump-config", "--shape=large-circle", "--radius=1"}).out;
  CHECK(contains(small, "shape = large-circle\nradius = 1\n"));
  const Ini other(small);
  CHECK(parse_drawing({"--config", other.path(), "--dump-config"}).out == small);
}

TEST_CASE("fields are listed anew when the selecting field has changed") {
  Drawing options;
  FieldList fields = FieldList::of(options);
  CHECK(fields.selector() == fields.find("shape"));
  fields.find("radius")->set_text(std::vector<std::string>{"5"});
  fields.relist();
  CHECK(options.circle().radius == 5);
  CHECK(fields.find("radius")->initial == std::vector<std::string>{"1"});
  fields.find("shape")->given = true;
  fields.find("shape")->set_text(std::vector<std::string>{"square"});
  CHECK(fields.find("side") == nullptr);
  fields.relist();
  CHECK(options.square().side == 4);
  REQUIRE(fields.find("side"));
  CHECK(fields.find("side")->initial == std::vector<std::string>{"4"});
  CHECK(fields.find("side")->section == "Figure");
  CHECK(fields.find("output")->section == "Options");
  CHECK(fields.find("shape")->initial == std::vector<std::string>{"circle"});
  CHECK(fields.given() == std::vector<std::string>{"shape"});
  CHECK_THROWS_AS(fields.select("oval"), UsageError);
  CHECK(options.shape == Figure::square);
  fields.select("large-circle");
  CHECK(options.circle().radius == 100);
  CHECK(fields.find("line-width")->initial == std::vector<std::string>{"2"});
}

TEST_CASE("a visitor that sets values while it visits them gets the fields of the new selection") {
  Drawing options;
  Setter setter;
  options.fields(setter);
  CHECK(options.square().side == 4);
  CHECK(setter.names == std::vector<std::string_view>{"output", "shape", "side", "line-width", "corners", "quiet"});
}

TEST_CASE("a field that could not be found before the others are known may not select") {
  struct Letter {
    Figure shape = Figure::circle;
    void fields(FieldList& visit) { visit(shape, {.name = "shape", .help = ".", .letter = 's', .selects = true}); }
  } letter;
  struct Two {
    Figure one = Figure::circle, two = Figure::circle;
    void fields(FieldList& visit) {
      visit(one, {.name = "one", .help = ".", .selects = true});
      visit(two, {.name = "two", .help = ".", .selects = true});
    }
  } two;
  CHECK_THROWS_WITH_AS(FieldList::of(letter), "internal: --shape cannot select other fields", Error);
  CHECK_THROWS_WITH_AS(FieldList::of(two), "internal: --two cannot select other fields", Error);
}
