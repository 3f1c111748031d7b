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
    functions = {"none": lambda z: z, "relu": F.relu, "gelu": F.gelu, "swish": F.silu, "tanh": torch.tanh}
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


def rotary(g):
    """Yields cases of rotary positions (Su et al. 2021): the first columns of x [N, C] hold heads of d columns, whose
    pairs of columns are complex numbers, which are multiplied by e^(i angle)."""
    offsets = [0, 3, 4, 9]
    for heads, d, columns in ((2, 4, 11), (1, 6, 6), (3, 2, 8)):
        positions = torch.tensor([p for b in range(3) for p in range(offsets[b + 1] - offsets[b])])
        angles = positions[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)

        def function(x, heads=heads, d=d, angles=angles):
            pairs = torch.view_as_complex(x[:, :heads * d].reshape(9, heads, d // 2, 2).contiguous())
            rotated = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)[:, None, :])
            return {"y": torch.cat([rotated.reshape(9, heads * d), x[:, heads * d:]], 1)}

        yield case(f"{heads} heads of {d} columns", {"x": draw(g, 9, columns)}, function, g,
                   {"heads": heads, "offsets": offsets})


def t5_buckets(distances, buckets, causal, most=128):
    """Returns the buckets of distances as _relative_position_bucket() of Hugging Face's T5 computes them, in float32."""
    first = torch.zeros_like(distances)
    if causal:
        steps = -torch.clamp(distances, max=0)
    else:
        buckets //= 2
        first = (distances > 0).long() * buckets
        steps = distances.abs()
    exact = buckets // 2
    logarithmic = exact + (torch.log(steps.float() / exact) / math.log(most / exact) * (buckets - exact)).long()
    return first + torch.where(steps < exact, steps, torch.clamp(logarithmic, max=buckets - 1))


def position_bias(g):
    """Yields attention with terms of positions (ALiBi, T5, Shaw et al. 2018), and T5's buckets."""
    for causal in (False, True):
        for buckets in (32, 12):
            distances = torch.arange(-150, 151)
            yield {"name": "buckets", "options": {"buckets": buckets, "causal": causal, "first": -150},
                   "expected": t5_buckets(distances, buckets, causal).tolist()}
    offsets = [0, 3, 4, 11]

    def attend(heads, causal, query, key, value, bias=None, keys=None, values=None):
        """`bias(distances)` returns [H, T, T]; `keys` and `values` are relative vectors [2k + 1, d]."""
        parts, d = [], query.shape[1] // heads
        for b in range(len(offsets) - 1):
            q, k, v = (x[offsets[b]:offsets[b + 1]].reshape(-1, heads, d).transpose(0, 1) for x in (query, key, value))
            place = torch.arange(q.shape[1])
            distances = place[None, :] - place[:, None]
            logits = q @ k.mT / math.sqrt(d)
            if bias is not None:
                logits = logits + bias(distances)
            if keys is not None:
                most = len(keys) // 2
                clipped = distances.clamp(-most, most) + most
                logits = logits + torch.einsum("hid,ijd->hij", q, keys[clipped]) / math.sqrt(d)
            if causal:
                logits = logits.masked_fill(distances > 0, -math.inf)
            p = logits.softmax(-1)
            out = p @ v
            if values is not None:
                out = out + torch.einsum("hij,ijd->hid", p, values[clipped])
            parts.append(out.transpose(0, 1).reshape(-1, query.shape[1]))
        return {"y": torch.cat(parts)}

    for causal in (False, True):
        heads = 3 if causal else 2
        d = 6 // heads
        qkv = {name: draw(g, 11, 6) for name in ("query", "key", "value")}
        options = {"heads": heads, "causal": causal, "offsets": offsets}
        slopes = torch.tensor([2.0 ** -4, 2.0 ** -8] + ([2.0 ** -2] if heads == 3 else []))
        yield case("alibi", qkv,
                   lambda query, key, value: attend(heads, causal, query, key, value,
                                                    lambda x: -slopes[:, None, None] * x.abs()), g, options)
        yield case("t5", {**qkv, "table": draw(g, 8, heads)},
                   lambda query, key, value, table: attend(
                       heads, causal, query, key, value,
                       lambda x: table[t5_buckets(x, 8, causal)].permute(2, 0, 1)), g, options)
        yield case("relative", {**qkv, "keys": draw(g, 5, d), "values": draw(g, 5, d)},
                   lambda query, key, value, keys, values: attend(heads, causal, query, key, value, None, keys, values),
                   g, options)


def additive_attention(g):
    """Yields cases of packed additive attention (see attention()): the scores are sum_c v_c tanh(q_c + k_c)."""
    for name, heads, causal, queries, keys in (("self", 2, False, [0, 3, 4], [0, 3, 4]),
                                               ("causal", 3, True, [0, 3, 5], [0, 3, 5]),
                                               ("cross", 2, False, [0, 2, 5], [0, 4, 7])):
        def function(query, key, value, scorer):
            parts = []
            for b in range(len(queries) - 1):
                def split(x, offsets):
                    part = x[offsets[b]:offsets[b + 1]]
                    return part.reshape(len(part), heads, -1).transpose(0, 1)
                q, k = split(query, queries), split(key, keys)
                scores = (torch.tanh(q[:, :, None, :] + k[:, None, :, :]) * scorer.reshape(heads, 1, 1, -1)).sum(-1)
                if causal:
                    hidden = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
                    scores = scores.masked_fill(hidden, -torch.inf)
                out = torch.softmax(scores, -1) @ split(value, keys)
                parts.append(out.transpose(0, 1).reshape(-1, query.shape[1]))
            return {"y": torch.cat(parts)}

        inputs = {"query": draw(g, queries[-1], 6), "key": draw(g, keys[-1], 6), "value": draw(g, keys[-1], 6),
                  "scorer": draw(g, 6)}
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


def consistent_cross_entropy(g):
    targets = [4, 0, 6, 4]
    for smoothing, consistency in ((0.0, 0.0), (0.1, 5.0)):

        def function(first, second, weight, bias, s=smoothing, alpha=consistency):
            z, y = [F.linear(x, weight, bias) for x in (first, second)], torch.tensor(targets)
            entropy = sum(F.cross_entropy(x, y, reduction="sum", label_smoothing=s) for x in z)
            p, q = (F.log_softmax(x, -1) for x in z)
            agreement = sum(F.kl_div(a, b, reduction="sum", log_target=True) for a, b in ((p, q), (q, p)))
            return {"y": entropy / 2 + alpha / 4 * agreement}

        inputs = {"first": draw(g, 4, 5), "second": draw(g, 4, 5), "weight": draw(g, 7, 5), "bias": draw(g, 7)}
        yield case(f"label smoothing {smoothing}, consistency {consistency}", inputs, function, g,
                   {"targets": targets, "label_smoothing": smoothing, "consistency": consistency})


def soft_cross_entropy(g):
    """Soft targets: the mean of what two teachers predict, the second of another width and without a bias."""
    targets = [4, 0, 6, 4]
    for smoothing, share in ((0.0, 1.0), (0.1, 0.7)):

        def function(hidden, weight, bias, first, first_weight, first_bias, second, second_weight, s=smoothing, w=share):
            q = (F.linear(first, first_weight, first_bias).softmax(-1) + F.linear(second, second_weight).softmax(-1)) / 2
            z, y = F.linear(hidden, weight, bias), torch.tensor(targets)
            return {"y": (1 - w) * F.cross_entropy(z, y, reduction="sum", label_smoothing=s) +
                         w * F.cross_entropy(z, q, reduction="sum")}

        inputs = {"hidden": draw(g, 4, 5), "weight": draw(g, 7, 5), "bias": draw(g, 7)}
        teachers = {"first": draw(g, 4, 5), "first_weight": draw(g, 7, 5), "first_bias": draw(g, 7),
                    "second": draw(g, 4, 6), "second_weight": draw(g, 7, 6)}
        yield case(f"label smoothing {smoothing}, share {share}", inputs | teachers, function, g,
                   {"targets": targets, "label_smoothing": smoothing, "share": share}, constant=teachers)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (linear, layer_norm, rms_norm, batch_norm, gated_unit, embedding, softmax, masked_softmax, matmul, adam,
                 attention, additive_attention, cross_entropy, consistent_cross_entropy, soft_cross_entropy, rotary,
                 position_bias):
        cases = list(make(torch.Generator().manual_seed(1)))
        text = {"made_by": "scripts/reference/make_torch_reference.py", "torch": torch.__version__.split("+")[0]}
        lines = ",\n".join(json.dumps(c, allow_nan=False) for c in cases)
        head = json.dumps(text)[:-1]
        (folder / f"{make.__name__}.json").write_text(f'{head}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
