#!/usr/bin/env python3
"""Writes tests/run/reference/kernel_width.json: the width of a Gaussian kernel as PyTorch (float64) learns it.

The model is the textbook's (Zhang et al., Dive into Deep Learning, "Attention Pooling"): each of 12 pairs is predicted
from the other pairs, by attention weights softmax(-((x - x_i) w)^2 / 2), and the mean of the squared errors is the loss.
The file holds w and the loss before the first update and after each update.

usage: make_kernel_width_reference.py > tests/run/reference/kernel_width.json
"""
import json
import math

import torch

torch.set_default_dtype(torch.float64)

X = [0.1, 0.45, 0.5, 1.2, 1.55, 2.0, 2.6, 2.65, 3.3, 4.0, 4.4, 4.9]
NOISE = [0.2, -0.4, 0.1, 0.5, -0.3, 0.0, 0.35, -0.6, 0.15, -0.1, 0.4, -0.25]
STEPS = 25
CASES = {
    "adam": (1.0, {"rate": 0.1}, lambda p: torch.optim.Adam(p, lr=0.1, betas=(0.9, 0.98), eps=1e-9)),
    "adam, other parameters": (2.5, {"rate": 0.3, "params": [0.8, 0.999, 1e-6]},
                               lambda p: torch.optim.Adam(p, lr=0.3, betas=(0.8, 0.999), eps=1e-6)),
    "sgd": (1.0, {"rate": 0.5}, lambda p: torch.optim.SGD(p, lr=0.5)),
    "sgd, momentum": (0.4, {"rate": 0.2, "params": [0.9]}, lambda p: torch.optim.SGD(p, lr=0.2, momentum=0.9)),
}


def others(x):
    """Returns the matrix [N, N - 1] whose row i holds all elements of x except element i."""
    n = len(x)
    return x.repeat(n, 1)[(1 - torch.eye(n)).bool()].reshape(n, n - 1)


def main():
    x = torch.tensor(X)
    y = torch.tensor([round(2 * math.sin(v) + v**0.8 + e, 6) for v, e in zip(X, NOISE)])
    keys, values = others(x), others(y)
    cases = []
    for name, (start, options, make) in CASES.items():
        w = torch.tensor([start], requires_grad=True)
        optimizer = make([w])
        steps = []
        for _ in range(STEPS + 1):
            optimizer.zero_grad()
            weights = torch.softmax(-(((x.unsqueeze(1) - keys) * w) ** 2) / 2, dim=1)
            predicted = torch.bmm(weights.unsqueeze(1), values.unsqueeze(-1)).reshape(-1)
            loss = torch.nn.functional.mse_loss(predicted, y)
            steps.append([w.item(), loss.item()])
            loss.backward()
            optimizer.step()
        cases.append({"name": name, "optimizer": name.split(",")[0], "start": start, **options, "steps": steps})
    print(json.dumps({"torch": torch.__version__, "x": X, "y": y.tolist(), "cases": cases}, separators=(",", ":"))
          .replace('{"name"', '\n{"name"'))


main()
