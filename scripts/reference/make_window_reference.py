#!/usr/bin/env python3
"""Writes tests/nn/reference/windows.json: outputs and gradients of torchvision's ShiftedWindowAttention (Swin
Transformer) in float64, for several grids, window sizes and shifts, and the order in which torchvision's PatchMerging
concatenates tokens.

The file stores no inputs. Element i of tensor number j (see TENSORS) is 0.8 * sin(1 + 0.7 j + 0.91 i); the C++ test
computes the same numbers. Results are stored as integers: the number times 1e7, rounded.

usage: make_window_reference.py > tests/nn/reference/windows.json
"""
import json
import math

import torch
import torchvision
from torchvision.models.swin_transformer import PatchMerging, ShiftedWindowAttention

B, C, H = 2, 4, 2
TENSORS = ["x", "qkv/weight", "qkv/bias", "output/weight", "output/bias", "table", "output gradient"]
# Rows and columns of the grid, M, and the shift. In the case 4 x 4 with M = 4, and along the rows of 4 x 8, torchvision
# shifts nothing. The case 9 x 6 has windows of nine shapes.
CASES = [(4, 4, 4, 0), (4, 4, 4, 2), (4, 4, 2, 0), (4, 4, 2, 1), (8, 8, 4, 0), (8, 8, 4, 2), (8, 8, 2, 0), (8, 8, 2, 1),
         (4, 8, 4, 2), (9, 6, 3, 1)]
MERGED = (4, 6)


def tensor(name, *shape):
    """Returns the numbers of a tensor by the formula above."""
    i = torch.arange(math.prod(shape), dtype=torch.float64)
    return (0.8 * torch.sin(1 + 0.7 * TENSORS.index(name) + 0.91 * i)).reshape(shape)


def integers(x):
    return [round(v * 1e7) for v in x.detach().reshape(-1).tolist()]


def attention_case(rows, columns, window, shift):
    """Returns the results of one case."""
    layer = ShiftedWindowAttention(C, [window, window], [shift, shift], H).double()
    parameters = {"qkv/weight": layer.qkv.weight, "qkv/bias": layer.qkv.bias, "output/weight": layer.proj.weight,
                  "output/bias": layer.proj.bias, "table": layer.relative_position_bias_table}
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(tensor(name, *parameter.shape))
    x = tensor("x", B, rows, columns, C).requires_grad_(True)
    output = layer(x)
    (output * tensor("output gradient", *output.shape)).sum().backward()
    gradients = {"x": x.grad} | {name: parameter.grad for name, parameter in parameters.items()}
    return {"rows": rows, "columns": columns, "window": window, "shift": shift, "output": integers(output),
            "gradients": {name: integers(x) for name, x in gradients.items()}}


def merged_order(rows, columns):
    """Returns the numbers of a grid's tokens in the order in which PatchMerging concatenates the tokens."""
    layer = PatchMerging(1, norm_layer=lambda width: torch.nn.Identity())
    layer.reduction = torch.nn.Identity()
    return layer(torch.arange(rows * columns).reshape(1, rows, columns, 1)).reshape(-1).tolist()


def main():
    head = {"made_by": "scripts/reference/make_window_reference.py", "torch": torch.__version__.split("+")[0],
            "torchvision": torchvision.__version__.split("+")[0], "sizes": {"B": B, "C": C, "H": H},
            "tensors": TENSORS, "merging": {"rows": MERGED[0], "columns": MERGED[1], "order": merged_order(*MERGED)}}
    cases = ",\n".join(json.dumps(attention_case(*case), separators=(",", ":")) for case in CASES)
    print(f'{json.dumps(head)[:-1]}, "cases": [\n{cases}\n]}}')


if __name__ == "__main__":
    main()
