#pragma once

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "heed/base/log.h"
#include "heed/config/command_line.h"

namespace heed {

/// The options of `build-vocab --shortlist`.
struct ShortlistOptions {
  std::vector<std::string> texts;  ///< paths of the source text and the target text
  std::string alignments;
  std::int64_t best = 50, frequent = 100;
  int iterations = 5;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Shortlist");
    visit(texts, {.name = "shortlist",
                  .help = "learn a shortlist from SOURCE and TARGET, two parallel texts of pieces",
                  .value = "FILE",
                  .file = FileUse::read});
    visit(best,
          {.name = "best", .help = "keep the N likeliest target pieces of each source piece", .value = "N", .min = 1});
    visit(frequent,
          {.name = "frequent", .help = "allow every line the N most frequent target pieces", .value = "N", .min = 0});
    visit(iterations, {.name = "iterations",
                       .help = "rounds of expectation maximisation for IBM Model 1",
                       .value = "N",
                       .min = 1,
                       .max = 1000});
    visit(alignments, {.name = "alignments",
                       .help = "count the alignment links (0-0 1-2) in FILE instead of learning IBM Model 1",
                       .value = "FILE",
                       .file = FileUse::read});
  }
};

/// Learns a lexical shortlist and writes it to `out`. `in` is read for a text whose path is "-". Returns the exit code.
int build_shortlist(const ShortlistOptions& options, int threads, const Utf8Options& utf8, std::istream& in,
                    std::ostream& out, Log& log);

}  // namespace heed
