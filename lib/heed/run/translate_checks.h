#pragma once

#include <string>

#include "heed/config/fields.h"
#include "heed/decode/translator.h"
#include "heed/run/translate.h"

namespace heed {

/// Throws UsageError for options of `translate` that have no effect together with the others. Reads no model.
void check_options(const TranslateOptions& options);

/// Throws UsageError for options that have no effect on models of the translator's kind, or would break what they
/// write: models that predict all positions at once or one after the other, that read images, that write labels or
/// trees.
void check_options(const TranslateOptions& options, const Translator& translator);

/// Returns "the unfinished output of --resume" where `path` leads to that file, otherwise an empty text (see
/// ToolInfo::further_file).
std::string file_of_resume(const FieldList& fields, const std::string& path);

}  // namespace heed
