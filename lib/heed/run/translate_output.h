#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heed/decode/translator.h"
#include "heed/run/translate.h"

namespace heed {

/// How alignments are printed.
struct AlignmentStyle {
  enum class Kind { none, hard, soft, threshold } kind = Kind::none;
  double threshold = 0;
};

/// Turns hypotheses into what the user asked to see. Thread-safe.
class TranslateFormat {
 public:
  explicit TranslateFormat(const TranslateOptions& options);

  /// The output lines, each with its LF, of one input line: one, or --n-best ones.
  std::string lines(Translator& translator, std::int64_t line_number, const std::vector<std::int32_t>& source,
                    const std::vector<Hypothesis>& hypotheses) const;
  /// The output line of --score.
  std::string score(Translator& translator, const std::vector<std::int32_t>& source,
                    const Hypothesis& hypothesis) const;
  /// A line that was not translated, in the same form.
  std::string plain(std::int64_t line_number, const std::string& text) const;

 private:
  std::string extras(Translator& translator, const std::vector<std::int32_t>& source,
                     const Hypothesis& hypothesis) const;
  std::string alignment(Translator& translator, const std::vector<std::int32_t>& source,
                        const Hypothesis& hypothesis) const;

  const TranslateOptions& options_;
  AlignmentStyle alignment_;
};

/// Throws UsageError where --alignment is none of its words.
std::unique_ptr<TranslateFormat> make_format(const TranslateOptions& options);

}  // namespace heed
