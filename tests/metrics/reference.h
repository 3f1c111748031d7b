#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/metrics/bleu.h"
#include "heed/metrics/numbers.h"
#include "heed/metrics/score_report.h"

namespace heed {

/// Returns the JSON of a file in tests/metrics/reference.
inline nlohmann::json read_reference(const std::string& name) {
  std::ifstream in(HEED_TEST_DATA "/metrics/reference/" + name);
  REQUIRE(in);
  return nlohmann::json::parse(in);
}

/// Returns sacreBLEU's results for BLEU (made by scripts/reference/make_bleu_reference.py).
inline const nlohmann::json& bleu_reference() {
  static const nlohmann::json data = read_reference("bleu.json");
  return data;
}

/// Returns sacreBLEU's results for chrF and TER and NumPy's random numbers (made by
/// scripts/reference/make_score_reference.py).
inline const nlohmann::json& score_reference() {
  static const nlohmann::json data = read_reference("scores.json");
  return data;
}

/// Returns the options with which a reference result was computed.
inline BleuOptions options_of(const nlohmann::json& given) {
  static const std::map<std::string, MtevalMode> modes = {{"13a", MtevalMode::v13a},
                                                          {"intl", MtevalMode::intl},
                                                          {"char", MtevalMode::character},
                                                          {"zh", MtevalMode::chinese},
                                                          {"none", MtevalMode::none}};
  static const std::map<std::string, BleuSmoothing> methods = {{"exp", BleuSmoothing::exp},
                                                               {"floor", BleuSmoothing::floor},
                                                               {"add-k", BleuSmoothing::add_k},
                                                               {"none", BleuSmoothing::none}};
  BleuOptions options;
  options.tokenize = modes.at(given.value("tokenize", "13a"));
  options.lowercase = given.value("lowercase", false);
  options.smooth_method = methods.at(given.value("smooth_method", "exp"));
  if (given.contains("smooth_value") && !given["smooth_value"].is_null()) options.smooth_value = given["smooth_value"];
  options.max_order = given.value("max_ngram_order", 4);
  options.effective_order = given.value("effective_order", false);
  return options;
}

/// Returns a reference's text in which heed's version replaces sacreBLEU's version.
inline std::string with_our_version(std::string text) {
  const std::string ours_whole = signature(BleuMetric({}), 1);
  const std::string ours = ours_whole.substr(ours_whole.find("version:") + 8);
  for (const std::string key : {"version:", "\"version\": \""})
    if (const auto at = text.find(key + "2.6.0"); at != std::string::npos) text.replace(at + key.size(), 5, ours);
  return text;
}

}  // namespace heed
