"""English word forms and clauses: verb forms, be, do-support and contractions."""

from .lexicon import ENGLISH_DOUBLING, ENGLISH_IRREGULAR

POSSESSIVE = {"I": "my", "you": "your", "he": "his", "she": "her", "we": "our", "they": "their"}
BE_CONTRACTED = {"I": "I'm", "you": "you're", "he": "he's", "she": "she's", "we": "we're", "they": "they're"}
HAVE_CONTRACTED = {"I": "I've", "you": "you've", "he": "he's", "she": "she's", "we": "we've", "they": "they've"}
WILL_CONTRACTED = {"I": "I'll", "you": "you'll", "he": "he'll", "she": "she'll", "we": "we'll", "they": "they'll"}


def third(base):
    if base in ("have",):
        return "has"
    if base.endswith(("s", "sh", "ch", "x", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def past(base):
    if base in ENGLISH_IRREGULAR:
        return ENGLISH_IRREGULAR[base][0]
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return (base + base[-1] if base in ENGLISH_DOUBLING else base) + "ed"


def participle(base):
    return ENGLISH_IRREGULAR[base][1] if base in ENGLISH_IRREGULAR else past(base)


def ing(base):
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and base not in ("be", "see"):
        return base[:-1] + "ing"
    return (base + base[-1] if base in ENGLISH_DOUBLING else base) + "ing"


def is_third(subject):
    return subject.slot == 2


def be(subject, tense="present"):
    if tense == "past":
        return "was" if subject.slot in (0, 2) else "were"
    return "am" if subject.slot == 0 else "is" if subject.slot == 2 else "are"


def do(subject):
    return "does" if is_third(subject) else "do"


def have(subject):
    return "has" if is_third(subject) else "have"


def bind(text, subject):
    """Replaces @my (also in @myself) by the possessive pronoun that fits the subject."""
    if subject.en in POSSESSIVE:
        owner = POSSESSIVE[subject.en]
    else:
        owner = "their" if subject.plural else "his" if subject.gender == "m" else "her"
    return text.replace("@my", owner)


def words(*parts):
    return " ".join(part for part in parts if part)


def with_be(subject, rest, negated=False):
    """Returns a clause with be in the present: "he's tired", "my brother is tired", "I'm not tired", "she isn't
    tired"."""
    rest = bind(rest, subject)
    if negated and subject.slot == 0:
        return words("I'm not", rest)
    if negated:
        return words(subject.en, be(subject) + "n't", rest)
    return words(BE_CONTRACTED.get(subject.en) or words(subject.en, be(subject)), rest)


def with_was(subject, rest, negated=False):
    return words(subject.en, be(subject, "past") + ("n't" if negated else ""), bind(rest, subject))


def simple(subject, base, rest="", negated=False, adverb=""):
    """Returns a clause in the simple present. The adverb stands before the verb."""
    if negated:
        return words(subject.en, do(subject) + "n't", adverb, base, bind(rest, subject))
    return words(subject.en, adverb, third(base) if is_third(subject) else base, bind(rest, subject))


def simple_past(subject, base, rest="", negated=False):
    if negated:
        return words(subject.en, "didn't", base, bind(rest, subject))
    return words(subject.en, past(base), bind(rest, subject))


def perfect(subject, base, rest="", negated=False, adverb=""):
    rest = bind(rest, subject)
    if negated:
        return words(subject.en, have(subject) + "n't", adverb, participle(base), rest)
    return words(HAVE_CONTRACTED.get(subject.en) or words(subject.en, have(subject)), adverb, participle(base), rest)


def will(subject, rest, negated=False):
    rest = bind(rest, subject)
    if negated:
        return words(subject.en, "won't", rest)
    return words(WILL_CONTRACTED.get(subject.en) or words(subject.en, "will"), rest)


def article(noun):
    return "an" if noun[0] in "aeiou" and not noun.startswith(("uni", "use")) or noun == "hour" else "a"


def any_for_some(rest):
    return rest.replace("some ", "any ")
