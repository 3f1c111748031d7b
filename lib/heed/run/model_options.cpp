#include "heed/run/model_options.h"

namespace heed {

namespace {

std::string word_ends(const TextModel& text, const char* side, const char* option) {
  const std::optional<PieceSet> ends = text.word_ends();
  if (!ends)
    throw UsageError(std::string(option) + ": the pieces of the " + side +
                     " vocabulary do not tell where a word ends (build-vocab --type bpe and --type words make pieces "
                     "that do)");
  return ends->text();
}

}  // namespace

ModelConfig ModelOptions::resolve(const TextModel& source, const TextModel& target) const {
  ModelConfig out = config;
  std::visit(
      [&](auto& chosen) {
        chosen.source_vocabulary = source.size();
        chosen.target_vocabulary = target.size();
        if constexpr (requires { chosen.counts_words(); })
          if (chosen.counts_words()) {
            const char* const option = chosen.next_word ? "--transformer-next-word" : "--transformer-word-positions";
            chosen.source_word_ends = word_ends(source, "source", option);
            chosen.target_word_ends = word_ends(target, "target", option);
          }
      },
      out);
  validate(out);
  return out;
}

}  // namespace heed
