#!/usr/bin/env python3
"""Writes tests/text/reference/lexicon.json: IBM Model 1 by the textbook's loop over dictionaries, in double
precision.

The source is Brown et al. 1993, "The mathematics of statistical machine translation": Model 1 with a NULL word, from
equal initial probabilities. Needs only Python (the file records the version). Run from the top of the source tree:
    python3 scripts/reference/make_lexicon_reference.py
"""
import collections
import json
import pathlib
import platform
import random

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED = 7


def make_texts(rng):
    """Returns sentences of frequent and rare words with translations in another word order; some have additional
    words."""
    source, target = [], []
    for _ in range(60):
        words = [min(int(rng.paretovariate(0.8)), 30) for _ in range(rng.randrange(0, 9))]
        other = [f"t{word}" for word in words if rng.random() < 0.9]
        other += [rng.choice(["der", "."]) for _ in range(rng.randrange(0, 3))]
        rng.shuffle(other)
        source.append(" ".join(f"s{word}" for word in words))
        target.append(" ".join(other))
    # White space, letters of several bytes, a TAB within a piece, the same piece on both sides.
    source += ["  s1   s2 ", "1984 s\u00fc\u00df", "s1\ts2 s1", "", "s1"]
    target += ["t2  t1", "1984 d\u00fc\u00df ", "t\t1", "t1", ""]
    return source, target


def model1(source, target, iterations):
    pairs = [(["NULL", *(("s", word) for word in s.split(" ") if word)], [word for word in t.split(" ") if word])
             for s, t in zip(source, target)]
    uniform = 1 / len({word for _, t in pairs for word in t})
    table = collections.defaultdict(lambda: uniform)
    for _ in range(iterations):
        counts = collections.defaultdict(float)
        totals = collections.defaultdict(float)
        for s, t in pairs:
            for f in t:
                total = sum(table[e, f] for e in s)
                for e in s:
                    counts[e, f] += table[e, f] / total
                    totals[e] += table[e, f] / total
        table = {(e, f): count / totals[e] for (e, f), count in counts.items()}
    rows = collections.defaultdict(dict)
    for (e, f), p in table.items():
        if e != "NULL":
            rows[e[1]][f] = p
    return rows


def main():
    source, target = make_texts(random.Random(SEED))
    answers = {
        "made by": f"scripts/reference/make_lexicon_reference.py with Python {platform.python_version()}",
        "source": source,
        "target": target,
        "tables": {str(n): model1(source, target, n) for n in (1, 2, 5)},
    }
    path = ROOT / "tests/text/reference/lexicon.json"
    path.write_text(json.dumps(answers, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
