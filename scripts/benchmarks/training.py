"""Training: target tokens a second of the same pairs, model and batch size, dropout and Adam included."""

import json
import os
import re
from functools import cache
from statistics import median

from .materials import CONFIGS
from .measure import ProgramError, run

UPDATES = {"tiny": 20, "mini": 10, "small": 5, "base": 4, "big": 2}
WARM_UP = 3  # updates of heed's that are not counted: memory is taken in them
WORDS = 4096


def heed(bench, config, updates, precision, seed=1, words=WORDS):
    """Runs `train`; (target tokens a second, peak in MB)"""
    model = bench.path("speed.h5")
    more = ["--precision", precision, "--mini-batch-words", words, "--after", f"{updates + WARM_UP}u", "--disp-freq", "1u"]
    done = run(bench.materials.train_command(config, *more, "--seed", seed, "--log-format", "jsonl", model=model))
    os.remove(model)
    events = [json.loads(line) for line in done.output.splitlines()]
    counted = [event for event in events if event["event"] == "update" and event["update"] >= WARM_UP]
    tokens = counted[-1]["target_tokens"] - counted[0]["target_tokens"]
    return tokens / (counted[-1]["seconds"] - counted[0]["seconds"]), done.peak_mb


def pytorch(bench, config, updates, precision, seed=1, seconds=60):
    """Runs PyTorch on the same pairs; what it printed"""
    c = CONFIGS[config]
    sizes = ["--layers", c.layers, "--width", c.width, "--heads", c.heads, "--ffn", c.ffn, "--dropout", c.dropout]
    work = ["--updates", updates, "--seconds", seconds, "--batch-words", WORDS, "--threads", bench.threads, "--seed", seed]
    pieces = ["--pieces", bench.materials.pieces]
    return json.loads(bench.peer("train_pytorch.py", *bench.materials.ids, *pieces, *sizes, *work, "--precision", precision).output)


@cache
def description(bench):
    """What `train` says of a tiny model and of itself where it is free to choose."""
    said = run([part for part in bench.materials.train_command("tiny", "--dry-run") if part != "-q"])
    found = re.search(r"Transformer with .* parameters .*(?:float32|bfloat16) on .*", said.output + said.messages)
    if not found:
        raise ProgramError("train --dry-run does not say which precision it takes")
    return found[0]


def fast_precision(bench):
    """What `train` takes where it is free to choose."""
    return "bfloat16" if "bfloat16" in description(bench) else "float32"


def flops_of_a_token(bench, config):
    """Of a target token in training, forwards and backwards, without padding."""
    lengths = bench.materials.lengths
    total = sum(CONFIGS[config].flops(bench.materials.pieces, source, target) for source, target in lengths)
    return 3 * total / sum(target for _, target in lengths)


def configs(bench):
    chosen = (bench.options.configs or ("tiny" if bench.quick else "tiny,mini,base")).split(",")
    for name in chosen:
        if name not in CONFIGS:
            raise ProgramError(f"--configs: no configuration '{name}' (there are {', '.join(CONFIGS)})")
    return chosen


def measure(bench):
    bench.note(f"train says of tiny: {description(bench)}")
    precisions = dict.fromkeys([fast_precision(bench), "float32"])
    for config in configs(bench):
        flops = flops_of_a_token(bench, config)
        updates = bench.options.updates or UPDATES[config]
        for precision in precisions:
            turns = {"heed": 0, "PyTorch": 0}

            def seed(name):
                turns[name] += 1
                return turns[name]

            programs = {"heed": lambda: heed(bench, config, updates, precision, seed("heed"))[0]}
            if bench.peers.has("torch"):
                programs["PyTorch"] = lambda: pytorch(bench, config, updates, precision, seed("PyTorch"))["tokens_per_second"]
            for row in bench.compare(f"{config}, {precision}", "tokens/s", programs, more=True):
                if precision in bench.peaks:
                    row.share = median(row.heed) * flops / 1e9 / bench.peaks[precision]
