#include <algorithm>
#include <functional>
#include <sstream>

#include "fuzz.h"
#include "heed/base/error.h"
#include "heed/base/utf8.h"
#include "heed/run/text_options.h"
#include "heed/text/bpe/bpe.h"
#include "heed/text/lexicon/shortlist.h"
#include "heed/text/moses/truecaser.h"
#include "heed/text/text_model.h"

// Tests that any file of a model is either read or refused with an Error, and that a model that was read works and is
// written with the same contents.

namespace {

using namespace heed;

/// Checks that pieces come in order and lie within the tokens, also for randomly drawn pieces if the model can draw
/// them.
void check_pieces(const TextModel& model, const std::string& tokens) {
  const SubwordType type = model.subwords().type();
  const bool merges = type == SubwordType::bpe;
  SubwordSampler sampler{
      .dropout = merges ? 0.5 : 0, .alpha = merges ? 0 : 0.5, .stream = RandomStream(1, RandomUse::subwords)};
  for (SubwordSampler* with : {static_cast<SubwordSampler*>(nullptr), &sampler}) {
    if (with && !merges && type != SubwordType::unigram) continue;
    std::size_t at = 0;
    model.subwords().split_spans(
        tokens,
        [&](std::string_view piece, int, ByteSpan span) {
          fuzz::require(!piece.empty(), "pieces are not empty");
          fuzz::require(span.begin >= at && span.begin <= span.end && span.end <= tokens.size(),
                        "pieces come in order");
          at = span.end;
        },
        with);
  }
}

void check_model(const TextModel& model, const std::string& text) {
  for (const std::string& code : model.languages()) {
    const TextModel one = model.with_language(code);
    for (const std::string line :
         {"", "Hello, world!", "\u00e9t\u00e9 \u4e2d\u6587 low lower", "<unk> </s> @@ a@@", text.c_str()}) {
      check_pieces(one, one.tokens_of(line));
      const auto ids = one.encode(line);
      for (const auto id : ids) fuzz::require(id >= 0 && id < one.size(), "ids are in the vocabulary");
      one.decode(ids);
      fuzz::require(one.words_of(ids).size() == ids.size(), "every id has a word");
    }
  }
  std::ostringstream first, second;
  model.write(first);
  const fuzz::File again(first.str());
  TextModel::read(again.path()).write(second);
  fuzz::require(first.str() == second.str(), "a vocabulary is written as it was read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The file's contents decide which kind of model the file is, as on the command line.
  const std::string text(reinterpret_cast<const char*>(data), size);
  const fuzz::File file(text);
  try {
    // The end of the model file is also used as a text, since it is as unusual as any other.
    std::string line =
        replace_invalid_utf8(std::string_view(text).substr(text.size() - std::min<std::size_t>(text.size(), 100)));
    std::erase_if(line, [](char c) { return c == '\n' || c == '\0'; });
    check_model(TextModel::read(file.path()), line);
  } catch (const Error&) {
  }
  try {
    const BpeMerges merges = BpeMerges::read(file.path());
    fuzz::require(BpeMerges::parse(merges.text(), "again").text() == merges.text(),
                  "codes are written as they were read");
  } catch (const Error&) {
  }
  try {
    read_counted_vocabulary(file.path(), 2);
  } catch (const Error&) {
  }
  try {
    const Vocabulary vocabulary({"<pad>", "<unk>", "<s>", "</s>", "a", "the", "house", "haus", "\t"});
    const Shortlist list = Shortlist::read(file.path(), vocabulary, vocabulary);
    std::vector<std::int32_t> ids;
    list.targets_of(std::vector<std::int32_t>{kUnknownId, 4, 6, 4, kEndId}, ids);
    fuzz::require(ids.size() >= 4 && ids[3] == kEndId, "reserved ids may always be produced");
    fuzz::require(std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end(), "ids ascend");
    fuzz::require(ids.back() < vocabulary.size(), "ids are in the vocabulary");
  } catch (const Error&) {
  }
  try {
    const Truecaser truecaser = Truecaser::read(file.path());
    std::string out;
    truecaser.apply("hello The WORLD <b> a|b .", true, out);
    fuzz::require(find_invalid_utf8(out) == std::string::npos, "truecased text is UTF-8");
  } catch (const Error&) {
  }
  return 0;
}
