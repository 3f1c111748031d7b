#include "heed/run/model_options.h"

#include <doctest/doctest.h>

#include <sstream>

#include "heed/config/command_line.h"
#include "scratch_folder.h"

using namespace heed;

namespace {

const ToolInfo kTool{.name = "train", .purpose = "", .usage = {}, .examples = {}, .peers = {}};

/// Returns the options of the model that a command line gives.
ModelOptions parse(std::vector<std::string> words) {
  ModelOptions options;
  std::ostringstream out;
  CHECK(parse_command_line(kTool, FieldList::of(options), std::move(words), out));
  return options;
}

/// Returns a text model of whole words, or of characters, with `size` pieces.
TextModel text(int size, SubwordType type = SubwordType::words) {
  std::vector<std::string> pieces{"<pad>", "<unk>", "<s>", "</s>"};
  while (std::ssize(pieces) < size) pieces.push_back("p" + std::to_string(pieces.size()));
  TextSteps steps;
  steps.mode = TokenMode::words;
  return {steps, Subwords(type), std::make_shared<const Vocabulary>(pieces)};
}

TransformerConfig transformer(const ModelOptions& options, int source = 10, int target = 10) {
  return std::get<TransformerConfig>(options.resolve(text(source), text(target)));
}

}  // namespace

TEST_CASE("a task presets the sizes, and options change single sizes") {
  const TransformerConfig base = transformer(parse({}));
  CHECK(base.enc_depth == 6);
  CHECK(base.dim_emb == 512);
  CHECK(base.heads == 8);
  CHECK(base.dim_ffn == 2048);
  // The order on the command line does not matter.
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--task", "transformer-tiny", "--enc-depth", "1"},
        {"--enc-depth", "1", "--task", "transformer-tiny"}}) {
    const TransformerConfig tiny = transformer(parse(words), 11, 12);
    CHECK(tiny.enc_depth == 1);
    CHECK(tiny.dec_depth == 4);
    CHECK(tiny.dim_emb == 128);
    CHECK(tiny.source_vocabulary == 11);
    CHECK(tiny.target_vocabulary == 12);
  }
}

TEST_CASE("a dumped configuration keeps the task's sizes open") {
  ModelOptions options;
  std::ostringstream dumped;
  CHECK(!parse_command_line(kTool, FieldList::of(options), {"--task", "transformer-big", "--dump-config"}, dumped));
  CHECK(dumped.str().find("task = transformer-big") != std::string::npos);
  CHECK(dumped.str().find("dim-emb") == std::string::npos);
}

TEST_CASE("--tied-embeddings-all is --tied-embeddings all: the command line takes precedence over the file") {
  const ScratchFolder folder;
  const auto tied = [&](const std::string& file, std::vector<std::string> words) {
    words.insert(words.end(), {"--config", folder.file("config", file)});
    return transformer(parse(words)).tied_embeddings;
  };
  using enum TiedEmbeddings;
  CHECK(tied("", {"--tied-embeddings-all"}) == all);
  CHECK(tied("", {"--tied-embeddings-all", "--tied-embeddings", "all"}) == all);
  CHECK(tied("tied-embeddings-all = true\n", {}) == all);
  CHECK(tied("tied-embeddings-all = true\n", {"--tied-embeddings", "decoder"}) == decoder);
  CHECK(tied("tied-embeddings-all = true\n", {"--tied-embeddings", "none"}) == none);
  CHECK(tied("tied-embeddings-all = true\n", {"--no-tied-embeddings-all"}) == none);
  CHECK(tied("tied-embeddings = decoder\n", {"--tied-embeddings-all"}) == all);
  CHECK(tied("tied-embeddings = decoder\n", {"--no-tied-embeddings-all"}) == decoder);
  // --dump-config writes both spellings.
  CHECK(tied("tied-embeddings = all\ntied-embeddings-all = false\n", {}) == all);
  ModelOptions options;
  std::ostringstream dumped;
  const auto read = [&](std::vector<std::string> words) {
    return parse_command_line(kTool, FieldList::of(options), std::move(words), dumped);
  };
  const std::string both = "--tied-embeddings-all: contradicts --tied-embeddings decoder (leave one of them out)";
  CHECK_THROWS_WITH_AS(read({"--tied-embeddings", "decoder", "--tied-embeddings-all"}), both.c_str(), UsageError);
  const std::string config = folder.file("config", "tied-embeddings = decoder\ntied-embeddings-all = true\n");
  CHECK_THROWS_WITH_AS(read({"--config", config}), (config + ": " + both).c_str(), UsageError);
  options = {};
  folder.file("config", "tied-embeddings-all = true\n");
  CHECK(!read({"--config", config, "--tied-embeddings", "decoder", "--dump-config"}));
  CHECK(dumped.str().find("tied-embeddings = decoder\n") != std::string::npos);
  CHECK(dumped.str().find("tied-embeddings-all = false\n") != std::string::npos);
}

TEST_CASE("options of the model that do not fit together are named") {
  CHECK_THROWS_WITH_AS(parse({"--transformer-heads", "7"}).resolve(text(10), text(10)),
                       "--dim-emb 512 is not a multiple of --transformer-heads 7", UsageError);
  CHECK_THROWS_WITH_AS(
      parse({"--tied-embeddings-all"}).resolve(text(10), text(11)),
      "--tied-embeddings-all needs one vocabulary for both sides, but the source has 10 pieces and the "
      "target 11 (give -v one file)",
      UsageError);
  const std::vector<std::string> words{"--transformer-positions", "rotary", "--transformer-word-positions"};
  CHECK(transformer(parse(words), 5, 9).target_word_ends == "2f1");
  CHECK_THROWS_WITH_AS(
      parse(words).resolve(text(10), text(10, SubwordType::characters)),
      "--transformer-word-positions: the pieces of the target vocabulary do not tell where a word ends "
      "(build-vocab --type bpe and --type words make pieces that do)",
      UsageError);
}
