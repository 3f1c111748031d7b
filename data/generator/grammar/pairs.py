"""From phrases to written pairs, and the choice of a fixed sample of them."""

import hashlib

from .french import spell


def capital(text):
    return text[0].upper() + text[1:]


class Pairs(list):
    """(English, French) as written: phrases come in, get French spelling, a capital and their punctuation. A command ends with a
    full stop in English and with an exclamation mark in French."""

    def say(self, en, fr):
        self._end(en, fr, ".", ".")

    def ask(self, en, fr):
        self._end(en, fr, "?", " ?")

    def order(self, en, fr):
        self._end(en, fr, ".", " !")

    def exclaim(self, en, fr):
        self._end(en, fr, "!", " !")

    def _end(self, en, fr, en_mark, fr_mark):
        self.append((capital(en) + en_mark, capital(spell(fr)) + fr_mark))


def digest(text):
    """A fixed pseudo-random order that depends on the text alone."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def pick(count, items, salt=""):
    """`count` of the items, always the same ones, in their own order; an item is a pair or begins with an English text."""
    items = list(items)
    chosen = sorted(range(len(items)), key=lambda index: digest(f"{salt}|{items[index]}"))[:count]
    return [items[index] for index in sorted(chosen)]


def table(text, separator="="):
    """Lines "english = french [= more]" as tuples."""
    return [
        tuple(field.strip() for field in line.split(separator)) for line in text.strip().split("\n") if line.strip()
    ]
