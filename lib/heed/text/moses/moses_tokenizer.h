#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/moses/moses_rules.h"
#include "heed/text/moses/nonbreaking_prefixes.h"
#include "heed/text/moses/protected_patterns.h"

namespace heed {

/// Splits a line into tokens as Moses' tokenizer.perl 1.1 does, byte for byte on valid UTF-8. The option `escape` =
/// false is tokenizer.perl's -no-escape, `aggressive_hyphens` is -a, `protect` is -protected. Two things differ from
/// tokenizer.perl: protected patterns are UTF-8 (tokenizer.perl reads each of their bytes as a Latin-1 character), and
/// a pattern that matches the empty text does no harm (tokenizer.perl then never ends). Immutable; any number of
/// threads may use one tokeniser.
class MosesTokenizer {
 public:
  struct Options {
    std::string language = "en";
    bool aggressive_hyphens = false;
    bool escape = true;
    /// Whether tokenize_penn() makes tokens in the style of the Penn Treebank (tokenizer.perl's option -penn).
    /// tokenizer.perl always writes entities with -penn; here `escape` decides.
    bool penn = false;
    bool skip_xml = false;  ///< copy lines that are a single tag <...> (the option -x of tokenizer.perl)
    std::vector<std::string> protect = {};
  };

  explicit MosesTokenizer(const Options& options);

  /// Replaces `out` by the tokens of `line` (without a line end), separated by spaces.
  void tokenize(std::string_view line, std::string& out) const;

 private:
  /// Replaces `out` by the tokens of `line`, without the rules of the option `penn`, and without writing entities.
  /// Returns whether `out` may hold a character that escape_special() must replace by an entity.
  bool tokenize_words(std::string_view line, std::string& out) const;

  Options options_;
  Apostrophes apostrophes_;
  NonbreakingPrefixes prefixes_;
  ProtectedPatterns protected_;
};

}  // namespace heed
