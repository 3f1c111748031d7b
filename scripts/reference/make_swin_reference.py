#!/usr/bin/env python3
"""Writes tests/model/reference/swin.json: logits, loss and gradients of small Swin Transformers in torchvision
(float64).

The file stores no images and no parameters. Sample i of image b, in reading order with the channels of a pixel side by
side, is (7 i i + 31 i + 57 b) % 251. Element i of parameter number j (in heed's order of definition) is 0.3 * sin(1 +
0.7 j + 0.91 i), plus 1 for the scale of a norm. The C++ test computes the same numbers.

With --full, writes instead the full-size swin_t with torchvision's random weights, whose biases and norms are made
random too, for the test that the environment variable HEED_SWIN_FULL gives the file to: the numbers of images, of
parameters and of classes (int64), the samples of the images (uint8), the parameters in heed's order of definition and
the logits (float32).

usage: make_swin_reference.py > tests/model/reference/swin.json
       make_swin_reference.py --full FILE
"""
import argparse
import json
import math

import numpy
import torch
import torch.nn.functional as F
import torchvision
from torchvision.models.swin_transformer import SwinTransformer

# In the first case, the last stage has one window. The second case shifts the windows of both stages. The third has
# patches of one pixel, and three stages.
CASES = {
    "one window": dict(image=16, patch=2, width=8, depths=[2, 2], heads=[2, 4], window=4, ratio=4.0),
    "shifted": dict(image=16, patch=2, width=8, depths=[3, 2], heads=[4, 2], window=2, ratio=1.5),
    "three stages": dict(image=12, patch=1, width=4, depths=[1, 2, 1], heads=[1, 2, 4], window=3, ratio=2.0),
}
IMAGES, CLASSES = 3, 5
LABELS = [3, 0, 4]
MEAN, DEVIATION = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]
IMAGENET_MEAN, IMAGENET_DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def parameters(model):
    """Returns [(name, tensor)] in heed's order of definition. Query, key and value are views of one parameter."""
    out = []

    def add(name, module, parts):
        out.extend((f"{name}/{heed}", getattr(module, torch_name)) for heed, torch_name in parts)

    linear, norm = [("weight", "weight"), ("bias", "bias")], [("scale", "weight"), ("bias", "bias")]
    features = model.features
    add("patches", features[0][0], linear)
    add("patches_norm", features[0][2], norm)
    for s in range((len(features)) // 2):
        for n, block in enumerate(features[1 + 2 * s]):
            p = f"stages/{s}/layers/{n}"
            for part, torch_name in linear:
                thirds = getattr(block.attn.qkv, torch_name).chunk(3)
                out.extend((f"{p}/self_attention/{name}/{part}", x) for name, x in zip(("query", "key", "value"), thirds))
            add(f"{p}/self_attention/output", block.attn.proj, linear)
            out.append((f"{p}/relative_positions/weight", block.attn.relative_position_bias_table))
            add(f"{p}/feed_forward/in", block.mlp[0], linear)
            add(f"{p}/feed_forward/out", block.mlp[3], linear)
            add(f"{p}/self_attention_norm", block.norm1, norm)
            add(f"{p}/feed_forward_norm", block.norm2, norm)
        if 2 + 2 * s < len(features):
            add(f"stages/{s}/merging/norm", features[2 + 2 * s].norm, norm)
            add(f"stages/{s}/merging", features[2 + 2 * s].reduction, linear[:1])
    add("norm", model.norm, norm)
    add("output", model.head, linear)
    return out


def gradients(model):
    """Returns {name: gradient} of all parameters."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.grad)
    return {name: x.detach() for name, x in parameters(model)}


def samples(size, images):
    """Returns the samples of the images [B, S, S, 3]."""
    i = torch.arange(size * size * 3)
    return torch.stack([(7 * i * i + 31 * i + 57 * b) % 251 for b in range(images)]).reshape(images, size, size, 3)


def pixels(x, mean, deviation):
    """Returns the input of a model [B, 3, S, S]."""
    return ((x.double() / 255 - torch.tensor(mean, dtype=torch.float64)) /
            torch.tensor(deviation, dtype=torch.float64)).permute(0, 3, 1, 2)


def flat(x):
    return [float(f"{v:.12g}") for v in x.reshape(-1).tolist()]


def case(c):
    """Returns the results of a model whose parameters have the values of the formula."""
    model = SwinTransformer([c["patch"]] * 2, c["width"], c["depths"], c["heads"], [c["window"]] * 2, c["ratio"],
                            stochastic_depth_prob=0.0, num_classes=CLASSES).double()
    with torch.no_grad():
        for j, (name, x) in enumerate(parameters(model)):
            i = torch.arange(x.numel(), dtype=torch.float64)
            x.copy_((0.3 * torch.sin(1 + 0.7 * j + 0.91 * i) + (1 if name.endswith("/scale") else 0)).reshape(x.shape))
    logits = model(pixels(samples(c["image"], IMAGES), MEAN, DEVIATION))
    target = torch.tensor(LABELS)
    loss = F.cross_entropy(logits, target, label_smoothing=0.1, reduction="sum")
    nll = F.cross_entropy(logits, target, reduction="sum")
    loss.backward()
    return dict(c, logits=flat(logits.detach()), loss=loss.item(), nll=nll.item(),
                gradients={name: dict(norm=g.norm().item(), first=flat(g.reshape(-1)[:6]))
                           for name, g in gradients(model).items()})


def write_full(path):
    torch.manual_seed(1)
    model = torchvision.models.swin_t(weights=None).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:
                p.add_(0.1 * torch.randn_like(p))
        x = samples(224, 2)
        logits = model(pixels(x, IMAGENET_MEAN, IMAGENET_DEVIATION).float())
    values = torch.cat([x.detach().reshape(-1) for _, x in parameters(model)])
    with open(path, "wb") as out:
        numpy.array([x.shape[0], values.numel(), logits.shape[1]], dtype="<i8").tofile(out)
        x.to(torch.uint8).numpy().tofile(out)
        values.numpy().astype("<f4").tofile(out)
        logits.numpy().astype("<f4").tofile(out)
    print(f"logits from {logits.min().item():.3f} to {logits.max().item():.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.full:
        return write_full(arguments.full)
    head = dict(made_by="scripts/reference/make_swin_reference.py", torch=torch.__version__.split("+")[0],
                torchvision=torchvision.__version__.split("+")[0], images=IMAGES, classes=CLASSES, labels=LABELS,
                mean=MEAN, deviation=DEVIATION, cases={name: case(c) for name, c in CASES.items()})
    print(json.dumps(head, separators=(",", ":")))


if __name__ == "__main__":
    main()
