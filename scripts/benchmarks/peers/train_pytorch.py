#!/usr/bin/env python3
"""Trains a Transformer with PyTorch on the processor, as fast as we can make PyTorch run, and prints the speed as
JSON.

SOURCE and TARGET hold ids between spaces, one sentence per line, as `tokenize --output-format id` writes them. The
model is the Transformer of "Attention Is All You Need" with normalisation after each sublayer, one matrix for both
embeddings and the output layer, label smoothing 0.1 and Adam. Measures for speed: few different shapes, each of which
is computed once before the measurement; attention as two batched products; dropout from the bytes of 64-bit random
words; a loss that never holds the scores of a whole batch; the fused Adam; memory that is never returned to the
system.
"""

import argparse
import ctypes
import json
import math
import os
import random
import resource
import time

from pairs import END, PADDING, START, make_batches, pad, read_ids, round_up, sinusoids

# OneDNN caches kernels for more shapes than its default of 1024.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "20000")

MULTIPLE = 4  # lengths are padded to multiples of this
ROWS = 128  # the loss is computed for this many rows at a time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--pieces", type=int, required=True, help="of the vocabulary")
    for name in ("layers", "width", "heads", "ffn"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], required=True)
    parser.add_argument("--batch-words", type=int, default=4096, help="padded target tokens of a batch")
    parser.add_argument("--updates", type=int, default=20, help="to measure, each on a batch of its own")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop getting warm, and measuring, after that long each")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


options = arguments()
libc = ctypes.CDLL("libc.so.6")
libc.mallopt(-4, 0)  # M_MMAP_MAX: large tensors come from the heap
libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: freed memory stays in the heap

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

if options.threads:
    torch.set_num_threads(options.threads)
torch.set_flush_denormal(True)
BFLOAT16 = options.precision == "bfloat16"
with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
    AMX = "amx_bf16" in cpuinfo.read()
if not BFLOAT16 and not AMX:
    # Uses oneDNN for products. With AMX, oneDNN would round to bfloat16 inside; MKL multiplies in float32 there.
    torch.set_float32_matmul_precision("medium")


def padded(rows, lines, width):
    return torch.tensor([pad(row, width) for row in rows] + [[PADDING] * width] * (lines - len(rows)))


class Batch:
    """The ids of a batch, padded to one of few shapes: the number of lines to an eighth of a full batch, lengths to
    `MULTIPLE`."""

    def __init__(self, pairs, words):
        source_width, target_width = (round_up(max(len(pair[side]) for pair in pairs), MULTIPLE) for side in (0, 1))
        lines = round_up(len(pairs), max(words // target_width // 8, 1))
        self.source = padded([pair[0] for pair in pairs], lines, source_width)
        self.source[len(pairs) :, 0] = END  # each line has at least one key
        self.mask = (self.source == PADDING).float().mul(-1e9)[:, None, None, :]
        self.decoder_input = padded([[START] + pair[1][:-1] for pair in pairs], lines, target_width)
        wanted = padded([pair[1] for pair in pairs], lines, target_width).flatten()
        self.positions = (wanted != PADDING).nonzero().flatten()
        self.tokens = len(self.positions)
        self.positions = F.pad(self.positions, (0, round_up(self.tokens, ROWS) - self.tokens))
        self.wanted = wanted[self.positions]
        self.wanted[self.tokens :] = -1


class Dropout(torch.autograd.Function):
    """Dropout for eight elements from each random word: an element is kept when its byte is at least 256 p."""

    @staticmethod
    def forward(context, x, p):
        bound = round(256 * p)
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
        kept = (words.view(torch.uint8)[: x.numel()].view(x.shape) >= bound).to(x.dtype).mul_(256 / (256 - bound))
        context.save_for_backward(kept)
        return x * kept

    @staticmethod
    def backward(context, gradient):
        return gradient * context.saved_tensors[0], None


def drop(x):
    return Dropout.apply(x, options.dropout) if options.dropout else x


class SmoothedLoss(torch.autograd.Function):
    """The sum of the label-smoothed cross-entropy of hidden W^T, computed together with its gradients, a few rows at
    a time."""

    @staticmethod
    def forward(context, hidden, weight, wanted, smoothing):
        dtype = torch.bfloat16 if BFLOAT16 else torch.float32
        rows, low, pieces = hidden.to(dtype), weight.to(dtype), weight.shape[0]
        rows_gradient, weight_gradient, total = torch.empty_like(rows), torch.zeros_like(weight), 0.0
        for start in range(0, len(rows), ROWS):
            part, ids = rows[start : start + ROWS], wanted[start : start + ROWS, None]
            counts = (ids >= 0).float()
            ids = ids.clamp(min=0)
            scores = F.linear(part, low)
            p = torch.softmax(scores, 1, dtype=torch.float32)
            log_p = p.gather(1, ids).log()
            normaliser = scores.gather(1, ids).float() - log_p
            mean = scores.mean(1, keepdim=True, dtype=torch.float32) - normaliser
            total -= ((1 - smoothing) * log_p + smoothing * mean).mul(counts).sum().item()
            p.sub_(smoothing / pieces).scatter_add_(1, ids, torch.full_like(log_p, smoothing - 1))
            if start + ROWS >= len(rows):
                p.mul_(counts)
            p = p.to(dtype)
            torch.mm(p, low, out=rows_gradient[start : start + ROWS])
            if BFLOAT16:
                weight_gradient += p.t() @ part
            else:
                weight_gradient.addmm_(p.t(), part)
        context.save_for_backward(rows_gradient, weight_gradient)
        context.dtype = hidden.dtype
        return torch.tensor(total)

    @staticmethod
    def backward(context, gradient):
        rows_gradient, weight_gradient = context.saved_tensors
        return (rows_gradient * gradient).to(context.dtype), weight_gradient * gradient, None, None


class Attention(nn.Module):
    """Multi-head attention over keys and values of `memory`, or of the input itself; then one product computes
    queries, keys and values."""

    def __init__(self, width, heads, cross):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.project = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, 2 * width)] if cross else [nn.Linear(width, 3 * width)])
        self.output = nn.Linear(width, width)

    def split(self, x, parts):
        """Splits [lines, length, parts x width] into `parts` arrays [lines x heads, length, size]."""
        lines, length, _ = x.shape
        x = x.view(lines, length, parts, self.heads, self.size).permute(2, 0, 3, 1, 4)
        return x.reshape(parts, lines * self.heads, length, self.size).unbind(0)

    def forward(self, x, mask, memory=None):
        if memory is None:
            query, key, value = self.split(self.project[0](x), 3)
        else:
            (query,), (key, value) = self.split(self.project[0](x), 1), self.split(self.project[1](memory), 2)
        lines, length, width = x.shape
        scores = torch.bmm(query * self.size**-0.5, key.transpose(1, 2))
        scores = scores.view(lines, self.heads, length, -1) + mask.to(scores.dtype)
        mixed = torch.bmm(F.softmax(scores, -1).flatten(0, 1).to(value.dtype), value)
        return self.output(mixed.view(lines, self.heads, length, self.size).transpose(1, 2).reshape(lines, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads, ffn, decoder):
        super().__init__()
        self.attention = nn.ModuleList(Attention(width, heads, cross) for cross in ([False, True] if decoder else [False]))
        self.into, self.out = nn.Linear(width, ffn), nn.Linear(ffn, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(len(self.attention) + 1))

    def forward(self, x, mask, memory=None, memory_mask=None):
        x = self.norms[0](x + drop(self.attention[0](x, mask)))
        if memory is not None:
            x = self.norms[1](x + drop(self.attention[1](x, memory_mask, memory)))
        return self.norms[-1](x + drop(self.out(F.relu(self.into(x)))))


class Transformer(nn.Module):
    def __init__(self, pieces, layers, width, heads, ffn, longest):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(pieces, width) * width**-0.5)
        self.encoder = nn.ModuleList(Layer(width, heads, ffn, False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(width, heads, ffn, True) for _ in range(layers))
        self.register_buffer("positions", sinusoids(longest, width))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def embed(self, ids):
        width = self.embedding.shape[1]
        return drop(F.embedding(ids, self.embedding) * math.sqrt(width) + self.positions[: ids.shape[1]])

    def forward(self, batch):
        """Returns the hidden states [rows, width] of the target positions that are not padding."""
        memory = self.embed(batch.source)
        for layer in self.encoder:
            memory = layer(memory, batch.mask)
        x = self.embed(batch.decoder_input)
        length = x.shape[1]
        future = torch.full((length, length), -1e9).triu_(1)
        for layer in self.decoder:
            x = layer(x, future, memory, batch.mask)
        return x.flatten(0, 1).index_select(0, batch.positions)


class Trainer:
    def __init__(self, model):
        self.model, self.updates = model, 0
        self.adam = torch.optim.Adam(model.parameters(), lr=1, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def update(self, batch):
        self.updates += 1
        self.adam.param_groups[0]["lr"] = 1e-3 * min(self.updates / 400, 1)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=BFLOAT16):
            loss = SmoothedLoss.apply(self.model(batch), self.model.embedding, batch.wanted, 0.1)
        (loss / batch.tokens).backward()
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        return loss.item() / batch.tokens


def main():
    torch.manual_seed(options.seed)
    pairs = list(zip(read_ids(options.source), read_ids(options.target)))
    lists = make_batches(pairs, options.batch_words, MULTIPLE)
    random.Random(options.seed).shuffle(lists)
    batches = [Batch(pairs, options.batch_words) for pairs in lists[: options.updates]]
    longest = max(max(b.source.shape[1], b.decoder_input.shape[1]) for b in batches)
    model = Transformer(options.pieces, options.layers, options.width, options.heads, options.ffn, longest)
    trainer = Trainer(model)
    start = time.perf_counter()
    for batch in batches:  # compiles the kernels of all shapes
        first_loss = trainer.update(batch)
        if time.perf_counter() - start > options.seconds:
            break
    tokens, updates, start = 0, 0, time.perf_counter()
    while updates < options.updates and time.perf_counter() - start < options.seconds:
        batch = batches[updates % len(batches)]
        loss = trainer.update(batch)
        tokens, updates = tokens + batch.tokens, updates + 1
    print(
        json.dumps(
            {
                "tokens_per_second": tokens / (time.perf_counter() - start),
                "updates": updates,
                "tokens": tokens,
                "parameters": sum(p.numel() for p in model.parameters()),
                "first_loss": first_loss,
                "loss": loss,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
            }
        )
    )


main()
