#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/moses/moses_rules.h"
#include "heed/text/moses/nonbreaking_prefixes.h"
#include "heed/text/moses/protected_patterns.h"

namespace heed {

/// Moses' tokenizer.perl 1.1, byte for byte on valid UTF-8: `escape` false is its -no-escape, `aggressive_hyphens` its
/// -a, `protect` its -protected. Two differences: patterns are read as UTF-8 (the script takes their bytes as Latin-1),
/// and a pattern that matches the empty text is harmless (the script never ends). Immutable and shared by threads.
class MosesTokenizer {
 public:
  struct Options {
    std::string language = "en";
    bool aggressive_hyphens = false;
    bool escape = true;
    bool penn = false;      ///< tokenize_penn; the script's -penn, which always escapes
    bool skip_xml = false;  ///< -x: lines that are one tag stay as they are
    std::vector<std::string> protect = {};
  };

  explicit MosesTokenizer(const Options& options);

  /// Replaces `out` by the tokens of a line (no line end).
  void tokenize(std::string_view line, std::string& out) const;

 private:
  /// Returns whether there may be something to escape in `out`.
  bool tokenize_words(std::string_view line, std::string& out) const;

  Options options_;
  Apostrophes apostrophes_;
  NonbreakingPrefixes prefixes_;
  ProtectedPatterns protected_;
};

}  // namespace heed
