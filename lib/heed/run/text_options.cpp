#include "heed/run/text_options.h"

#include "heed/base/line_io.h"
#include "heed/base/streams.h"
#include "heed/checkpoint/checkpoint.h"
#include "heed/text/moses/moses_rules.h"
#include "heed/text/moses/nonbreaking_prefixes.h"

namespace heed {

namespace {

/// Throws UsageError for a step that would have no effect, such as --skip-xml without --mode moses.
void check_steps(const TextSteps& steps, bool truecased) {
  const auto check = [](bool given, bool useful, const std::string& name, const std::string& why) {
    if (given && !useful) throw UsageError("--" + name + ": " + why);
  };
  const bool moses = steps.mode == TokenMode::moses;
  const std::string only = "has a use with --mode moses only";
  check(steps.aggressive_hyphens, moses, "aggressive-hyphens", only);
  check(!steps.protect.empty(), moses, "protect", only);
  check(steps.skip_xml, moses, "skip-xml", only);
  check(steps.penn, moses || (steps.normalize_punctuation && steps.mode == TokenMode::none), "penn",
        "has a use with --mode moses, or --mode none --normalize-punctuation");
  const bool trees = steps.mode == TokenMode::trees;
  check(steps.function_tags, trees, "function-tags", "has a use with --mode trees only");
  for (const auto& [name, given] :
       {std::pair("escape", steps.escape), std::pair("lowercase", steps.lowercase),
        std::pair("normalize", steps.normalize != NormalForm::none),
        std::pair("normalize-punctuation", steps.normalize_punctuation),
        std::pair("replace-unicode-punctuation", steps.replace_unicode_punctuation),
        std::pair("remove-nonprinting", steps.remove_nonprinting), std::pair("truecase", truecased)})
    check(given, !trees, name, "would change the labels of --mode trees");
  if (steps.mode == TokenMode::images)
    throw UsageError("--mode images: is for the images that `train --task vit` reads, which need no vocabulary");
  check(steps.aggressive_hyphens, !steps.penn, "aggressive-hyphens", "--penn has no use for it");
  check(!steps.protect.empty(), !steps.penn, "protect", "--penn has no use for it");
}

}  // namespace

TextSteps FirstStageOptions::resolved() const {
  TextSteps all = steps;
  if (!protected_file.empty())
    for (const std::string& line : read_lines(protected_file, InvalidUtf8::fail))
      if (!line.empty()) all.protect.push_back(line);
  for (const std::string& pattern : all.protect)
    if (pattern.find('\n') != std::string::npos) throw UsageError("--protect: a pattern cannot hold a line end");
  check_steps(all, !truecase_file.empty());
  if (truecase_file.empty()) {
    if (all.asr) throw UsageError("--asr: needs --truecase");
    return all;
  }
  if (all.lowercase) throw UsageError("--truecase: --lowercase leaves nothing to do (leave one out)");
  if (split_languages(all.language).size() > 1)
    throw UsageError(
        "--truecase: a model serves one language, and --language lists several (make a vocabulary for each)");
  all.truecaser = Truecaser::read(truecase_file);
  return all;
}

void warn_of_unknown_languages(const TextSteps& steps, Log& log) {
  if (steps.mode != TokenMode::moses && !steps.normalize_punctuation) return;
  for (const std::string& code : split_languages(steps.language))
    if (!has_nonbreaking_prefixes(code) && apostrophes_of(code) == Apostrophes::separate)
      log.warn("--language " + code + ": there are no rules for this language (codes are like en, de or fr), " +
               "so general ones and the abbreviations of English are used");
}

namespace {

TextModel load_side(const std::string& path, const std::string& language, Side side) {
  const auto [source, target] = load_text_models(path);
  const TextModel& wanted = side == Side::source ? source : target;
  const TextModel& other = side == Side::source ? target : source;
  if (language.empty() || wanted.steps().language == language) return wanted;
  if (other.steps().language == language) return other;
  throw Error(Position{path}, "translates from '" + source.steps().language + "' to '" + target.steps().language +
                                  "' and has no text steps for '" + language + "'");
}

}  // namespace

TextModel load_text_model(const std::string& path, const std::string& language, Side side) {
  if (looks_like_checkpoint(path)) return load_side(path, language, side);
  const TextModel model = TextModel::read(path);
  if (!language.empty()) {
    try {
      return model.with_language(language);
    } catch (const Error& error) {
      throw Error(Position{input_name(path)}, error.what());
    }
  }
  if (model.languages().size() > 1) {
    std::string list;
    for (const std::string& code : model.languages()) list += (list.empty() ? "" : ", ") + code;
    throw UsageError(input_name(path) + " serves several languages: " + list + " (choose one with --language)");
  }
  return model;
}

}  // namespace heed
