"""Measures translating: output pieces per second for the same weights, beam and text."""

import json
import os
import re
from statistics import median

from .materials import CONFIGS
from .measure import ProgramError, run

LENGTH = 30  # number of output pieces of each line of an untrained model


def fixed(length):
    return ["--min-output-length", length, "--max-output-length", length] if length else []


def run_heed(bench, model, text, beam, precision, length=None, output=None, more=()):
    command = [bench.tool("translate"), "-m", model, "-b", beam, "--precision", precision, "-j", bench.threads]
    command += ["--no-detokenize", "-i", text, *fixed(length), *more]
    return run(command, target=output or bench.path("translated"))


def heed(bench, *arguments, more=(), **options):
    """Runs `translate` and returns (pieces per second, pieces). The time is measured by heed: reading, tokenising,
    translating and writing, without the start of the process."""
    done = run_heed(bench, *arguments, more=["--stats", *more], **options)
    found = re.search(r"([\d,]+) pieces in .*?([\d.]+) pieces/s", done.messages)
    if not found:
        raise ProgramError("translate --stats does not say how many pieces a second")
    return float(found[2]), int(found[1].replace(",", ""))


def heed_memory(bench, *arguments):
    """Returns the peak memory of `translate` in MB. --stats is left out, because its kernels need additional memory."""
    return run_heed(bench, *arguments).peak_mb


class Peer:
    """CTranslate2 with the weights of a heed model, and the text as pieces."""

    def __init__(self, bench, model, text):
        self.bench, self.model, self.pieces, self.tuned = bench, model, bench.path("source.pieces"), {}
        run([bench.tool("tokenize"), "-q", "-m", model, "-i", text, "-o", self.pieces])

    def folder(self, precision):
        """Returns the folder of the converted model, with weights in the form that the precision needs."""
        folder = self.bench.path(f"ct2-{os.path.basename(self.model)}-{precision}")
        if not os.path.isdir(folder):
            quantization = [] if precision == "float32" else ["--quantization", precision]
            self.bench.peer("translate_ctranslate2.py", "convert", self.model, folder, *quantization)
        return folder

    def call(self, command, precision, beam, length, *more):
        forced = ["--fixed-length", length] if length else []
        arguments = [command, self.folder(precision), self.pieces, "--precision", precision, "--beam", beam, *forced, *more]
        return json.loads(self.bench.peer("translate_ctranslate2.py", *arguments).output)

    def settings(self, precision, beam, length):
        """Returns the threads and the batch size that a short sweep finds fastest."""
        key = (precision, beam)
        if key not in self.tuned:
            lines = 64 if length else 256
            best = self.call("tune", precision, beam, length, "--lines", lines, "--threads", self.bench.threads)
            self.tuned[key] = ["--inter", best["inter"], "--intra", best["intra"], "--batch", best["batch"]]
        return self.tuned[key]

    def translate(self, precision, beam, length, *more):
        return self.call("translate", precision, beam, length, *self.settings(precision, beam, length), *more)


def has_peer(bench):
    return bench.peers.has("ctranslate2") and bench.peers.has("h5py")


def differing(ours, theirs):
    """Returns (number of lines that differ, number of lines) for two files; `theirs` is text in pieces."""
    with open(ours, encoding="utf-8", newline="\n") as one, open(theirs, encoding="utf-8", newline="\n") as other:
        pairs = [(a.rstrip("\n"), b.rstrip("\n").replace("@@ ", "")) for a, b in zip(one, other, strict=True)]
    return sum(a != b for a, b in pairs), len(pairs)


def share_of_peak(bench, config, rate, precision, count, text, beam, length):
    """Returns the share of the machine's peak at heed's speed in pieces per second. Source lengths are those of the
    training text."""
    if precision not in bench.peaks or config is None:
        return None
    with open(text, "rb") as file:
        lines = sum(1 for _ in file)
    lengths = bench.materials.lengths
    source = sum(s for s, _ in lengths) / len(lengths)
    target = count / lines + (0 if length else 1)
    return CONFIGS[config].flops(bench.materials.pieces, source, target, beam) * rate * lines / count / 1e9 / bench.peaks[precision]


def measure_model(bench, name, config, model, text, length):
    peer = Peer(bench, model, text) if has_peer(bench) else None
    for precision in bench.options.precisions.split(","):
        for beam in (1, 4):
            count, ours, theirs = {}, bench.path("ours"), bench.path("theirs")

            def timed():
                rate, count["pieces"] = heed(bench, model, text, beam, precision, length, ours)
                return rate

            programs = {"heed": timed}
            if peer:
                programs["CTranslate2"] = lambda: peer.translate(precision, beam, length, "--output", theirs)["pieces_per_second"]
            way = "greedy" if beam == 1 else f"beam {beam}"
            for row in bench.compare(f"{name}, {precision}, {way}", "pieces/s", programs, more=True):
                row.quote = (name.split(",")[0], precision, way)
                row.share = share_of_peak(bench, config, median(row.heed), precision, count["pieces"], text, beam, length)
                if row.theirs and not length:
                    different, lines = differing(ours, theirs)
                    row.note = f"{different} of {lines} lines differ"
                    os.remove(theirs)


def measure(bench):
    materials = bench.materials
    given = materials.model_given is not None
    text = materials.first_lines(materials.test, 200 if bench.quick else 2000)
    measure_model(bench, "the model given" if given else "tiny", None if given else "tiny", materials.tiny, text, None)
    if not bench.quick:
        text = materials.first_lines(materials.test, 300)
        measure_model(bench, f"base, {LENGTH} pieces a line", "base", materials.untrained("base"), text, LENGTH)
