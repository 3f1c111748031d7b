"""Turns phrases into written pairs, and picks fixed samples of them."""

import hashlib

from .french import spell


def capital(text):
    return text[0].upper() + text[1:]


class Pairs(list):
    """A list of (English, French) sentences. The methods take phrases and add French spelling, a capital letter and
    punctuation. A command ends with a full stop in English and with an exclamation mark in French."""

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
    """Returns a sort key that gives a fixed pseudo-random order, which depends only on the text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def pick(count, items, salt=""):
    """Returns `count` of the items, always the same ones, in their order. An item is a pair or begins with an
    English text."""
    items = list(items)
    chosen = sorted(range(len(items)), key=lambda index: digest(f"{salt}|{items[index]}"))[:count]
    return [items[index] for index in sorted(chosen)]


def table(text, separator="="):
    """Reads lines "english = french [= more]" as tuples."""
    return [
        tuple(field.strip() for field in line.split(separator)) for line in text.strip().split("\n") if line.strip()
    ]
