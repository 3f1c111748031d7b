#pragma once

#include <string>

#include "heed/base/log.h"
#include "heed/text/text_model.h"

namespace heed {

/// The options of the first stage (text to tokens) that `tokenize` and `build-vocab` share.
struct FirstStageOptions {
  TextSteps steps;
  std::string protected_file, truecase_file;

  template <class Visitor>
  void fields(Visitor& visit) {
    steps.fields(visit);
    visit(protected_file, {.name = "protected",
                           .help = "read more --protect patterns from FILE, one a line",
                           .value = "FILE",
                           .file = FileUse::read});
    visit(truecase_file, {.name = "truecase",
                          .help = "give words their usual case, by this truecase model",
                          .value = "FILE",
                          .file = FileUse::read});
  }

  /// Returns the steps after reading the files of the options --protected and --truecase into them. Throws UsageError
  /// for steps that contradict each other.
  TextSteps resolved() const;
};

/// Warns of each language code in steps.language for which there are no rules, when a step uses rules of languages.
void warn_of_unknown_languages(const TextSteps& steps, Log& log);

/// The side of a translation: a checkpoint holds a text model of each side.
enum class Side { source, target };

/// Loads the text model of a vocabulary file, or of one side of a checkpoint. When a vocabulary serves several
/// languages, `language` chooses one (empty: the vocabulary must serve a single language). When `path` is a checkpoint
/// and `language` is the language of one side, that side is loaded instead of `side`.
TextModel load_text_model(const std::string& path, const std::string& language, Side side);

}  // namespace heed
