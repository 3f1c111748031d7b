#include <doctest/doctest.h>

#include <csignal>
#include <sstream>

#include "heed/data/corpus_statistics.h"
#include "heed/data/encode_corpus.h"

using namespace heed;

namespace {

TextModel letters() {
  std::istringstream none;
  TextSteps steps;
  steps.mode = TokenMode::none;
  std::vector<std::string> pieces = {"<pad>", "<unk>", "<s>", "</s>"};
  for (const char* word : {"a", "b", "c", "d"}) pieces.emplace_back(word);
  return TextModel(steps, Subwords(), std::make_shared<const Vocabulary>(pieces));
}

struct Outcome {
  ParallelCorpus corpus;
  CorpusReport report;
  std::string messages;
  std::vector<std::string> targets;
};

Outcome encode(const std::string& tsv, const EncodeOptions& options, int threads = 2) {
  std::istringstream in(tsv);
  std::ostringstream messages;
  Log log(messages, "t");
  PairReader reader("-", in, InvalidUtf8::replace);
  ThreadPool pool(threads);
  const TextModel model = letters();
  Outcome out;
  out.corpus = encode_corpus(
      {.reader = reader, .source = model, .target = model, .options = options, .target_lines = &out.targets}, pool, log,
      out.report);
  out.report.tell(log, options);
  out.messages = messages.str();
  return out;
}

std::vector<std::int32_t> ids(std::span<const std::int32_t> span) {
  return {span.begin(), span.end()};
}

}  // namespace

TEST_CASE("pairs become ids in order, with empty sides left out and counted") {
  const Outcome out = encode("a b\tc\n\td\na\t\nx\td d\n", {});
  REQUIRE(out.corpus.size() == 2);
  CHECK(ids(out.corpus.source(0)) == std::vector<std::int32_t>{4, 5});
  CHECK(ids(out.corpus.target(0)) == std::vector<std::int32_t>{6});
  CHECK(ids(out.corpus.source(1)) == std::vector<std::int32_t>{kUnknownId});
  CHECK(out.corpus.line(1) == 4);
  CHECK(out.corpus.source_tokens() == 5);
  CHECK(out.corpus.target_tokens() == 5);
  CHECK(out.report.pairs == 4);
  CHECK(out.report.empty == 2);
  CHECK(out.report.source_unknown == 1);
  CHECK(out.targets == std::vector<std::string>{"c", "d d"});
  CHECK(out.messages ==
        "t: warning: standard input:2: an empty line; pairs left out because a side is empty: 2 of 4\n"
        "t: standard input: source pieces that the vocabulary does not know: 1 of 3 (33.33 %)\n");
}

TEST_CASE("long pairs are left out, cropped or refused, as asked") {
  const std::string text = "a\tb\na b c d\tb\na\ta b c d a\n";
  const Outcome skipped = encode(text, {.max_length = 4, .on_long = OnLong::skip});
  CHECK(skipped.corpus.size() == 1);
  CHECK(skipped.messages ==
        "t: warning: standard input:2: longer than 4 tokens; such pairs left out: 2 of 3 (longest: 5 and 6 tokens; "
        "--max-length, --on-long)\n");
  const Outcome cropped = encode(text, {.max_length = 4, .on_long = OnLong::crop});
  CHECK(cropped.corpus.size() == 3);
  CHECK(cropped.corpus.source_tokens(1) == 4);
  CHECK(cropped.corpus.target_tokens(2) == 4);
  CHECK(cropped.messages.find("such pairs cropped: 2 of 3") != std::string::npos);
  const Outcome limited = encode(text, {.max_length = 4, .on_long = OnLong::crop, .limited_by = "--fixed-length"});
  CHECK(limited.messages.find("(longest: 5 and 6 tokens; --fixed-length)\n") != std::string::npos);
  CHECK_THROWS_WITH_AS(encode(text, {.max_length = 4, .on_long = OnLong::fail}),
                       "standard input:2: 5 tokens with </s>, more than 4 (raise --max-length, or leave such pairs out "
                       "with --on-long skip)",
                       Error);
}

TEST_CASE("an empty corpus, and one of which nothing is left, are errors") {
  CHECK_THROWS_WITH_AS(encode("", {}), "standard input: is empty (sentence pairs are needed)", Error);
  CHECK_THROWS_WITH_AS(encode("a\t\n a b c\ta\n", {.max_length = 3}),
                       "standard input: no pair is left of 2: 1 empty, 1 too long (raise --max-length)", Error);
  CHECK_THROWS_WITH_AS(encode("a\t\n\t\n", {}), "standard input: no pair is left of 2: 2 empty, 0 too long", Error);
}

TEST_CASE("any number of threads gives the same corpus; the fingerprint sees every change") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::string(i % 2 ? "a b" : "c") + "\t" + (i % 3 ? "d" : "b a") + "\n";
  const std::uint64_t fingerprint = encode(text, {}, 1).corpus.fingerprint();
  CHECK(encode(text, {}, 3).corpus.fingerprint() == fingerprint);
  std::string other = text;
  other[0] = 'd';
  CHECK(encode(other, {}).corpus.fingerprint() != fingerprint);
  // Two corpora with the same ids, but with the sentence boundary in a different place, have different fingerprints.
  CHECK(encode("a b\tc\na\td\n", {}).corpus.fingerprint() != encode("a\tc\nb a\td\n", {}).corpus.fingerprint());
}

TEST_CASE("statistics find duplicates, copies, outliers and overlap") {
  const Outcome out = encode("a b\tc\na\ta\na b\tc\na\tb b b b b b b b b b b b b b b\n", {});
  const CorpusStatistics statistics = corpus_statistics(out.corpus, true);
  CHECK(statistics.duplicates == 1);
  CHECK(statistics.first_duplicate_line == 3);
  CHECK(statistics.copies == 1);
  CHECK(statistics.first_copy_line == 2);
  CHECK(statistics.ratio_outliers == 1);
  CHECK(statistics.first_ratio_outlier_line == 4);
  CHECK(statistics.target.longest == 16);
  CHECK(statistics.target.median == 2);
  CHECK(corpus_statistics(out.corpus, false).copies == 0);
  CHECK(count_overlap(out.corpus, encode("a\ta\nb\ta\na b\tc\n", {}).corpus) == 2);
}

TEST_CASE("a signal ends the reading of a text, also at its end") {
  for (const bool long_text : {false, true}) {
    CAPTURE(long_text);
    std::string tsv;
    for (int i = 0; i < (long_text ? 20000 : 1); ++i) tsv += "a b\tc\n";
    std::istringstream in(tsv);
    std::ostringstream messages;
    Log log(messages, "t");
    PairReader reader("-", in, InvalidUtf8::replace);
    ThreadPool pool(1);
    const TextModel model = letters();
    CorpusReport report;
    const InterruptGuard interrupts;
    std::raise(SIGTERM);
    CHECK_THROWS_AS(encode_corpus({.reader = reader, .source = model, .target = model, .interrupts = &interrupts}, pool,
                                  log, report),
                    Interrupted);
    CHECK(report.pairs == (long_text ? 16384 : 1));
  }
}
