#!/usr/bin/env python3
"""Writes tests/metrics/reference/evalb.json: trees, and what PYEVALB counts in them.

PYEVALB knows no parameter file. So the trees that it sees are those that COLLINS.prm leaves, pruned here by nltk: without the
deleted words, brackets that hold none, function tags and the label TOP. heed gets the trees as they were. PYEVALB counts the
same label over the same words once, where evalb counts it as often as it stands there, so that trees with such brackets are
left out. Needs PYEVALB and nltk from PyPI (the file records the versions). Run from the top of the source tree:
    python3 scripts/reference/make_evalb_reference.py
"""
import importlib.metadata
import json
import pathlib
import random

import nltk
from PYEVALB import parser, scorer, summary

TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"
DELETED = {"-NONE-", ",", ":", "``", "''", "."}
PHRASES = ["NP", "NP-SBJ", "NP=2", "VP", "PP", "ADJP", "S", "SBAR"]
TAGS = ["NN", "DT", "VBZ", "JJ", "IN", ",", ".", ":", "-NONE-", "NNS"]
WORDS = ["river", "green", "slow", "under", "stone", "*T*-1", "0", "-LRB-", "größer", "turns"]


def words(rng):
    return [(rng.choice(TAGS), rng.choice(WORDS)) for _ in range(rng.randint(1, 14))]


def grow(rng, leaves):
    """A random tree over (tag, word) pairs."""
    if len(leaves) == 1 and rng.random() < 0.7:
        return "(%s %s)" % leaves[0]
    parts = []
    at = 0
    while at < len(leaves):
        size = min(len(leaves) - at, rng.randint(1, max(1, len(leaves) - 1)))
        parts.append(leaves[at:at + size])
        at += size
    return "(%s %s)" % (rng.choice(PHRASES), " ".join(grow(rng, part) for part in parts))


def prune(tree):
    """The tree that evalb compares with COLLINS.prm's parameters, or None if nothing is left of it."""
    if tree.height() == 2:
        return None if tree.label() in DELETED else tree
    children = [child for child in map(prune, tree) if child is not None]
    return nltk.Tree(tree.label().split("-")[0].split("=")[0], children) if children else None


def is_comparable(tree):
    """Whether PYEVALB can count the tree as evalb does: brackets all differ, and there is one."""
    if tree is None:
        return False
    spans = []

    def walk(node, start):
        if node.height() == 2:
            return start + 1
        end = start
        for child in node:
            end = walk(child, end)
        spans.append((node.label(), start, end))
        return end

    walk(tree, 0)
    return len(spans) > 0 and len(spans) == len(set(spans))


def main():
    rng = random.Random(21)
    pairs, results = [], []
    while len(pairs) < 60:
        leaves = words(rng)
        gold = "(TOP %s)" % grow(rng, leaves)
        retagged = [(tag if tag in DELETED or rng.random() < 0.8 else "NN", word) for tag, word in leaves]
        test = gold if rng.random() < 0.15 else "(TOP %s)" % grow(rng, retagged)
        pruned = [prune(nltk.Tree.fromstring(text)[0]) for text in (gold, test)]
        if not all(is_comparable(tree) for tree in pruned):
            continue
        shown = [" ".join(str(tree).split()) for tree in pruned]
        result = scorer.Scorer().score_trees(*map(parser.create_from_bracket_string, shown))
        result.ID = len(pairs)
        pairs.append([gold, test])
        results.append(result)
    total = summary.summary(results)
    data = {
        "versions": {name: importlib.metadata.version(name) for name in ("PYEVALB", "nltk")},
        "pairs": [{"gold": gold, "test": test, "matched": result.matched_brackets, "gold_brackets": result.gold_brackets,
                   "test_brackets": result.test_brackets, "crossing": result.cross_brackets, "words": result.words,
                   "tags": result.correct_tags} for (gold, test), result in zip(pairs, results)],
        "recall": total.bracket_recall, "precision": total.bracket_prec, "f1": total.bracker_fmeasure,
        "exact": total.complete_match, "crossing": total.average_crossing, "no_crossing": total.no_crossing,
        "tags": total.tagging_accuracy,
    }
    with open(TESTS / "metrics/reference/evalb.json", "w") as out:
        json.dump(data, out, ensure_ascii=False, indent=0)
        out.write("\n")


if __name__ == "__main__":
    main()
