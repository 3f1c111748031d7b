#include "heed/text/steps.h"

#include "heed/text/unicode.h"

namespace heed {

struct TextPipeline::Parts {
  explicit Parts(const TextSteps& chosen) : steps(chosen) {}
  TextSteps steps;
};

TextPipeline::TextPipeline(const TextSteps& steps) : parts_(std::make_shared<const Parts>(steps)) {}

const TextSteps& TextPipeline::steps() const {
  return parts_->steps;
}

void TextPipeline::tokenize(std::string_view line, std::string& out) const {
  if (steps().mode == TokenMode::none)
    out.assign(line);
  else
    join_words(line, out);
}

std::string TextPipeline::tokenize(std::string_view line) const {
  std::string out;
  tokenize(line, out);
  return out;
}

std::string TextPipeline::detokenize(std::string_view tokens, bool) const {
  return std::string(tokens);
}

}  // namespace heed
