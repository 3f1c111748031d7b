#include <algorithm>
#include <memory>
#include <vector>

#include "fuzz.h"
#include "heed/base/error.h"
#include "heed/base/utf8.h"
#include "heed/text/bpe/bpe.h"
#include "heed/text/bpe/bpe_learner.h"
#include "heed/text/subwords.h"

// Tests that merges cut any text into pieces that join to the same text: merges learnt from that text, and other
// merges.

namespace {

using namespace heed;

void check_cut(const Subwords& subwords, const std::string& tokens, SubwordSampler* sampler) {
  std::vector<std::string> pieces;
  std::size_t at = 0;
  subwords.split_spans(
      tokens,
      [&](std::string_view piece, int, ByteSpan span) {
        fuzz::require(span.begin >= at && span.begin < span.end && span.end <= tokens.size(), "pieces come in order");
        at = span.end;
        pieces.emplace_back(piece);
      },
      sampler);
  std::string expected;
  for (std::size_t i = 0; i < tokens.size();) {
    const std::size_t end = std::min(tokens.find(' ', i), tokens.size());
    if (end > i) expected.append(expected.empty() ? "" : " ").append(tokens, i, end - i);
    i = end + 1;
  }
  // A word that contains "@@" may look like a piece that continues, and then does not join to the same text.
  if (expected.find("@@") != std::string::npos) return;
  fuzz::require(subwords.join({pieces.begin(), pieces.end()}) == expected, "pieces join again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t kind = input.choose(4);
  const double dropout = static_cast<double>(input.choose(5)) / 4;
  BpeMerges merges;
  BpeOptions options;
  WordCounts words;
  std::vector<std::string> lines;
  if (kind == 0) {
    std::string codes = "#version: 0.2\n";
    for (std::string line; !input.empty() && !(line = input.line()).empty();) codes += line + "\n";
    try {
      merges = BpeMerges::parse(codes, "codes");
    } catch (const Error&) {
      return 0;
    }
  }
  while (!input.empty()) lines.push_back(replace_invalid_utf8(input.line()));
  if (kind != 0) {
    for (const std::string& line : lines) Subwords().split(line, [&](std::string_view word, int) { words.add(word); });
    merges = learn_bpe(words, {.merges = 60, .min_frequency = 1}).merges;
    merges = BpeMerges::parse(merges.text(), "learnt");
  }
  if (kind == 2) options.allowed = [](std::string_view piece) { return piece.size() % 3 != 0; };
  if (kind == 3) options.glossaries = Glossaries({"a", "\\d+", "<[^>]*>"});
  const Subwords subwords(std::make_shared<const BpeEncoder>(std::move(merges), std::move(options)));
  SubwordSampler sampler{.dropout = dropout, .stream = RandomStream(1, RandomUse::subwords)};
  for (const std::string& line : lines) {
    check_cut(subwords, line, nullptr);
    check_cut(subwords, line, &sampler);
    check_cut(Subwords(SubwordType::characters), line, nullptr);
  }
  return 0;
}
