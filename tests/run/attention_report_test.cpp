#include "heed/run/attention_report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "heed/base/error.h"
#include "heed/nn/window_partition.h"
#include "heed/run/number_ranges.h"

using namespace heed;

namespace {

const TerminalEnvironment kPipe{};
const TerminalEnvironment kTerminal{true, "", "vt100", ""};

/// Returns the tokens of a text whose pieces with @@ at their end go on in the next piece, with its marks.
AttentionTokens tokens(const std::vector<std::string>& pieces, SentenceMarks marks) {
  AttentionTokens out{.pieces = pieces, .marks = marks};
  bool goes_on = false;
  for (std::string piece : pieces) {
    if (!goes_on) out.words.words.emplace_back();
    goes_on = piece.ends_with("@@");
    if (goes_on) piece.resize(piece.size() - 2);
    out.words.words.back() += piece;
    out.words.word_of.push_back(static_cast<int>(out.words.words.size()) - 1);
  }
  return out;
}

/// Returns the attention of "lost ." translated to "perdu", with two heads in one layer of encoder and decoder.
SentenceAttention example() {
  SentenceAttention sentence;
  sentence.line = 1;
  sentence.source_text = "lost .";
  sentence.target_text = "perdu";
  sentence.source = tokens({"lo@@", "st", ".", "</s>"}, {.end = true});
  sentence.fed = tokens({"<s>", "perdu"}, {.start = true});
  sentence.produced = tokens({"perdu", "</s>"}, {.end = true});
  using enum AttentionKind;
  sentence.heads = {{cross, 1, 1, {0.5F, 0.25F, 0.25F, 0.F, 0.F, 0.F, 0.5F, 0.5F}},
                    {cross, 1, 2, {0.F, 0.25F, 0.25F, 0.5F, 0.F, 0.F, 0.F, 1.F}},
                    {decoder, 1, 1, {1.F, 0.F, 0.5F, 0.5F}},
                    {decoder, 1, 2, {1.F, 0.F, 0.F, 1.F}},
                    {encoder, 1, 1, std::vector<float>(16, 0.25F)},
                    {encoder, 1, 2, std::vector<float>(16, 0.25F)}};
  return sentence;
}

/// Returns the attention layers of a model with one layer of two heads for each of these kinds.
std::vector<AttentionLayers> layers_of(std::initializer_list<AttentionKind> kinds) {
  std::vector<AttentionLayers> out;
  for (const AttentionKind kind : kinds) out.push_back({.kind = kind, .layers = 1, .heads = 2});
  return out;
}

const std::vector<AttentionLayers> kTransformer =
    layers_of({AttentionKind::encoder, AttentionKind::decoder, AttentionKind::cross});

std::string report(const AttentionReportOptions& options, const TerminalEnvironment& environment = kPipe,
                   const std::string& output = "-", const std::vector<AttentionLayers>& layers = kTransformer,
                   const SentenceAttention& sentence = example()) {
  std::ostringstream out;
  AttentionReport report(options, output, out, environment, 80);
  report.check_model(layers);
  report.add(sentence);
  report.finish();
  return out.str();
}

std::string complaint(const AttentionReportOptions& options, const TerminalEnvironment& environment = kPipe) {
  try {
    report(options, environment);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("lists of numbers") {
  const NumberRanges ranges = NumberRanges::parse("lines", "3,7-9");
  CHECK(ranges.contains(3));
  CHECK(!ranges.contains(4));
  CHECK(ranges.contains(8));
  CHECK(ranges.greatest_named() == 9);
  CHECK(!ranges.all_before(9));
  CHECK(ranges.all_before(10));
  CHECK(NumberRanges::parse("lines", "7-").contains(1000000));
  CHECK(NumberRanges::parse("lines", "7-").greatest_named() == 7);
  for (const char* bad : {"", "0", "a", "3,", "9-7", "-3", "1 2", "3--4", "99999999999999999999"})
    CHECK_THROWS_WITH_AS(NumberRanges::parse("lines", bad),
                         (std::string("--lines '") + bad + "': not a list of numbers from 1 (say 3,7-9)").c_str(),
                         UsageError);
}

TEST_CASE("a pipe gets TSV: the last layer's cross attention, mean of heads") {
  CHECK(report({}) ==
        "line\tkind\tlayer\thead\tquery\tquery_token\tkey\tkey_token\tweight\n"
        "1\tcross\t1\tmean\t0\tperdu\t0\tlo@@\t0.250000\n"
        "1\tcross\t1\tmean\t0\tperdu\t1\tst\t0.250000\n"
        "1\tcross\t1\tmean\t0\tperdu\t2\t.\t0.250000\n"
        "1\tcross\t1\tmean\t0\tperdu\t3\t</s>\t0.250000\n"
        "1\tcross\t1\tmean\t1\t</s>\t0\tlo@@\t0.000000\n"
        "1\tcross\t1\tmean\t1\t</s>\t1\tst\t0.000000\n"
        "1\tcross\t1\tmean\t1\t</s>\t2\t.\t0.250000\n"
        "1\tcross\t1\tmean\t1\t</s>\t3\t</s>\t0.750000\n");
}

TEST_CASE("a terminal gets a heat map") {
  CHECK(report({.words = true, .eos = false, .terminal = {.ascii = true}}, kTerminal) ==
        "line 1: lost . -> perdu\n"
        "cross attention, layer 1, mean of heads\n"
        "      + lost\n"
        "      | + .\n"
        "perdu @@++\n"
        "\n"
        "weight 0 [  ..::--==++**##%%@@] 0.5\n");
}

TEST_CASE("the output's name tells the format") {
  CHECK(report({}, kTerminal, "a.svg").starts_with("<?xml"));
  CHECK(report({}, kPipe, "a.png").starts_with("\x89PNG"));
  CHECK(report({}, kPipe, "a.jsonl").starts_with("{\"line\":1,"));
  CHECK(report({.format = AttentionFormat::jsonl}, kPipe, "a.svg").starts_with("{\"line\":1,"));
  CHECK(report({.format = AttentionFormat::jsonl}, kPipe, "a.pdf").starts_with("{\"line\":1,"));
  CHECK(report({}, kPipe, "a.SVG").starts_with("<?xml"));
  CHECK(report({}, kPipe, "a.Svg.GZ").starts_with("<?xml"));
  CHECK(report({}, kPipe, "a.txt").starts_with("line\tkind"));
  for (const std::string name : {"a.pdf", "a.PDF", "a.json", "a.jpg.gz"})
    CHECK_THROWS_AS(report({}, kPipe, name), UsageError);
  CHECK_THROWS_WITH_AS(
      report({}, kPipe, "a.PDF"),
      "-o a.PDF: there is no format for .pdf files (.svg, .png, .html, .h5, .tsv and .jsonl name one, or --format)",
      UsageError);
}

TEST_CASE("pharaoh links words, never </s>") {
  CHECK(report({.head = "1", .format = AttentionFormat::pharaoh}) == "0-0\n");
  CHECK(report({.head = "2", .pieces = true, .format = AttentionFormat::pharaoh}) == "1-0\n");
  CHECK(report({.head = "1", .alignment = {"threshold", "0.25"}}) == "0-0 1-0\n");
  CHECK(report({.alignment = {"argmax"}}) == "0-0\n");
}

TEST_CASE("pharaoh counts the words of the text, in the decoder, too; a word may look like a mark") {
  CHECK(report({.kind = AttentionChoice::decoder, .head = "1", .format = AttentionFormat::pharaoh}) == "0-0\n");
  SentenceAttention sentence = example();
  sentence.fed = tokens({"<s>", "</s>"}, {.start = true});
  const auto shown = [&](const AttentionReportOptions& options) {
    return report(options, kPipe, "-", kTransformer, sentence);
  };
  CHECK(shown({.kind = AttentionChoice::decoder, .head = "2", .format = AttentionFormat::pharaoh}) == "0-0\n");
  CHECK(shown({.kind = AttentionChoice::decoder, .head = "1", .eos = false, .format = AttentionFormat::jsonl})
            .find(R"("columns":["<s>","</s>"],"weights":[[1.0,0.0],[0.5,0.5]])") != std::string::npos);
  const std::string stats = shown({.kind = AttentionChoice::decoder, .stats = true});
  CHECK(stats.find("decoder\t1\t1\t1\t2\t0.5000\t0.250\t0.7500\t0.7500\t0.0000\n") != std::string::npos);
}

TEST_CASE("a kind of attention that the model does not have is an error") {
  using enum AttentionKind;
  CHECK(report({.format = AttentionFormat::tsv}, kPipe, "-", layers_of({cross})) ==
        report({.format = AttentionFormat::tsv}));
  CHECK_THROWS_WITH_AS(report({.kind = AttentionChoice::encoder}, kPipe, "-", layers_of({decoder, cross})),
                       "--kind encoder: the model has no such attention (it has decoder, cross)", UsageError);
  CHECK_THROWS_WITH_AS(report({.rollout = true}, kPipe, "-", layers_of({decoder, cross})),
                       "--rollout: the model has no encoder attention (it has decoder, cross)", UsageError);
  CHECK_THROWS_WITH_AS(
      report({.kind = AttentionChoice::all}, kPipe, "-", {}),
      "the model has no attention, so that there is nothing to show (train --task rnn-attention and the "
      "Transformers have some)",
      UsageError);
}

TEST_CASE("an empty line is an empty line of links") {
  std::ostringstream out;
  AttentionReport links({.format = AttentionFormat::pharaoh}, "-", out, kPipe, 80);
  links.check_model(kTransformer);
  links.add({.line = 1});
  links.finish();
  CHECK(out.str() == "\n");
}

TEST_CASE("options of the heat map are errors elsewhere") {
  CHECK(complaint({.format = AttentionFormat::tsv, .terminal = {.width = 40}}) ==
        "--width: has no use with --format tsv (heatmap and table have columns)");
  CHECK(complaint({.format = AttentionFormat::svg, .terminal = {.ascii = true}}) ==
        "--ascii: has no use with --format svg (a heatmap is drawn with characters)");
  CHECK(complaint({.format = AttentionFormat::table, .terminal = {.color = ColorChoice::always}}) ==
        "--color: has no use with --format table (a heatmap has colours)");
  CHECK(complaint({.format = AttentionFormat::heatmap, .terminal = {.ascii = true, .color = ColorChoice::always}}) ==
        "--color always: has no use with --ascii (leave one of them out)");
}

TEST_CASE("captions of a table fit the width") {
  CHECK(report({.top = 4, .format = AttentionFormat::table, .terminal = {.width = 20}})
            .ends_with("\nperdu  lo@@ 0.25\n"
                       "       st 0.25\n"
                       "       . 0.25\n"
                       "       </s> 0.25\n"
                       "</s>   </s> 0.75\n"
                       "       . 0.25\n"
                       "       lo@@ 0.00\n"
                       "       st 0.00\n"));
  const std::string table = report({.format = AttentionFormat::table, .terminal = {.width = 20}});
  CHECK(table.starts_with("line 1: lost . → pe…\ncross attention,\nlayer 1, mean of\nheads\n"));
}

TEST_CASE("kinds, heads and tables") {
  const std::string all =
      report({.kind = AttentionChoice::all, .layer = "all", .head = "all", .format = AttentionFormat::jsonl});
  CHECK(std::count(all.begin(), all.end(), '\n') == 6);
  CHECK(all.find("\"kind\":\"decoder\",\"layer\":1,\"head\":2,\"rows\":[\"<s>\",\"perdu\"]") != std::string::npos);
  CHECK(report({.kind = AttentionChoice::decoder, .head = "max", .format = AttentionFormat::table}) ==
        "line 1: lost . → perdu\n"
        "decoder attention, layer 1, max of heads\n"
        "        <s>  perdu\n"
        "  <s>  1.00   0.00\n"
        "perdu  0.50   1.00\n");
}

TEST_CASE("summaries of all heads") {
  // All layers and heads are chosen if the user chooses none.
  const std::string stats = report({.stats = true});
  CHECK(
      stats.starts_with("kind\tlayer\thead\tsentences\tqueries\tentropy\tdistance\tlargest\tfirst\tend\n"
                        "cross\t1\t1\t1\t2\t1.2500\t1.125\t0.5000\t0.2500\t0.2500\n"
                        "cross\t1\t2\t1\t2\t0.7500\t"));
  CHECK(std::count(stats.begin(), stats.end(), '\n') == 3);
  CHECK(report({.kind = AttentionChoice::decoder, .stats = true}, kTerminal).starts_with("kind     layer  head  "));
  // The words are "lost", "." and "perdu". Head 1 links perdu to lost; head 2 looks at "." and "lost" alike, but most
  // at
  // </s>, and links the first of them.
  const std::string gold = report({.gold = "gold"});
  CHECK(gold ==
        "kind\tlayer\thead\tlinks\tprecision\trecall\taer\n"
        "cross\t1\t1\t1\t0.0000\t0.0000\t1.0000\n"
        "cross\t1\t2\t1\t0.0000\t0.0000\t1.0000\n");
  SentenceAttention sentence = example();
  sentence.gold = {{{0, 0}}, {{1, 0}}};
  std::ostringstream out;
  AttentionReport both({.stats = true, .gold = "gold", .alignment = {"threshold", "0.25"}}, "-", out, kPipe, 80);
  both.check_model(kTransformer);
  both.add(sentence);
  both.finish();
  CHECK(out.str() ==
        "kind\tlayer\thead\tsentences\tqueries\tentropy\tdistance\tlargest\tfirst\tend\tlinks\tprecision\trecall\taer\n"
        "cross\t1\t1\t1\t2\t0.9056\t0.375\t0.6250\t0.3750\t0.2500\t2\t1.0000\t1.0000\t0.0000\n"
        "cross\t1\t2\t1\t2\t0.7500\t1.125\t0.7500\t0.1250\t0.7500\t2\t1.0000\t1.0000\t0.0000\n");
}

TEST_CASE("the strongest keys of each query") {
  CHECK(report({.head = "2", .top = 2, .format = AttentionFormat::table}) ==
        "line 1: lost . → perdu\n"
        "cross attention, layer 1, head 2\n"
        "perdu  </s> 0.50  st 0.25\n"
        "</s>   </s> 1.00  lo@@ 0.00\n");
  CHECK(report({.head = "1", .top = 1}) ==
        "line\tkind\tlayer\thead\tquery\tquery_token\tkey\tkey_token\tweight\n"
        "1\tcross\t1\t1\t0\tperdu\t0\tlo@@\t0.500000\n"
        "1\tcross\t1\t1\t1\t</s>\t2\t.\t0.500000\n");
}

TEST_CASE("a page of HTML") {
  const std::string page = report({.layer = "all", .head = "all"}, kPipe, "a.html");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.find("\"title\":\"cross attention, layer 1, head 2\"") != std::string::npos);
}

TEST_CASE("no sentence still gives a TSV header and a picture") {
  std::ostringstream out;
  AttentionReport(AttentionReportOptions{}, "-", out, kPipe, 80).finish();
  CHECK(out.str().starts_with("line\tkind"));
}

TEST_CASE("what cannot be is said before any work") {
  CHECK(complaint({.layer = "0"}) == "--layer '0': not a list of numbers from 1 (say 3,7-9)");
  CHECK(complaint({.layer = "2"}) == "--layer 2: the model has 1 such layers");
  CHECK(complaint({.head = "3"}) == "--head 3: the model has 2 heads a layer");
  // Layers of one kind may have different heads: the model lists them in several elements.
  const std::vector<AttentionLayers> stages{{.kind = AttentionKind::encoder, .layers = 2, .heads = 3},
                                            {.kind = AttentionKind::encoder, .layers = 1, .heads = 6}};
  const auto complaint_of_stages = [&](const AttentionReportOptions& options) -> std::string {
    std::ostringstream out;
    try {
      AttentionReport(options, "-", out, kPipe, 80).check_model(stages);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  constexpr AttentionChoice kEncoder = AttentionChoice::encoder;
  CHECK(complaint_of_stages({.kind = kEncoder, .layer = "3", .head = "6"}) == "");
  CHECK(complaint_of_stages({.kind = kEncoder, .layer = "all", .head = "4"}) == "");
  CHECK(complaint_of_stages({.kind = kEncoder, .layer = "2,3", .head = "4"}) == "");
  CHECK(complaint_of_stages({.kind = kEncoder, .layer = "1", .head = "4"}) ==
        "--head 4: the chosen layers have at most 3 heads (others of the model have 6)");
  CHECK(complaint_of_stages({.kind = kEncoder, .layer = "1", .head = "1,7"}) ==
        "--head 7: the chosen layers have at most 3 heads (others of the model have 6)");
  CHECK(complaint_of_stages({.kind = kEncoder, .layer = "all", .head = "7"}) ==
        "--head 7: the model has 6 heads a layer");
  CHECK(complaint_of_stages({.kind = kEncoder, .layer = "4"}) == "--layer 4: the model has 3 such layers");
  CHECK(complaint_of_stages({.kind = AttentionChoice::cross}) ==
        "--kind cross: the model has no such attention (it has encoder)");
  CHECK(complaint({.words = true, .pieces = true}) == "--words and --pieces exclude each other");
  CHECK(complaint({.format = AttentionFormat::png}, kTerminal) ==
        "--format png is not text for a terminal (give -o FILE.png, or a pipe)");
  CHECK(complaint({.head = "all", .format = AttentionFormat::pharaoh}) ==
        "--format pharaoh writes one line for each input line (choose one --layer, and one --head, mean or max)");
  CHECK(complaint({.kind = AttentionChoice::all, .format = AttentionFormat::pharaoh}) ==
        "--format pharaoh writes one line for each input line (choose one --kind)");
  CHECK(complaint({.format = AttentionFormat::tsv, .alignment = {"argmax"}}) ==
        "--alignment makes links, which --format tsv does not show (leave one of them out)");
  CHECK(complaint({.stats = true, .format = AttentionFormat::svg}) ==
        "--stats: has no use with --format svg (a summary is a table, tsv or jsonl)");
  CHECK(complaint({.head = "max", .stats = true}) ==
        "--head max: has no use with --stats because the greatest weights of several heads do not sum to 1");
  CHECK(complaint({.eos = false, .stats = true}) == "--no-eos: has no use with --stats, which tells the share of </s>");
  CHECK(complaint({.kind = AttentionChoice::encoder, .gold = "gold"}) ==
        "--gold: word alignments are compared with cross attention (leave --kind out)");
  CHECK(complaint({.top = 3, .format = AttentionFormat::jsonl}) ==
        "--top: has no use with --format jsonl (table and tsv list weights)");
  CHECK(complaint({.format = AttentionFormat::hdf5}) == "--format hdf5: needs a file (-o FILE.h5)");
  CHECK(complaint({.alignment = {"threshold", "2"}}) == "--alignment threshold '2': must be a number from 0 to 1");
  CHECK(complaint({.alignment = {"hard"}}) ==
        "--alignment 'hard': must be argmax, or threshold and a number from 0 to 1");
}

TEST_CASE("rollout of a text model's encoder: the product of the layers, by hand") {
  SentenceAttention sentence = example();
  sentence.source = tokens({"a", "</s>"}, {.end = true});
  sentence.heads = {{AttentionKind::encoder, 1, 1, {0.F, 1.F, 0.5F, 0.5F}},
                    {AttentionKind::encoder, 1, 2, {0.4F, 0.6F, 0.5F, 0.5F}},
                    {AttentionKind::encoder, 2, 1, {0.F, 1.F, 0.2F, 0.8F}},
                    {AttentionKind::encoder, 2, 2, {0.F, 1.F, 0.2F, 0.8F}}};
  const std::vector<AttentionLayers> layers{{.kind = AttentionKind::encoder, .layers = 2, .heads = 2},
                                            {.kind = AttentionKind::cross, .layers = 1, .heads = 2}};
  std::ostringstream out;
  AttentionReport report({.rollout = true, .format = AttentionFormat::jsonl}, "-", out, kPipe, 80);
  report.check_model(layers);
  CHECK(report.wants(AttentionKind::encoder));
  CHECK_FALSE(report.wants(AttentionKind::cross));
  report.add(sentence);
  CHECK(out.str() ==
        "{\"line\":1,\"kind\":\"encoder\",\"layer\":2,\"head\":\"rollout\",\"rows\":[\"a\",\"</s>\"],"
        "\"columns\":[\"a\",\"</s>\"],\"weights\":[[0.425,0.575],[0.285,0.715]]}\n");
}

TEST_CASE("an image's layers may have different patches, and windows") {
  SentenceAttention sentence;
  sentence.line = 4;
  sentence.source_text = "a.png";
  sentence.target_text = "cross";
  AttendedImage& image = sentence.image.emplace();
  image.picture = Image::black(4, 4, 3);
  image.probability = 0.25;
  const GridSize fine{2, 2}, coarse{1, 1};
  image.layers = {{AttentionKind::encoder, 1, windows_grid(fine, window_partition(fine, 1, 0)), 2},
                  {AttentionKind::encoder, 2, whole_grid(coarse, false), {}}};
  sentence.heads = {{AttentionKind::encoder, 1, 1, {0.F, 0.F, 1.F, 0.F}}, {AttentionKind::encoder, 2, 1, {1.F}}};
  // Layers of one kind may differ: the model lists them in two parts.
  const std::vector<AttentionLayers> layers{{.kind = AttentionKind::encoder, .layers = 1, .heads = 1},
                                            {.kind = AttentionKind::encoder, .layers = 1, .heads = 1}};
  const auto write = [&](AttentionFormat format) {
    std::ostringstream out;
    AttentionReport report({.layer = "all", .format = format}, "-", out, kPipe, 80);
    report.check_model(layers);
    report.add(sentence);
    report.finish();
    return out.str();
  };
  CHECK(write(AttentionFormat::tsv) ==
        "line\tkind\tlayer\thead\tquery\tquery_token\tkey\tkey_token\tweight\n"
        "4\tencoder\t1\tmean\t0\t0,1\t0\t0,0\t0.000000\n"
        "4\tencoder\t1\tmean\t0\t0,1\t1\t1,0\t0.000000\n"
        "4\tencoder\t1\tmean\t0\t0,1\t2\t0,1\t1.000000\n"
        "4\tencoder\t1\tmean\t0\t0,1\t3\t1,1\t0.000000\n"
        "4\tencoder\t2\tmean\t0\tmean\t0\t0,0\t1.000000\n");
  CHECK(write(AttentionFormat::table) ==
        "line 4: a.png → cross (p = 0.250)\n"
        "encoder attention of patch 0,1, layer 1: mean of heads, in percent\n"
        "        0     1\n"
        "0    0.00  0.00\n"
        "1  100.00  0.00\n"
        "encoder attention of all patches on average, layer 2: mean of heads, in percent\n"
        "        0\n"
        "0  100.00\n");
  const std::string svg = write(AttentionFormat::svg);
  CHECK(svg.find("line 4: a.png → cross (p = 0.250)") != std::string::npos);
  CHECK(svg.find("stroke=\"#ffffff\" stroke-width=\"1.5\"") != std::string::npos);
  // A long heading makes the picture no wider than a heading of text does.
  sentence.target_text = std::string(500, 'x');
  CHECK(write(AttentionFormat::svg).find(std::string(80, 'x') + "…</text>") != std::string::npos);
  CHECK(write(AttentionFormat::svg).find(std::string(100, 'x')) == std::string::npos);
}
