#!/usr/bin/env python3
"""Writes tests/nn/reference/recurrent.json: outputs and gradients of PyTorch's nn.GRU and nn.LSTM (float64).

The file stores no inputs. Element i of array number j is 0.5 * sin(1 + 0.7 j + 0.91 i). The arrays are numbered: first
x [N, I], then the first states h [layers, B, W D] and, for an LSTM, c; with a context, the context [B, C], which PyTorch
reads behind the columns of x; then the parameters in the order of heed's layout. The C++ test computes the same numbers. The loss is the sum of all outputs (y, last h, last c), each element
multiplied by a number of the same formula; these arrays of factors are numbered from 100.

usage: make_recurrent_reference.py > tests/nn/reference/recurrent.json
"""
import json
import math

import torch

torch.set_default_dtype(torch.float64)
I, D, C, LAYERS = 3, 4, 2, 2
LENGTHS = [3, 5, 1, 4, 5]


def array(j, *shape):
    i = torch.arange(math.prod(shape), dtype=torch.float64)
    return (0.5 * torch.sin(1 + 0.7 * j + 0.91 * i)).reshape(shape)


def numbers(x):
    return [float(f"{v:.12g}") for v in x.detach().reshape(-1).tolist()]


def run(cell, bidirectional, with_context):
    lstm, ways, c = cell == "lstm", 2 if bidirectional else 1, C if with_context else 0
    module = (torch.nn.LSTM if lstm else torch.nn.GRU)(I + c, D, LAYERS, bidirectional=bidirectional)
    x = array(0, sum(LENGTHS), I).requires_grad_()
    # heed's states have the ways side by side in columns: [layers, B, W D]. PyTorch's: [layers W, B, D].
    states = [array(1 + k, LAYERS, len(LENGTHS), ways * D).requires_grad_() for k in range(2 if lstm else 1)]
    context = array(1 + len(states), len(LENGTHS), c).requires_grad_()

    def to_torch(state):
        return state.reshape(LAYERS, len(LENGTHS), ways, D).transpose(1, 2).reshape(LAYERS * ways, len(LENGTHS), D)

    def from_torch(state):
        return state.reshape(LAYERS, ways, len(LENGTHS), D).transpose(1, 2).reshape(LAYERS, len(LENGTHS), ways * D)

    # PyTorch's parameter and its range of columns for each parameter of heed
    parameters, number = {}, 1 + len(states) + (1 if with_context else 0)
    for layer in range(LAYERS):
        width = I if layer == 0 else ways * D
        for kind, name, begin, end in (("input/weight", "weight_ih", 0, width), ("input/bias", "bias_ih", 0, None),
                                       ("context/weight", "weight_ih", width, width + c),
                                       ("hidden/weight", "weight_hh", 0, D), ("hidden/bias", "bias_hh", 0, None)):
            if kind == "context/weight" and (layer > 0 or c == 0):
                continue
            for way, suffix in (("forward/", ""), ("backward/", "_reverse"))[:ways]:
                parameter = getattr(module, f"{name}_l{layer}{suffix}")
                columns = (slice(None),) if end is None else (slice(None), slice(begin, end))
                with torch.no_grad():
                    parameter[columns] = array(number, *parameter[columns].shape)
                number += 1
                parameters[f"layers/{layer}/{way if bidirectional else ''}{kind}"] = (parameter, columns)

    rows = torch.cat([x, torch.repeat_interleave(context, torch.tensor(LENGTHS), dim=0)], 1)
    packed = torch.nn.utils.rnn.pack_sequence(torch.split(rows, LENGTHS), enforce_sorted=False)
    first = [to_torch(s) for s in states]
    y, last = module(packed, tuple(first) if lstm else first[0])
    padded, _ = torch.nn.utils.rnn.pad_packed_sequence(y)
    outputs = [torch.cat([padded[:n, b] for b, n in enumerate(LENGTHS)])]
    outputs += [from_torch(s) for s in (last if lstm else [last])]
    loss = sum((out * array(100 + k, *out.shape)).sum() for k, out in enumerate(outputs))
    loss.backward()
    return {
        "cell": cell,
        "bidirectional": bidirectional,
        "context": c,
        "outputs": [numbers(out) for out in outputs],
        "input_gradients": [numbers(t.grad) for t in [x] + states + ([context] if with_context else [])],
        # for each parameter: the norm of its gradient, and the gradient's first elements
        "gradients": {name: {"norm": p.grad[columns].norm().item(), "first": numbers(p.grad[columns].reshape(-1)[:6])}
                      for name, (p, columns) in parameters.items()},
    }


cases = [run("gru", False, True), run("gru", True, False), run("lstm", False, False), run("lstm", True, True)]
print(json.dumps({"made_by": "scripts/reference/make_recurrent_reference.py", "torch": torch.__version__.split("+")[0],
                  "input": I, "width": D, "layers": LAYERS, "lengths": LENGTHS, "cases": cases},
                 separators=(",", ":")))
