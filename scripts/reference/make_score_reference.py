#!/usr/bin/env python3
"""Writes tests/metrics/reference/scores.json: sacreBLEU's chrF and TER, the output of its command line for resampled
and tested systems, and NumPy's random numbers.

Needs sacrebleu 2.6.0 and numpy from PyPI (the file records the versions). Run from the top of the source tree:
    python3 scripts/reference/make_score_reference.py
"""
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy
import sacrebleu
from sacrebleu.metrics import CHRF, TER

TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"

WORDS = ["the", "cat", "sat", "on", "a", "mat", "mat.", "Dog", "dog,", "1,000", "3.5", "it's", "“so”", "über", "ΣΑΣ", "&quot;", "&amp;lt;",
         "x-y", "5-6", "中文。", "か、カ", "(a)", "(hi", "ok!", "...", "'s", "İ", "\U00020000", "\u3f30", "！", "e\u0301"]
SPACES = [" ", " ", " ", "  ", "\u00a0", "\u3000", "\t"]


def corpora():
    rng = random.Random(11)

    def sentence(length, words=WORDS):
        return "".join(rng.choice(words) + rng.choice(SPACES) for _ in range(length)).rstrip()

    def perturbed(line, times):
        words = line.split(" ")
        for _ in range(rng.randint(0, times)):
            at, many = rng.randrange(len(words) + 1), rng.randint(0, 5)
            moved = words[at:at + many]
            del words[at:at + many]
            to = rng.randint(0, len(words))
            words[to:to] = moved if rng.random() < 0.7 else [rng.choice(WORDS)]
        return " ".join(words).rstrip()

    first = [sentence(rng.choice([0, 1, 2, 5, 9, 15, 30])) for _ in range(40)]
    yield {"name": "mixed", "references": [first, [perturbed(x, 3) if i % 4 else "" for i, x in enumerate(first)]],
           "systems": [[perturbed(x, 2) for x in first], [perturbed(x, 6) if i % 9 else "" for i, x in enumerate(first)],
                       [sentence(6) for _ in first]]}
    few = "a b c d e".split()
    long = [" ".join(rng.choice(few) for _ in range(n)) for n in (40, 90, 160, 70, 3, 120)]
    yield {"name": "repeats", "references": [long],
           "systems": [[perturbed(x, 9) for x in long], [" ".join(rng.choice(few) for _ in range(n)) for n in (40, 80, 200, 1, 90, 260)]]}
    yield {"name": "nothing", "references": [["", ""]], "systems": [["", ""], ["a b", ""]]}
    yield {"name": "one line", "references": [["the cat sat on the mat"], ["a cat"]], "systems": [["the cat the mat sat on"], ["x y"]]}


def chrf_settings():
    for order, space, case, eps in itertools.product([{}, {"word_order": 2}, {"char_order": 3, "word_order": 1, "beta": 3}, {"char_order": 0, "word_order": 2}],
                                                     [False, True], [False, True], [False, True]):
        yield {**order, "whitespace": space, "lowercase": case, "eps_smoothing": eps}


def ter_settings():
    for flags in itertools.product([False, True], repeat=4):
        yield dict(zip(["normalized", "no_punct", "asian_support", "case_sensitive"], flags))


def scores(corpus, metric):
    signature, results = None, []
    for system in corpus["systems"]:
        score = metric.corpus_score(system, corpus["references"])
        signature = metric.get_signature().format()
        sentences = [metric.sentence_score(hyp, list(refs)).score for hyp, *refs in zip(system, *corpus["references"])]
        results.append({"score": score.score, "sentences": sentences})
    return {"name": score.name, "signature": signature, "results": results}


def cases(corpora):
    for corpus in corpora:
        for kind, settings in (("chrf", chrf_settings()), ("ter", ter_settings())):
            for options in settings:
                metric = (CHRF if kind == "chrf" else TER)(**options)
                yield {"corpus": corpus["name"], "metric": kind, "options": options, **scores(corpus, metric)}


def arguments():
    """Yields command lines; ref, ref2, one, two and three are the files of the corpus "mixed"."""
    every = ["-m", "ter", "chrf", "bleu"]
    for form in (["-f", "text"], ["-f", "json"]):
        yield ["ref", "-i", "one", "-ci", "-w", "9", *every, *form]
        yield ["ref", "ref2", "-i", "two", "-ci", "--confidence-n", "77", "-w", "6", *every, *form]
        yield ["ref", "-i", "one", "-b", *every, *form]
        yield ["ref", "-i", "one", "-ci", "-b", "-m", "bleu", "-s", "floor", *form]
        yield ["ref", "-i", "one", "-ci", "-w", "7", "-m", "bleu", "-s", "add-k", "-sv", "0.3", *form]
        yield ["ref", "-i", "one", "two", "three", "-w", "3", *every, *form]
        yield ["ref", "ref2", "-i", "one", "two", "three", "--paired-ar", "--paired-ar-n", "300", "-w", "2", *every, *form]
        yield ["ref", "-i", "one", "two", "--paired-ar", "--paired-ar-n", "99", "-m", "bleu", "-s", "add-k", "-sv", "0.7", *form]
    yield ["ref", "-i", "one", "two", "three", "--paired-bs", "-w", "5", *every, "-f", "text"]
    yield ["ref", "ref2", "-i", "one", "two", "--paired-bs", "--paired-bs-n", "123", "-m", "bleu", "-f", "json"]
    yield ["ref", "-i", "two", "one", "-m", "chrf", "--chrf-word-order", "2", "--paired-bs", "-f", "text"]
    yield ["ref", "ref2", "-i", "one", "-sl", "-m", "chrf", "-w", "4", "-f", "text"]
    yield ["ref", "ref2", "-i", "one", "-sl", "-m", "ter", "-b"]
    yield ["ref", "ref2", "-i", "one", "-m", "bleu", "-tok", "zh", "-w", "6", "-f", "text"]


def reports(corpus):
    """Returns what sacreBLEU's command line prints, without the explanation of a test."""
    with tempfile.TemporaryDirectory() as folder:
        files = dict(zip(["ref", "ref2", "one", "two", "three"], corpus["references"] + corpus["systems"]))
        for name, lines in files.items():
            pathlib.Path(folder, name).write_bytes("".join(line + "\n" for line in lines).encode())
        for words in arguments():
            command = [sys.executable, "-m", "sacrebleu.sacrebleu", *words, "-q"]
            printed = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True, env={**os.environ, "NO_COLOR": "1"}).stdout.decode()
            yield {"arguments": words, "output": re.sub(r"-+\nPaired.*\n\n(?=-----------------\nMetric)", "", printed, flags=re.S)}


def numpy_numbers():
    for seed, size in itertools.product([0, 12345, 2**40 + 7], [1, 2, 7, 1000, 3_000_000_000]):
        random_numbers = numpy.random.default_rng(seed)
        chosen = random_numbers.choice(size, size=25, replace=True)
        yield {"seed": seed, "size": size, "chosen": chosen.tolist(), "bits": random_numbers.integers(2, size=70, dtype=bool).astype(int).tolist(),
               "later": random_numbers.choice(size, size=9001, replace=True)[-9:].tolist()}


def shuffled_fractions():
    """Returns p-values for statistics that are not whole numbers: edits and mean lengths. The C++ test computes them
    by the same formulas. They depend on the rounding of NumPy's matrix products (here: OpenBLAS on a CPU with
    AVX-512)."""
    for segments, trials in ((100, 9999), (901, 2000)):
        i = numpy.arange(segments)
        baseline, system = (numpy.stack([edits, (20 + i * 13 % 31) / 3], 1) for edits in (i * 7 % 5, i * 11 % 5 + (i % 37 == 0)))
        real = abs(100 * (baseline[:, 0].sum() / sum(baseline[:, 1].tolist())) - 100 * (system[:, 0].sum() / sum(system[:, 1].tolist())))
        mask = numpy.random.default_rng(12345).integers(2, size=(trials, segments), dtype=bool)
        one, other = mask @ baseline + ~mask @ system, ~mask @ baseline + mask @ system
        differences = numpy.abs(100 * (one[:, 0] / one[:, 1]) - 100 * (other[:, 0] / other[:, 1]))
        yield {"segments": segments, "trials": trials, "p": (numpy.sum(differences > real).item() + 1) / (trials + 1)}


all_corpora = list(corpora())
data = {"made_with": {"sacrebleu": sacrebleu.__version__, "numpy": numpy.__version__, "python": sys.version.split()[0]},
        "corpora": all_corpora, "cases": list(cases(all_corpora)), "reports": list(reports(all_corpora[0])), "random": list(numpy_numbers()), "fractions": list(shuffled_fractions())}
path = TESTS / "metrics/reference/scores.json"
with open(path, "w", encoding="utf-8") as file:
    json.dump(data, file, ensure_ascii=True, separators=(",", ":"))
    file.write("\n")
print(path, path.stat().st_size, "bytes")
