"""Measures training: target tokens per second for the same pairs, model and batch size, dropout and Adam included."""

import json
import os
import re
from functools import cache
from statistics import median

from .materials import CONFIGS
from .measure import ProgramError, run

UPDATES = {"tiny": 20, "mini": 10, "small": 5, "base": 4, "big": 2}
WARM_UP = 3  # the first updates allocate memory and are not measured
WORDS = 4096


def train(bench, config, after, precision, seed=1, words=WORDS):
    """Runs `train` and returns (its records of the updates, peak memory in MB)."""
    model = bench.path("speed.h5")
    more = ["--precision", precision, "--mini-batch-words", words, "--after", after, "--disp-freq", "1u"]
    done = run(bench.materials.train_command(config, *more, "--seed", seed, "--log-format", "jsonl", model=model))
    os.remove(model)
    events = [json.loads(line) for line in done.output.splitlines()]
    return [event for event in events if event["event"] == "update"], done.peak_mb


def speed(updates):
    """Returns target tokens per second from the end of the first update to the end of the last."""
    first, last = updates[0], updates[-1]
    return (last["target_tokens"] - first["target_tokens"]) / (last["seconds"] - first["seconds"])


def heed(bench, config, updates, precision, seed=1, words=WORDS):
    """Runs `train` and returns (target tokens per second, peak memory in MB)."""
    said, peak = train(bench, config, f"{updates + WARM_UP}u", precision, seed, words)
    return speed([update for update in said if update["update"] >= WARM_UP]), peak


def first_epoch(bench, config, precision):
    """Adds a row with the speed of the first epoch, whose batches have new shapes, beside the speed of the second
    epoch."""
    said, _ = train(bench, config, "2e", precision)
    epochs = [[update for update in said if first < update["epoch"] <= first + 1] for first in (0, 1)]
    first, second = epochs[0][-1]["target_tokens"] / epochs[0][-1]["seconds"], speed(epochs[1])
    row = bench.add(f"{config}, {precision}, first epoch", "tokens/s", [first])
    row.note = f"second epoch {second:,.0f}: the first has {100 * first / second:.0f} % of its speed"


def pytorch(bench, config, updates, precision, seed=1, seconds=60):
    """Trains the same pairs with PyTorch and returns what the program printed."""
    c = CONFIGS[config]
    sizes = ["--layers", c.layers, "--width", c.width, "--heads", c.heads, "--ffn", c.ffn, "--dropout", c.dropout]
    work = ["--updates", updates, "--seconds", seconds, "--batch-words", WORDS, "--threads", bench.threads, "--seed", seed]
    pieces = ["--pieces", bench.materials.pieces]
    return json.loads(bench.peer("train_pytorch.py", *bench.materials.ids, *pieces, *sizes, *work, "--precision", precision).output)


@cache
def description(bench):
    """Returns what `train --dry-run` prints about a tiny model and the automatic choices."""
    said = run([part for part in bench.materials.train_command("tiny", "--dry-run") if part != "-q"])
    found = re.search(r"Transformer with .* parameters .*(?:float32|bfloat16) on .*", said.output + said.messages)
    if not found:
        raise ProgramError("train --dry-run does not say which precision it takes")
    return found[0]


def fast_precision(bench):
    """Returns the precision that `train` chooses automatically."""
    return "bfloat16" if "bfloat16" in description(bench) else "float32"


def flops_of_a_token(bench, config):
    """Returns the floating-point operations per target token in training, forward and backward pass, without
    padding."""
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
                row.quote = (config, precision, "")
                if precision in bench.peaks:
                    row.share = median(row.heed) * flops / 1e9 / bench.peaks[precision]
    if not bench.quick:
        first_epoch(bench, "tiny", fast_precision(bench))
