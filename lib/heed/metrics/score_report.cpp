#include "heed/metrics/score_report.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "heed/base/utf8.h"
#include "heed/metrics/numbers.h"
#include "heed/text/strings/scan.h"

namespace heed {
namespace {

std::string repeat(std::string_view text, std::size_t count) {
  std::string out;
  while (count-- > 0) out += text;
  return out;
}

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(display_width(text));
}

std::string right_aligned(std::string_view text, std::size_t width) {
  return std::string(width - columns(text), ' ') + std::string(text);
}

std::string centred(std::string_view text, std::size_t width) {
  const std::size_t pad = width - columns(text);
  return std::string(pad / 2, ' ') + std::string(text) + std::string(pad - pad / 2, ' ');
}

/// Returns a number, rounded to `width` decimals, as text for JSON; the text always has a decimal point: "41.0" for
/// 41.04 and width 1.
std::string rounded(double value, int width) {
  const std::string text = format_fixed(value, width);
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return json_number(number);
}

/// The text of one cell of a table, as a list of lines.
using Cell = std::vector<std::string>;

/// Draws a table as text, with a frame around the cells. The first row is the header; the first column is aligned to
/// the right, and the other columns are centred.
std::string frame(const std::vector<std::vector<Cell>>& rows) {
  std::vector<std::size_t> widths;
  for (const Cell& title : rows[0]) widths.push_back(columns(title[0]) + 2);
  for (std::size_t r = 1; r < rows.size(); ++r)
    for (std::size_t c = 0; c < widths.size(); ++c)
      for (const std::string& line : rows[r][c]) widths[c] = std::max(widths[c], columns(line));
  const auto rule = [&](const char* start, const char* line, const char* middle, const char* end) {
    std::string out = start;
    for (std::size_t c = 0; c < widths.size(); ++c) out += (c > 0 ? middle : "") + repeat(line, widths[c] + 2);
    return out + end + "\n";
  };
  const auto row = [&](const std::vector<Cell>& cells) {
    std::size_t lines = 0;
    for (const Cell& cell : cells) lines = std::max(lines, cell.size());
    std::string out;
    for (std::size_t l = 0; l < lines; ++l) {
      for (std::size_t c = 0; c < cells.size(); ++c) {
        const std::string text = l < cells[c].size() ? cells[c][l] : "";
        out += "│ " + (c == 0 ? right_aligned(text, widths[c]) : centred(text, widths[c])) + " ";
      }
      out += "│\n";
    }
    return out;
  };
  std::string out = rule("╒", "═", "╤", "╕") + row(rows[0]) + rule("╞", "═", "╪", "╡");
  for (std::size_t r = 1; r < rows.size(); ++r) out += (r > 1 ? rule("├", "─", "┼", "┤") : "") + row(rows[r]);
  return out + rule("╘", "═", "╧", "╛");
}

Cell score_cell(const SystemScore& score, int width) {
  Cell cell = {format_fixed(score.score, width)};
  if (score.confidence)
    cell[0] += " (" + format_fixed(score.confidence->mean, width) + " ± " +
               format_fixed(score.confidence->half_width, width) + ")";
  if (score.p_value) cell.push_back("(p = " + format_fixed(*score.p_value, 4) + (*score.p_value > 0.05 ? ")" : ")*"));
  return cell;
}

/// Returns a text below a table of scores that explains the significance test to the user.
std::string test_description(const std::string& baseline, const Resampling& test) {
  const bool bootstrap = test.test == "bs";
  const std::string title = std::string("Paired ") +
                            (bootstrap ? "bootstrap resampling" : "approximate randomization") + " test with " +
                            std::to_string(test.samples) + (bootstrap ? " resampling trials" : " trials");
  const std::string line(title.size(), '-');
  return line + "\n" + title + "\n" + line + "\n - " + baseline + " is what every other system is compared with" +
         (bootstrap ? "; in brackets: mean and 95 % interval\n   of the resampled scores" : "") +
         ".\n - p: how often a difference at least as large as the one seen comes about by chance. Marked with * "
         "where\n"
         "   p <= 0.05: the systems differ. Which of them is better, the scores say.\n";
}

/// Returns a number as text for JSON, or "null" without a number.
std::string nullable(const std::optional<double>& number) {
  return number ? json_number(*number) : "null";
}

std::string json_interval_number(double value, bool single) {
  return single ? json_number(static_cast<float>(value)) : json_number(value);
}

/// Returns a text in a form in which it can be the content or an attribute of an XML element. Characters that XML does
/// not allow (control characters, U+FFFE, U+FFFF, bytes that are not UTF-8) become U+FFFD.
std::string xml_text(std::string_view text) {
  std::string out;
  std::string valid = replace_invalid_utf8(text);
  for (const std::string_view none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})
    for (std::size_t at = 0; (at = valid.find(none, at)) != std::string::npos;) valid.replace(at, 3, "\xEF\xBF\xBD");
  for (const char c : valid) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\t':
      case '\n':
      case '\r':
        out += "&#" + std::to_string(int{c}) + ";";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' ? std::string("\xEF\xBF\xBD") : std::string(1, c);
    }
  }
  return out;
}

}  // namespace

std::string json_string(std::string_view text, bool ascii) {
  return nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
}

std::string score_number(const SystemScore& score, int width) {
  std::string out = format_fixed(score.score, width);
  if (score.confidence && score.confidence->mean > 0)
    out += " (μ = " + format_fixed(score.confidence->mean, width) + " ± " +
           format_fixed(score.confidence->half_width, width) + ")";
  return out;
}

std::string score_text(const SystemScore& score, int width) {
  return score.metric + "|" + score.signature + " = " + score_number(score, width) +
         (score.details.empty() ? "" : " " + score.details);
}

std::string score_json(const SystemScore& score, int width, int indent) {
  const std::string between = indent < 0 ? " " : "\n" + std::string(static_cast<std::size_t>(indent), ' ');
  std::string out = "{" + (indent < 0 ? "" : between) + "\"name\": " + json_string(score.metric) + "," + between +
                    "\"score\": " + rounded(score.score, width) + "," + between +
                    "\"signature\": " + json_string(score.signature);
  if (score.confidence && score.confidence->mean > 0) {
    const std::string mean = format_fixed(score.confidence->mean, width),
                      half_width = format_fixed(score.confidence->half_width, width);
    out += "," + between + "\"confidence_mean\": " + rounded(score.confidence->mean, width) + "," + between +
           "\"confidence_var\": " + rounded(score.confidence->half_width, width) + "," + between +
           "\"confidence\": " + json_string("μ = " + mean + " ± " + half_width);
  }
  if (!score.details.empty()) out += "," + between + "\"verbose_score\": " + json_string(score.details);
  for (std::string_view rest = score.signature; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('|'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const auto colon = part.find(':');
    out += "," + between + json_string(part.substr(0, colon)) + ": " + json_string(part.substr(colon + 1));
  }
  return out + (indent < 0 ? "}" : "\n}");
}

std::string scores_text(std::span<const SystemScore> scores, int width) {
  std::size_t longest = 0;
  for (const SystemScore& score : scores) longest = std::max(longest, score.metric.size() + score.signature.size());
  std::string out;
  for (const SystemScore& score : scores)
    out += std::string(longest - score.metric.size() - score.signature.size(), ' ') + score_text(score, width) + "\n";
  return out;
}

std::string scores_json(std::span<const SystemScore> scores, int width) {
  if (scores.size() == 1) return score_json(scores[0], width) + "\n";
  std::string out = "[\n";
  for (std::size_t i = 0; i < scores.size(); ++i) out += (i > 0 ? ",\n" : "") + score_json(scores[i], width);
  return out + "\n]\n";
}

std::string systems_table(std::span<const SystemReport> systems, int width, const std::optional<Resampling>& test) {
  std::vector<std::vector<Cell>> rows = {{{"System"}}};
  const bool intervals = test && test->test == "bs";
  for (const SystemScore& score : systems[0].scores)
    rows[0].push_back({score.metric + (intervals ? " (μ ± 95% CI)" : "")});
  for (const SystemReport& system : systems) {
    rows.push_back({{system.name}});
    for (const SystemScore& score : system.scores) rows.back().push_back(score_cell(score, width));
  }
  std::string out = frame(rows) + "\n";
  if (test) out += test_description(systems[0].name, *test) + "\n";
  out += "-----------------\nMetric signatures\n-----------------\n";
  for (const SystemScore& score : systems[0].scores)
    out += " - " + score.metric +
           std::string(std::max<std::size_t>(score.metric.size(), 10) - score.metric.size(), ' ') + " " +
           score.signature + "\n";
  return out;
}

std::string systems_json(std::span<const SystemReport> systems, int width) {
  const bool tested = systems.back().scores[0].p_value.has_value();
  std::string out = "[\n";
  for (std::size_t i = 0; i < systems.size(); ++i) {
    out += std::string(i > 0 ? ",\n" : "") + "    {\n        \"system\": " + json_string(systems[i].name, true);
    for (const SystemScore& score : systems[i].scores) {
      out += ",\n        " + json_string(score.metric) + ": ";
      if (!tested) {
        out += "\"" + format_fixed(score.score, width) + "\"";
        continue;
      }
      const std::string between = ",\n            ";
      out +=
          "{\n            \"score\": " + json_number(score.score) + between +
          "\"p_value\": " + nullable(score.p_value) + between + "\"mean\": " +
          (score.confidence ? json_interval_number(score.confidence->mean, score.confidence->single) : "null") +
          between + "\"ci\": " +
          (score.confidence ? json_interval_number(score.confidence->half_width, score.confidence->single) : "null") +
          "\n        }";
    }
    out += "\n    }";
  }
  return out + "\n]\n";
}

std::string systems_tsv(std::span<const SystemReport> systems, int width) {
  const SystemScore& last = systems.back().scores[0];
  std::string out = "system\tmetric\tscore";
  if (last.confidence) out += "\tconfidence_mean\tconfidence_interval";
  if (last.p_value) out += "\tp_value";
  out += "\tsignature\n";
  for (const SystemReport& system : systems) {
    for (const SystemScore& score : system.scores) {
      out += tsv_field(system.name) + "\t" + score.metric + "\t" + format_fixed(score.score, width);
      if (score.confidence)
        out += "\t" + format_fixed(score.confidence->mean, width) + "\t" +
               format_fixed(score.confidence->half_width, width);
      if (last.p_value) out += "\t" + (score.p_value ? format_fixed(*score.p_value, 4) : "");
      out += "\t" + score.signature + "\n";
    }
  }
  return out;
}

std::string systems_junit(std::span<const SystemReport> systems, std::span<const ScoreFailure> failures, int width) {
  std::size_t cases = 0, failed = 0;
  std::string body;
  for (const SystemReport& system : systems) {
    for (const SystemScore& score : system.scores) {
      ++cases;
      body += "  <testcase classname=\"" + xml_text(system.name) + "\" name=\"" + xml_text(score.metric) + "\">\n";
      std::string messages;
      for (const ScoreFailure& failure : failures)
        if (failure.system == system.name && failure.metric == score.metric)
          messages += (messages.empty() ? "" : "; ") + failure.message;
      if (!messages.empty()) {
        ++failed;
        body += "    <failure message=\"" + xml_text(messages) + "\"/>\n";
      }
      body += "    <system-out>" + xml_text(score_text(score, width)) + "</system-out>\n  </testcase>\n";
    }
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"bleu\" tests=\"" + std::to_string(cases) +
         "\" failures=\"" + std::to_string(failed) + "\">\n" + body + "</testsuite>\n";
}

}  // namespace heed
