#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/moses/moses_rules.h"
#include "heed/text/moses/nonbreaking_prefixes.h"
#include "heed/text/moses/protected_patterns.h"

namespace heed {

/// Splits a line into tokens as Moses' tokenizer.perl 1.1 does, byte for byte on valid UTF-8. `escape` = false is the
/// script's -no-escape, `aggressive_hyphens` is -a, `protect` is -protected. Two things differ: patterns are UTF-8 (the
/// script takes their bytes as Latin-1 characters), and a pattern that matches the empty text is harmless (the script
/// does not end). Immutable; any number of threads may use one tokeniser.
class MosesTokenizer {
 public:
  struct Options {
    std::string language = "en";
    bool aggressive_hyphens = false;
    bool escape = true;
    bool penn = false;      ///< the Penn Treebank's tokens by tokenize_penn(); the script's -penn, which always escapes
    bool skip_xml = false;  ///< copy lines that are a single tag (the script's -x)
    std::vector<std::string> protect = {};
  };

  explicit MosesTokenizer(const Options& options);

  /// Replaces `out` by the tokens of `line` (without a line end), separated by spaces.
  void tokenize(std::string_view line, std::string& out) const;

 private:
  /// Replaces `out` by the tokens of `line` without -penn and without entities. Returns whether `out` may hold a
  /// character that escape_special() must replace.
  bool tokenize_words(std::string_view line, std::string& out) const;

  Options options_;
  Apostrophes apostrophes_;
  NonbreakingPrefixes prefixes_;
  ProtectedPatterns protected_;
};

}  // namespace heed
