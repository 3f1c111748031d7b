#!/usr/bin/env python3
"""Writes tests/ops/reference/*.json: inputs, outputs and gradients of heed's ops as PyTorch computes them in double.

Run by hand with PyTorch installed, from the top of the repository:
    python3 scripts/reference/make_torch_reference.py tests/ops/reference
Each file: {"torch": version, "cases": [{"name", "options", "inputs", "outputs", "output_gradients", "gradients"}]}; a
tensor is {"shape", "data"}. The gradients are those of the sum of outputs times output_gradients.
"""

import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def draw(generator, *shape, scale=1.0):
    """Returns normally distributed numbers with four decimals, which are short in the file and nearly exact as
    float."""
    return (torch.randn(shape, generator=generator) * scale * 1e4).round() / 1e4


def tensor(x):
    return {"shape": list(x.shape), "data": [float(f"{v:.10g}") for v in x.detach().reshape(-1).tolist()]}


def case(name, inputs, function, generator, options=None, constant=()):
    """Returns one case: `function(**inputs)` returns a dictionary of outputs; all inputs except `constant` get
    gradients."""
    leaves = {k: v.clone().requires_grad_(k not in constant) for k, v in inputs.items()}
    outputs = function(**leaves)
    weights = {k: draw(generator, *v.shape) for k, v in outputs.items()}
    sum((outputs[k] * weights[k]).sum() for k in outputs).backward()
    return {
        "name": name,
        "options": options or {},
        "inputs": {k: tensor(v) for k, v in inputs.items()},
        "outputs": {k: tensor(v) for k, v in outputs.items()},
        "output_gradients": {k: tensor(v) for k, v in weights.items()},
        "gradients": {k: tensor(v.grad) for k, v in leaves.items() if v.grad is not None},
    }


def linear(g):
    functions = {"none": lambda z: z, "relu": F.relu, "gelu": F.gelu, "swish": F.silu}
    inputs = {"x": draw(g, 4, 5), "weight": draw(g, 7, 5), "bias": draw(g, 7)}
    for name, f in functions.items():
        yield case(name, inputs, lambda x, weight, bias, f=f: {"y": f(F.linear(x, weight, bias))}, g)


def layer_norm(g):
    for n, d, epsilon in ((3, 7, 1e-5), (2, 64, 1e-6), (1, 1, 1e-5)):
        inputs = {"x": draw(g, n, d, scale=2), "scale": draw(g, d), "bias": draw(g, d)}
        yield case(f"{n}x{d}", inputs,
                   lambda x, scale, bias, d=d, e=epsilon: {"y": F.layer_norm(x, (d,), scale, bias, e)}, g,
                   {"epsilon": epsilon})


def rms_norm(g):
    for n, d, epsilon in ((3, 7, 1e-5), (2, 64, 1e-6), (1, 1, 1e-5)):
        inputs = {"x": draw(g, n, d, scale=2), "scale": draw(g, d)}
        yield case(f"{n}x{d}", inputs, lambda x, scale, d=d, e=epsilon: {"y": F.rms_norm(x, (d,), scale, e)}, g,
                   {"epsilon": epsilon})


def batch_norm(g):
    """Yields cases of one training step of BatchNorm1d: also its running averages, and what it computes of the same rows
    in inference with these averages."""
    for n, d, epsilon in ((5, 7, 1e-5), (2, 33, 1e-3)):
        inputs = {"x": draw(g, n, d, scale=2) + 1, "scale": draw(g, d), "bias": draw(g, d)}
        layer = torch.nn.BatchNorm1d(d, eps=epsilon)
        with torch.no_grad():
            layer.running_mean.copy_(draw(g, d))
            layer.running_var.copy_(draw(g, d) ** 2)
        before = {"mean": tensor(layer.running_mean), "variance": tensor(layer.running_var)}

        def function(x, scale, bias, layer=layer, e=epsilon):
            return {"y": F.batch_norm(x, layer.running_mean, layer.running_var, scale, bias, True, 0.1, e)}

        out = case(f"{n}x{d}", inputs, function, g, {"epsilon": epsilon, "momentum": 0.1, "before": before})
        inference = F.batch_norm(inputs["x"], layer.running_mean, layer.running_var, inputs["scale"], inputs["bias"],
                                 False, 0.1, epsilon)
        out["options"]["after"] = {"mean": tensor(layer.running_mean), "variance": tensor(layer.running_var)}
        out["options"]["inference"] = tensor(inference)
        yield out


def gated_unit(g):
    """Yields cases of the gated linear units of Shazeer 2020; x holds the gate before the value."""
    functions = {"swish": F.silu, "gelu": F.gelu}
    for name, f in functions.items():
        for n, d in ((3, 5), (2, 33)):
            def function(x, f=f):
                gate, value = x.chunk(2, dim=1)
                return {"y": f(gate) * value}

            yield case(f"{name} {n}x{d}", {"x": draw(g, n, 2 * d, scale=2)}, function, g, {"activation": name})


def embedding(g):
    ids, positions = [3, 0, 3, 5, 3], [0, 1, 2, 0, 1]
    inputs = {"weight": draw(g, 6, 5), "position_table": draw(g, 4, 5)}

    def function(weight, position_table):
        return {"y": F.embedding(torch.tensor(ids), weight) * math.sqrt(5) + position_table[torch.tensor(positions)]}

    yield case("learned positions", inputs, function, g, {"ids": ids, "positions": positions, "scale": math.sqrt(5)})


def softmax(g):
    inputs = {"x": torch.cat([draw(g, 2, 9), draw(g, 1, 9, scale=30)])}
    yield case("softmax", inputs, lambda x: {"y": x.softmax(-1)}, g)
    yield case("log_softmax", inputs, lambda x: {"y": x.log_softmax(-1)}, g)


def masked_softmax(g):
    x = draw(g, 2, 3, 5)
    lengths = {"lengths 1-D": torch.tensor([2, 5]), "lengths 2-D": torch.tensor([[1, 2, 3], [5, 4, 1]])}
    for name, valid in lengths.items():
        limit = valid.reshape(2, -1, 1).expand(2, 3, 1)
        hidden = torch.arange(5).reshape(1, 1, 5) >= limit
        yield case(name, {"x": x}, lambda x, m=hidden: {"y": x.masked_fill(m, -math.inf).softmax(-1)}, g,
                   {"valid_lengths": valid.reshape(-1).tolist()})
    padding = torch.tensor([[0, 0, 1, 0, 1], [1, 0, 0, 0, 0]])
    hidden = torch.triu(torch.ones(3, 5, dtype=torch.int64), diagonal=2)
    additive = draw(g, 3, 5)
    yield case("all masks", {"x": x},
               lambda x: {"y": (x + additive).masked_fill(padding.reshape(2, 1, 5).bool() | hidden.bool(),
                                                          -math.inf).softmax(-1)}, g,
               {"key_padding": padding.reshape(-1).tolist(), "hidden": hidden.reshape(-1).tolist(),
                "additive": tensor(additive)})


def matmul(g):
    yield case("batched", {"a": draw(g, 2, 3, 4), "b": draw(g, 2, 4, 5)}, lambda a, b: {"y": a @ b}, g)
    yield case("transposed", {"a": draw(g, 3, 4), "b": draw(g, 5, 4)}, lambda a, b: {"y": a @ b.mT}, g)


def adam(g):
    n = 6
    gradients = [draw(g, n) for _ in range(3)]
    for name, kind, decay in (("adam", torch.optim.Adam, 0.0), ("adam with decay", torch.optim.Adam, 0.1),
                              ("adamw", torch.optim.AdamW, 0.1)):
        start = draw(g, n)
        w = start.clone().requires_grad_()
        optimizer = kind([w], lr=0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=decay)
        values = []
        for gradient in gradients:
            w.grad = gradient.clone()
            optimizer.step()
            values.append(tensor(w))
        yield {"name": name, "inputs": {"value": tensor(start)}, "steps": values,
               "options": {"learning_rate": 0.01, "weight_decay": decay, "decoupled": kind is torch.optim.AdamW,
                           "gradients": [tensor(x) for x in gradients]}}


def attention(g):
    """Yields cases of packed attention, with sequences one after the other: query [Nq, D], key and value [Nk, D]."""
    for name, heads, causal, queries, keys in (("self", 2, False, [0, 3, 4, 9], [0, 3, 4, 9]),
                                               ("causal", 3, True, [0, 3, 4, 9], [0, 3, 4, 9]),
                                               ("cross", 2, False, [0, 2, 5], [0, 4, 7])):
        def function(query, key, value):
            parts = []
            for b in range(len(queries) - 1):
                def split(x, offsets):
                    part = x[offsets[b]:offsets[b + 1]]
                    return part.reshape(len(part), heads, -1).transpose(0, 1)
                out = F.scaled_dot_product_attention(split(query, queries), split(key, keys), split(value, keys),
                                                     is_causal=causal)
                parts.append(out.transpose(0, 1).reshape(-1, query.shape[1]))
            return {"y": torch.cat(parts)}

        inputs = {"query": draw(g, queries[-1], 6), "key": draw(g, keys[-1], 6), "value": draw(g, keys[-1], 6)}
        yield case(name, inputs, function, g, {"heads": heads, "causal": causal, "queries": queries, "keys": keys})


def cross_entropy(g):
    targets = [4, 0, 6, 4]
    for smoothing in (0.0, 0.1):
        inputs = {"hidden": draw(g, 4, 5), "weight": draw(g, 7, 5), "bias": draw(g, 7)}
        yield case(f"label smoothing {smoothing}", inputs,
                   lambda hidden, weight, bias, s=smoothing: {
                       "y": F.cross_entropy(F.linear(hidden, weight, bias), torch.tensor(targets), reduction="sum",
                                            label_smoothing=s)}, g,
                   {"targets": targets, "label_smoothing": smoothing})


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (linear, layer_norm, rms_norm, batch_norm, gated_unit, embedding, softmax, masked_softmax, matmul, adam, attention,
                 cross_entropy):
        cases = list(make(torch.Generator().manual_seed(1)))
        text = {"made_by": "scripts/reference/make_torch_reference.py", "torch": torch.__version__.split("+")[0]}
        lines = ",\n".join(json.dumps(c, allow_nan=False) for c in cases)
        head = json.dumps(text)[:-1]
        (folder / f"{make.__name__}.json").write_text(f'{head}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
