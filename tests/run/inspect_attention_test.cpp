#include "heed/run/inspect_attention.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "heed/base/error.h"
#include "heed/checkpoint/checkpoint.h"
#include "heed/checkpoint/h5.h"
#include "heed/decode/force.h"
#include "heed/decode/translator.h"
#include "heed/model/transformer.h"
#include "heed/run/translate.h"
#include "heed/text/bpe/bpe.h"

using namespace heed;
namespace fs = std::filesystem;

namespace {

/// A folder with an untrained model of two layers and two heads; the destructor removes the folder.
struct ModelFolder {
  fs::path path;

  explicit ModelFolder(PositionEncoding positions = PositionEncoding::interleaved, bool word_positions = false)
      : path(fs::temp_directory_path() /
             ("heed_inspect_attention_test_" + std::to_string(::getpid()) + "_" + std::string(enum_name(positions)))) {
    fs::create_directories(path);
    TransformerConfig config;
    config.source_vocabulary = config.target_vocabulary = 9;
    config.dim_emb = 8;
    config.heads = 2;
    config.dim_ffn = 12;
    config.enc_depth = config.dec_depth = 2;
    config.positions = positions;
    config.max_positions = 6;
    config.word_positions = word_positions;
    TextSteps steps;
    steps.mode = TokenMode::words;
    const auto merges = BpeMerges::parse("#version: 0.2\na b</w>\n", "codes");
    const std::vector<std::string> pieces = {"<pad>", "<unk>", "<s>", "</s>", "ab", "b", "c@@", "a", "."};
    const TextModel text(steps, Subwords(std::make_shared<const BpeEncoder>(merges)),
                         std::make_shared<const Vocabulary>(pieces));
    if (word_positions) config.source_word_ends = config.target_word_ends = text.word_ends().value().text();
    auto model = std::make_shared<const Transformer<float>>(config);
    ParameterValues<float> parameters(model->layout());
    parameters.initialise(3);
    save_checkpoint(file("m.h5"), {model, std::move(parameters), text, text});
  }
  ~ModelFolder() { fs::remove_all(path); }

  std::string file(const std::string& name) const { return (path / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }
};

using Change = std::function<void(InspectAttentionOptions&)>;

std::string inspect(
    const ModelFolder& folder, const std::string& input, const Change& change = [](auto&) {}) {
  InspectAttentionOptions options;
  options.model = folder.file("m.h5");
  change(options);
  std::istringstream in(input);
  std::ostringstream out, messages;
  Log log(messages, "inspect-attention");
  const int code = run_inspect_attention(options, {}, 80, in, out, log);
  CHECK(code == 0);
  return out.str() + messages.str();
}

template <class E = Error>
std::string complaint(
    const ModelFolder& folder, const std::string& input, const Change& change = [](auto&) {}) {
  try {
    return "none; " + inspect(folder, input, change);
  } catch (const E& error) {
    return error.what();
  }
}

struct Cell {
  std::string place, query, key;
  double weight;
};

std::vector<Cell> cells(const std::string& tsv) {
  std::istringstream in(tsv);
  std::string line, kind, layer, head, q, query, k, key, weight;
  std::vector<Cell> out;
  std::getline(in, line);
  while (std::getline(in, line, '\t') && std::getline(in, kind, '\t') && std::getline(in, layer, '\t') &&
         std::getline(in, head, '\t') && std::getline(in, q, '\t') && std::getline(in, query, '\t') &&
         std::getline(in, k, '\t') && std::getline(in, key, '\t') && std::getline(in, weight))
    out.push_back({line + " " + kind + " " + layer + " " + head + " " + q, query, key, std::stod(weight)});
  return out;
}

}  // namespace

TEST_CASE("inspect-attention: every head of every layer looks at all it may look at, and at no more") {
  const ModelFolder folder;
  const std::string target = folder.write("target", "a b\n");
  const auto all = cells(inspect(folder, "cb .\n", [&](InspectAttentionOptions& o) {
    o.target = target;
    o.report.kind = AttentionChoice::all;
    o.report.layer = o.report.head = "all";
  }));
  // The source is c@@ b . </s>; the decoder's input is <s> a b, its output a b </s>.
  CHECK(all.size() == 2 * 2 * (4 * 4 + 3 * 3 + 3 * 4));
  std::map<std::string, double> sums;
  for (const Cell& cell : all) {
    sums[cell.place] += cell.weight;
    CHECK(cell.weight >= 0);
    if (cell.place.starts_with("1 decoder") && cell.place.ends_with(" 0")) CHECK(cell.weight == (cell.key == "<s>"));
    if (cell.place.starts_with("1 decoder") && cell.query == "a" && cell.key == "b") CHECK(cell.weight == 0);
  }
  CHECK(sums.size() == 2 * 2 * (4 + 3 + 3));
  for (const auto& [place, sum] : sums) CHECK(sum == doctest::Approx(1).epsilon(1e-5));
}

TEST_CASE("inspect-attention: the mean over the last layer's heads is what translate --alignment uses") {
  const ModelFolder folder;
  const auto shown = cells(inspect(folder, "cb .\tab\n", [&](InspectAttentionOptions& o) { o.tsv = true; }));
  Translator translator({{folder.file("m.h5")}}, Precision::float32);
  Batch pair;
  pair.add(translator.source().encode("cb ."), translator.target().encode("ab"));
  const std::vector<float> expected = translator.attention(pair).front();
  REQUIRE(shown.size() == expected.size());
  for (std::size_t i = 0; i < shown.size(); ++i) CHECK(std::abs(shown[i].weight - double{expected[i]}) < 1e-6);
}

TEST_CASE("inspect-attention: without a target it shows the translation, as when that is given") {
  const ModelFolder folder;
  const std::string input = "ab .\n\ncab ab\n";
  TranslateOptions options;
  options.models = {folder.file("m.h5")};
  options.common.quiet = true;
  options.threads = 1;
  std::istringstream in(input);
  std::ostringstream translation, messages;
  Log log(messages, "translate", Verbosity::quiet);
  run_translate(options, in, translation, log);
  const std::string target = folder.write("target", translation.str());
  const auto heat = [](InspectAttentionOptions& o) { o.report.format = AttentionFormat::table; };
  CHECK(inspect(folder, input, heat) == inspect(folder, input, [&](InspectAttentionOptions& o) {
          heat(o);
          o.target = target;
        }));
}

TEST_CASE(
    "inspect-attention: links join words; each input line gives one line, each chosen one where lines are chosen") {
  const ModelFolder folder;
  const auto links = [](InspectAttentionOptions& o) {
    o.tsv = true;
    o.report.format = AttentionFormat::pharaoh;
    o.report.alignment = {"threshold", "0"};
  };
  const std::string input = "cab .\tb cb\n\n\tb\nb\t\n";
  CHECK(inspect(folder, input, links) == "0-0 1-0 0-1 1-1\n\n\n\n");
  CHECK(inspect(folder, input, [&](InspectAttentionOptions& o) {
          links(o);
          o.lines = "1,3";
        }) == "0-0 1-0 0-1 1-1\n\n");
}

TEST_CASE("inspect-attention: pieces that the model does not know are shown as they stand in the text") {
  const ModelFolder folder;
  const std::string shown = inspect(folder, "x b\tb\n", [&](InspectAttentionOptions& o) { o.tsv = true; });
  CHECK(shown.find("1\tcross\t2\tmean\t0\tb\t0\tx\t0.") != std::string::npos);
}

TEST_CASE("inspect-attention: a text with U+0000 is whole in an HDF5 file") {
  const ModelFolder folder;
  const std::string bytes = inspect(folder, std::string("x\0y b\n", 6), [&](InspectAttentionOptions& o) {
    o.target = folder.write("target", std::string("b \0\n", 4));
    o.report.format = AttentionFormat::hdf5;
    o.output = folder.file("map.h5");
  });
  const h5::File file = h5::File::open(folder.write("map.h5", bytes));
  CHECK(file.read_attribute("/lines/1", "source") == FieldValue(std::string("x\u2400y b")));
  CHECK(file.read_attribute("/lines/1", "target") == FieldValue(std::string("b \u2400")));
  using Texts = std::vector<std::string>;
  CHECK(file.read_strings("/lines/1/cross/keys").back() == "</s>");
  CHECK(file.read_strings("/lines/1/cross/queries") == Texts{"b", "\u2400", "</s>"});
}

/// Returns the numbers that `--kind positions` shows for a model with such positions, by their place: "stack term layer
/// row column".
std::map<std::string, double> position_numbers(PositionEncoding kind, std::optional<int> positions,
                                               const std::string& layer = "all", bool word_positions = false) {
  const std::string text = inspect(ModelFolder(kind, word_positions), "", [&](InspectAttentionOptions& options) {
    options.report.kind = AttentionChoice::positions;
    options.report.positions = positions;
    options.report.layer = layer;
  });
  std::map<std::string, double> out;
  std::istringstream in(text);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const std::size_t value = line.rfind('\t');
    std::string place = line.substr(0, value);
    std::replace(place.begin(), place.end(), '\t', ' ');
    CHECK(out.emplace(place, std::stod(line.substr(value))).second);
  }
  return out;
}

TEST_CASE("inspect-attention: --kind positions shows the numbers of each encoding") {
  using enum PositionEncoding;
  const auto close = [](double value) { return doctest::Approx(value).epsilon(1e-5); };
  auto numbers = position_numbers(interleaved, 3);
  CHECK(numbers.size() == 3 * 8);
  CHECK(numbers.at("both sinusoid 0 2 0") == close(std::sin(2)));
  CHECK(numbers.at("both sinusoid 0 2 3") == close(std::cos(2 / std::pow(10000, 0.25))));
  numbers = position_numbers(concatenated, 3);
  CHECK(numbers.at("both sinusoid 0 2 4") == close(std::cos(2)));
  // Two heads of four columns each: the components 2 and 3 turn with the frequency 10000^(-2 / 4).
  numbers = position_numbers(rotary, 5);
  CHECK(numbers.size() == 5 * 4);
  CHECK(numbers.at("both rotary 0 4 0") == close(std::cos(4)));
  CHECK(numbers.at("both rotary 0 4 1") == close(std::sin(4)));
  CHECK(numbers.at("both rotary 0 4 3") == close(std::sin(0.04)));
  // The slopes of two heads are 2^-4 and 2^-8.
  numbers = position_numbers(alibi, 3);
  CHECK(numbers.size() == 2 * 5 + 2 * 3);
  CHECK(numbers.at("encoder alibi 0 1 2") == close(-2.0 / 16));
  CHECK(numbers.at("encoder alibi 0 2 -1") == close(-0.003906));
  CHECK(numbers.at("decoder alibi 0 1 -2") == close(-2.0 / 16));
  CHECK(numbers.count("decoder alibi 0 1 1") == 0);
}

TEST_CASE("inspect-attention: --kind positions shows learned numbers as the checkpoint holds them") {
  using enum PositionEncoding;
  // Returns element [row, column] of a parameter of the model in `folder`.
  const auto parameter = [](PositionEncoding kind, const std::string& name, std::int64_t row, std::int64_t column) {
    const ModelFolder folder(kind);
    Checkpoint checkpoint = load_checkpoint(folder.file("m.h5"));
    const ParameterId id = checkpoint.model->layout().find(name);
    REQUIRE_MESSAGE(id, name);
    return static_cast<double>(checkpoint.parameters[id].row(row)[column]);
  };
  const auto close = [](double value) { return doctest::Approx(value).epsilon(1e-4); };
  auto numbers = position_numbers(learned, 100);
  CHECK(numbers.size() == 6 * 8);  // the model has six positions
  CHECK(numbers.at("both learned 0 5 7") == close(parameter(learned, "positions/weight", 5, 7)));
  numbers = position_numbers(relative, {});
  CHECK(numbers.size() == 2 * 2 * (33 + 17) * 4);
  CHECK(numbers.at("encoder relative_key 1 16 3") ==
        close(parameter(relative, "encoder/layers/0/self_attention/relative_keys/weight", 32, 3)));
  CHECK(numbers.at("decoder relative_value 2 0 1") ==
        close(parameter(relative, "decoder/layers/1/self_attention/relative_values/weight", 16, 1)));
  CHECK(position_numbers(relative, {}, "last").count("encoder relative_key 1 0 0") == 0);
  CHECK(position_numbers(relative, {}, "last").size() == 2 * (33 + 17) * 4);
  CHECK(position_numbers(relative, {}, "1").count("decoder relative_key 1 0 0") == 1);
  // In the encoder, the second half of the 32 buckets is for keys behind the query.
  numbers = position_numbers(t5, 4);
  CHECK(numbers.at("encoder t5 0 2 1") == close(parameter(t5, "encoder/position_bias/weight", 17, 1)));
  CHECK(numbers.at("encoder t5 0 1 -3") == close(parameter(t5, "encoder/position_bias/weight", 3, 0)));
  CHECK(numbers.at("decoder t5 0 1 -3") == close(parameter(t5, "decoder/position_bias/weight", 3, 0)));
}

TEST_CASE("inspect-attention: --kind positions shows the numbers of words with every other encoding, for each layer") {
  using enum PositionEncoding;
  for (const std::string layer : {"all", "1", "last"}) {
    CAPTURE(layer);
    const auto numbers = position_numbers(relative, 3, layer, true);
    CHECK(numbers.count("both word 0 2 7") == 1);
    CHECK(numbers.count("encoder relative_key 1 0 3") == (layer == "last" ? 0 : 1));
    CHECK(numbers.count("encoder relative_key 2 0 3") == (layer == "1" ? 0 : 1));
  }
  CHECK(position_numbers(alibi, 3, "all", true).size() == 3 * 8 + 2 * 5 + 2 * 3);
  CHECK(position_numbers(t5, 3, "last", true).count("both word 0 0 0") == 1);
  const auto header = [](PositionEncoding kind, bool word_positions) {
    const std::string text = inspect(ModelFolder(kind, word_positions), "", [](InspectAttentionOptions& options) {
      options.report.kind = AttentionChoice::positions;
    });
    return text.substr(0, text.find('\n'));
  };
  CHECK(header(relative, false) == "stack\tterm\tlayer\tdistance\tcomponent\tvalue");
  CHECK(header(relative, true) == "stack\tterm\tlayer\trow\tcomponent\tvalue");
  CHECK(header(t5, true) == "stack\tterm\tlayer\trow\tcolumn\tvalue");
}

TEST_CASE("inspect-attention: a blank line is an empty sentence") {
  const ModelFolder folder;
  const auto links = [](InspectAttentionOptions& options) { options.report.format = AttentionFormat::pharaoh; };
  CHECK(inspect(folder, " \n\n\t\n", links) == "\n\n\n");
}

TEST_CASE("inspect-attention: --kind positions is drawn, and says what does not fit it") {
  const ModelFolder folder(PositionEncoding::alibi);
  const auto positions = [](InspectAttentionOptions& options) { options.report.kind = AttentionChoice::positions; };
  const auto in_format = [&](AttentionFormat format) {
    return inspect(folder, "", [&](InspectAttentionOptions& options) {
      positions(options);
      options.report.format = format;
      options.report.positions = 30;
      if (format == AttentionFormat::heatmap || format == AttentionFormat::table) options.report.terminal.width = 40;
      options.report.terminal.ascii = format == AttentionFormat::heatmap;
    });
  };
  // 17 columns fit, so that every fourth of the 59 distances is drawn, among them 0.
  const std::string drawn = in_format(AttentionFormat::heatmap);
  CHECK_MESSAGE(drawn.starts_with("ALiBi, encoder\n"
                                  "rows: head; columns: distance (key -\n"
                                  "query)\n"
                                  " -28   -16  -8  0   8   16  24\n"),
                drawn);
  CHECK(in_format(AttentionFormat::svg).find(">added to the logit</text>") != std::string::npos);
  CHECK(in_format(AttentionFormat::png).starts_with("\x89PNG"));
  CHECK(in_format(AttentionFormat::table).find("-0.06") != std::string::npos);
  CHECK(
      in_format(AttentionFormat::jsonl)
          .starts_with(
              R"({"stack":"encoder","term":"alibi","layer":0,"row_axis":"head","rows":[1,2],"column_axis":"distance",)"));
  const auto refused = [&](const Change& change) {
    return complaint<UsageError>(folder, "", [&](InspectAttentionOptions& options) {
      positions(options);
      change(options);
    });
  };
  CHECK(refused([](auto& o) { o.target = "t"; }) ==
        "--target: has no use with --kind positions, which reads no sentences");
  CHECK(refused([](auto& o) { o.max_length = 20; }) ==
        "--max-length: has no use with --kind positions, which reads no sentences");
  CHECK(refused([](auto& o) { o.utf8.on_invalid_utf8 = InvalidUtf8::fail; }) ==
        "--on-invalid-utf8: has no use with --kind positions, which reads no sentences");
  CHECK(refused([](auto& o) { o.report.head = "1"; }) ==
        "--head: has no use with --kind positions, which shows numbers of the model and not tokens");
  CHECK(refused([](auto& o) { o.report.format = AttentionFormat::pharaoh; }) ==
        "--format pharaoh: has no use with --kind positions, which shows numbers of the model and not tokens");
  CHECK(refused([](auto& o) { o.report.layer = "1"; }) ==
        "--layer 1: all layers of this model share the encoding of positions (leave it out)");
  CHECK(complaint<UsageError>(folder, "", [](auto& o) { o.report.positions = 3; }) ==
        "--positions: has no use without --kind positions");
  CHECK(complaint<UsageError>(ModelFolder(PositionEncoding::none), "", positions) ==
        "--kind positions: this model does not encode positions (train --transformer-positions makes models that do)");
  const ModelFolder relative(PositionEncoding::relative);
  CHECK(complaint<UsageError>(relative, "", [&](InspectAttentionOptions& options) {
          positions(options);
          options.report.layer = "1,3";
        }) == "--layer 3: the model has 2 such layers");
  CHECK(complaint<UsageError>(relative, "", [&](InspectAttentionOptions& options) {
          positions(options);
          options.report.positions = 3;
        }) == "--positions: has no use with " + relative.file("m.h5") + ", whose tables have a fixed size");
}

TEST_CASE("inspect-attention: files of unequal length are an error that gives both lengths") {
  const ModelFolder folder;
  const std::string target = folder.write("target", "a\nb\n");
  const auto given = [&](InspectAttentionOptions& o) { o.target = target; };
  const std::string note = " (each source line needs its target line)";
  CHECK(complaint(folder, "a\n", given) == "standard input: has 1 line, but " + target + " has 2 lines" + note);
  CHECK(complaint(folder, "a\na\na\na\n", given) == target + ": has 2 lines, but standard input has 4 lines" + note);
}

TEST_CASE("inspect-attention: bad lines are named") {
  const ModelFolder folder;
  const auto tsv = [](InspectAttentionOptions& o) { o.tsv = true; };
  CHECK(complaint(folder, "a\tb\nab\n", tsv) == "standard input:2: no TAB in this line (a line is: source TAB target)");
  CHECK(complaint(folder, "a\tb\tc\n", tsv) ==
        "standard input:1:4: more than two columns (a line is: source TAB target; cut -f1,2 picks two)");
  CHECK(complaint(folder, "a\n", [](InspectAttentionOptions& o) { o.lines = "3,7-"; }) ==
        "standard input: has 1 line, but --lines asks for line 7");
  CHECK(complaint(folder, "a\na a a a\n", [](InspectAttentionOptions& o) { o.max_length = 3; }) ==
        "standard input:2: has 4 pieces, more than 3 (--max-length N allows more, but memory grows with its square)");
  // The limit is that of the input, and does not shorten the translation, which has three pieces and </s> here.
  const std::string whole = inspect(folder, "ab .\n");
  CHECK(cells(whole).back().place.ends_with(" 3"));
  CHECK(inspect(folder, "ab .\n", [](auto& o) { o.max_length = 2; }) == whole);
  const ModelFolder learned(PositionEncoding::learned);
  CHECK(complaint(learned, "a a a a a a\n") ==
        "standard input:1: has 6 pieces, more than 5 (this model has positions for no more; --lines leaves "
        "lines out)");
  CHECK(complaint(learned, "a a a a a\n").starts_with("none; line\tkind"));
}

TEST_CASE("inspect-attention: what cannot be is said before any work") {
  const ModelFolder folder;
  const auto usage = [&](const Change& change) { return complaint<UsageError>(folder, "a\n", change); };
  CHECK(usage([](auto& o) { o.model = ""; }) == "needs a model: -m MODEL.h5 (train makes one)");
  CHECK(usage([](auto& o) { o.lines = "x"; }) == "--lines 'x': not a list of numbers from 1 (say 3,7-9)");
  CHECK(usage([](auto& o) { o.report.layer = "3"; }) == "--layer 3: the model has 2 such layers");
  for (const std::string option : {"layer", "head", "lines", "query"})
    CHECK(usage([&](auto& o) { o.given = {option}; }) ==
          "--" + option + ": the value is empty (give one, or leave the option out)");
  CHECK(usage([](auto& o) { o.report.query = "1,1"; }).starts_with("--query: is for models that read images "));
  CHECK(usage([](auto& o) { o.target = "-"; }) ==
        "--target - reads standard input, and so does the input (give files)");
  CHECK(usage([](auto& o) {
          o.tsv = true;
          o.target = "t";
        }) == "--tsv and --target exclude each other: the targets are in one place");
  CHECK(usage([](auto& o) {
          o.tsv = true;
          o.beam_size = 2;
        }) == "--beam-size is for translating, but the targets are given (leave one of them out)");
}
