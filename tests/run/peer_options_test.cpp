#include "heed/run/peer_options.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "heed/run/bleu.h"
#include "heed/run/build_vocab.h"
#include "heed/run/inspect_attention.h"
#include "heed/run/kernel_regression.h"
#include "heed/run/tokenize.h"
#include "heed/run/train.h"
#include "heed/run/translate.h"

using namespace heed;

namespace {

std::string refused(const ToolInfo& tool, FieldList& fields, const std::string& word) {
  std::ostringstream out;
  try {
    parse_command_line(tool, fields, {word, "1"}, out);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// Checks for each option of another toolkit that heed's option named as its equal exists and takes the value shown,
/// and that the message about the unknown option names heed's option.
template <class Options>
void check_peers(const ToolInfo& tool) {
  Options options;
  FieldList fields = FieldList::of(options);
  Options options_for_images;
  FieldList fields_for_images = FieldList::of(options_for_images);
  if (fields_for_images.selector()) fields_for_images.select("vit");
  std::set<std::string_view> names;
  REQUIRE(tool.peers.size() > 10);
  for (const PeerOption& peer : tool.peers) {
    CAPTURE(tool.name);
    CAPTURE(peer.name);
    CHECK(names.insert(peer.name).second);
    CHECK(!fields.find(peer.name));
    CHECK(!peer.toolkit.empty());
    CHECK(peer.ours.empty() != peer.reason.empty());
    CHECK(peer.name.find('_') == std::string_view::npos);
    const std::string dashes = peer.name.size() == 1 ? "-" : "--", typed = dashes + std::string(peer.name);
    const std::string toolkit = "(" + std::string(peer.toolkit) + ")";
    if (peer.ours.empty()) {
      CHECK(refused(tool, fields, typed) ==
            "unknown option " + typed + ": heed has no such option " + toolkit + ": " + std::string(peer.reason));
      continue;
    }
    CHECK(refused(tool, fields, typed) ==
          "unknown option " + typed + ": did you mean --" + std::string(peer.ours) + "? " + toolkit);
    const std::string_view ours = peer.ours.substr(0, peer.ours.find(' '));
    const bool negated = ours.starts_with("no-") && !fields.find(ours);
    const std::string_view name = negated ? ours.substr(3) : ours;
    const Field* field = fields.find(name) ? fields.find(name) : fields_for_images.find(name);
    REQUIRE(field);
    if (negated) CHECK(field->kind == Field::Kind::flag);
    if (field->kind == Field::Kind::flag) CHECK(ours.size() == peer.ours.size());
    // A choice shows "pre|post", or one of the values.
    if (ours.size() < peer.ours.size() && field->kind == Field::Kind::choice) {
      std::istringstream values{std::string(peer.ours.substr(ours.size() + 1))};
      for (std::string value; std::getline(values, value, '|');) {
        value = value.substr(0, value.find(' '));
        CHECK(std::find(field->choices.begin(), field->choices.end(), value) != field->choices.end());
      }
    }
  }
}

}  // namespace

TEST_CASE("the options of other toolkits lead to ones that exist, or to a reason") {
  check_peers<TrainOptions>(train_tool_info());
  check_peers<TranslateOptions>(translate_tool_info());
  check_peers<TokenizeOptions>(tokenize_tool_info());
  check_peers<BuildVocabOptions>(build_vocab_tool_info());
  check_peers<BleuToolOptions>(bleu_tool_info());
  check_peers<InspectAttentionOptions>(inspect_attention_tool_info());
  check_peers<KernelRegressionOptions>(kernel_regression_tool_info());
}

TEST_CASE("prefixes, parts and the peers' names find our options") {
  const auto ours = [](auto options, const ToolInfo& tool, const std::string& word) {
    FieldList fields = FieldList::of(options);
    return refused(tool, fields, word);
  };
  CHECK(ours(TokenizeOptions{}, tokenize_tool_info(), "--lang") == "unknown option --lang: did you mean --language?");
  CHECK(ours(TokenizeOptions{}, tokenize_tool_info(), "--norm") ==
        "unknown option --norm: did you mean --normalize-only, --normalize or --normalize-punctuation?");
  CHECK(ours(TokenizeOptions{}, tokenize_tool_info(), "--add_bos") ==
        "unknown option --add-bos: did you mean --extra-options bos? (SentencePiece)");
  CHECK(ours(TranslateOptions{}, translate_tool_info(), "--norm") ==
        "unknown option --norm: did you mean --normalize?");
  CHECK(ours(TrainOptions{}, train_tool_info(), "--prec") == "unknown option --prec: did you mean --precision?");
  CHECK(ours(TrainOptions{}, train_tool_info(), "--heads") ==
        "unknown option --heads: did you mean --transformer-heads?");
  CHECK(ours(TranslateOptions{}, translate_tool_info(), "-beam") ==
        "unknown option -beam: did you mean --beam-size? (fairseq)");
  CHECK(
      ours(TrainOptions{}, train_tool_info(), "corpus.en").find("'corpus.en' belongs to no option (usage: train -t") ==
      0);
}

TEST_CASE("translate takes a model by --model too") {
  for (const std::string option : {"--model", "--models", "-model", "-m"}) {
    TranslateOptions options;
    std::ostringstream out;
    CHECK(parse_command_line(translate_tool_info(), FieldList::of(options), {option, "a.h5", "b.h5"}, out));
    CHECK(options.models == std::vector<std::string>{"a.h5", "b.h5"});
  }
}
