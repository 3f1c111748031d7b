#!/usr/bin/env python3
"""Writes tests/nn/reference/multihead_attention.json: outputs, attention weights and gradients of
torch.nn.MultiheadAttention in float64, with each option alone and with each pair of options.

The file stores no inputs. Element i of tensor number j (see TENSORS) is 0.8 * sin(1 + 0.7 j + 0.91 i); a mask hides
element i where i % 5 is 1, a padding mask the last key of the last sequence. The C++ test computes the same numbers.
Results are stored as integers: the number times 1e8, rounded. No query is hidden from all keys, since PyTorch then
answers not-a-number (heed: weights of zero).

usage: make_attention_reference.py > tests/nn/reference/multihead_attention.json
"""
import itertools
import json
import math

import torch

B, T, S, E, H, KEY, VALUE = 2, 3, 4, 4, 2, 5, 3
TENSORS = ["query", "key", "value", "query/weight", "key/weight", "value/weight", "query/bias", "key/bias",
           "value/bias", "output/weight", "output/bias", "appended/key", "appended/value", "output gradient",
           "weights gradient", "additive", "additive_key_padding"]
OPTIONS = ["widths", "no_bias", "appended_bias", "appended_zeros", "key_padding", "additive_key_padding", "hidden",
           "hidden_per_head", "additive", "additive_per_head", "causal", "per_head"]
# Options of which only one can be chosen.
EXCLUSIVE = [{"key_padding", "additive_key_padding"},
             {"hidden", "hidden_per_head", "additive", "additive_per_head", "causal"}]


def tensor(name, *shape):
    """Returns the numbers of a tensor by the formula above."""
    i = torch.arange(math.prod(shape), dtype=torch.float64)
    return (0.8 * torch.sin(1 + 0.7 * TENSORS.index(name) + 0.91 * i)).reshape(shape)


def hidden(*shape):
    return (torch.arange(math.prod(shape)) % 5 == 1).reshape(shape)


def integers(x):
    return [round(v * 1e8) for v in x.detach().reshape(-1).tolist()]


def attention_case(options):
    """Returns the results of one case, with a choice of OPTIONS."""
    widths, bias = "widths" in options, "no_bias" not in options
    key_width, value_width = (KEY, VALUE) if widths else (E, E)
    layer = torch.nn.MultiheadAttention(E, H, bias=bias, add_bias_kv="appended_bias" in options,
                                        add_zero_attn="appended_zeros" in options, kdim=key_width, vdim=value_width,
                                        batch_first=True, dtype=torch.float64)
    weights = [tensor("query/weight", E, E), tensor("key/weight", E, key_width), tensor("value/weight", E, value_width)]
    with torch.no_grad():
        if widths:
            for to, weight in zip((layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight), weights):
                to.copy_(weight)
        else:
            layer.in_proj_weight.copy_(torch.cat(weights))
        layer.out_proj.weight.copy_(tensor("output/weight", E, E))
        if bias:
            layer.in_proj_bias.copy_(torch.cat([tensor(f"{x}/bias", E) for x in ("query", "key", "value")]))
            layer.out_proj.bias.copy_(tensor("output/bias", E))
        if layer.bias_k is not None:
            layer.bias_k.copy_(tensor("appended/key", 1, 1, E))
            layer.bias_v.copy_(tensor("appended/value", 1, 1, E))

    key_padding = mask = None
    if "key_padding" in options:
        key_padding = torch.zeros(B, S, dtype=torch.bool)
        key_padding[-1, -1] = True
    if "additive_key_padding" in options:
        key_padding = tensor("additive_key_padding", B, S)
    shape = (B * H, T, S) if {"hidden_per_head", "additive_per_head"} & set(options) else (T, S)
    if {"hidden", "hidden_per_head"} & set(options):
        mask = hidden(*shape)
    if {"additive", "additive_per_head"} & set(options):
        mask = tensor("additive", *shape).masked_fill(hidden(*shape), -torch.inf)
    if "causal" in options:
        mask = torch.ones(T, S, dtype=torch.bool).triu(1)

    inputs = {"query": tensor("query", B, T, E), "key": tensor("key", B, S, key_width),
              "value": tensor("value", B, S, value_width)}
    for x in inputs.values():
        x.requires_grad_(True)
    output, probabilities = layer(*inputs.values(), key_padding_mask=key_padding, attn_mask=mask,
                                  is_causal="causal" in options, average_attn_weights="per_head" not in options)
    loss = (output * tensor("output gradient", *output.shape)).sum()
    (loss + (probabilities * tensor("weights gradient", *probabilities.shape)).sum()).backward()

    gradients = {name: x.grad for name, x in inputs.items()}
    if widths:
        parts = [layer.q_proj_weight.grad, layer.k_proj_weight.grad, layer.v_proj_weight.grad]
    else:
        parts = layer.in_proj_weight.grad.chunk(3)
    gradients |= zip(("query/weight", "key/weight", "value/weight"), parts)
    gradients["output/weight"] = layer.out_proj.weight.grad
    if bias:
        gradients |= zip(("query/bias", "key/bias", "value/bias"), layer.in_proj_bias.grad.chunk(3))
        gradients["output/bias"] = layer.out_proj.bias.grad
    if layer.bias_k is not None:
        gradients |= {"appended/key": layer.bias_k.grad, "appended/value": layer.bias_v.grad}
    return {"options": options, "output": integers(output), "weights": integers(probabilities),
            "gradients": {name: integers(x) for name, x in gradients.items()}}


def main():
    choices = [[]] + [[x] for x in OPTIONS]
    choices += [list(pair) for pair in itertools.combinations(OPTIONS, 2)
                if not any(set(pair) <= group for group in EXCLUSIVE)]
    head = {"made_by": "scripts/reference/make_attention_reference.py", "torch": torch.__version__.split("+")[0],
            "sizes": {"B": B, "T": T, "S": S, "E": E, "H": H, "key": KEY, "value": VALUE}, "tensors": TENSORS}
    cases = ",\n".join(json.dumps(attention_case(options), separators=(",", ":")) for options in choices)
    print(f'{json.dumps(head)[:-1]}, "cases": [\n{cases}\n]}}')


if __name__ == "__main__":
    main()
