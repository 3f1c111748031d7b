#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/metrics/resampling.h"

namespace heed {

/// The result of one metric for one system.
struct SystemScore {
  std::string metric;  ///< the metric's name, such as "BLEU"
  double score = 0;
  std::string signature, details;
  std::optional<Interval> confidence;  ///< the 95 % confidence interval
  std::optional<double> p_value;       ///< of the comparison with the baseline system
};

/// The results for one system. All systems of a report have the same metrics in the same order.
struct SystemReport {
  std::string name;
  std::vector<SystemScore> scores;
};

/// Returns the score alone, "41.0", or with the confidence interval, "41.0 (μ = 41.0 ± 1.2)". In all functions of this
/// file `width` is the number of decimals.
std::string score_number(const SystemScore& score, int width);

/// Returns a score as sacreBLEU's line "BLEU|SIGNATURE = NUMBER DETAILS", without a line end.
std::string score_text(const SystemScore& score, int width);

/// Returns a score as sacreBLEU's JSON object: name, rounded score, signature, interval, details, and the parts of the
/// signature. A negative `indent` puts the object on one line.
std::string score_json(const SystemScore& score, int width, int indent = 1);

/// Returns the lines of several metrics, aligned at the equals signs. The text ends with a line end.
std::string scores_text(std::span<const SystemScore> scores, int width);
/// Returns the scores as JSON: one score as an object, several as sacreBLEU's list. The text ends with a line end.
std::string scores_json(std::span<const SystemScore> scores, int width);

/// Returns sacreBLEU's table of several systems, a description of the significance test (if `test` is given), and the
/// signatures. The text ends with a line end.
std::string systems_table(std::span<const SystemReport> systems, int width, const std::optional<Resampling>& test = {});
/// Returns sacreBLEU's JSON list of several systems; the numbers of a significance test are not rounded. The text ends
/// with a line end.
std::string systems_json(std::span<const SystemReport> systems, int width);
/// Returns the scores as TSV: a header, and a line for each system and metric. The text ends with a line end.
std::string systems_tsv(std::span<const SystemReport> systems, int width);

/// A check of one score that has failed (--fail-under), for a report in JUnit's XML.
struct ScoreFailure {
  std::string system, metric, message;
};
/// Returns a report in JUnit's XML: a test suite with a test case for each system and metric. The text ends with a line
/// end.
std::string systems_junit(std::span<const SystemReport> systems, std::span<const ScoreFailure> failures, int width);

/// Returns a text as one field of a TSV file: tabs, line ends and backslashes become \t, \n, \r and \\.
std::string tsv_field(std::string_view text);
/// Returns a text as a JSON string with its quotes. With `ascii`, all characters beyond ASCII are escaped.
std::string json_string(std::string_view text, bool ascii = false);

}  // namespace heed
