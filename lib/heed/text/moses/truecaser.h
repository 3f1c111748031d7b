#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/strings/string_ids.h"

namespace heed {

/// A truecase model of Moses: the usual spelling of each word, and the others that were seen. Applied to tokens it
/// lower-cases what has a capital only because a sentence starts there. Immutable and cheap to copy.
///
/// The file has a line a word: `best (count/all) other (count) ...`, where all but the counts has a meaning here.
class Truecaser {
 public:
  /// No model: empty().
  Truecaser() = default;
  /// Throws Error with the line of `where` (a file) that is none of a truecase model.
  static Truecaser parse(std::string text, const std::string& where);
  static Truecaser read(const std::string& path);

  bool empty() const { return !model_; }
  /// The model in the file's format, as it was read.
  const std::string& text() const;

  /// Replaces `out` by a line of tokens, byte for byte as truecase.perl: at the start of a sentence a word gets its
  /// usual spelling, elsewhere only where its own was never seen. Factors (word|factor) and tags (<...>) stay.
  /// `asr` is the script's -a: the line has no case of its own that could be right.
  void apply(std::string_view tokens, bool asr, std::string& out) const;

  bool operator==(const Truecaser& other) const { return text() == other.text(); }

 private:
  struct Model;
  std::shared_ptr<const Model> model_;
};

/// Counts spellings for a truecase model, as train-truecaser.perl: words at the start of a sentence do not
/// count, nor words without a letter that has case.
class TruecaseLearner {
 public:
  /// `first_words` is the script's --possiblyUseFirstToken: a first word counts where it has no capital, and as a tenth
  /// where the line has no other word.
  explicit TruecaseLearner(bool first_words) : first_words_(first_words) {}

  void add(std::string_view tokens);

  /// The model file. The script writes words in random order and takes any spelling of those seen most often; here
  /// words stand in the order of their lower-case bytes, and of two spellings seen equally often the one that is
  /// greater by its bytes wins, which is the one with fewer capitals.
  std::string text() const;

 private:
  void count(std::string_view word, std::int64_t tenths);

  bool first_words_;
  StringIds spellings_;
  std::vector<std::int64_t> tenths_;  // of each spelling: how often it was seen, times ten
};

/// Replaces `out` by a line of tokens with a capital at the start of each sentence, as detruecase.perl; white space
/// becomes single spaces.
void detruecase(std::string_view tokens, std::string& out);

}  // namespace heed
