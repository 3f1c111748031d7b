#!/usr/bin/env python3
"""Writes tests/model/reference/transformer.json: outputs and gradients of small Transformers in PyTorch (float64).

The file stores no parameters. Element i of parameter number j (in heed's order of definition) is 0.3 * sin(1 + 0.7 j +
0.91 i), plus 1 for the scales of norms; the C++ test computes the same numbers.

usage: make_transformer_reference.py > tests/model/reference/transformer.json
"""
import json
import math
import struct

import torch
import torch.nn.functional as F

from make_torch_reference import t5_buckets

CASES = {
    "post": dict(norm="post", positions="sinusoidal", activation="relu", tied="all", output_bias=False),
    "pre": dict(norm="pre", positions="concatenated", activation="gelu", tied="decoder", output_bias=True),
    "learned": dict(norm="post", positions="learned", activation="swish", tied="none", output_bias=False),
    "layerwise": dict(norm="post", positions="sinusoidal", activation="relu", tied="all", output_bias=False, cross="layerwise"),
    "average": dict(norm="post", positions="sinusoidal", activation="relu", tied="all", output_bias=False, autoreg="average", dim_aan=6),
    "average_pre": dict(norm="pre", positions="sinusoidal", activation="relu", tied="all", output_bias=False, autoreg="average"),
    "rnn": dict(norm="post", positions="sinusoidal", activation="relu", tied="all", output_bias=False, autoreg="rnn"),
    "tied": dict(norm="pre", positions="sinusoidal", activation="relu", tied="all", output_bias=False, tied_layers=[1, 1]),
    "mix": dict(norm="pre", positions="sinusoidal", activation="relu", tied="all", output_bias=False, cross="mix"),
    **{positions: dict(norm=norm, positions=positions, activation="relu", tied="all", output_bias=False)
       for positions, norm in (("none", "post"), ("relative", "pre"), ("alibi", "post"), ("rotary", "pre"), ("t5", "post"))},
    "additive": dict(norm="post", positions="sinusoidal", activation="relu", tied="all", output_bias=False, attention="additive"),
    "guided": dict(norm="post", positions="sinusoidal", activation="relu", tied="all", output_bias=False, alignment_weight=0.3),
    "guided additive": dict(norm="pre", positions="sinusoidal", activation="relu", tied="all", output_bias=False, attention="additive",
                            alignment_weight=0.7),
    "rms swiglu": dict(norm="post", positions="sinusoidal", activation="swiglu", tied="all", output_bias=False,
                     normalization="rms"),
    # The decoder reads the source word that is the next to be written, and the embeddings tell the number of words before a
    # token. word_ends: the ids that end a word.
    "next word": dict(norm="pre", positions="sinusoidal", activation="relu", tied="all", output_bias=False, word_ends=[4, 6, 9],
                      next_word=True),
    "next word average": dict(norm="post", positions="learned", activation="relu", tied="decoder", output_bias=True, autoreg="average",
                              word_ends=[5, 6, 8, 9], next_word=True),
    "word positions": dict(norm="post", positions="none", activation="relu", tied="all", output_bias=False, word_ends=[5, 6, 8, 9],
                           word_positions=True),
    "next word and positions": dict(norm="pre", positions="rotary", activation="relu", tied="all", output_bias=False, word_ends=[4, 6, 9],
                                    next_word=True, word_positions=True),
    # Decoders that predict all positions at once. The file says which tokens are masked.
    "parallel": dict(norm="post", positions="sinusoidal", activation="relu", tied="all", output_bias=False, autoreg="none", length_range=2),
    "parallel t5 mix": dict(norm="pre", positions="t5", activation="relu", tied="decoder", output_bias=True, autoreg="none", length_range=5,
                            cross="mix"),
    "parallel relative guided": dict(norm="post", positions="relative", activation="relu", tied="all", output_bias=False, autoreg="none",
                                     length_range=3, alignment_weight=0.3),
    "parallel fixed": dict(norm="post", positions="learned", activation="relu", tied="none", output_bias=False, autoreg="none",
                           length_range=100, fixed_length=7, alignment_weight=0.3),
    "rms geglu pre": dict(norm="pre", positions="sinusoidal", activation="geglu", tied="all", output_bias=False,
                    normalization="rms"),
}
V, D, H, FF, LAYERS, MAX, MOST_DISTANCE = 11, 8, 2, 12, 2, 16, 16
SOURCE = [[4, 5, 6, 3], [7, 3], [8, 9, 10, 4, 5, 3]]
TARGET_IN = [[2, 6, 7], [2, 9, 4, 5, 8], [2]]
TARGET_OUT = [[6, 7, 3], [9, 4, 5, 8, 3], [3]]
# Links of an alignment: sequence, target position, source position, share of the target position.
ALIGNMENT = [[0, 0, 2, 0.5], [0, 0, 0, 0.5], [0, 1, 1, 1], [1, 0, 0, 1], [1, 3, 1, 1], [2, 0, 4, 0.25], [2, 0, 1, 0.75]]


MASK = 2  # <s>


def philox(key, counter):
    """Returns four random words of 32 bits: Philox4x32 with 10 rounds (Salmon et al. 2011)."""
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ key[0], b & 0xFFFFFFFF, a >> 32 ^ counter[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def masked_places(sequence, length):
    """Returns which of `length` tokens of a sequence heed masks in update 0 with the seed 0."""

    def below(n, i):  # the random number i of the stream (use 8: masks) is below n
        words = struct.pack("<4I", *philox([0, 0], [i >> 1, 8 << 24 ^ sequence, 0, 0]))
        return struct.unpack("<2Q", words)[i & 1] * n >> 64

    count, places = 1 + below(length, 0), list(range(length))
    for i in range(count):
        other = i + below(length - i, i + 1)
        places[i], places[other] = places[other], places[i]
    return sorted(places[:count])


def owner(case, i):
    """Returns the index of the layer whose parameters layer i has."""
    return case.get("tied_layers", range(1, LAYERS + 1))[i] - 1


def first_sublayer(case):
    """Returns the name of the first sublayer of decoder layers."""
    kind = case.get("autoreg", "self_attention")
    return "self_attention" if kind == "none" else kind


def parameter_names(case):
    """Returns [(name, shape)] of all parameters in heed's order of definition."""
    names = []
    if case["tied"] == "all":
        names.append(("embeddings/shared/weight", (V, D)))
    else:
        names += [("embeddings/source/weight", (V, D)), ("embeddings/target/weight", (V, D))]
    if case["positions"] == "learned":
        names.append(("positions/weight", (MAX, D)))
    if case["positions"] == "t5":
        names += [(f"{stack}/position_bias/weight", (32, H)) for stack in ("encoder", "decoder")]

    def attention(p):
        for x in ("query", "key", "value"):
            names.append((f"{p}/{x}/weight", (D, D)))
        for x in ("query", "key", "value"):
            names.append((f"{p}/{x}/bias", (D,)))
        names.append((f"{p}/output/weight", (D, D)))
        names.append((f"{p}/output/bias", (D,)))
        if case.get("attention") == "additive":
            names.append((f"{p}/scorer/weight", (D,)))
        if case["positions"] == "relative" and p.endswith("self_attention"):
            names.extend((f"{p}/relative_{x}/weight", (2 * MOST_DISTANCE + 1, D // H)) for x in ("keys", "values"))

    def feed_forward(p, width=FF):
        inner = ("gate", "in") if case["activation"].endswith("glu") else ("in",)
        names.extend((f"{p}/{x}/weight", (width, D)) for x in inner)
        names.extend((f"{p}/{x}/bias", (width,)) for x in inner)
        names.extend([(f"{p}/out/weight", (D, width)), (f"{p}/out/bias", (D,))])

    def autoregression(p):
        """Adds the first sublayer of a decoder layer."""
        kind = case.get("autoreg", "self_attention")
        if kind in ("self_attention", "none"):
            attention(p + "/self_attention")
        elif kind == "average":
            for x in ("input_gate", "average_gate"):
                names.extend([(f"{p}/average/{x}/weight", (D, D)), (f"{p}/average/{x}/bias", (D,))])
            if "dim_aan" in case:
                feed_forward(p + "/average/feed_forward", case["dim_aan"])
        else:
            for x in ("weight", "bias"):
                names.extend([(f"{p}/rnn/{gate}/{x}", (D, D) if x == "weight" else (D,)) for gate in ("candidate", "forget")])

    def norm(p):
        names.append((f"{p}/scale", (D,)))
        if case.get("normalization") != "rms":
            names.append((f"{p}/bias", (D,)))

    for side in ("encoder", "decoder"):
        if side == "decoder" and "next_word" in case:
            names.append(("decoder/next_word/weight", (D, D)))
        for i in range(LAYERS):
            if owner(case, i) != i:
                continue
            p = f"{side}/layers/{i}"
            autoregression(p) if side == "decoder" else attention(p + "/self_attention")
            if side == "decoder":
                attention(p + "/cross_attention")
            feed_forward(p + "/feed_forward")
            if side == "decoder" and case.get("cross") == "mix":
                names.append((p + "/cross_attention/mix", (LAYERS,)))
            norm(f"{p}/{first_sublayer(case) if side == 'decoder' else 'self_attention'}_norm")
            if side == "decoder":
                norm(p + "/cross_attention_norm")
            norm(p + "/feed_forward_norm")
    if case["norm"] == "pre":
        norm("encoder/norm")
        norm("decoder/norm")
    if case["tied"] == "none":
        names.append(("output/weight", (V, D)))
    if case["output_bias"]:
        names.append(("output/bias", (V,)))
    if case.get("autoreg") == "none" and "fixed_length" not in case:
        classes = 2 * case["length_range"] + 1
        names.extend([("length/weight", (classes, D)), ("length/bias", (classes,))])
    return names


def make_parameters(case):
    out = {}
    for j, (name, shape) in enumerate(parameter_names(case)):
        i = torch.arange(math.prod(shape), dtype=torch.float64)
        value = 0.3 * torch.sin(1 + 0.7 * j + 0.91 * i)
        if name.endswith("/scale"):
            value = value + 1
        out[name] = value.reshape(shape).requires_grad_(True)
    return out


def positions_table(kind, length):
    pos = torch.arange(length, dtype=torch.float64)[:, None]
    half = D // 2
    if kind == "sinusoidal":
        angle = pos * 10000.0 ** (-2.0 * torch.arange(half, dtype=torch.float64) / D)
        table = torch.zeros(length, D, dtype=torch.float64)
        table[:, 0::2], table[:, 1::2] = torch.sin(angle), torch.cos(angle)
        return table
    if kind != "concatenated":  # the positions are encoded within attention, or not at all
        return torch.zeros(length, D, dtype=torch.float64)
    angle = pos * 10000.0 ** (-torch.arange(half, dtype=torch.float64) / (half - 1))
    return torch.cat([torch.sin(angle), torch.cos(angle)], 1)


def run(case):
    w = make_parameters(case)
    gated = case["activation"].endswith("glu")
    act = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu, "swiglu": F.silu, "geglu": F.gelu}[case["activation"]]
    pre = case["norm"] == "pre"

    def linear(x, p):
        return x @ w[p + "/weight"].T + w[p + "/bias"]

    def norm(x, p):
        if case.get("normalization") == "rms":
            return F.rms_norm(x, (D,), w[p + "/scale"], 1e-5)
        return F.layer_norm(x, (D,), w[p + "/scale"], w[p + "/bias"], 1e-5)

    def attend_with_positions(q, k, v, p, causal):
        """Computes self-attention with terms of positions. Shapes: q, k, v [H, T, d]."""
        d, place = D // H, torch.arange(q.shape[1])
        distances = place[None, :] - place[:, None]
        clipped = distances.clamp(-MOST_DISTANCE, MOST_DISTANCE) + MOST_DISTANCE
        if case["positions"] == "rotary":
            angles = place[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
            turn = torch.polar(torch.ones_like(angles), angles)
            q, k = (torch.view_as_real(torch.view_as_complex(x.reshape(H, -1, d // 2, 2)) * turn).reshape(H, -1, d) for x in (q, k))
        logits = q @ k.mT / math.sqrt(d)
        if case["positions"] == "alibi":
            logits = logits - torch.tensor([2.0 ** (-8 * (h + 1) / H) for h in range(H)])[:, None, None] * distances.abs()
        if case["positions"] == "t5":
            table = w[p.split("/")[0] + "/position_bias/weight"]
            logits = logits + table[t5_buckets(distances, len(table), causal)].permute(2, 0, 1)
        if case["positions"] == "relative":
            logits = logits + torch.einsum("hid,ijd->hij", q, w[p + "/relative_keys/weight"][clipped]) / math.sqrt(d)
        if causal:
            logits = logits.masked_fill(distances > 0, -math.inf)
        probabilities = logits.softmax(-1)
        y = probabilities @ v
        if case["positions"] == "relative":
            y = y + torch.einsum("hij,ijd->hid", probabilities, w[p + "/relative_values/weight"][clipped])
        return y

    def attend(x, memory, p, causal, weights=None):
        """Computes an attention. The mean over the heads of its weights is appended to the list `weights`."""
        split = lambda y: y.view(len(y), H, D // H).transpose(0, 1)
        q, k, v = split(linear(x, p + "/query")), split(linear(memory, p + "/key")), split(linear(memory, p + "/value"))
        if case.get("attention") == "additive":
            scorer = w[p + "/scorer/weight"].view(H, 1, 1, D // H)
            scores = (torch.tanh(q[:, :, None] + k[:, None]) * scorer).sum(-1)
            if causal:
                scores = scores.masked_fill(torch.ones(len(x), len(memory)).triu(1).bool(), -math.inf)
            probabilities = torch.softmax(scores, -1)
            y = probabilities @ v
        elif case["positions"] in ("relative", "alibi", "rotary", "t5") and p.endswith("self_attention"):
            y = attend_with_positions(q, k, v, p, causal)
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            probabilities = torch.softmax(q @ k.mT / math.sqrt(D // H), -1)
        if weights is not None:
            weights.append(probabilities.mean(0))
        return linear(y.transpose(0, 1).reshape(len(x), D), p + "/output")

    def feed_forward(x, p):
        inner = act(linear(x, p + "/gate")) * linear(x, p + "/in") if gated else act(linear(x, p + "/in"))
        return linear(inner, p + "/out")

    def autoregress(x, p):
        """Computes the first sublayer of a decoder layer."""
        if autoreg == "self_attention":
            return attend(x, x, p + "/self_attention", case.get("autoreg") != "none")
        if autoreg == "average":
            mean = torch.cumsum(x, 0) / torch.arange(1, len(x) + 1, dtype=torch.float64)[:, None]
            if "dim_aan" in case:
                mean = feed_forward(mean, p + "/average/feed_forward")
            gates = linear(x, p + "/average/input_gate"), linear(mean, p + "/average/average_gate")
            return torch.sigmoid(gates[0]) * x + torch.sigmoid(gates[1]) * mean
        candidates, forget = linear(x, p + "/rnn/candidate"), torch.sigmoid(linear(x, p + "/rnn/forget"))
        states = [torch.zeros(D, dtype=torch.float64)]
        for y, f in zip(candidates, forget):
            states.append(f * states[-1] + (1 - f) * y)
        return torch.relu(torch.stack(states[1:]))

    def sublayer(x, p, f):
        return x + f(norm(x, p)) if pre else norm(x + f(x), p)

    def words_before(ids, itself):
        """Returns the number of words that have ended before each id, or with it."""
        ends = [id in case["word_ends"] for id in ids]
        return [sum(ends[: i + itself]) for i in range(len(ids))]

    def embed(ids, name, stack):
        table = w["positions/weight"][:len(ids)] if case["positions"] == "learned" else positions_table(case["positions"], len(ids))
        if "word_positions" in case:
            table = table + positions_table("sinusoidal", len(ids) + 1)[words_before(ids, stack == "decoder")]
        return w[f"embeddings/{name}/weight"][torch.tensor(ids)] * math.sqrt(D) + table

    source_name, target_name = ("shared", "shared") if case["tied"] == "all" else ("source", "target")
    output = w["output/weight"] if case["tied"] == "none" else w[f"embeddings/{target_name}/weight"]
    cross = case.get("cross", "last")
    autoreg, parallel = first_sublayer(case), case.get("autoreg") == "none"
    memories, hiddens, logits, guided, losses, wanted = [], [], [], [], [], []
    for b, (s, t, correct) in enumerate(zip(SOURCE, TARGET_IN, TARGET_OUT)):
        x = embed(s, source_name, "encoder")
        sums = []  # what each encoder layer leaves in the residual stream
        for i in range(LAYERS):
            p = f"encoder/layers/{owner(case, i)}"
            x = sublayer(x, p + "/self_attention_norm", lambda y: attend(y, y, p + "/self_attention", False))
            x = sublayer(x, p + "/feed_forward_norm", lambda y: feed_forward(y, p + "/feed_forward"))
            sums.append(x)
        # With pre-norm, the output of a layer is normalised by the norm that follows the layer.
        norms = [f"encoder/layers/{owner(case, i)}/self_attention_norm" for i in range(1, LAYERS)] + ["encoder/norm"]
        outputs = [norm(y, p) for y, p in zip(sums, norms)] if pre else sums
        memory_of = {
            "last": lambda i: outputs[-1],
            "layerwise": lambda i: outputs[i],
            "mix": lambda i: sum(p * y for p, y in zip(torch.softmax(w[f"decoder/layers/{i}/cross_attention/mix"], 0), outputs)),
        }[cross]

        def decode(t, guided):
            x = embed(t, target_name, "decoder")
            if "next_word" in case:
                # A word begins at the first piece, and where a word has ended; behind the words is </s>.
                before = words_before(s[:-1], False)
                starts = [i for i in range(len(before)) if i == 0 or before[i] > before[i - 1]]
                rows = [starts[n] if n < len(starts) else len(s) - 1 for n in words_before(t, True)]
                x = x + outputs[-1][rows] @ w["decoder/next_word/weight"].T
            for i in range(LAYERS):
                p = f"decoder/layers/{owner(case, i)}"
                x = sublayer(x, f"{p}/{autoreg}_norm", lambda y: autoregress(y, p))
                x = sublayer(x, p + "/cross_attention_norm",
                             lambda y: attend(y, memory_of(i), p + "/cross_attention", False, guided if i == LAYERS - 1 else None))
                x = sublayer(x, p + "/feed_forward_norm", lambda y: feed_forward(y, p + "/feed_forward"))
            return norm(x, "decoder/norm") if pre else x

        memories.append(outputs[-1])
        if parallel:
            hiddens.append(decode(correct, []))
            fixed = case.get("fixed_length", 0)
            # The last token, </s>, is given where the length is predicted.
            places = masked_places(b, len(correct) - (0 if fixed else 1)) if fixed or len(correct) > 1 else []
            masked = [MASK if i in places else id for i, id in enumerate(correct)] + [MASK] * (fixed - len(correct))
            x = decode(masked, guided)[places]
            wanted.extend(correct[i] for i in places)
            if not fixed:
                most = case["length_range"]
                difference = max(-most, min(most, len(correct) - len(s)))
                losses.append(F.cross_entropy(linear(outputs[-1][-1:], "length"), torch.tensor([difference + most])))
        else:
            x = decode(t, guided)
            hiddens.append(x)
            wanted.extend(correct)
        z = x @ output.T
        if case["output_bias"]:
            z = z + w["output/bias"]
        logits.append(z)
    y = torch.tensor(wanted)
    loss = F.cross_entropy(torch.cat(logits), y, label_smoothing=0.1, reduction="sum")
    nll = F.cross_entropy(torch.cat(logits), y, reduction="sum")
    if "alignment_weight" in case:
        loss = loss - case["alignment_weight"] * sum(share * torch.log(guided[b][t, s] + 1e-6) for b, t, s, share in ALIGNMENT)
    loss = loss + sum(losses)
    loss.backward()
    flat = lambda t: [float(f"{v:.12g}") for v in t.detach().reshape(-1).tolist()]
    return dict(
        case, vocabulary=V, dim=D, heads=H, ffn=FF, layers=LAYERS, max_positions=MAX,
        memory=flat(torch.cat(memories)), hidden=flat(torch.cat(hiddens)), loss=loss.item(), nll=nll.item(), tokens=len(wanted),
        # for each parameter: the norm of its gradient, and the gradient's first elements
        gradients={name: dict(norm=p.grad.norm().item(), first=flat(p.grad.reshape(-1)[:6])) for name, p in w.items()})


print(json.dumps(dict(made_by="scripts/reference/make_transformer_reference.py", torch=torch.__version__.split("+")[0],
                      source=SOURCE, target_in=TARGET_IN, target_out=TARGET_OUT, alignment=ALIGNMENT,
                      cases={name: run(case) for name, case in CASES.items()}), indent=None, separators=(",", ":")))
