#include "heed/text/moses/prefixes.h"

#include <algorithm>
#include <utility>

namespace heed {
namespace {

// Words separated by white space; "#" behind a word: only before a number. Abbreviations with a full stop inside
// ("e.g") are not listed: a word with an inner full stop and a letter keeps its last one by rule.
constexpr std::pair<std::string_view, std::string_view> kLists[] = {
    {
        "ca",
#include "heed/text/moses/prefixes/ca.inc"
    },
    {
        "cs",
#include "heed/text/moses/prefixes/cs.inc"
    },
    {
        "de",
#include "heed/text/moses/prefixes/de.inc"
    },
    {
        "el",
#include "heed/text/moses/prefixes/el.inc"
    },
    {
        "en",
#include "heed/text/moses/prefixes/en.inc"
    },
    {
        "es",
#include "heed/text/moses/prefixes/es.inc"
    },
    {
        "fi",
#include "heed/text/moses/prefixes/fi.inc"
    },
    {
        "fr",
#include "heed/text/moses/prefixes/fr.inc"
    },
    {
        "ga",
#include "heed/text/moses/prefixes/ga.inc"
    },
    {
        "hu",
#include "heed/text/moses/prefixes/hu.inc"
    },
    {
        "is",
#include "heed/text/moses/prefixes/is.inc"
    },
    {
        "it",
#include "heed/text/moses/prefixes/it.inc"
    },
    {
        "lt",
#include "heed/text/moses/prefixes/lt.inc"
    },
    {
        "lv",
#include "heed/text/moses/prefixes/lv.inc"
    },
    {
        "nl",
#include "heed/text/moses/prefixes/nl.inc"
    },
    {
        "pl",
#include "heed/text/moses/prefixes/pl.inc"
    },
    {
        "pt",
#include "heed/text/moses/prefixes/pt.inc"
    },
    {
        "ro",
#include "heed/text/moses/prefixes/ro.inc"
    },
    {
        "ru",
#include "heed/text/moses/prefixes/ru.inc"
    },
    {
        "sk",
#include "heed/text/moses/prefixes/sk.inc"
    },
    {
        "sl",
#include "heed/text/moses/prefixes/sl.inc"
    },
    {
        "sv",
#include "heed/text/moses/prefixes/sv.inc"
    },
    {
        "ta",
#include "heed/text/moses/prefixes/ta.inc"
    },
    {
        "tdt",
#include "heed/text/moses/prefixes/tdt.inc"
    },
    {
        "yue",
#include "heed/text/moses/prefixes/yue.inc"
    },
    {
        "zh",
#include "heed/text/moses/prefixes/zh.inc"
    },
};

std::string_view list_of(std::string_view language) {
  for (const auto& [code, words] : kLists)
    if (code == language) return words;
  return {};
}

}  // namespace

bool has_prefixes(std::string_view language) {
  return !list_of(language).empty();
}

Prefixes::Prefixes(std::string_view language) {
  constexpr std::string_view white = " \n";
  const std::string_view list = has_prefixes(language) ? list_of(language) : list_of("en");
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
