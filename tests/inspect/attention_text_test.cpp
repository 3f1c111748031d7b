#include "heed/inspect/attention_text.h"

#include <doctest/doctest.h>

#include <sstream>

#include "heed/base/utf8.h"

using namespace heed;

namespace {

AttentionMap two_words() {
  return {.kind = "cross",
          .layer = 2,
          .head = 3,
          .rows = {"va", "!"},
          .columns = {"go", "天気です", "\t"},
          .weights = {0.75F, 0.15F, 0.1F, 0.F, 1.F, 0.F}};
}

}  // namespace

TEST_CASE("tab-separated values: one line for each weight") {
  CHECK(attention_tsv_header() + attention_tsv(7, two_words()) ==
        "line\tkind\tlayer\thead\tquery\tquery_token\tkey\tkey_token\tweight\n"
        "7\tcross\t2\t3\t0\tva\t0\tgo\t0.750000\n"
        "7\tcross\t2\t3\t0\tva\t1\t天気です\t0.150000\n"
        "7\tcross\t2\t3\t0\tva\t2\t\\t\t0.100000\n"
        "7\tcross\t2\t3\t1\t!\t0\tgo\t0.000000\n"
        "7\tcross\t2\t3\t1\t!\t1\t天気です\t1.000000\n"
        "7\tcross\t2\t3\t1\t!\t2\t\\t\t0.000000\n");
  AttentionMap map = two_words();
  map.columns[2] = "\\t";  // a backslash and a t, which is no tab
  CHECK(attention_tsv(7, map).find("\t\\\\t\t0.100000\n") != std::string::npos);
}

TEST_CASE("JSON: one object a map") {
  AttentionMap map = two_words();
  CHECK(
      attention_jsonl(7, map) ==
      "{\"line\":7,\"kind\":\"cross\",\"layer\":2,\"head\":3,\"rows\":[\"va\",\"!\"],\"columns\":[\"go\",\"天気です\","
      "\"\\t\"],\"weights\":[[0.75,0.15,0.1],[0.0,1.0,0.0]]}\n");
  map.head = 0;
  map.reduction = "mean";
  CHECK(attention_jsonl(1, map).find("\"head\":\"mean\"") != std::string::npos);
  CHECK(attention_tsv(1, map).starts_with("1\tcross\t2\tmean\t0\tva\t"));
}

TEST_CASE("a table, whole and in blocks") {
  CHECK(attention_table(two_words(), 0) ==
        "cross attention, layer 2, head 3\n"
        "      go  天気です     ␉\n"
        "va  0.75      0.15  0.10\n"
        " !  0.00      1.00  0.00\n");
  CHECK(attention_table(two_words(), 18) ==
        "cross attention,\n"
        "layer 2, head 3\n"
        "      go  天気です\n"
        "va  0.75      0.15\n"
        " !  0.00      1.00\n"
        "\n"
        "       ␉\n"
        "va  0.10\n"
        " !  0.00\n");
}

TEST_CASE("a table and a list are no wider than they may be, whatever the tokens are") {
  AttentionMap map = two_words();
  map.rows = {"Donaudampfschifffahrt", "\u2581天気予報です今日は"};
  map.columns = {"antidisestablishmentarianism", "go", "天気予報です今日は天気予報です"};
  const auto fits = [](const std::string& text, int width) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      CHECK(display_width(line) <= width);
    }
  };
  for (const int width : {20, 25, 40}) {
    fits(attention_table(map, width), width);
    for (const int top : {1, 3}) fits(attention_list(map, top, width), width);
  }
  CHECK(attention_list(two_words(), 2, 0) ==
        "cross attention, layer 2, head 3\n"
        "va  go 0.75  天気です 0.15\n"
        "!   天気です 1.00  go 0.00\n");
  CHECK(attention_list(two_words(), 3, 20) ==
        "cross attention,\n"
        "layer 2, head 3\n"
        "va  go 0.75\n"
        "    天気です 0.15\n"
        "    ␉ 0.10\n"
        "!   天気です 1.00\n"
        "    go 0.00  ␉ 0.00\n");
}
