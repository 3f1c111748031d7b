#pragma once

#include "heed/decode/translator.h"
#include "heed/run/translate.h"

namespace heed {

/// Throws UsageError for options of `translate` that have no effect together with the others. Reads no model.
void check_options(const TranslateOptions& options);

/// Throws UsageError for options that have no effect on models of the translator's kind, or would break what they
/// write: models that predict all positions at once or one after the other, that read images, that write labels or
/// trees.
void check_options(const TranslateOptions& options, const Translator& translator);

}  // namespace heed
