#include <unistd.h>

#include <cstdio>
#include <sstream>

#include "fuzz.h"
#include "heed/base/error.h"
#include "heed/base/utf8.h"
#include "heed/run/text_options.h"
#include "heed/text/bpe.h"
#include "heed/text/text_model.h"
#include "heed/text/truecaser.h"

// Files of models: whatever they hold, they are read, or refused with an error; what is read works and is written again
// as it was.

namespace {

using namespace heed;

/// A file with the text, for readers that take a path.
class File {
 public:
  explicit File(const std::string& text) : path_("/tmp/heed-fuzz-" + std::to_string(::getpid())) {
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    fuzz::require(file && std::fwrite(text.data(), 1, text.size(), file) == text.size(), "the input can be written");
    std::fclose(file);
  }
  ~File() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void check_model(const TextModel& model) {
  for (const std::string& code : model.languages()) {
    const TextModel one = model.with_language(code);
    for (const char* line : {"", "Hello, world!", "\u00e9t\u00e9 \u4e2d\u6587 low lower", "<unk> </s> @@ a@@"}) {
      const auto ids = one.encode(line);
      for (const auto id : ids) fuzz::require(id >= 0 && id < one.size(), "ids are in the vocabulary");
      one.decode(ids);
      fuzz::require(one.words_of(ids).size() == ids.size(), "every id has a word");
    }
  }
  std::ostringstream first, second;
  model.write(first);
  const File again(first.str());
  TextModel::read(again.path()).write(second);
  fuzz::require(first.str() == second.str(), "a vocabulary is written as it was read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The file itself says what it is, as on the command line.
  const std::string text(reinterpret_cast<const char*>(data), size);
  const File file(text);
  try {
    check_model(TextModel::read(file.path()));
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
    const Truecaser truecaser = Truecaser::read(file.path());
    std::string out;
    truecaser.apply("hello The WORLD <b> a|b .", true, out);
    fuzz::require(find_invalid_utf8(out) == std::string::npos, "truecased text is UTF-8");
  } catch (const Error&) {
  }
  return 0;
}
