#include <algorithm>
#include <sstream>

#include "fuzz.h"
#include "heed/base/error.h"
#include "heed/run/bleu.h"
#include "heed/run/build_vocab.h"
#include "heed/run/inspect_attention.h"
#include "heed/run/kernel_regression.h"
#include "heed/run/number_ranges.h"
#include "heed/run/tokenize.h"
#include "heed/run/train.h"
#include "heed/run/translate.h"

// Tests that any command line and any configuration file is either accepted or refused with a UsageError or Error, and
// that an accepted configuration can be dumped and read back.

namespace {

using namespace heed;

template <class Options>
std::string dump(const ToolInfo& tool, std::vector<std::string> words) {
  Options options;
  std::ostringstream out;
  words.insert(words.begin(), "--dump-config");
  parse_command_line(tool, FieldList::of(options), std::move(words), out);
  return out.str();
}

template <class Options>
void check(const ToolInfo& tool, const std::vector<std::string>& words) {
  std::string dumped;
  try {
    dumped = dump<Options>(tool, words);
  } catch (const Error&) {
    return;
  }
  if (!dumped.starts_with("# ")) return;  // --help or --version
  const fuzz::File file(dumped);
  fuzz::require(dump<Options>(tool, {"--config", file.path()}) == dumped, "a dumped configuration says the same again");
}

void check_tool(std::size_t tool, const std::vector<std::string>& words) {
  switch (tool) {
    case 0:
      return check<TokenizeOptions>(tokenize_tool_info(), words);
    case 1:
      return check<BuildVocabOptions>(build_vocab_tool_info(), words);
    case 2:
      return check<BleuToolOptions>(bleu_tool_info(), words);
    case 3:
      return check<TranslateOptions>(translate_tool_info(), words);
    case 4:
      return check<InspectAttentionOptions>(inspect_attention_tool_info(), words);
    case 5:
      return check<KernelRegressionOptions>(kernel_regression_tool_info(), words);
    default:
      return check<TrainOptions>(train_tool_info(), words);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t tool = input.choose(7);
  const bool from_file = input.flip();
  if (from_file) {
    const fuzz::File file(input.rest());
    check_tool(tool, {"--config", file.path()});
    return 0;
  }
  std::vector<std::string> words;
  while (!input.empty()) {
    std::string word = input.line();
    std::erase(word, '\0');
    words.push_back(std::move(word));
  }
  // --config would read other files; all other words only go through the parser.
  if (std::any_of(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("--config"); }))
    return 0;
  check_tool(tool, words);
  for (const std::string& word : words) {
    try {
      NumberRanges::parse("--lines", word).contains(3);
    } catch (const UsageError&) {
    }
  }
  return 0;
}
