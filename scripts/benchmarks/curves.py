"""Measures the loss of training in bfloat16 and in float32: several seeds of each, on the same text."""

import json
import os
from statistics import mean, stdev

from .measure import ProgramError, run

CONFIG, SEEDS, POINTS = "tiny", (1, 2, 3), 10


def curve(bench, precision, seed, updates):
    """Trains once and returns [(update, cross-entropy per word of the validation set)]."""
    model = bench.path("curve.h5")
    step = max(1, updates // POINTS)
    more = ["--precision", precision, "--seed", seed, "--after", f"{updates}u", "-l", 0.003, "--lr-warmup", max(1, updates // 5)]
    more += ["--valid-sets", *bench.materials.validation, "--valid-freq", f"{step}u", "--valid-metrics", "ce-mean-words"]
    done = run(bench.materials.train_command(CONFIG, *more, "--mini-batch-words", 4096, "--log-format", "jsonl", model=model))
    os.remove(model)
    events = [json.loads(line) for line in done.output.splitlines()]
    points = [(event["update"], event["ce-mean-words"]) for event in events if event["event"] == "validation"]
    if len(points) < 2:
        raise ProgramError("train reports no validation")
    return points


def measure(bench):
    updates = bench.options.updates or (50 if bench.quick else 600)
    curves = {"float32": [], "bfloat16": []}
    for seed in SEEDS:
        for precision in curves:
            curves[precision].append(curve(bench, precision, seed, updates))
            bench.say(f"curves: {precision}, seed {seed}: {curves[precision][-1][-1][1]:.4f}")
    lines = ["| update | float32 | spread of seeds | bfloat16 | difference |", "|---:|---:|---:|---:|---:|"]
    for at in zip(*(points for runs in curves.values() for points in runs), strict=True):
        exact, rounded = [loss for _, loss in at[: len(SEEDS)]], [loss for _, loss in at[len(SEEDS) :]]
        lines.append(f"| {at[0][0]} | {mean(exact):.4f} | {stdev(exact):.4f} | {mean(rounded):.4f} | {mean(rounded) - mean(exact):+.4f} |")
    bench.note(f"Cross-entropy of a validation word, {CONFIG}, means of {len(SEEDS)} seeds:\n\n" + "\n".join(lines))
    bench.panels.append((f"Validation loss, {CONFIG}", "updates", "cross-entropy of a word", curves))
