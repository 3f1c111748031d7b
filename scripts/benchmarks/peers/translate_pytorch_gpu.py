#!/usr/bin/env python3
"""Translates with PyTorch on a GPU, as fast as we can make PyTorch run, and prints the speed as JSON.

SOURCE holds ids between spaces, one sentence per line. The model has random weights, and each translation has --length
tokens, so that only the speed has a meaning. Measures for speed: all weights and states are bfloat16; keys and values
are kept, in memory that is reserved at the start; the hypotheses of a sentence share the keys and values of the
source; the best tokens are found on the GPU, which the host never waits for within a batch; sentences are sorted by
length; a step is compiled with CUDA graphs (torch.compile), unless the same program without it is faster.
"""

import argparse
import json
import math
import time

import torch
import torch.nn.functional as F
from pairs import PADDING, START, pad, read_ids, round_up
from torch import nn


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--pieces", type=int, required=True, help="of the vocabulary")
    for name in ("layers", "width", "heads", "ffn"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--length", type=int, default=30, help="tokens of a translation")
    parser.add_argument("--batch", type=int, nargs="+", default=[1024], help="sentences of a batch; of several numbers, the fastest")
    parser.add_argument("--compile", choices=["yes", "no", "both"], default="both", help="use torch.compile; both: the faster of the two")
    parser.add_argument("--device", default="cuda:0")
    return parser.parse_args()


options = arguments()
device = torch.device(options.device)
dtype = torch.bfloat16


def finish():
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def split(x, parts):
    """Splits [lines, length, parts x width] into `parts` arrays [lines, heads, length, size]."""
    lines, length, _ = x.shape
    return x.view(lines, length, parts, options.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)


def joined(x):
    return x.transpose(1, 2).flatten(2)


class Layer(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        width = options.width
        self.qkv, self.mixed = nn.Linear(width, 3 * width), nn.Linear(width, width)
        if decoder:
            self.query, self.memory, self.cross = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.into, self.out = nn.Linear(width, options.ffn), nn.Linear(options.ffn, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if decoder else 2))

    def feed_forward(self, x):
        return self.norms[-1](x + self.out(F.relu(self.into(x))))

    def encode(self, x, keys):
        query, key, value = split(self.qkv(x), 3)
        x = self.norms[0](x + self.mixed(joined(F.scaled_dot_product_attention(query, key, value, attn_mask=keys))))
        return self.feed_forward(x)

    def step(self, x, at, cache, seen, memory, keys, lines):
        """Reads one token of each row. `cache` holds the keys and values of all positions [2, rows, heads, length, size],
        `at` is the position, and `seen` says which positions are there."""
        query, key, value = split(self.qkv(x), 3)
        cache[0].index_copy_(2, at, key)
        cache[1].index_copy_(2, at, value)
        x = self.norms[0](x + self.mixed(joined(F.scaled_dot_product_attention(query, cache[0], cache[1], attn_mask=seen))))
        # The hypotheses of a sentence are queries of one line.
        (query,) = split(self.query(x).view(lines, -1, options.width), 1)
        mixed = joined(F.scaled_dot_product_attention(query, memory[0], memory[1], attn_mask=keys)).view(x.shape)
        return self.feed_forward(self.norms[1](x + self.cross(mixed)))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(options.pieces, options.width) * options.width**-0.5)
        self.encoder = nn.ModuleList(Layer(False) for _ in range(options.layers))
        self.decoder = nn.ModuleList(Layer(True) for _ in range(options.layers))
        self.positions = nn.Parameter(torch.randn(512, options.width))

    def embed(self, ids, positions):
        return F.embedding(ids, self.embedding) * math.sqrt(options.width) + positions

    def encode(self, source, keys):
        x = self.embed(source, self.positions[: source.shape[1]])
        for layer in self.encoder:
            x = layer.encode(x, keys)
        return [split(layer.memory(x), 2) for layer in self.decoder]

    def step(self, tokens, sums, at, caches, seen, memories, keys):
        """Reads the last tokens [lines, beam] of the hypotheses, whose log-probabilities are `sums`. Returns the best
        continuations: tokens, sums and the rows that they continue."""
        lines, beam = tokens.shape
        x = self.embed(tokens.view(-1, 1), self.positions.index_select(0, at))
        for layer, cache, memory in zip(self.decoder, caches, memories):
            x = layer.step(x, at, cache, seen, memory, keys, lines)
        scores = F.linear(x[:, 0], self.embedding).float().log_softmax(1).view(lines, beam, -1) + sums[:, :, None]
        sums, best = scores.flatten(1).topk(beam)
        rows = best // options.pieces + torch.arange(lines, device=device)[:, None] * beam
        return best % options.pieces, sums, rows.flatten()


def reorder(caches, rows):
    for cache in caches:
        cache.copy_(cache.index_select(1, rows))


@torch.inference_mode()
def translate(model, step, batch):
    """Translates a batch of sentences, and returns the tokens of the best hypotheses [lines, length]."""
    lines, beam = len(batch), options.beam
    width = round_up(max(len(row) for row in batch), 8)
    source = torch.tensor([pad(row, width) for row in batch], device=device)
    keys = (source != PADDING)[:, None, None, :]
    memories = model.encode(source, keys)
    size = options.width // options.heads
    caches = [torch.zeros(2, lines * beam, options.heads, options.length, size, device=device, dtype=dtype) for _ in model.decoder]
    tokens = torch.full((lines, beam), START, device=device)
    sums = torch.full((lines, beam), -1e9, device=device)
    sums[:, 0] = 0
    chosen = torch.zeros(lines, beam, options.length, dtype=torch.long, device=device)
    places = torch.arange(options.length, device=device)
    for t in range(options.length):
        tokens, sums, rows = step(tokens, sums, places[t : t + 1], caches, (places <= t)[None, None, None, :], memories, keys)
        tokens, sums, rows = tokens.clone(), sums.clone(), rows.clone()  # a CUDA graph writes to the same memory again
        if beam > 1:
            reorder(caches, rows)
            chosen = chosen.view(-1, options.length).index_select(0, rows).view(chosen.shape)
        chosen[:, :, t] = tokens
    return chosen[:, 0].cpu()


def speed(model, step, sentences, size):
    batches = [sentences[at : at + size] for at in range(0, len(sentences), size)]
    for batch in batches:  # compiles the kernels of all shapes
        translate(model, step, batch)
    finish()
    start = time.perf_counter()
    for batch in batches:
        translate(model, step, batch)
    finish()
    return len(sentences) * options.length / (time.perf_counter() - start)


def main():
    torch.manual_seed(1)
    model = Transformer().to(device, dtype).eval()
    sentences = sorted(read_ids(options.source), key=len, reverse=True)
    found = []
    for compiled in {"yes": [True], "no": [False], "both": [False, True]}[options.compile]:
        step = torch.compile(model.step, mode="reduce-overhead" if device.type == "cuda" else "default") if compiled else model.step
        for size in options.batch:
            found.append((speed(model, step, sentences, size), size, "compiled" if compiled else "eager"))
    rate, size, way = max(found)
    print(json.dumps({"pieces_per_second": rate, "batch": size, "way": way}))


main()
