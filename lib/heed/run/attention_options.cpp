#include "heed/run/attention_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/run/number_ranges.h"

namespace heed {
namespace {

/// Returns the output format that fits the ending of the output file's name, such as .svg. Returns nothing when the
/// ending fits no kind of file. Throws UsageError for the ending of a format that heed does not write, such as .pdf.
std::optional<AttentionFormat> format_of_name(const std::string& output) {
  using enum AttentionFormat;
  constexpr std::array<std::pair<std::string_view, AttentionFormat>, 8> endings{{{".svg", svg},
                                                                                 {".png", png},
                                                                                 {".html", html},
                                                                                 {".htm", html},
                                                                                 {".hdf5", hdf5},
                                                                                 {".h5", hdf5},
                                                                                 {".jsonl", jsonl},
                                                                                 {".tsv", tsv}}};
  // The endings of file formats that heed does not write.
  constexpr std::array<std::string_view, 12> foreign{".pdf",  ".eps", ".ps",   ".jpg", ".jpeg", ".gif",
                                                     ".webp", ".bmp", ".tiff", ".tif", ".json", ".csv"};
  constexpr std::string_view kGzip = ".gz";
  std::string_view name = output;
  if (has_ending(name, kGzip)) name.remove_suffix(kGzip.size());
  for (const auto& [ending, format] : endings)
    if (has_ending(name, ending)) return format;
  for (const std::string_view ending : foreign)
    if (has_ending(name, ending))
      throw UsageError("-o " + output + ": there is no format for " + std::string(ending) +
                       " files (.svg, .png, .html, .h5, .tsv and .jsonl name one, or --format)");
  return std::nullopt;
}

/// Throws UsageError where an option that is about the tokens of sentences is given together with --kind positions.
void check_position_options(const AttentionReportOptions& options, AttentionFormat format) {
  if (options.kind != AttentionChoice::positions) {
    if (options.positions) throw UsageError("--positions: has no use without --kind positions");
    return;
  }
  const AttentionReportOptions defaults;
  const auto refuse = [](bool given, const char* option) {
    if (given)
      throw UsageError(std::string(option) +
                       ": has no use with --kind positions, which shows numbers of the model and not tokens");
  };
  refuse(options.head != defaults.head, "--head");
  refuse(options.words, "--words");
  refuse(options.pieces, "--pieces");
  refuse(!options.eos, "--no-eos");
  refuse(!options.alignment.empty(), "--alignment");
  refuse(options.stats, "--stats");
  refuse(!options.gold.empty(), "--gold");
  refuse(options.top.has_value(), "--top");
  refuse(options.rollout, "--rollout");
  refuse(!options.query.empty(), "--query");
  for (const AttentionFormat each : {AttentionFormat::pharaoh, AttentionFormat::html, AttentionFormat::hdf5})
    refuse(format == each, format == AttentionFormat::pharaoh ? "--format pharaoh"
                           : format == AttentionFormat::html  ? "--format html"
                                                              : "--format hdf5");
}

/// Throws UsageError where an option has no use with a summary of all lines.
void check_summary_options(const AttentionReportOptions& options) {
  const char* const option = options.stats ? "--stats" : "--gold";
  const auto refuse = [&](bool given, const std::string& other, const std::string& why) {
    if (given) throw UsageError(other + ": has no use with " + option + why);
  };
  refuse(options.top.has_value(), "--top", ", which adds up all weights");
  refuse(!options.eos, "--no-eos", ", which tells the share of </s>");
  refuse(options.terminal.width.has_value(), "--width", ", whose table is not broken");
  refuse(options.head == "max", "--head max", " because the greatest weights of several heads do not sum to 1");
  if (!options.gold.empty() && options.kind && options.kind != AttentionChoice::cross)
    throw UsageError("--gold: word alignments are compared with cross attention (leave --kind out)");
  if (!options.gold.empty() && options.pieces) throw UsageError("--pieces: --gold compares words");
}

/// Throws UsageError where an option has no use with --rollout.
void check_rollout_options(const AttentionReportOptions& options, AttentionFormat format) {
  if (options.kind && options.kind != AttentionChoice::encoder)
    throw UsageError("--rollout: follows the attention of the encoder (leave --kind out)");
  const auto refuse = [](bool given, const char* option, const char* why) {
    if (given) throw UsageError(std::string(option) + ": has no use with --rollout, which " + why);
  };
  refuse(!options.head.empty() && options.head != "mean", "--head", "takes the mean of the heads");
  refuse(options.summarizes(), options.stats ? "--stats" : "--gold", "combines layers");
  refuse(format == AttentionFormat::pharaoh, "--format pharaoh", "shows the encoder alone");
}

/// Returns whether the options ask for links between words, as text.
bool wants_links(const AttentionReportOptions& options) {
  return !options.alignment.empty() && options.gold.empty();
}

}  // namespace

AttentionFormat choose_format(const AttentionReportOptions& options, const std::string& output,
                              const TerminalEnvironment& environment) {
  using enum AttentionFormat;
  if (options.format) return *options.format;
  if (wants_links(options)) return pharaoh;
  return format_of_name(output).value_or(!environment.terminal ? tsv : options.summarizes() ? table : heatmap);
}

void check_report_options(const AttentionReportOptions& options, AttentionFormat format, const std::string& output,
                          const TerminalEnvironment& environment) {
  using enum AttentionFormat;
  check_position_options(options, format);
  if (wants_links(options) && format != pharaoh)
    throw UsageError("--alignment makes links, which --format " + std::string(enum_name(format)) +
                     " does not show (leave one of them out)");
  const auto needs = [&](bool given, std::initializer_list<AttentionFormat> formats, const std::string& option,
                         const std::string& what) {
    if (given && std::find(formats.begin(), formats.end(), format) == formats.end())
      throw UsageError(option + ": has no use with --format " + std::string(enum_name(format)) + " (" + what + ")");
  };
  needs(options.top.has_value(), {table, tsv}, "--top", "table and tsv list weights");
  if (options.rollout) check_rollout_options(options, format);
  if (options.summarizes()) {
    needs(true, {table, tsv, jsonl}, options.stats ? "--stats" : "--gold", "a summary is a table, tsv or jsonl");
    check_summary_options(options);
  }
  needs(options.terminal.width.has_value(), {heatmap, table}, "--width", "heatmap and table have columns");
  needs(options.terminal.ascii, {heatmap}, "--ascii", "a heatmap is drawn with characters");
  needs(options.terminal.color != ColorChoice::automatic, {heatmap}, "--color", "a heatmap has colours");
  options.terminal.validate();
  if (format == hdf5 && (output.empty() || output == "-")) throw UsageError("--format hdf5: needs a file (-o FILE.h5)");
  if (options.words && options.pieces) throw UsageError("--words and --pieces exclude each other");
  if (format == png && environment.terminal)
    throw UsageError("--format png is not text for a terminal (give -o FILE.png, or a pipe)");
  if (!options.layer.empty() && options.layer != "last" && options.layer != "all")
    NumberRanges::parse("layer", options.layer);
  if (!options.head.empty() && !is_reduced(options.head) && options.head != "all")
    NumberRanges::parse("head", options.head);
  if (format == pharaoh && options.kind == AttentionChoice::all)
    throw UsageError("--format pharaoh writes one line for each input line (choose one --kind)");
}

std::optional<float> parse_alignment(const std::vector<std::string>& words) {
  if (words.empty() || (words.size() == 1 && words[0] == "argmax")) return std::nullopt;
  if (words.size() == 2 && words[0] == "threshold") {
    double threshold = 0;
    const char* const end = words[1].data() + words[1].size();
    const auto [stop, error] = std::from_chars(words[1].data(), end, threshold);
    if (error == std::errc() && stop == end && threshold >= 0 && threshold <= 1) return static_cast<float>(threshold);
    throw UsageError("--alignment threshold '" + words[1] + "': must be a number from 0 to 1");
  }
  std::string given;
  for (const std::string& word : words) given += (given.empty() ? "" : " ") + word;
  throw UsageError("--alignment '" + given + "': must be argmax, or threshold and a number from 0 to 1");
}

bool is_reduced(const std::string& head) {
  return head == "mean" || head == "max";
}

}  // namespace heed
