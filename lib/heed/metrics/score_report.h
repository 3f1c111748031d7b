#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/metrics/resampling.h"

namespace heed {

/// The score of one translation system for one metric, with its signature, its confidence interval and its p-value.
struct SystemScore {
  std::string metric;  ///< the metric's name, such as "BLEU"
  double score = 0;
  std::string signature, details;
  std::optional<Interval> confidence;  ///< the 95 % confidence interval
  std::optional<double> p_value;       ///< p-value of the comparison of this system with the baseline system
};

/// The scores of one translation system. All systems of a report have the same metrics in the same order.
struct SystemReport {
  std::string name;
  std::vector<SystemScore> scores;
};

/// Returns the score alone, "41.0", or with the confidence interval, "41.0 (μ = 41.0 ± 1.2)". `width` is the number of
/// decimals.
std::string score_number(const SystemScore& score, int width);

/// Returns a score as a line in sacreBLEU's form "BLEU|SIGNATURE = NUMBER DETAILS", without a line end. `width` is the
/// number of decimals.
std::string score_text(const SystemScore& score, int width);

/// Returns a score as a JSON object in sacreBLEU's form: name, rounded score, signature, interval, details, and the
/// parts of the signature. `width` is the number of decimals. A negative `indent` puts the object on one line.
std::string score_json(const SystemScore& score, int width, int indent = 1);

/// Returns one line for each metric's score of a system, aligned at the equals signs. `width` is the number of
/// decimals. The text ends with a line end.
std::string scores_text(std::span<const SystemScore> scores, int width);
/// Returns the scores of a system as JSON: one score as an object, several scores as a list in sacreBLEU's form.
/// `width` is the number of decimals. The text ends with a line end.
std::string scores_json(std::span<const SystemScore> scores, int width);

/// Returns the scores of several systems as text in sacreBLEU's form: a table, a description of the significance test
/// (if `test` is given), and the signatures. `width` is the number of decimals. The text ends with a line end.
std::string systems_table(std::span<const SystemReport> systems, int width, const std::optional<Resampling>& test = {});
/// Returns the scores of several systems as a JSON list in sacreBLEU's form. Scores are rounded to `width` decimals;
/// the numbers of a significance test are not rounded. The text ends with a line end.
std::string systems_json(std::span<const SystemReport> systems, int width);
/// Returns the scores of several systems as TSV: a header, and a line for each system and metric. `width` is the number
/// of decimals. The text ends with a line end.
std::string systems_tsv(std::span<const SystemReport> systems, int width);

/// A score that has failed the check of the option --fail-under or --fail-drop, for a test report in JUnit's XML.
struct ScoreFailure {
  std::string system, metric, message;
};
/// Returns the scores of several systems as a test report in JUnit's XML: a test suite with a test case for each system
/// and metric. A test case that has failed has one element with the messages of all its `failures`. The text ends with
/// a line end.
std::string systems_junit(std::span<const SystemReport> systems, std::span<const ScoreFailure> failures, int width);

/// Returns a text as a JSON string in double quotes. If `ascii` is true, all characters beyond ASCII are escaped.
std::string json_string(std::string_view text, bool ascii = false);

}  // namespace heed
