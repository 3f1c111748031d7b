#include "heed/metrics/bleu_report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "heed/base/error.h"
#include "heed/base/utf8.h"

namespace heed {
namespace {

/// A string in JSON's quotes.
std::string json_string(std::string_view text, bool ascii = false) {
  return nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
}

std::string repeat(std::string_view text, std::size_t count) {
  std::string out;
  while (count-- > 0) out += text;
  return out;
}

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(display_width(text));
}

std::string right_aligned(const std::string& text, std::size_t width) {
  return std::string(width - columns(text), ' ') + text;
}

std::string centred(const std::string& text, std::size_t width) {
  const std::size_t pad = width - columns(text);
  return std::string(pad / 2, ' ') + text + std::string(pad - pad / 2, ' ');
}

}  // namespace

std::string format_fixed(double value, int width) {
  std::array<char, 512> buffer;
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, width);
  if (result.ec != std::errc()) throw Error("internal: a number too long to print");
  return std::string(buffer.data(), result.ptr);
}

std::string json_number(double value) {
  const double size = std::abs(value);
  const auto form =
      size != 0 && (size < 1e-4 || size >= 1e16) ? std::chars_format::scientific : std::chars_format::fixed;
  std::array<char, 64> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, form);
  if (result.ec != std::errc()) throw Error("internal: a number too long to print");
  std::string text(buffer.data(), result.ptr);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string bleu_signature(const BleuOptions& options, std::size_t references) {
  std::string smoothing(enum_name(options.smooth_method));
  if (options.smooth_method == BleuSmoothing::floor || options.smooth_method == BleuSmoothing::add_k)
    smoothing += "[" + format_fixed(smoothing_value(options), 2) + "]";
  return "nrefs:" + std::to_string(references) + "|case:" + (options.lowercase ? "lc" : "mixed") +
         "|eff:" + (options.effective_order ? "yes" : "no") + "|tok:" + std::string(enum_name(options.tokenize)) +
         "|smooth:" + smoothing + "|version:heed." HEED_VERSION;
}

std::string bleu_verbose(const BleuScore& score) {
  std::string out;
  for (const double precision : score.precisions) out += (out.empty() ? "" : "/") + format_fixed(precision, 1);
  return out + " (BP = " + format_fixed(score.brevity_penalty, 3) +
         " ratio = " + format_fixed(score.length_ratio(), 3) + " hyp_len = " + std::to_string(score.hypothesis_length) +
         " ref_len = " + std::to_string(score.reference_length) + ")";
}

std::string bleu_text(const BleuScore& score, std::string_view signature, int width) {
  return "BLEU|" + std::string(signature) + " = " + format_fixed(score.score, width) + " " + bleu_verbose(score);
}

std::string bleu_json(const BleuScore& score, std::string_view signature, int width, int indent) {
  const std::string between = indent < 0 ? " " : "\n" + std::string(static_cast<std::size_t>(indent), ' ');
  const std::string rounded = format_fixed(score.score, width);
  double value = 0;
  std::from_chars(rounded.data(), rounded.data() + rounded.size(), value);
  std::string out = "{" + (indent < 0 ? "" : between) + "\"name\": \"BLEU\"," + between +
                    "\"score\": " + json_number(value) + "," + between + "\"signature\": " + json_string(signature) +
                    "," + between + "\"verbose_score\": " + json_string(bleu_verbose(score));
  for (std::string_view rest = signature; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('|'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const auto colon = part.find(':');
    out += "," + between + json_string(part.substr(0, colon)) + ": " + json_string(part.substr(colon + 1));
  }
  return out + (indent < 0 ? "}" : "\n}");
}

std::string bleu_table(std::span<const NamedBleu> systems, std::string_view signature, int width) {
  const std::string title = "System", metric = "BLEU";
  std::size_t left = title.size() + 2, right = metric.size() + 2;
  for (const NamedBleu& system : systems) {
    left = std::max(left, columns(system.name));
    right = std::max(right, format_fixed(system.score, width).size());
  }
  const auto rule = [&](const char* start, const char* line, const char* middle, const char* end) {
    return start + repeat(line, left + 2) + middle + repeat(line, right + 2) + end + "\n";
  };
  const auto row = [&](const std::string& name, const std::string& value) {
    return "│ " + right_aligned(name, left) + " │ " + centred(value, right) + " │\n";
  };
  std::string out = rule("╒", "═", "╤", "╕") + row(title, metric) + rule("╞", "═", "╪", "╡");
  for (std::size_t i = 0; i < systems.size(); ++i)
    out += (i > 0 ? rule("├", "─", "┼", "┤") : "") + row(systems[i].name, format_fixed(systems[i].score, width));
  out += rule("╘", "═", "╧", "╛");
  return out + "\n-----------------\nMetric signatures\n-----------------\n - BLEU       " + std::string(signature) +
         "\n";
}

std::string bleu_table_json(std::span<const NamedBleu> systems, int width) {
  std::string out = "[\n";
  for (std::size_t i = 0; i < systems.size(); ++i)
    out += std::string(i > 0 ? ",\n" : "") + "    {\n        \"system\": " + json_string(systems[i].name, true) +
           ",\n        \"BLEU\": \"" + format_fixed(systems[i].score, width) + "\"\n    }";
  return out + "\n]";
}

}  // namespace heed
