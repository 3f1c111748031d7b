"""Measures heed on a GPU beside PyTorch on the same GPU: training in batches of 25,000 tokens, translating a file, and one
line after the other. The text is made of random words, so that there are 32,000 of them anywhere."""

import copy
import json
import os
import random
import re
from functools import cached_property
from statistics import median

from .materials import CONFIGS, Materials
from .measure import run
from .training import flops_of_a_token, speed
from .translation import heed as translated

WORDS = 25000  # target tokens of a batch
UPDATES = {"tiny": 4, "base": 30, "big": 20}
WARM_UP = 8  # the first updates allocate memory and choose products
PIECES = 32000
LENGTH = 30  # tokens of a translation
BEAM = 4
BATCHES = [256, 1024, 2048]  # sentences of a batch, of which the peer takes the fastest


class RandomText(Materials):
    """Pairs of random words, as frequent as words are (Zipf's law), and as long as the sentences of newspapers."""

    def __init__(self, work, tool, say, pairs, pieces):
        super().__init__(work, tool, say)
        self.languages = ("en", "fr")  # the words belong to no language
        self.train = [os.path.join(work, f"gpu.{side}") for side in self.languages]
        chance = random.Random(1)
        words = [f"w{i}" for i in range(pieces - 4)]
        weights = [1 / (i + 20) for i in range(len(words))]
        total, cumulative = 0.0, []
        for weight in weights:
            total += weight
            cumulative.append(total)
        lengths = [max(3, min(100, round(chance.lognormvariate(3.1, 0.5)))) for _ in range(pairs)]
        listed = [" ".join(words[at : at + 40]) for at in range(0, len(words), 40)]  # each word at least once
        for path in self.train:
            with open(path, "w", encoding="utf-8") as file:
                for length in lengths:
                    count = max(3, length + chance.randint(-2, 2))
                    file.write(" ".join(chance.choices(words, cum_weights=cumulative, k=count)) + "\n")
                file.writelines(line + "\n" for line in listed)
        self.validation, self.test = self.train, self.train[0]

    @cached_property
    def _vocabulary(self):
        path = self.path("gpu.vocabulary")
        said = run([self.tool("build-vocab"), "--type", "words", "--mode", "words", "--language", ",".join(self.languages), "-o", path, *self.train]).messages
        return path, int(re.search(r"([\d,]+) pieces", said).group(1).replace(",", ""))


def train(bench, config, updates, words):
    """Trains on the device. Returns target tokens per second."""
    model = bench.path("gpu.h5")
    more = ["--device", bench.options.device, "--precision", "bfloat16", "--mini-batch-words", words, "--after", f"{updates + WARM_UP}u"]
    command = bench.materials.train_command(config, *more, "--disp-freq", "1u", "--log-format", "jsonl", model=model)
    said = [json.loads(line) for line in run(command).output.splitlines()]
    os.remove(model)
    return speed([event for event in said if event["event"] == "update" and event["update"] >= WARM_UP])


def sizes(bench, config):
    c = CONFIGS[config]
    return ["--pieces", bench.materials.pieces, "--layers", c.layers, "--width", c.width, "--heads", c.heads, "--ffn", c.ffn]


def peer(bench, program, *arguments):
    return json.loads(bench.peer(program, *[str(part) for part in arguments], "--device", bench.options.device).output)


def measure_training(bench, config, words):
    updates = bench.options.updates or UPDATES[config]
    programs = {"heed": lambda: train(bench, config, updates, words)}
    if bench.peers.has("torch"):

        def pytorch():
            work = ["--updates", updates, "--batch-words", words, "--dropout", CONFIGS[config].dropout]
            return peer(bench, "train_pytorch_gpu.py", *bench.materials.ids, *sizes(bench, config), *work)["tokens_per_second"]

        programs["PyTorch"] = pytorch
    for row in bench.compare(f"train {config}, bfloat16, {words:,} words", "tokens/s", programs, more=True):
        if "gpu" in bench.peaks:
            row.share = median(row.heed) * flops_of_a_token(bench, config) / 1e12 / bench.peaks["gpu"]


def measure_translation(bench, config, lines, precision, alone):
    """Measures translating a file, greedy and with a beam, or one line after the other."""
    materials = bench.materials
    model, text, ids = materials.untrained(config, name=f"gpu-{config}"), materials.first_lines(materials.test, lines), bench.path("gpu.ids")
    run([bench.tool("tokenize"), "-q", "-m", materials.vocabulary, "-l", materials.languages[0], "--output-format", "id", "-i", text, "-o", ids])
    more = ["--device", bench.options.device, *(["--maxi-batch", 1] if alone else [])]
    for beam in (1,) if alone else (1, BEAM):
        work = ["--beam", beam, "--length", LENGTH, "--batch", *([1] if alone else BATCHES)]
        programs = {"heed": lambda: translated(bench, model, text, beam, precision, LENGTH, more=more)[0]}
        if bench.peers.has("torch"):
            programs["PyTorch"] = lambda: peer(bench, "translate_pytorch_gpu.py", ids, *sizes(bench, config), *work)["pieces_per_second"]
        way = f"{'greedy' if beam == 1 else f'beam {beam}'}, {'line by line' if alone else 'a file'}"
        for row in bench.compare(f"translate {config}, {precision}, {way}", "pieces/s", programs, more=True):
            if alone:
                row.note = f"{1000 / median(row.heed):.2f} ms a piece"


def measure(bench):
    quick = bench.quick
    bench = copy.copy(bench)
    bench.materials = RandomText(bench.work, bench.tool, bench.say, *((200, 2000) if quick else (60000, PIECES)))
    if bench.peers.has("torch"):
        found = peer(bench, "train_pytorch_gpu.py", "--peak")
        bench.peaks["gpu"] = found["tflops"]
        size, rate = found["size"], found["tflops"]
        bench.note(f"{found['device']}: bfloat16 products [{size}, {size}] x [{size}, {size}] by PyTorch: {rate:.3g} TFLOP/s.")
        bench.note("PyTorch translates in bfloat16 beside every precision of heed.")
    configs = (bench.options.configs or ("tiny" if quick else "base,big")).split(",")
    for config in configs:
        measure_training(bench, config, 1000 if quick else WORDS)
    for precision in ["float32"] if quick else ["bfloat16", "int8"]:
        measure_translation(bench, configs[0], 20 if quick else 6000, precision, False)
        measure_translation(bench, configs[0], 3 if quick else 50, precision, True)
