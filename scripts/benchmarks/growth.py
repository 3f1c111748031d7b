"""How heed's time grows with the size of a batch, the length of sentences and the size of the vocabulary."""

from statistics import median

from . import training, translation
from .materials import unpacked
from .measure import run

LINES = 400


def translating(bench, model, source, target):
    """A function that gives the milliseconds of a sentence of so many source and target pieces: sentences of as many words,
    which are as many pieces or more, are cut."""
    text, cut = joined(bench, source), ["--max-length", source, "--on-long", "crop"]
    return lambda: 1000 * target / translation.heed(bench, model, text, 1, "float32", target, more=cut)[0]


def joined(bench, words):
    """A file of lines of so many words of the training text."""
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
    """Milliseconds of an update against target tokens of the batch."""
    for words in [512, 2048, 4096] if bench.quick else [512, 1024, 2048, 4096, 8192]:
        updates = 4 if bench.quick else 8
        row = bench.compare(
            f"training tiny, batch of {words} words",
            "ms/update",
            {"heed": lambda: 1000 * words / training.heed(bench, "tiny", updates, "auto", words=words)[0]},
        )[0]
        yield words, median(row.heed)


def lengths(bench):
    """Milliseconds of a sentence against its length in pieces, on both sides."""
    model = bench.materials.untrained("tiny")
    for length in [8, 32, 64] if bench.quick else [8, 16, 32, 64, 128]:
        what = f"translating tiny greedily, {length} pieces to {length}"
        row = bench.compare(what, "ms/sentence", {"heed": translating(bench, model, length, length)})[0]
        yield length, median(row.heed)


def vocabularies(bench):
    """Milliseconds of a sentence of 16 pieces against the merges of the vocabulary."""
    for merges in [500, 4000] if bench.quick else [1000, 2000, 4000, 8000, 16000]:
        path = bench.path(f"vocabulary.{merges}")
        command = [bench.tool("build-vocab"), "-q", "--merges", merges, "--language", ",".join(bench.materials.languages)]
        run([*command, "-o", path, *bench.materials.train])
        model = bench.materials.untrained("tiny", path, f"tiny-{merges}")
        row = bench.compare(f"translating tiny greedily, {merges} merges", "ms/sentence", {"heed": translating(bench, model, 16, 16)})[0]
        yield merges, median(row.heed)


def measure(bench):
    for title, x_label, y_label, points in (
        ("Training: batch", "target tokens of a batch", "ms an update", list(batches(bench))),
        ("Translating: length", "pieces in and out", "ms a sentence", list(lengths(bench))),
        ("Translating: vocabulary", "merges", "ms a sentence", list(vocabularies(bench))),
    ):
        x, y = points[-1]
        bench.panels.append((title, x_label, y_label, {"heed": [points], "-in proportion": [[(0, 0), (x, y)]]}))
        x0, y0 = points[0]
        bench.note(f"{title}: {x / x0:.3g} times the size takes {y / y0:.3g} times the time.")
