#include "heed/run/translate_checks.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/checkpoint/integrity.h"
#include "heed/decode/score_rules.h"
#include "heed/run/partial_output.h"

namespace heed {
namespace {

/// Throws UsageError for options with which the draft model could not be used.
void check_draft(const TranslateOptions& options) {
  if (options.draft_model.empty()) {
    if (is_given(options.given, "draft-length")) throw UsageError("--draft-length: needs --draft-model");
    return;
  }
  if (!options.score.empty()) throw UsageError("--draft-model: has no use with --score, which translates nothing");
  if (options.search.search == SearchKind::exhaustive)
    throw UsageError("--draft-model: has no use with --search exhaustive (leave one of them out)");
  if (!score_rules(options.search).empty())
    throw UsageError(
        "--draft-model: has no use with --no-repeat-ngram-size and --repetition-penalty, for which all "
        "scores are needed (leave one of them out)");
  if (options.models.size() > 1)
    throw UsageError("--draft-model: drafts for one model, but " + std::to_string(options.models.size()) +
                     " are given (leave --draft-model or the ensemble out)");
}

/// Throws UsageError for a search that cannot use the draft model. Called after the checks that refuse a draft model
/// for the kind of the model, because no other search would help there.
void check_search_with_draft(const TranslateOptions& options) {
  if (options.draft_model.empty()) return;
  if (options.search.search == SearchKind::sample)
    throw UsageError("--draft-model: has no use with --search sample (leave --search sample out and add -b 1)");
  if (options.search.beam_size != 1) throw UsageError("--draft-model: needs greedy search (add -b 1)");
}

/// Throws UsageError for a job with which --resume cannot go on.
void check_resume(const TranslateOptions& options) {
  for (const auto& [name, path] : {std::pair("-i", options.input), std::pair("-o", options.output)})
    if (path.empty() || path == "-")
      throw UsageError("--resume: needs a file to go on with (" + std::string(name) + " FILE)");
  if (has_ending(options.output, ".gz"))
    throw UsageError("--resume: a compressed output has no end to go on from (-o FILE without .gz)");
}

/// Throws UsageError for options that have no effect on models that predict all positions at once.
void check_parallel(const TranslateOptions& options, const Translator& translator) {
  const std::string& model = options.models.front();
  for (const std::string name : {"draft-model", "search", "beam-size", "beam-groups", "coverage-penalty",
                                 "no-repeat-ngram-size", "repetition-penalty"})
    if (is_given(options.given, name))
      throw UsageError("--" + name + ": is for models that predict one position after the other; " + model +
                       " predicts all at once (see --iterations and --length-candidates)");
  const bool fixed = translator.checkpoint(0).model->predicts_end();
  if (fixed && is_given(options.given, "length-candidates"))
    throw UsageError("--length-candidates: " + model + " has a fixed length (train --fixed-length)");
  const int candidates = fixed ? 1 : options.search.length_candidates;
  if (options.score.empty() && options.search.n_best > candidates)
    throw UsageError("--n-best " + std::to_string(options.search.n_best) + " is more than the " +
                     std::to_string(candidates) +
                     (fixed ? " translation of a model with a fixed length"
                            : " of --length-candidates (raise --length-candidates)"));
}

/// Throws UsageError for options that have no effect on models that predict one position after the other.
void check_stepwise(const TranslateOptions& options, const Translator& translator) {
  for (const std::string name : {"iterations", "length-candidates"})
    if (is_given(options.given, name))
      throw UsageError("--" + name + ": is for models that predict all positions at once (train --task nat); " +
                       options.models.front() + " predicts one after the other");
  if (!translator.classifies()) options.search.validate_n_best();
}

/// Throws UsageError for options that have no effect on models that read images. The Translator has refused a shortlist
/// and a draft model.
void check_images(const TranslateOptions& options, const Translator& translator) {
  std::vector<std::string> useless = {"pretokenized", "alignment",        "max-length",
                                      "on-long",      "coverage-penalty", "max-length-factor"};
  if (translator.classifies())
    for (const char* const name : {"search", "beam-size", "normalize", "length-penalty", "max-output-length",
                                   "min-output-length", "no-repeat-ngram-size", "repetition-penalty", "beam-groups",
                                   "temperature", "top-k", "top-p", "no-detokenize"})
      useless.emplace_back(name);
  for (const std::string& name : useless)
    if (is_given(options.given, name))
      throw UsageError("--" + name + ": has no use with " + options.models.front() + ", which reads images" +
                       (translator.classifies() ? " and gives labels" : ""));
}

/// Throws UsageError for options that would break trees, that do not know how to keep them whole, or that have no
/// effect on them.
void check_trees(const TranslateOptions& options) {
  for (const std::string name : {"draft-model", "shortlist", "no-repeat-ngram-size", "repetition-penalty",
                                 "min-output-length", "coverage-penalty"})
    if (is_given(options.given, name))
      throw UsageError("--" + name + ": " + options.models.front() + " writes trees, which this option may break");
  if (is_given(options.given, "max-length-factor"))
    throw UsageError("--max-length-factor: has no use with " + options.models.front() +
                     ", which writes trees (--max-output-length limits their length)");
}

}  // namespace

void check_options(const TranslateOptions& options) {
  if (options.models.empty()) throw UsageError("needs a model: -m MODEL.h5 (train makes one)");
  const bool sampling = options.search.search == SearchKind::sample, scoring = !options.score.empty();
  for (const std::string name : {"search", "beam-size", "n-best", "coverage-penalty", "max-length-factor",
                                 "max-output-length", "min-output-length", "no-repeat-ngram-size", "repetition-penalty",
                                 "beam-groups", "diversity-strength", "max-expansions", "iterations",
                                 "length-candidates", "temperature", "top-k", "top-p", "scores", "no-detokenize"})
    if (scoring && is_given(options.given, name))
      throw UsageError("--" + name + ": has no use with --score, which translates nothing");
  for (const std::string name : {"temperature", "top-k", "top-p"})
    if (!sampling && is_given(options.given, name)) throw UsageError("--" + name + ": needs --search sample");
  for (const std::string name : {"beam-groups", "coverage-penalty"})
    if (options.search.search != SearchKind::beam && is_given(options.given, name))
      throw UsageError("--" + name + ": needs beam search (leave --search out)");
  if (options.search.beam_groups == 1 && is_given(options.given, "diversity-strength"))
    throw UsageError("--diversity-strength: needs groups (--beam-groups G)");
  if (options.search.search != SearchKind::exhaustive && is_given(options.given, "max-expansions"))
    throw UsageError("--max-expansions: needs --search exhaustive");
  check_draft(options);
  if (options.resume) check_resume(options);
  if (sampling && is_given(options.given, "beam-size"))
    throw UsageError("--beam-size: has no use with --search sample");
  if (options.search.length_penalty > 0 && is_given(options.given, "normalize"))
    throw UsageError("--normalize: --length-penalty takes its place (leave one of them out)");
  options.search.validate();
  check_standard_input({tool_input(options.input), {"--score", options.score}, {"--shortlist", options.shortlist}});
  if (scoring && options.on_long == OverlongLine::copy)
    throw UsageError("--on-long copy has nothing to copy with --score (take crop, empty or fail)");
  if (scoring && !options.shortlist.empty())
    throw UsageError("--shortlist: has no use with --score, which asks for pieces that may not be in it");
  for (const std::string& model : options.models)
    if (model != options.models.front() && ::access(model.c_str(), R_OK) == 0 && !looks_like_checkpoint(model))
      throw UsageError("--models: '" + model + "' is not a checkpoint (text to translate is given with -i " + model +
                       " or < " + model + ")");
}

void check_options(const TranslateOptions& options, const Translator& translator) {
  const Model<float>& first = *translator.checkpoint(0).model;
  const bool covers = options.search.coverage_penalty > 0;
  if ((covers || !options.alignment.empty()) && last_cross_attention(first) < 0)
    throw UsageError((covers ? "--coverage-penalty: " : "--alignment: ") + options.models.front() +
                     " is a model of the task " + std::string(architecture(first.config())) +
                     ", which has no attention to the source");
  if (is_given(options.given, "on-bad-image") && !translator.image_input())
    throw UsageError("--on-bad-image: is for models that read images (train --task vit); " + options.models.front() +
                     " reads text");
  if (translator.is_parallel())
    check_parallel(options, translator);
  else
    check_stepwise(options, translator);
  if (translator.image_input()) check_images(options, translator);
  if (translator.target().steps().mode == TokenMode::trees) check_trees(options);
  check_search_with_draft(options);
}

std::string file_of_resume(const FieldList& fields, const std::string& path) {
  const std::string output = fields.find("output")->get_text().front();
  const bool resumes = fields.find("resume")->get_text().front() == "true";
  if (!resumes || output.empty() || output == "-" || is_special(output)) return "";
  return is_same_path(path, partial_file(output)) ? "the unfinished output of --resume" : "";
}

}  // namespace heed
