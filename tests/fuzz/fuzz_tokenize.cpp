#include <algorithm>
#include <map>
#include <memory>

#include "fuzz.h"
#include "heed/base/utf8.h"
#include "heed/text/steps.h"
#include "heed/text/token_offsets.h"

// Tests raw line -> tokens -> raw line for all modes, languages and steps: each result is one line of well-formed
// UTF-8, and each token's place in the raw line is known.

namespace {

using namespace heed;

constexpr const char* kLanguages[] = {"en", "de", "fr", "cs", "es",  "it", "pt", "nl", "pl", "ro",
                                      "ru", "sv", "fi", "hu", "el",  "lv", "lt", "sk", "sl", "ga",
                                      "is", "ca", "ta", "zh", "yue", "ja", "ko", "xx"};

TextSteps choose_steps(fuzz::Input& input) {
  TextSteps steps;
  constexpr TokenMode kModes[] = {TokenMode::moses,      TokenMode::moses,       TokenMode::moses,
                                  TokenMode::mteval_13a, TokenMode::intl,        TokenMode::character,
                                  TokenMode::words,      TokenMode::ascii_words, TokenMode::none};
  steps.mode = kModes[input.choose(std::size(kModes))];
  steps.language = kLanguages[input.choose(std::size(kLanguages))];
  const std::size_t flags = input.choose(256), more = input.choose(256);
  steps.aggressive_hyphens = flags & 1;
  steps.penn = flags & 2;
  steps.skip_xml = flags & 4;
  steps.escape = flags & 8;
  if (flags & 16) steps.protect = {"[a-z]+@[a-z.]+", "https?://\\S+", "<[^>]*>"};
  steps.normalize_punctuation = flags & 32;
  steps.replace_unicode_punctuation = flags & 64;
  steps.remove_nonprinting = flags & 128;
  steps.lowercase = more & 1;
  constexpr NormalForm kForms[] = {NormalForm::none, NormalForm::none, NormalForm::nfc, NormalForm::nfkc};
  steps.normalize = kForms[more / 2 % 4];
  return steps;
}

/// Returns a pipeline for the steps, made once for each `choices`: a pipeline is slow to make, and few different ones
/// are needed.
const TextPipeline& pipeline_of(const TextSteps& steps, const std::string& choices) {
  static std::map<std::string, std::unique_ptr<const TextPipeline>> made;
  if (made.size() > 2000) made.clear();
  auto& pipeline = made[choices];
  if (!pipeline) pipeline = std::make_unique<const TextPipeline>(steps);
  return *pipeline;
}

void check_line(const std::string& text, const char* what) {
  fuzz::require(text.find('\n') == std::string::npos, what);
  fuzz::require(find_invalid_utf8(text) == std::string::npos, what);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string choices(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 4));
  const TextSteps steps = choose_steps(input);
  const TextPipeline& pipeline = pipeline_of(steps, choices);
  while (!input.empty()) {
    const std::string raw = input.line(), line = replace_invalid_utf8(raw);
    const std::string tokens = pipeline.tokenize(line);
    check_line(tokens, "tokens are one line of UTF-8");
    const std::string back = pipeline.detokenize(tokens, {.uppercase_first = true, .detruecase = true});
    check_line(back, "text put together again is one line of UTF-8");
    check_line(pipeline.detokenize(line), "any text put together is one line of UTF-8");
    const TokenOffsets offsets(raw, tokens, steps.escape);
    for (std::size_t at = 0; at < tokens.size();) {
      const std::size_t end = std::min(tokens.find(' ', at), tokens.size());
      const ByteSpan span = offsets.source({at, end});
      fuzz::require(span.begin <= span.end && span.end <= raw.size(), "a token comes from within the line");
      at = end + 1;
    }
  }
  return 0;
}
