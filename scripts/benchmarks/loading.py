"""Measures waiting times: until a model is loaded, and for the translation of one sentence."""

import subprocess
import time

from .measure import ProgramError
from .report import counted
from .translation import LENGTH, Peer, fixed, has_peer


class Coprocess:
    """Runs `translate` as a coprocess, which answers each line before it receives the next line."""

    def __init__(self, bench, model, precision, threads, length, draft=None):
        command = [bench.tool("translate"), "-q", "-m", model, "-b", 1, "--precision", precision, "-j", threads, *fixed(length)]
        command += ["--draft-model", draft] if draft else []
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def ask(self, line):
        """Returns the seconds until the answer to `line`."""
        start = time.perf_counter()
        self.process.stdin.write(line)
        self.process.stdin.flush()
        if not self.process.stdout.readline().endswith(b"\n"):
            raise ProgramError("translate does not answer a line that it is given")
        return time.perf_counter() - start


def percentiles(milliseconds):
    ordered = sorted(milliseconds)
    return {"p50_ms": ordered[len(ordered) // 2], "p95_ms": ordered[int(0.95 * len(ordered))]}


def heed_latency(bench, model, text, precision, threads, length, draft=None):
    with open(text, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    with Coprocess(bench, model, precision, threads, length, draft) as translator:
        for line in lines[:5]:
            translator.ask(line)
        return percentiles([1000 * translator.ask(line) for line in lines])


def latency(bench):
    """Measures the median and the 95th percentile of the time of one sentence. Both come from the same run; each has
    a row. With --draft, the model given is measured again, with its draft model and beside the same model without."""
    materials = bench.materials
    lines = 100 if bench.quick else 300
    models = [("the model given" if materials.model_given else "tiny", materials.tiny, None, lines, None)]
    if bench.options.draft:
        models.append(("the model given with its draft", materials.tiny, None, lines, bench.options.draft))
    if not bench.quick:
        models.append((f"base, {LENGTH} pieces", materials.untrained("base"), LENGTH, 20, None))
    for name, model, length, count, draft in models:
        text = materials.first_lines(materials.test, count)
        peer = Peer(bench, model, text) if has_peer(bench) else None
        for precision in bench.options.precisions.split(","):
            for threads in sorted({1, bench.threads}):
                runs = {"heed": [], "CTranslate2": [], "no draft": []}

                def once(program, measured):
                    runs[program].append(measured)
                    return measured["p50_ms"]

                programs = {"heed": lambda: once("heed", heed_latency(bench, model, text, precision, threads, length, draft))}
                if draft:
                    programs["no draft"] = lambda: once("no draft", heed_latency(bench, model, text, precision, threads, length))
                if peer:
                    programs["CTranslate2"] = lambda: once(
                        "CTranslate2", peer.call("latency", precision, 1, length, "--threads", threads, "--lines", count)
                    )
                what = f"{name}, {precision}, {counted(threads)}"
                for row in bench.compare(f"{what}, median", "ms", programs):
                    if not draft:  # CTranslate2 has no draft: this ratio is not one of equal work
                        row.quote = (name.split(",")[0], precision, counted(threads))
                    theirs = [measured["p95_ms"] for measured in runs[row.peer]] if row.theirs else []
                    ours = [measured["p95_ms"] for measured in runs["heed"]]
                    bench.add(f"{what}, 95th percentile", "ms", ours, peer=row.peer if theirs else "", theirs=theirs)


def load(bench):
    """Adds two rows for each model and precision: the time until the model is loaded, without a line to translate
    (CTranslate2: only opening the model), and the time until the first translation, in which the peer's process also
    starts Python and imports the library."""
    for config in ["tiny"] if bench.quick else ["tiny", "base"]:
        load_model(bench, config)


def load_model(bench, config):
    materials = bench.materials
    model = materials.untrained(config)
    text = materials.first_lines(materials.test, 1)
    with open(text, "rb") as file:
        line = file.read()
    peer = Peer(bench, model, text) if has_peer(bench) else None
    for precision in bench.options.precisions.split(","):

        def nothing():
            command = [bench.tool("translate"), "-q", "-m", model, "--precision", precision, "-j", bench.threads]
            start = time.perf_counter()
            subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, check=True)
            return 1000 * (time.perf_counter() - start)

        def first():
            start = time.perf_counter()
            with Coprocess(bench, model, precision, bench.threads, LENGTH) as translator:
                translator.ask(line)
                return 1000 * (time.perf_counter() - start)

        def call_peer():
            start = time.perf_counter()
            said = peer.call("first", precision, 1, LENGTH, "--threads", bench.threads)
            return 1000 * said["load_seconds"], 1000 * (time.perf_counter() - start)

        def peer_programs(ours, part):
            return {"heed": ours, **({"CTranslate2": lambda: call_peer()[part]} if peer else {})}

        if peer:
            peer.folder(precision)  # converts the model before the measurement
        nothing()  # from now on, the file is in the page cache, also for the peer, and the system has free memory
        bench.compare(f"{config}, {precision}, ready", "ms", peer_programs(nothing, 0))
        bench.compare(f"{config}, {precision}, {LENGTH} pieces", "ms", peer_programs(first, 1))
