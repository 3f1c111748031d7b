#include "heed/text/moses/nonbreaking_prefixes.h"

#include <algorithm>
#include <utility>

namespace heed {
namespace {

// The lists of abbreviations, by language code. White space separates the words of a list; a "#" behind a word means
// that the word's full stop belongs to the word only if a number follows. Abbreviations with another full stop inside
// ("e.g") are not listed: keeps_full_stop() recognises them by that full stop and a letter.
constexpr std::pair<std::string_view, std::string_view> kLists[] = {
    {
        "ca",
#include "heed/text/moses/nonbreaking_prefixes/ca.inc"
    },
    {
        "cs",
#include "heed/text/moses/nonbreaking_prefixes/cs.inc"
    },
    {
        "de",
#include "heed/text/moses/nonbreaking_prefixes/de.inc"
    },
    {
        "el",
#include "heed/text/moses/nonbreaking_prefixes/el.inc"
    },
    {
        "en",
#include "heed/text/moses/nonbreaking_prefixes/en.inc"
    },
    {
        "es",
#include "heed/text/moses/nonbreaking_prefixes/es.inc"
    },
    {
        "fi",
#include "heed/text/moses/nonbreaking_prefixes/fi.inc"
    },
    {
        "fr",
#include "heed/text/moses/nonbreaking_prefixes/fr.inc"
    },
    {
        "ga",
#include "heed/text/moses/nonbreaking_prefixes/ga.inc"
    },
    {
        "hu",
#include "heed/text/moses/nonbreaking_prefixes/hu.inc"
    },
    {
        "is",
#include "heed/text/moses/nonbreaking_prefixes/is.inc"
    },
    {
        "it",
#include "heed/text/moses/nonbreaking_prefixes/it.inc"
    },
    {
        "lt",
#include "heed/text/moses/nonbreaking_prefixes/lt.inc"
    },
    {
        "lv",
#include "heed/text/moses/nonbreaking_prefixes/lv.inc"
    },
    {
        "nl",
#include "heed/text/moses/nonbreaking_prefixes/nl.inc"
    },
    {
        "pl",
#include "heed/text/moses/nonbreaking_prefixes/pl.inc"
    },
    {
        "pt",
#include "heed/text/moses/nonbreaking_prefixes/pt.inc"
    },
    {
        "ro",
#include "heed/text/moses/nonbreaking_prefixes/ro.inc"
    },
    {
        "ru",
#include "heed/text/moses/nonbreaking_prefixes/ru.inc"
    },
    {
        "sk",
#include "heed/text/moses/nonbreaking_prefixes/sk.inc"
    },
    {
        "sl",
#include "heed/text/moses/nonbreaking_prefixes/sl.inc"
    },
    {
        "sv",
#include "heed/text/moses/nonbreaking_prefixes/sv.inc"
    },
    {
        "ta",
#include "heed/text/moses/nonbreaking_prefixes/ta.inc"
    },
    {
        "tdt",
#include "heed/text/moses/nonbreaking_prefixes/tdt.inc"
    },
    {
        "yue",
#include "heed/text/moses/nonbreaking_prefixes/yue.inc"
    },
    {
        "zh",
#include "heed/text/moses/nonbreaking_prefixes/zh.inc"
    },
};

/// Returns the list of abbreviations of `language`, or an empty text if the language has no list.
std::string_view list_of(std::string_view language) {
  for (const auto& [code, words] : kLists)
    if (code == language) return words;
  return {};
}

}  // namespace

bool has_nonbreaking_prefixes(std::string_view language) {
  return !list_of(language).empty();
}

NonbreakingPrefixes::NonbreakingPrefixes(std::string_view language) {
  constexpr std::string_view white = " \n";
  const std::string_view list = has_nonbreaking_prefixes(language) ? list_of(language) : list_of("en");
  for (auto at = list.find_first_not_of(white); at != list.npos;) {
    const auto end = std::min(list.find_first_of(white, at), list.size());
    std::string_view word = list.substr(at, end - at);
    const bool numeric = word.ends_with('#');
    if (numeric) word.remove_suffix(1);
    words_.insert_or_assign(word, numeric ? Kind::before_number : Kind::always);
    at = list.find_first_not_of(white, end);
  }
}

}  // namespace heed
