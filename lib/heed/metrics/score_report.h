#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/metrics/resampling.h"

namespace heed {

/// What one metric says of one system.
struct SystemScore {
  std::string metric;  ///< "BLEU"
  double score = 0;
  std::string signature, details;
  std::optional<Interval> confidence;  ///< 95 %
  std::optional<double> p_value;       ///< against the baseline
};

/// One system's scores; all systems of a report have the same metrics in the same order.
struct SystemReport {
  std::string name;
  std::vector<SystemScore> scores;
};

/// The number alone: "41.0", with a confidence interval "41.0 (μ = 41.0 ± 1.2)".
std::string score_number(const SystemScore& score, int width);

/// sacreBLEU's line: "BLEU|SIGNATURE = NUMBER DETAILS", no line end.
std::string score_text(const SystemScore& score, int width);

/// sacreBLEU's object: name, rounded score, signature, interval, details, and the signature's parts. `indent` < 0: on
/// one line.
std::string score_json(const SystemScore& score, int width, int indent = 1);

/// The lines of several metrics, aligned at their equals signs; ends with a line end.
std::string scores_text(std::span<const SystemScore> scores, int width);
/// One object, or sacreBLEU's list of them; ends with a line end.
std::string scores_json(std::span<const SystemScore> scores, int width);

/// sacreBLEU's frame of several systems, what was tested (where `test` is given), and the signatures; ends with a line
/// end.
std::string systems_table(std::span<const SystemReport> systems, int width, const std::optional<Resampling>& test = {});
/// sacreBLEU's list of several systems; where they were tested its unrounded numbers. Ends with a line end.
std::string systems_json(std::span<const SystemReport> systems, int width);
/// A header and a line for each system and metric; ends with a line end.
std::string systems_tsv(std::span<const SystemReport> systems, int width);

/// A failed check of one score, for a report in JUnit's XML.
struct ScoreFailure {
  std::string system, metric, message;
};
/// A test suite with a test case for each system and metric; ends with a line end.
std::string systems_junit(std::span<const SystemReport> systems, std::span<const ScoreFailure> failures, int width);

/// A text in one field of a TSV file: tabs, line ends and backslashes are escaped as \t, \n, \r and \\.
std::string tsv_field(std::string_view text);
/// A string in JSON's quotes; `ascii` escapes everything beyond ASCII.
std::string json_string(std::string_view text, bool ascii = false);

}  // namespace heed
