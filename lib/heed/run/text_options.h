#pragma once

#include <string>

#include "heed/text/text_model.h"

namespace heed {

/// The first-stage options that `tokenize` and `build-vocab` share.
struct FirstStageOptions {
  TextSteps steps;
  std::string protected_file;

  template <class Visitor>
  void fields(Visitor& visit) {
    steps.fields(visit);
    visit(protected_file,
          {.name = "protected", .help = "read more --protect patterns from FILE, one a line", .value = "FILE"});
  }

  /// The steps with the patterns of the file in place.
  TextSteps resolved() const;
};

/// The text model of a vocabulary file. `language` picks one of several (empty: there must be one only).
TextModel load_text_model(const std::string& path, const std::string& language);

}  // namespace heed
