#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heed/decode/translator.h"
#include "heed/run/translate.h"

namespace heed {

/// The format of the alignments that --alignment prints.
struct AlignmentStyle {
  enum class Kind { none, hard, soft, threshold } kind = Kind::none;
  double threshold = 0;
};

/// Formats hypotheses as output lines, as the options ask. Several threads may call the member functions at once.
class TranslateFormat {
 public:
  explicit TranslateFormat(const TranslateOptions& options);

  /// Returns the output lines for one input line: one, or several with --n-best. Each ends with a line feed. `words`
  /// are the words of the line if the hypotheses are linear trees, and otherwise none.
  std::string lines(Translator& translator, std::int64_t line_number, const std::vector<std::int32_t>& source,
                    const std::vector<Hypothesis>& hypotheses, std::span<const std::string_view> words) const;
  /// Returns the output line of --score for one pair of a source sentence and a given translation.
  std::string score(Translator& translator, const std::vector<std::int32_t>& source,
                    const Hypothesis& hypothesis) const;
  /// Returns the output line for an input line that was not translated; `text` takes the place of the translation.
  std::string plain(std::int64_t line_number, const std::string& text) const;

 private:
  std::string extras(Translator& translator, const std::vector<std::int32_t>& source,
                     const Hypothesis& hypothesis) const;
  std::string alignment(Translator& translator, const std::vector<std::int32_t>& source,
                        const Hypothesis& hypothesis) const;

  const TranslateOptions& options_;
  AlignmentStyle alignment_;
};

/// Creates the TranslateFormat for `options`. Throws UsageError when the value of --alignment is not allowed.
std::unique_ptr<TranslateFormat> make_format(const TranslateOptions& options);

}  // namespace heed
