#include "heed/train/reporter.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

using namespace heed;

namespace {

constexpr int kNoTerminal = 1000;  // a file descriptor that is not open

struct Written {
  std::string out, messages;
};

Written write(LogFormat format) {
  std::ostringstream out, messages;
  Log log(messages, "train");
  Reporter reporter(format, out, log);
  UpdateReport report;
  report.progress = {.epochs = 1.5, .updates = 1200, .target_tokens = 5000, .seconds = 2.5};
  report.loss = 2.5;
  report.cross_entropy = 2;
  report.accuracy = 0.25;
  report.learning_rate = 0.001;
  report.gradient_norm = 1.5;
  report.tokens_per_second = 5400;
  report.seconds_left = 200;
  reporter.update(report);
  reporter.validation(report.progress, {Metric::perplexity, Metric::bleu}, {12.3456, 31.418}, {false, true}, 3);
  reporter.event(report.progress, "saved", "saved m.h5\tnow");
  return {out.str(), messages.str()};
}

}  // namespace

TEST_CASE("the status line of a training fits the terminal: what is left and the perplexity stay longest") {
  // Without a terminal, the environment variable COLUMNS gives the width.
  UpdateReport report;
  report.progress = {.epochs = 12.25, .updates = 120000, .target_tokens = 5000, .seconds = 2.5};
  report.cross_entropy = 2;
  report.tokens_per_second = 123456;
  report.share = 0.25;
  report.seconds_left = 12345;
  const auto status_in = [&](const char* columns) {
    ::setenv("COLUMNS", columns, 1);
    std::ostringstream out, messages;
    Log log(messages, "train", Verbosity::normal, kNoTerminal);
    Reporter(LogFormat::text, out, log).status(report);
    return messages.str();
  };
  const std::string start = "\r\x1b[J";
  CHECK(status_in("100") ==
        start + "[######------------------]  25%  epoch 12.25  perplexity 7.389  123,456 tokens/s  3h 25m left\r");
  CHECK(status_in("80") == start + "[##--------]  25%  epoch 12.25  perplexity 7.389  123,456 tokens/s  3h 25m left\r");
  CHECK(status_in("40") == start + " 25%  perplexity 7.389  3h 25m left\r");
  CHECK(status_in("20") == start + " 25%  3h 25m left\r");
  ::unsetenv("COLUMNS");
}

TEST_CASE("reports for people go to the log") {
  const Written written = write(LogFormat::text);
  CHECK(written.out.empty());
  CHECK(written.messages ==
        "epoch 1.50  update 1,200  loss 2.500  perplexity 7.389  accuracy 25.0 %  rate 1.00e-03  norm 1.50  5,400 "
        "tokens/s  3m 20s left\n"
        "validation after update 1,200:  perplexity 12.35  bleu 31.42 (best)  in 3.0 s\n"
        "train: saved m.h5\tnow\n");
}

TEST_CASE("TSV records have a header and a cell for every column") {
  const Written written = write(LogFormat::tsv);
  CHECK(written.messages.empty());
  CHECK(written.out ==
        "event\tupdate\tepoch\ttarget_tokens\tseconds\tloss\tcross_entropy\taccuracy\tlearning_rate\tgradient_norm\t"
        "tokens_per_second\tce-mean-words\tperplexity\tbleu\talignment\texact\tevalb\tvalid-accuracy\tchrf\ttext\n"
        "update\t1200\t1.5\t5000\t2.500\t2.5\t2\t0.25\t0.001\t1.5\t5400\t\t\t\t\t\t\t\t\t\n"
        "validation\t1200\t1.5\t5000\t2.500\t\t\t\t\t\t\t\t12.3456\t31.418\t\t\t\t\t\t\n"
        "saved\t1200\t1.5\t5000\t2.500\t\t\t\t\t\t\t\t\t\t\t\t\t\t\tsaved m.h5 now\n");
}

TEST_CASE("records have a place for each metric of validations, and tell the accuracy of labels from that of tokens") {
  std::vector<Metric> metrics;
  std::vector<double> scores;
  for (const auto& [metric, name] : EnumNames<Metric>::values) {
    if (std::ranges::count(kValidationMetrics, name) == 0) continue;
    metrics.push_back(metric);
    scores.push_back(50.25 + static_cast<double>(metrics.size()));
  }
  for (const LogFormat format : {LogFormat::tsv, LogFormat::jsonl}) {
    std::ostringstream out, messages;
    Log log(messages, "train");
    Reporter(format, out, log).validation({}, metrics, scores, std::vector<bool>(metrics.size()), 3);
    CHECK(out.str().find(format == LogFormat::tsv ? "\t55.25\t52.25\t\n" : "\"valid-accuracy\":55.25") !=
          std::string::npos);
    CHECK(out.str().find("\"accuracy\"") == std::string::npos);
    for (const double score : scores) CHECK(out.str().find(std::to_string(score).substr(0, 5)) != std::string::npos);
  }
}

TEST_CASE("JSON records are one object a line") {
  const Written written = write(LogFormat::jsonl);
  CHECK(written.out ==
        "{\"event\":\"update\",\"update\":1200,\"epoch\":1.5,\"target_tokens\":5000,\"seconds\":2.5,\"loss\":2.5,"
        "\"cross_entropy\":2.0,\"accuracy\":0.25,\"learning_rate\":0.001,\"gradient_norm\":1.5,"
        "\"tokens_per_second\":5400.0}\n"
        "{\"event\":\"validation\",\"update\":1200,\"epoch\":1.5,\"target_tokens\":5000,\"seconds\":2.5,"
        "\"perplexity\":12.3456,\"bleu\":31.418}\n"
        "{\"event\":\"saved\",\"update\":1200,\"epoch\":1.5,\"target_tokens\":5000,\"seconds\":2.5,"
        "\"text\":\"saved m.h5\\tnow\"}\n");
}
