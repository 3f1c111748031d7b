"""Measures how heed's time grows with the size of a batch, the length of sentences and the size of the vocabulary."""

import math
import re
from statistics import mean, median

from . import training, translation
from .materials import unpacked
from .measure import ProgramError, run

LINES = 800


def translating(bench, model, source, target):
    """Returns a function that measures the milliseconds of one sentence with `source` and `target` pieces, and the
    milliseconds that heed's cost model predicts. The sentences have at least as many words, and are cut to the number
    of pieces."""
    text, cut = joined(bench, source), ["--max-length", source, "--on-long", "crop", "--no-detokenize", "--precision", "float32"]
    command = [bench.tool("translate"), "-m", model, "-b", 1, "--stats", "-j", bench.threads, "-i", text]

    def measured():
        said = run([*command, *translation.fixed(target), *cut], target=bench.path("translated")).messages
        return [1000 * target / float(number(pattern, said)) for pattern in (r"([\d.]+) pieces/s, \d", r"expected ([\d,]+) pieces/s")]

    return measured


def number(pattern, said):
    found = re.search(pattern, said)
    if not found:
        raise ProgramError(f"heed does not say its speed as '{pattern}'")
    return found[1].replace(",", "")


def exponent(points):
    """Returns the exponent E of y = c x^E by least squares of the logarithms, or no number when all x are equal."""
    if len({x for x, _ in points}) < 2:
        return math.nan
    logs = [(math.log(x), math.log(y)) for x, y in points]
    x_mean, y_mean = (mean(values) for values in zip(*logs))
    return sum((x - x_mean) * (y - y_mean) for x, y in logs) / sum((x - x_mean) ** 2 for x, _ in logs)


def compare(bench, what, unit, program):
    """Runs program(), which returns (measured, predicted), several times. Adds a row with the median of the measured
    values, and returns both medians."""
    expected = []

    def measured():
        one, other = program()
        expected.append(other)
        return one

    row = bench.compare(what, unit, {"heed": measured})[0]
    row.note = f"expected {median(expected):.3g}"
    return median(row.heed), median(expected)


def joined(bench, words):
    """Writes a file whose lines have `words` words each, taken from the training text, and returns its path."""
    path = bench.path(f"words.{words}")
    with open(path, "wb") as out:
        line, written = [], 0
        for text in unpacked(bench.materials.train[0]):
            line += text.split()
            if len(line) >= words:
                out.write(b" ".join(line[:words]) + b"\n")
                line, written = [], written + 1
                if written == LINES:
                    break
    return path


def batches(bench):
    """Measures the milliseconds of an update for several numbers of target tokens in a batch."""
    for words in [512, 2048, 4096] if bench.quick else [512, 1024, 2048, 4096, 8192]:
        updates = 4 if bench.quick else 8

        def both():
            more = ["--mini-batch-words", words, "--dry-run"]
            said = run(bench.materials.train_command("tiny", *more, model=bench.path("expected.h5"))).output
            speed = training.heed(bench, "tiny", updates, "auto", words=words)[0]
            return 1000 * words / speed, 1000 * words / float(number(r"speed expected +([\d,]+)", said))

        yield words, *compare(bench, f"training tiny, batch of {words} words", "ms/update", both)


def lengths(bench):
    """Measures the milliseconds of a sentence for several lengths in pieces, equal on both sides."""
    model = bench.materials.untrained("tiny")
    for length in [8, 32, 64] if bench.quick else [8, 16, 32, 64, 128]:
        what = f"translating tiny greedily, {length} pieces to {length}"
        yield length, *compare(bench, what, "ms/sentence", translating(bench, model, length, length))


def vocabularies(bench):
    """Measures the milliseconds of a sentence of 16 pieces for several sizes of the vocabulary."""
    last = None
    for merges in [500, 4000] if bench.quick else [1000, 2000, 4000, 8000, 16000]:
        path = bench.path(f"vocabulary.{merges}")
        command = [bench.tool("build-vocab"), "--merges", merges, "--language", ",".join(bench.materials.languages)]
        size = int(number(r"([\d,]+) pieces", run([*command, "-o", path, *bench.materials.train]).messages))
        if size == last:
            break  # the text gives no further merges
        last = size
        model = bench.materials.untrained("tiny", path, f"tiny-{merges}")
        yield size, *compare(bench, f"translating tiny greedily, a vocabulary of {size}", "ms/sentence", translating(bench, model, 16, 16))


def measure(bench):
    for title, x_label, y_label, points in (
        ("Training: batch", "target tokens of a batch", "ms an update", list(batches(bench))),
        ("Translating: length", "pieces in and out", "ms a sentence", list(lengths(bench))),
        ("Translating: vocabulary", "pieces of the vocabulary", "ms a sentence", list(vocabularies(bench))),
    ):
        measured, expected = [(x, y) for x, y, _ in points], [(x, y) for x, _, y in points]
        x, y = measured[-1]
        curves = {"heed": [measured], "expected": [expected], "-in proportion": [[(0, 0), (x, y)]]}
        bench.panels.append((title, x_label, y_label, curves))
        ratios = [e / m for (_, m), (_, e) in zip(measured, expected)]
        bench.note(
            f"{title}: time grows as size^{exponent(measured):.2f}, by the model of the cost as size^{exponent(expected):.2f}; "
            f"expected / measured {min(ratios):.2f} to {max(ratios):.2f}."
        )
