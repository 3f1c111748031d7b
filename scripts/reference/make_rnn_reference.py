#!/usr/bin/env python3
"""Writes tests/model/reference/rnn.json: outputs and gradients of small recurrent models in PyTorch (float64).

The models are composed of torch.nn.GRU and torch.nn.LSTM for whole layers, and of nn.GRUCell and nn.LSTMCell where an
attention stands between the steps; each sentence is computed alone. The file stores no parameters. Element i of
parameter number j (in heed's order of definition) is 0.3 * sin(1 + 0.7 j + 0.91 i); the C++ test computes the same
numbers.

usage: make_rnn_reference.py > tests/model/reference/rnn.json
"""
import json
import math

import torch
import torch.nn.functional as F
from torch import nn

CASES = {
    "init": dict(task="rnn", cell="gru", encoder="forward", context="init", tied="all", output_bias=True),
    "every-step": dict(task="rnn", cell="lstm", encoder="bidirectional", context="every-step", tied="none", output_bias=False),
    "additive": dict(task="rnn-attention", cell="gru", encoder="bidirectional", attention="additive", tied="decoder", output_bias=True),
    "additive-lstm": dict(task="rnn-attention", cell="lstm", encoder="forward", attention="additive", tied="all", output_bias=False),
    "dot": dict(task="rnn-attention", cell="lstm", encoder="bidirectional", attention="dot", tied="none", output_bias=True),
}
V, E, D, LAYERS = 11, 6, 8, 2
SOURCE = [[4, 5, 6, 3], [7, 3], [8, 9, 10, 4, 5, 3]]
TARGET_IN = [[2, 6, 7], [2, 9, 4, 5, 8], [2]]
TARGET_OUT = [[6, 7, 3], [9, 4, 5, 8, 3], [3]]


def parameter_names(c):
    """Returns [(name, shape)] of all parameters in heed's order of definition."""
    names = []
    gates = {"gru": 3, "lstm": 4}[c["cell"]]
    if c["tied"] == "all":
        names.append(("embeddings/shared/weight", (V, E)))
    else:
        names += [("embeddings/source/weight", (V, E)), ("embeddings/target/weight", (V, E))]
    both = c["encoder"] == "bidirectional"
    ways, width = (["/forward", "/backward"], D // 2) if both else ([""], D)
    for i in range(LAYERS):
        p = f"encoder/layers/{i}"
        inputs = E if i == 0 else D
        for part, shape in (("input/weight", (gates * width, inputs)), ("input/bias", (gates * width,)),
                            ("hidden/weight", (gates * width, width)), ("hidden/bias", (gates * width,))):
            names += [(f"{p}{way}/{part}", shape) for way in ways]
    context = c.get("context") == "every-step" or c.get("attention") == "additive"
    for i in range(LAYERS):
        p = f"decoder/layers/{i}"
        names += [(f"{p}/input/weight", (gates * D, E if i == 0 else D)), (f"{p}/input/bias", (gates * D,))]
        if context and i == 0:
            names.append((f"{p}/context/weight", (gates * D, D)))
        names += [(f"{p}/hidden/weight", (gates * D, D)), (f"{p}/hidden/bias", (gates * D,))]
    for i in range(LAYERS):
        for part in ["hidden"] + (["cell"] if c["cell"] == "lstm" else []):
            p = f"decoder/first_state/{i}/{part}"
            names += [(f"{p}/weight", (D, D)), (f"{p}/bias", (D,))]
    readout = {"init": E + D, "every-step": E + 2 * D, "additive": E + 2 * D, "dot": 2 * D}[c.get("context") or c["attention"]]
    names += [("decoder/readout/weight", (E, readout)), ("decoder/readout/bias", (E,))]
    if c["tied"] == "none":
        names.append(("output/weight", (V, E)))
    if c["output_bias"]:
        names.append(("output/bias", (V,)))
    if c.get("attention") == "additive":
        names += [("decoder/attention/query/weight", (D, D)), ("decoder/attention/key/weight", (D, D)),
                  ("decoder/attention/key/bias", (D,)), ("decoder/attention/scorer/weight", (D,))]
    return names


def parameters(c):
    out = {}
    for j, (name, shape) in enumerate(parameter_names(c)):
        i = torch.arange(math.prod(shape), dtype=torch.float64)
        out[name] = (0.3 * torch.sin(1 + 0.7 * j + 0.91 * i)).reshape(shape).requires_grad_()
    return out


def run_layer(c, w, prefix, way, x, first, width, reverse=False):
    """Returns the states of all tokens of torch's recurrent layer and its last state (h, c)."""
    module = (nn.GRU if c["cell"] == "gru" else nn.LSTM)(x.shape[-1], width, dtype=torch.float64)
    weights = {"weight_ih_l0": w[f"{prefix}{way}/input/weight"], "bias_ih_l0": w[f"{prefix}{way}/input/bias"],
               "weight_hh_l0": w[f"{prefix}{way}/hidden/weight"], "bias_hh_l0": w[f"{prefix}{way}/hidden/bias"]}
    if f"{prefix}/context/weight" in w:
        weights["weight_ih_l0"] = torch.cat([weights["weight_ih_l0"], w[f"{prefix}/context/weight"]], 1)
    x = x.flip(0) if reverse else x
    state = (first[0][None], first[1][None]) if c["cell"] == "lstm" else first[0][None]
    y, last = torch.func.functional_call(module, weights, (x, state))
    last = (last[0][0], last[1][0]) if c["cell"] == "lstm" else (last[0], None)
    return (y.flip(0) if reverse else y), last


def run_sentence(c, w, source, target):
    """Returns the readouts [T, E] of one sentence."""
    table = lambda side: w.get("embeddings/shared/weight", w.get(f"embeddings/{side}/weight")) * math.sqrt(E)
    x = table("source")[source]
    both = c["encoder"] == "bidirectional"
    ways, width = (["/forward", "/backward"], D // 2) if both else ([""], D)
    zeros = torch.zeros(width, dtype=torch.float64)
    for i in range(LAYERS):
        results = [run_layer(c, w, f"encoder/layers/{i}", way, x, (zeros, zeros), width, way == "/backward") for way in ways]
        x = torch.cat([y for y, _ in results], -1)
        last = [torch.cat([state[k] for _, state in results], -1) if state_exists else None
                for k, state_exists in ((0, True), (1, c["cell"] == "lstm"))]
    memory = x
    linear = lambda name, v: F.linear(v, w[f"{name}/weight"], w[f"{name}/bias"])
    states = [(torch.tanh(linear(f"decoder/first_state/{i}/hidden", last[0])),
               linear(f"decoder/first_state/{i}/cell", last[1]) if c["cell"] == "lstm" else None) for i in range(LAYERS)]
    e = table("target")[target]
    if c.get("attention") != "additive":
        y = torch.cat([e, last[0].expand(len(target), D)], -1) if c.get("context") == "every-step" else e
        for i in range(LAYERS):
            y, _ = run_layer(c, w, f"decoder/layers/{i}", "", y, states[i], D)
        if c["task"] == "rnn":
            parts = [y, e] + ([last[0].expand(len(target), D)] if c["context"] == "every-step" else [])
        else:
            parts = [y, F.softmax(y @ memory.T, -1) @ memory]
        return torch.tanh(linear("decoder/readout", torch.cat(parts, -1)))
    keys = linear("decoder/attention/key", memory)
    out = []
    for t in range(len(target)):
        query = states[-1][0] @ w["decoder/attention/query/weight"].T
        a = F.softmax(torch.tanh(query + keys) @ w["decoder/attention/scorer/weight"], -1) @ memory
        y = torch.cat([e[t], a])
        for i in range(LAYERS):
            steps, states[i] = run_layer(c, w, f"decoder/layers/{i}", "", y[None], states[i], D)
            y = steps[0]
        out.append(torch.tanh(linear("decoder/readout", torch.cat([y, e[t], a]))))
    return torch.stack(out)


def flat(x):
    return [float(f"{v:.12g}") for v in x.detach().reshape(-1).tolist()]


def run(c):
    w = parameters(c)
    hidden = torch.cat([run_sentence(c, w, s, t) for s, t in zip(SOURCE, TARGET_IN)])
    output = w["output/weight"] if c["tied"] == "none" else w.get("embeddings/shared/weight", w.get("embeddings/target/weight"))
    logits = F.linear(hidden, output, w.get("output/bias"))
    target = torch.tensor(sum(TARGET_OUT, []))
    loss = F.cross_entropy(logits, target, label_smoothing=0.1, reduction="sum")
    loss.backward()
    return dict(c, vocabulary=V, emb=E, dim=D, layers=LAYERS, hidden=flat(hidden), loss=loss.item(),
                nll=F.cross_entropy(logits, target, reduction="sum").item(),
                gradients={name: dict(norm=p.grad.norm().item(), first=flat(p.grad.reshape(-1)[:6])) for name, p in w.items()})


torch.set_default_dtype(torch.float64)
print(json.dumps(dict(made_by="scripts/reference/make_rnn_reference.py", torch=torch.__version__.split("+")[0], source=SOURCE,
                      target_in=TARGET_IN, target_out=TARGET_OUT, cases={name: run(c) for name, c in CASES.items()}),
                 indent=None, separators=(",", ":")))
