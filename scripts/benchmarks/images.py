"""Measures training on images: images per second for the same model and batch size. heed reads, crops and flips the
images of data/shapes; the peer has random images in memory."""

import json
import os

from .materials import ROOT
from .measure import run
from .training import WARM_UP, fast_precision, speed

BATCH = 128
# The options of heed and of the peer for each model, and the updates of a run.
MODELS = {
    "vit-tiny/4": (["--task", "vit-tiny/4"], ["vit", "--size", 32, "--patch", 4, "--width", 192, "--depth", 12, "--heads", 3, "--ffn", 768], 8),
    "vit, width 128": (
        ["--task", "vit-tiny/4", "--dim-emb", 128, "--enc-depth", 6, "--transformer-heads", 4, "--transformer-dim-ffn", 512],
        ["vit", "--size", 32, "--patch", 4, "--width", 128, "--depth", 6, "--heads", 4, "--ffn", 512],
        20,
    ),
    "swin-tiny/2": (
        ["--task", "swin-tiny/2"],
        ["swin", "--size", 32, "--patch", 2, "--width", 64, "--depths", 2, 6, 2, "--stage-heads", 2, 4, 8, "--window", 4],
        8,
    ),
    "vit-s/16": (["--task", "vit-s/16"], ["vit", "--size", 224, "--patch", 16, "--width", 384, "--depth", 12, "--heads", 6, "--ffn", 1536], 2),
}


def heed(bench, options, updates, precision, seed, batch):
    """Runs `train` and returns images per second."""
    model = bench.path("images.h5")
    lists = [os.path.join(ROOT, "data", "shapes", name) for name in ("train.images", "train.labels")]
    command = [bench.tool("train"), "-q", "-t", *lists, *options, "-m", model, "--mini-batch", batch, "--optimizer", "adamw", "--weight-decay", 0.05]
    more = ["--precision", precision, "--after", f"{updates + WARM_UP}u", "--disp-freq", "1u", "--log-format", "jsonl", "--lr-warmup", 1]
    done = run([str(part) for part in [*command, *more, "--seed", seed]])
    os.remove(model)
    events = [json.loads(line) for line in done.output.splitlines()]
    return speed([event for event in events if event["event"] == "update" and event["update"] >= WARM_UP])


def pytorch(bench, options, updates, precision, seed, batch):
    work = ["--updates", updates, "--threads", bench.threads, "--seed", seed, "--batch", batch, "--precision", precision]
    return json.loads(bench.peer("train_pytorch_images.py", *[str(part) for part in [*options, *work]]).output)["images_per_second"]


def measure(bench):
    for name, (own, theirs, updates) in list(MODELS.items())[: 1 if bench.quick else None]:
        batch = BATCH if "s/16" not in name else 16
        for precision in dict.fromkeys([fast_precision(bench), "float32"]):
            turns = {"heed": 0, "PyTorch": 0}

            def seed(program):
                turns[program] += 1
                return turns[program]

            programs = {"heed": lambda: heed(bench, own, updates, precision, seed("heed"), batch)}
            if bench.peers.has("torchvision"):
                programs["PyTorch"] = lambda: pytorch(bench, theirs, updates, precision, seed("PyTorch"), batch)
            bench.compare(f"{name}, {precision}", "images/s", programs, more=True)
