#include "heed/metrics/evalb.h"

#include <filesystem>
#include <fstream>

#include "reference.h"

namespace heed {
namespace {

/// Returns the statistics of one sentence.
EvalbStatistics compare(const EvalbOptions& options, std::string_view gold, std::string_view test) {
  const EvalbMetric metric(options);
  std::vector<double> row(metric.width());
  const auto counter = metric.counter();
  counter->set_references(std::span(&gold, 1));
  counter->count(test, row);
  return EvalbMetric::statistics(row);
}

/// Returns what evalb's table says of the brackets of one sentence: "matched gold test crossing words tags".
std::string counted(std::string_view gold, std::string_view test, const EvalbOptions& options = {}) {
  const EvalbCounts counts = compare(options, gold, test).all;
  std::string out;
  for (const double count : {counts.matched, counts.gold, counts.test, counts.crossing, counts.words, counts.tags})
    out += (out.empty() ? "" : " ") + format_fixed(count, 0);
  return out;
}

/// Returns the error of comparing two trees as "SIDE:LINE:COLUMN: MESSAGE", or nothing.
std::string mistake(std::string_view gold, std::string_view test) {
  try {
    compare({}, gold, test);
  } catch (const SegmentError& error) {
    return (error.in_reference ? "gold" : "test") +
           std::string(error.at("", 1, error.in_reference ? gold : test).what());
  }
  return {};
}

TEST_CASE("evalb counts what PYEVALB counts") {
  const nlohmann::json reference = read_reference("evalb.json");
  REQUIRE(reference["pairs"].size() == 60);
  const EvalbMetric metric(EvalbOptions{});
  std::vector<double> sums(metric.width()), row(metric.width());
  const auto counter = metric.counter();
  for (const auto& pair : reference["pairs"]) {
    const std::string gold = pair["gold"], test = pair["test"];
    CAPTURE(gold);
    CAPTURE(test);
    const std::string_view reference_line = gold;
    counter->set_references(std::span(&reference_line, 1));
    counter->count(test, row);
    const EvalbCounts counts = EvalbMetric::statistics(row).all;
    CHECK(counts.matched == pair["matched"].get<double>());
    CHECK(counts.gold == pair["gold_brackets"].get<double>());
    CHECK(counts.test == pair["test_brackets"].get<double>());
    CHECK(counts.crossing == pair["crossing"].get<double>());
    CHECK(counts.words == pair["words"].get<double>());
    CHECK(counts.tags == pair["tags"].get<double>());
    for (std::size_t k = 0; k < row.size(); ++k) sums[k] += row[k];
  }
  const EvalbCounts counts = EvalbMetric::statistics(sums).all;
  CHECK(counts.recall() == doctest::Approx(reference["recall"].get<double>()).epsilon(1e-12));
  CHECK(counts.precision() == doctest::Approx(reference["precision"].get<double>()).epsilon(1e-12));
  CHECK(metric.score(sums) == doctest::Approx(reference["f1"].get<double>()).epsilon(1e-12));
  CHECK(100 * counts.exact / counts.valid() == doctest::Approx(reference["exact"].get<double>()).epsilon(1e-12));
  CHECK(counts.crossing / counts.valid() == doctest::Approx(reference["crossing"].get<double>()).epsilon(1e-12));
  CHECK(100 * counts.no_crossing / counts.valid() ==
        doctest::Approx(reference["no_crossing"].get<double>()).epsilon(1e-12));
  CHECK(counts.tagging_accuracy() == doctest::Approx(reference["tags"].get<double>()).epsilon(1e-12));
}

// The rules that evalb's README states, each by a case.
TEST_CASE("evalb's rules") {
  const std::string plain = "(TOP (S (NP (DT a) (NN dog)) (VP (VBZ barks))))";
  SUBCASE("TOP is no constituent") {
    CHECK(counted(plain, plain) == "3 3 3 0 3 3");
    CHECK(counted(plain, "(S (NP (DT a) (NN dog)) (VP (VBZ barks)))") == "3 3 3 0 3 3");
  }
  SUBCASE("the same label over the same words counts as often as it is in both") {
    const std::string twice = "(TOP (S (NP (NP (DT a) (NN dog))) (VP (VBZ barks))))";
    CHECK(counted(plain, twice) == "3 3 4 0 3 3");
    CHECK(counted(twice, plain) == "3 4 3 0 3 3");
    CHECK(counted(twice, twice) == "4 4 4 0 3 3");
  }
  SUBCASE("function tags of phrases do not count, those of words do") {
    CHECK(counted("(S (NP-SBJ-1 (DT a) (NN dog)) (VP=2 (VBZ barks)))", plain) == "3 3 3 0 3 3");
    CHECK(counted("(S (NP (DT a) (NN-X dog)) (VP (VBZ barks)))", plain) == "3 3 3 0 3 2");
  }
  SUBCASE("traces, and the phrases that hold nothing else, are removed") {
    CHECK(counted("(S (NP (DT a) (NN dog)) (VP (VBZ barks) (SBAR (-NONE- 0) (S (-NONE- *T*-1)))))", plain) ==
          "3 3 3 0 3 3");
  }
  SUBCASE("punctuation is removed and does not separate") {
    CHECK(counted("(S (NP (DT a) (NN dog)) (, ,) (VP (VBZ barks)) (. .))",
                  "(S (NP (DT a) (NN dog) (, ,)) (VP (VBZ barks) (. .)))") == "3 3 3 0 3 3");
  }
  SUBCASE("ADVP and PRT are equal, as labels of phrases and of words") {
    CHECK(counted("(S (PRT (RP up)) (NN x))", "(S (ADVP (RP up)) (NN x))") == "2 2 2 0 2 2");
    CHECK(counted("(S (NP (PRT up)) (NN x))", "(S (NP (ADVP up)) (NN x))") == "2 2 2 0 2 2");
  }
  SUBCASE("a bracket of the tree crosses once, however many gold brackets it crosses") {
    CHECK(counted("(S (A (X 1) (X 2)) (B (X 3) (X 4)))", "(S (X 1) (C (X 2) (X 3)) (X 4))") == "1 3 2 1 4 4");
  }
  SUBCASE("without labels, only the words of a bracket count") {
    EvalbOptions options;
    options.labelled = false;
    CHECK(counted(plain, "(S (QP (DT a) (NN dog)) (XP (VBZ barks)))", options) == "3 3 3 0 3 3");
    CHECK(counted(plain, "(S (QP (DT a) (NN dog)) (XP (VBZ barks)))") == "1 3 3 0 3 3");
  }
  SUBCASE("the outermost bracket without a label counts only if the parameters do not delete it") {
    EvalbOptions options;
    options.deleted = {"TOP"};
    CHECK(counted("( (S (NN dog)) )", "(TOP (S (NN dog)))") == "1 1 1 0 1 1");
    CHECK(counted("( (S (NN dog)) )", "(TOP (S (NN dog)))", options) == "1 2 1 0 1 1");
  }
  SUBCASE("a quotation mark that one tree takes for a possessive is put back into the other") {
    const std::string quote = "(S (NP (NNS dogs) ('' ')) (VP (VBP bark)))",
                      possessive = "(S (NP (NNS dogs) (POS ')) (VP (VBP bark)))";
    CHECK(counted(quote, possessive) == "3 3 3 0 3 2");
    CHECK(counted(possessive, quote) == "3 3 3 0 3 2");
    CHECK(counted(quote, quote) == "3 3 3 0 2 2");
    CHECK(counted("(S (`` ') (NP (NNS dogs) ('' ')))", "(S (`` ') (NP (NNS dogs) (POS ')))") == "2 2 2 0 2 1");
  }
}

TEST_CASE("the gold tree's parts of speech can decide for both trees which words are deleted") {
  const std::string gold = "(S (NP (NN a) (, ,)) (NN b))", test = "(S (NP (NN a) (NN ,)) (, b))";
  EvalbOptions options;
  options.gold_tags = true;
  CHECK(counted(gold, test, options) == "2 2 2 0 2 1");
  CHECK(counted(gold, gold, options) == counted(gold, gold));
  CHECK(counted("(S (-NONE- *) (NP (NN a) (, ,)) (X (-NONE- 0)) (NN b))", test, options) == "2 2 2 0 2 1");
  // evalb itself compares "a b" with "a ,".
  CHECK(mistake(gold, test).starts_with("test:1:19: the word ',' is 'b' in the gold tree"));
  options.on_bad_tree = BadTree::skip;
  CHECK(compare(options, gold, "(S (NN a) (NN b))").all.errors == 1);
  CHECK(compare(options, gold, "(S (NN a) (, ,) (NN b) (NN c))").all.errors == 1);
  CHECK(EvalbMetric(options).settings() == "params:COLLINS|tags:gold|labels:yes");
}

TEST_CASE("the length of a sentence counts punctuation, and decides on the second part of the summary") {
  EvalbOptions options;
  options.cutoff = 3;
  const EvalbStatistics three = compare(options, "(S (NN a) (, ,) (NN b) (-NONE- *))", "(S (NN a) (, ,) (NN b))");
  CHECK(three.length == 3);
  CHECK(three.shorter.sentences == 1);
  CHECK(three.shorter.words == 2);
  options.cutoff = 2;
  CHECK(compare(options, "(S (NN a) (, ,) (NN b))", "(S (NN a) (, ,) (NN b))").shorter.sentences == 0);
}

TEST_CASE("a tree that cannot be compared is an error, or is counted as one") {
  const std::string gold = "(S (NN a) (, ,) (NN b))";
  const std::string advice = " (--on-bad-tree skip leaves such trees out and counts them)";
  CHECK(mistake("(S (NN a)", gold) == "gold:1:1: this bracket is never closed");
  CHECK(mistake("", gold) == "gold:1:1: no tree");
  CHECK(mistake(gold, "(S (NN a)") == "test:1:1: this bracket is never closed" + advice);
  CHECK(mistake(gold, "(S (NN a) (NN c))") == "test:1:15: the word 'c' is 'b' in the gold tree" + advice);
  CHECK(mistake(gold, "(S (NN a))") ==
        "test:1: the tree has 1 words, but the gold tree has 2, not counting the parts "
        "of speech that the parameters delete" +
            advice);
  EvalbOptions options;
  options.on_bad_tree = BadTree::skip;
  CHECK(compare(options, gold, "(S (NN a) (NN c))").all.errors == 1);
  CHECK(compare(options, gold, "(S (NN a) (NN c))").all.gold == 0);
  for (const char* empty : {"", "(())", "(S (, ,))"}) CHECK(compare({}, gold, empty).all.skipped == 1);
}

// The row is the one that evalb's README shows.
TEST_CASE("the table has evalb's form") {
  EvalbStatistics row;
  row.length = 8;
  row.all = {.sentences = 1,
             .matched = 5,
             .gold = 5,
             .test = 5,
             .exact = 1,
             .no_crossing = 1,
             .two_crossings = 1,
             .words = 6,
             .tags = 5};
  CHECK(evalb_table_row(1, row) == "   1    8    0  100.00 100.00     5      5    5      0      6     5    83.33\n");
  row.shorter = row.all;
  const std::string summary = evalb_table_summary(row, 40);
  CHECK(summary.starts_with(
      std::string(76, '=') +
      "\n                100.00 100.00      5     5     5      0      6     5    83.33\n=== Summary "
      "===\n\n-- All --\nNumber of sentence        =      1\n"));
  CHECK(summary.find("\nBracketing FMeasure       = 100.00\n") != std::string::npos);
  CHECK(summary.find("\n-- len<=40 --\nNumber of sentence        =      1\n") != std::string::npos);
  CHECK(summary.ends_with("\nTagging accuracy          =  83.33\n"));
}

TEST_CASE("a parameter file replaces all parameters") {
  const std::string path = (std::filesystem::temp_directory_path() / "heed_evalb_test.prm").string();
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return read_evalb_parameters(path);
  };
  const EvalbOptions options = read(
      "# a comment\nDEBUG 0\nMAX_ERROR 10\nCUTOFF_LEN 12\nLABELED 0\nDELETE_LABEL S1\nDELETE_LABEL ?\n"
      "DELETE_LABEL_FOR_LENGTH -NONE-\nQUOTE_LABEL ''\nEQ_LABEL ADVP PRT\nEQ_WORD grey gray\n\n");
  CHECK(options.deleted == std::vector<std::string>{"S1", "?"});
  CHECK(options.deleted_for_length == std::vector<std::string>{"-NONE-"});
  CHECK(options.quotes == std::vector<std::string>{"''"});
  CHECK(options.equal_labels.size() == 1);
  CHECK(options.equal_words == std::vector<std::pair<std::string, std::string>>{{"grey", "gray"}});
  CHECK(options.cutoff == 12);
  CHECK_FALSE(options.labelled);
  CHECK(EvalbMetric(options).settings() == "params:heed_evalb_test.prm|labels:no");
  CHECK(counted("(S (JJ grey))", "(S (JJ gray))", options) == "1 1 1 0 1 1");
  CHECK_THROWS_WITH(read("LABELED yes\n"),
                    (path + ":1: 'yes' is no whole number from 0 on (such as CUTOFF_LEN 40)").c_str());
  CHECK_THROWS_WITH(read("# a\nCUTOFF_LEN -1\n"),
                    (path + ":2: '-1' is no whole number from 0 on (such as CUTOFF_LEN 40)").c_str());
  CHECK_THROWS_WITH(read("\nEQ_LABEL ADVP\n"),
                    (path + ":2: EQ_LABEL takes two values (such as EQ_LABEL ADVP PRT)").c_str());
  CHECK_THROWS_WITH(read("DELETE TOP\n"),
                    (path + ":1: evalb has no parameter 'DELETE' (LABELED, CUTOFF_LEN, DELETE_LABEL, "
                            "DELETE_LABEL_FOR_LENGTH, QUOTE_LABEL, EQ_LABEL, EQ_WORD, DEBUG and MAX_ERROR)")
                        .c_str());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace heed
