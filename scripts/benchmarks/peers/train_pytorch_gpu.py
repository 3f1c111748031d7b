#!/usr/bin/env python3
"""Trains a Transformer with PyTorch on a GPU, as fast as we can make PyTorch run, and prints the speed as JSON.

SOURCE and TARGET hold ids between spaces, one sentence per line, as `tokenize --output-format id` writes them. The
model is that of train_pytorch.py. Measures for speed: all batches are on the GPU before the measurement, and each
shape is computed once; bfloat16 autocast; scaled_dot_product_attention; the fused Adam; torch.compile of each layer and
of the loss, unless the same program without it is faster. (Compiling the whole model at once takes minutes.) With --peak, measures products of large matrices instead.
"""

import argparse
import json
import math
import random
import time

import torch
import torch.nn.functional as F
from pairs import END, PADDING, START, make_batches, pad, read_ids, round_up, sinusoids
from torch import nn

MULTIPLE = 8  # lengths are padded to multiples of this


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?")
    parser.add_argument("target", nargs="?")
    parser.add_argument("--peak", action="store_true", help="print the TFLOP/s of products of large bfloat16 matrices")
    parser.add_argument("--pieces", type=int, help="of the vocabulary")
    for name in ("layers", "width", "heads", "ffn"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--batch-words", type=int, default=25000, help="padded target tokens of a batch")
    parser.add_argument("--updates", type=int, default=30, help="to measure, each on a batch of its own")
    parser.add_argument("--compile", choices=["yes", "no", "both"], default="both", help="use torch.compile; both: the faster of the two")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


options = arguments()
device = torch.device(options.device)


def finish():
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Batch:
    """The ids of a batch on the device. Lengths are padded to multiples of `MULTIPLE`."""

    def __init__(self, pairs):
        source_width, target_width = (round_up(max(len(pair[side]) for pair in pairs), MULTIPLE) for side in (0, 1))
        self.source = torch.tensor([pad(pair[0], source_width) for pair in pairs], device=device)
        self.keys = (self.source != PADDING)[:, None, None, :]
        self.decoder_input = torch.tensor([pad([START] + pair[1][:-1], target_width) for pair in pairs], device=device)
        self.wanted = torch.tensor([pad(pair[1], target_width) for pair in pairs], device=device)
        self.wanted[self.wanted == PADDING] = -1
        self.tokens = sum(len(pair[1]) for pair in pairs)


class Attention(nn.Module):
    def __init__(self, width, heads, cross):
        super().__init__()
        self.heads = heads
        self.project = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, 2 * width)] if cross else [nn.Linear(width, 3 * width)])
        self.output = nn.Linear(width, width)

    def split(self, x, parts):
        lines, length, _ = x.shape
        return x.view(lines, length, parts, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)

    def forward(self, x, keys=None, memory=None):
        """Attends to the keys that are not padding, or, without them, to the earlier positions."""
        if memory is None:
            query, key, value = self.split(self.project[0](x), 3)
        else:
            (query,), (key, value) = self.split(self.project[0](x), 1), self.split(self.project[1](memory), 2)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=keys, is_causal=keys is None)
        return self.output(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads, ffn, decoder):
        super().__init__()
        self.attention = nn.ModuleList(Attention(width, heads, cross) for cross in ([False, True] if decoder else [False]))
        self.into, self.out = nn.Linear(width, ffn), nn.Linear(ffn, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(len(self.attention) + 1))
        self.drop = nn.Dropout(options.dropout)

    def forward(self, x, keys, memory=None):
        x = self.norms[0](x + self.drop(self.attention[0](x, keys if memory is None else None)))
        if memory is not None:
            x = self.norms[1](x + self.drop(self.attention[1](x, keys, memory)))
        return self.norms[-1](x + self.drop(self.out(F.relu(self.into(x)))))


class Transformer(nn.Module):
    def __init__(self, longest):
        super().__init__()
        width = options.width
        self.embedding = nn.Parameter(torch.randn(options.pieces, width) * width**-0.5)
        self.encoder = nn.ModuleList(Layer(width, options.heads, options.ffn, False) for _ in range(options.layers))
        self.decoder = nn.ModuleList(Layer(width, options.heads, options.ffn, True) for _ in range(options.layers))
        self.register_buffer("positions", sinusoids(longest, width))
        self.drop = nn.Dropout(options.dropout)

    def embed(self, ids):
        return self.drop(F.embedding(ids, self.embedding) * math.sqrt(options.width) + self.positions[: ids.shape[1]])

    def forward(self, source, keys, decoder_input, wanted):
        """Returns the sum of the label-smoothed cross-entropy over the target tokens that are not padding."""
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory, keys)
        x = self.embed(decoder_input)
        for layer in self.decoder:
            x = layer(x, keys, memory)
        return self.loss(x, wanted)

    def loss(self, x, wanted):
        scores = F.linear(x.flatten(0, 1), self.embedding)
        return F.cross_entropy(scores.float(), wanted.flatten(), ignore_index=-1, reduction="sum", label_smoothing=0.1)


def train(batches, compiled):
    """Returns (target tokens per second, the last loss per token, parameters)."""
    torch.manual_seed(options.seed)
    model = Transformer(max(max(b.source.shape[1], b.decoder_input.shape[1]) for b in batches)).to(device)
    if compiled:
        for layer in [*model.encoder, *model.decoder]:
            layer.compile(dynamic=True)
        model.embed, model.loss = torch.compile(model.embed, dynamic=True), torch.compile(model.loss, dynamic=True)
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def update(batch):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = model(batch.source, batch.keys, batch.decoder_input, batch.wanted) / batch.tokens
        loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=True)
        return loss.detach()

    for batch in batches:
        update(batch)
    finish()
    start = time.perf_counter()
    for batch in batches:
        loss = update(batch)
    finish()
    seconds = time.perf_counter() - start
    return sum(batch.tokens for batch in batches) / seconds, loss.item(), sum(p.numel() for p in model.parameters())


def peak(size, products=20):
    """Returns the TFLOP/s of bfloat16 products of square matrices of random numbers."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        a @ b
    finish()
    start = time.perf_counter()
    for _ in range(products):
        a @ b
    finish()
    return products * 2 * size**3 / (time.perf_counter() - start) / 1e12


def main():
    if options.peak:
        size = 8192 if device.type == "cuda" else 512
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
        return print(json.dumps({"tflops": peak(size), "size": size, "device": name}))
    pairs = list(zip(read_ids(options.source), read_ids(options.target)))
    lists = make_batches(pairs, options.batch_words, MULTIPLE)
    random.Random(options.seed).shuffle(lists)
    batches = [Batch(pairs) for pairs in lists[: options.updates]]
    ways = {"yes": [True], "no": [False], "both": [False, True]}[options.compile]
    speed, loss, parameters, way = max((*train(batches, compiled), "compiled" if compiled else "eager") for compiled in ways)
    print(json.dumps({"tokens_per_second": speed, "loss": loss, "parameters": parameters, "way": way}))


main()
