#pragma once

#include <string>

#include "heed/base/log.h"
#include "heed/text/text_model.h"

namespace heed {

/// The first-stage options that `tokenize` and `build-vocab` share.
struct FirstStageOptions {
  TextSteps steps;
  std::string protected_file, truecase_file;

  template <class Visitor>
  void fields(Visitor& visit) {
    steps.fields(visit);
    visit(protected_file,
          {.name = "protected", .help = "read more --protect patterns from FILE, one a line", .value = "FILE"});
    visit(truecase_file, {.name = "truecase",
                          .help = "lower-case what is capital at the start of a sentence only, by a truecase model",
                          .value = "FILE"});
  }

  /// The steps with what the files hold in place. Throws UsageError for steps that do not go together.
  TextSteps resolved() const;
};

/// Warns of each code of steps.language that no rules know, where the steps have rules for languages.
void warn_of_unknown_languages(const TextSteps& steps, Log& log);

/// The sides of a translation, where a file holds the text models of both.
enum class Side { source, target };

/// The text model of a vocabulary file, or of a side of a checkpoint. `language` picks one of several: of a
/// vocabulary's (empty: there must be one only), or the checkpoint's side of that language whatever `side` says.
TextModel load_text_model(const std::string& path, const std::string& language, Side side);

}  // namespace heed
