"""Noun phrases with their agreement (the, a, this, my, two ...), with or without an adjective, in both languages at
once."""

from . import english, french
from .lexicon import Subject

NUMBERS = (
    ("two", "deux"),
    ("three", "trois"),
    ("four", "quatre"),
    ("five", "cinq"),
    ("six", "six"),
    ("seven", "sept"),
    ("eight", "huit"),
    ("nine", "neuf"),
    ("ten", "dix"),
)
OWNERS = (("my", 0), ("your", 1), ("his", 2), ("her", 2), ("our", 3), ("their", 5))


def bare(noun, adjective=None, plural=False):
    """Returns (English, French) of the noun phrase without a determiner."""
    en = noun.en_plural if plural else noun.en
    fr = noun.fr_plural if plural else noun.fr
    if adjective is None:
        return en, fr
    form = french.agree(adjective, noun.gender, plural)
    if adjective.before and not plural and noun.gender == "m" and adjective.vowel and french.starts_with_vowel(noun.fr):
        form = adjective.vowel
    return f"{adjective.en} {en}", f"{form} {fr}" if adjective.before else f"{fr} {form}"


def the(noun, adjective=None, plural=False):
    en, fr = bare(noun, adjective, plural)
    return f"the {en}", f"{'les' if plural else 'le' if noun.gender == 'm' else 'la'} {fr}"


def a(noun, adjective=None):
    en, fr = bare(noun, adjective)
    return f"{english.article(en)} {en}", f"{'un' if noun.gender == 'm' else 'une'} {fr}"


def this(noun, adjective=None, plural=False):
    en, fr = bare(noun, adjective, plural)
    if plural:
        return f"these {en}", f"ces {fr}"
    return f"this {en}", f"{'ce' if noun.gender == 'm' else 'cette'} {fr}"


def own(owner, noun, adjective=None, plural=False):
    """Returns (English, French) of the noun phrase with a possessive pronoun. `owner` is one of OWNERS. `spell`
    later turns "ma amie" into "mon amie"."""
    en, fr = bare(noun, adjective, plural)
    column = 2 if plural else 0 if noun.gender == "m" else 1
    return f"{owner[0]} {en}", f"{french.POSSESSIVE[owner[1]][column]} {fr}"


def counted(number, noun, adjective=None):
    en, fr = bare(noun, adjective, True)
    return f"{number[0]} {en}", f"{number[1]} {fr}"


def as_subject(phrase, noun, plural=False):
    return Subject(phrase[0], phrase[1], 5 if plural else 2, noun.gender)
