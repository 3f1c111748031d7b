"""Collects all pairs: the expressions written by hand, then the topics. An English sentence keeps its first
translation."""

import os

from .topics import actions, daily, food, joined, people, places, pronouns, questions, states, things

TOPICS = (states, actions, places, things, daily, food, people, pronouns, questions, joined)


def expressions():
    """Returns the fixed expressions of expressions.tsv, whose lines are English, a tab, French."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "expressions.tsv"), encoding="utf-8") as file:
        found = [tuple(line.rstrip("\n").split("\t")) for line in file]
    for pair in found:
        if len(pair) != 2:
            raise ValueError(f"expressions.tsv: not two fields: {pair}")
    return found


def build():
    """Returns (pairs, fixed). Each English and each French sentence occurs once in `pairs`; `fixed` is the set of
    pairs that must stay in train."""
    fixed = expressions()
    seen = (set(), set())
    pairs = []
    for english, french in fixed + [pair for topic in TOPICS for pair in topic.pairs()]:
        keys = english.lower().rstrip(".!? "), french.lower().rstrip(".!? ") + french[-1]
        if keys[0] + english[-1] in seen[0] or keys[1] in seen[1]:
            continue
        seen[0].add(keys[0] + english[-1])
        seen[1].add(keys[1])
        pairs.append((english, french))
    return pairs, set(fixed)
