#!/usr/bin/env python3
"""Trains supar's CRF constituency parser (Zhang et al. 2020; words and characters, no pre-trained vectors) for a while,
and parses with it.

usage: train_supar.py TRAIN.trees DEV.trees PARSED --minutes M [--threads N] [--seed S]

Trees stand in the Penn Treebank's brackets, one a line. Traces and function tags are removed, as heed does. At the end,
the parser reads DEV's words and writes PARSED with the parts of speech of DEV, because supar predicts none; so scores
must take the tags from the gold trees. Needs supar 1.1.4.
"""

import argparse
import gzip
import re
import sys
import time

import nltk
import torch
from supar import CRFConstituencyParser
from supar.utils import Dataset
from supar.utils.logging import init_logger, logger
from torch.optim import Adam
from torch.optim.lr_scheduler import ExponentialLR


def clean(tree):
    """Returns the tree without traces and function tags, or None if nothing is left."""
    if not isinstance(tree[0], nltk.Tree):
        return None if tree.label() == "-NONE-" else tree
    label = tree.label() if tree.label().startswith("-") else re.split(r"[-=]", tree.label())[0]
    children = [child for child in map(clean, tree) if child is not None]
    return nltk.Tree(label, children) if children else None


def write_cleaned(path, to):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as lines, open(to, "w", encoding="utf-8") as out:
        for line in lines:
            tree = clean(nltk.Tree.fromstring(line))
            if tree.label() in ("", "TOP", "ROOT", "S1") and len(tree) == 1 and isinstance(tree[0][0], nltk.Tree):
                tree = tree[0]
            print(nltk.Tree("TOP", [tree]).pformat(margin=sys.maxsize), file=out)
    return to


class Timed:
    """A loader that ends when the time is up."""

    def __init__(self, loader, end):
        self.loader, self.end, self.batches = loader, end, 0

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            if time.monotonic() > self.end:
                return
            self.batches += 1
            yield batch


def predict(parser, path):
    """Returns the trees of the sentences of a file, in the file's order."""
    parser.transform.eval()
    parser.args.update({"prob": False, "mbr": True})
    data = Dataset(parser.transform, path)
    data.build(5000, 8)
    data.trees = parser._predict(data.loader)["trees"]  # supar hands them out to the sentences
    return [sentence.trees for sentence in data.sentences]


def main():
    options = argparse.ArgumentParser()
    for name in ("train", "dev", "parsed"):
        options.add_argument(name)
    options.add_argument("--minutes", type=float, required=True)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    train = write_cleaned(options.train, options.parsed + ".train")
    dev = write_cleaned(options.dev, options.parsed + ".dev")
    init_logger(logger, verbose=False)

    start = time.monotonic()
    parser = CRFConstituencyParser.build(options.parsed + ".model", min_freq=2, build=True, train=train, dev=dev, test=dev, encoder="lstm",
                                         feat=["char"], embed=None, unk="unk", mbr=True, clip=5.0, update_steps=1)
    parser.args.update({"mbr": True, "clip": 5.0, "update_steps": 1})
    parser.transform.train()
    data = Dataset(parser.transform, train).build(5000, 32, True)
    parser.optimizer = Adam(parser.model.parameters(), 2e-3, (0.9, 0.9), 1e-12)
    parser.scheduler = ExponentialLR(parser.optimizer, 0.75 ** (1 / 5000))
    print(f"{sum(p.numel() for p in parser.model.parameters()):,} parameters, {len(data.loader)} batches an epoch, "
          f"loaded in {time.monotonic() - start:.0f} s", flush=True)
    begin = time.monotonic()
    loader = Timed(data.loader, begin + 60 * options.minutes)
    while time.monotonic() < loader.end:
        parser._train(loader)
        print(f"{loader.batches / len(data.loader):.2f} epochs after {(time.monotonic() - begin) / 60:.1f} minutes", flush=True)

    begin = time.monotonic()
    found = predict(parser, dev)
    seconds = time.monotonic() - begin
    with open(options.parsed, "w", encoding="utf-8") as out:
        for tree in found:
            print(tree.pformat(margin=sys.maxsize), file=out)
    print(f"parsed {len(found):,} sentences in {seconds:.1f} s: {len(found) / seconds:.1f} a second")


if __name__ == "__main__":
    main()
