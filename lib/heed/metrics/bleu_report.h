#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/metrics/bleu.h"

namespace heed {

/// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heed.0.1.0": what has to be equal for two scores to be
/// comparable. sacreBLEU's, but for the version, which names the program that counted.
std::string bleu_signature(const BleuOptions& options, std::size_t references);

/// "41.02" with `width` decimals, rounded as the exact value demands.
std::string format_fixed(double value, int width);

/// "60.1/40.2/30.3/20.4 (BP = 1.000 ratio = 1.000 hyp_len = 10 ref_len = 10)".
std::string bleu_verbose(const BleuScore& score);

/// sacreBLEU's line: "BLEU|SIGNATURE = SCORE VERBOSE", no line end.
std::string bleu_text(const BleuScore& score, std::string_view signature, int width);

/// sacreBLEU's object: name, rounded score, signature, verbose score, and the signature's parts. `indent` < 0: on one
/// line.
std::string bleu_json(const BleuScore& score, std::string_view signature, int width, int indent = 1);

/// One system of several: its name and its score.
struct NamedBleu {
  std::string name;
  double score = 0;
};

/// sacreBLEU's frame of several systems, with the signature below; ends with a line end.
std::string bleu_table(std::span<const NamedBleu> systems, std::string_view signature, int width);

/// sacreBLEU's list of several systems.
std::string bleu_table_json(std::span<const NamedBleu> systems, int width);

/// A JSON number as Python writes it: the shortest digits that read back the same, with a point or an exponent.
std::string json_number(double value);

}  // namespace heed
