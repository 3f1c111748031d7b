#!/usr/bin/env python3
"""Writes tests/model/reference/vision.json: outputs and gradients of small vision Transformers of torchvision (float64).

The file stores neither parameters nor images. Element i of parameter number j (in heed's order of definition) is
0.3 * sin(1 + 0.7 j + 0.91 i), plus 1 for the scales of norms. Sample i of image b, row by row with the channels of a
pixel side by side, is (13 + 97 b + 31 i + 7 i^2) mod 256. The C++ test computes the same numbers.

The loss is the sum over all images of the cross-entropy with label smoothing 0.1. The targets of the case "mixed" are
mixtures, as mixup makes them: the second target of an image has the given share, and the first target has the rest.

torchvision has no Transformer with mean pooling and none for grey images. The script makes them of torchvision's
modules: without a class token the encoder has one position less, and conv_proj gets another number of channels.

usage: make_vision_reference.py > tests/model/reference/vision.json
       make_vision_reference.py --grids > tests/nn/reference/resized_grids.json
       make_vision_reference.py --full FILE.h5

--grids writes grids of vectors that PyTorch's bicubic interpolation brought to another size.

--full writes torchvision's vit_b_16 with random parameters, and images with its logits, to an HDF5 file. The file is
large and is not in the repository; tests/model/vit_test.cpp reads it if the environment variable HEED_VIT_FULL names
it. /parameters has the datasets of a checkpoint (man/heed-checkpoint.5), /images [B, 224, 224, 3] samples, and
/logits [B, classes] the logits, computed in float64.
"""
import argparse
import json
import math

import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torchvision.models.vision_transformer import VisionTransformer, vit_b_16

# `other_size` is the width of images for which the positions are interpolated; there are only features and logits of
# them, because only inference reads them. `first`: how many elements of each gradient the file has.
CASES = {
    "class token": dict(size=8, patch=4, channels=3, layers=2, heads=2, dim=8, ffn=12, classes=5, pooling="class-token",
                        other_size=12, first=10**6),
    "mean": dict(size=12, patch=4, channels=3, layers=2, heads=2, dim=8, ffn=12, classes=5, pooling="mean", other_size=8, first=8),
    "grey": dict(size=9, patch=3, channels=1, layers=3, heads=3, dim=12, ffn=10, classes=4, pooling="class-token", other_size=15, first=8,
                 mean=[0.3], deviation=[0.2]),
    "mixed": dict(size=8, patch=4, channels=3, layers=2, heads=2, dim=8, ffn=12, classes=5, pooling="class-token", first=8,
                  second_targets=[1, 2, 0], second_shares=[0.25, 0.0, 0.625]),
}
TARGETS = [3, 0, 2]
GRIDS = [(2, 3), (3, 5), (5, 3), (4, 4), (3, 1), (1, 2)]
MADE = dict(made_by="scripts/reference/make_vision_reference.py", torch=torch.__version__.split("+")[0],
            torchvision=torchvision.__version__.split("+")[0])
IMAGENET = dict(mean=[0.485, 0.456, 0.406], deviation=[0.229, 0.224, 0.225])


def tensors(model):
    """Returns [(heed's name, torchvision's tensor)] of all parameters in heed's order of definition. Changes to a
    tensor change the model."""
    names = [("encoder/patches/weight", model.conv_proj.weight.flatten(1)), ("encoder/patches/bias", model.conv_proj.bias)]
    if hasattr(model, "class_token"):
        names.append(("encoder/class_token", model.class_token[0]))
    names.append(("encoder/positions/weight", model.encoder.pos_embedding[0]))

    def linear(name, module):
        names.extend([(name + "/weight", module.weight), (name + "/bias", module.bias)])

    def norm(name, module):
        names.extend([(name + "/scale", module.weight), (name + "/bias", module.bias)])

    for i, layer in enumerate(model.encoder.layers):
        p, attention = f"encoder/layers/{i}", layer.self_attention
        for kind, stacked in (("weight", attention.in_proj_weight), ("bias", attention.in_proj_bias)):
            names.extend((f"{p}/self_attention/{x}/{kind}", part) for x, part in zip(("query", "key", "value"), stacked.chunk(3)))
        linear(p + "/self_attention/output", attention.out_proj)
        linear(p + "/feed_forward/in", layer.mlp[0])
        linear(p + "/feed_forward/out", layer.mlp[3])
        norm(p + "/self_attention_norm", layer.ln_1)
        norm(p + "/feed_forward_norm", layer.ln_2)
    norm("encoder/norm", model.encoder.ln)
    linear("output", model.heads.head)
    return names


def gradients(model):
    """Returns [(heed's name, gradient)] of all parameters."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.grad)
        return [(name, x.clone()) for name, x in tensors(model)]


def make_model(c):
    """Returns a torchvision model with the parameters of the formula."""
    model = VisionTransformer(c["size"], c["patch"], c["layers"], c["heads"], c["dim"], c["ffn"], num_classes=c["classes"]).double().eval()
    model.conv_proj = nn.Conv2d(c["channels"], c["dim"], c["patch"], c["patch"])
    if c["pooling"] == "mean":
        del model.class_token
        model.encoder.pos_embedding = nn.Parameter(model.encoder.pos_embedding[:, 1:].clone())
    with torch.no_grad():
        for j, (name, x) in enumerate(tensors(model)):
            i = torch.arange(x.numel(), dtype=torch.float64)
            x.copy_((0.3 * torch.sin(1 + 0.7 * j + 0.91 * i) + (1 if name.endswith("/scale") else 0)).reshape(x.shape))
    return model


def features(model, x):
    """Returns what the output layer reads, [B, D]."""
    x = model._process_input(x)
    if hasattr(model, "class_token"):
        return model.encoder(torch.cat([model.class_token.expand(len(x), -1, -1), x], 1))[:, 0]
    return model.encoder(x).mean(1)


def resized(grid, size):
    """Returns a grid of vectors [1, from * from, D] in another size."""
    width = math.isqrt(grid.shape[1])
    grid = F.interpolate(grid.reshape(1, width, width, -1).permute(0, 3, 1, 2), size=(size, size), mode="bicubic", align_corners=False)
    return grid.permute(0, 2, 3, 1).flatten(1, 2)


def samples(c, size):
    """Returns the samples of all images, [B, size, size, C]."""
    i = torch.arange(size * size * c["channels"])
    return torch.stack([(13 + 97 * b + 31 * i + 7 * i * i) % 256 for b in range(len(TARGETS))]).reshape(-1, size, size, c["channels"])


def normalised(images, numbers, dtype=torch.float64):
    """Returns images [B, C, size, size] of samples [B, size, size, C]."""
    mean, deviation = (torch.tensor(numbers[x], dtype=dtype) for x in ("mean", "deviation"))
    return ((images.to(dtype) / 255 - mean) / deviation).permute(0, 3, 1, 2)


def flat(x):
    return [float(f"{v:.12g}") for v in x.detach().reshape(-1).tolist()]


def run(c):
    model, numbers = make_model(c), c if "mean" in c else IMAGENET
    x = features(model, normalised(samples(c, c["size"]), numbers))
    logits = model.heads(x)
    target = F.one_hot(torch.tensor(TARGETS), c["classes"]).double()
    if "second_targets" in c:
        shares = torch.tensor(c["second_shares"])[:, None]
        target = (1 - shares) * target + shares * F.one_hot(torch.tensor(c["second_targets"]), c["classes"])
    loss = F.cross_entropy(logits, target, label_smoothing=0.1, reduction="sum")
    loss.backward()
    out = dict(c, features=flat(x), logits=flat(logits), loss=loss.item(), nll=F.cross_entropy(logits, target, reduction="sum").item())
    first = out.pop("first")
    if "other_size" in c:
        with torch.no_grad():
            # torchvision refuses images of another size than its own, so that the resized model is another one.
            other, tokens = make_model(dict(c, size=c["other_size"])), 1 if c["pooling"] == "class-token" else 0
            for (_, to), (_, source) in zip(tensors(other), tensors(model)):
                if to.shape == source.shape:
                    to.copy_(source)
            grid = resized(model.encoder.pos_embedding[:, tokens:], c["other_size"] // c["patch"])
            other.encoder.pos_embedding.copy_(torch.cat([model.encoder.pos_embedding[:, :tokens], grid], 1))
            x = features(other, normalised(samples(c, c["other_size"]), numbers))
            out |= dict(other_features=flat(x), other_logits=flat(other.heads(x)))
    # For each parameter: the norm of its gradient, and the gradient's first elements.
    out["gradients"] = {name: dict(norm=g.norm().item(), first=flat(g.reshape(-1)[:first])) for name, g in gradients(model)}
    return out


def full(path):
    """Writes vit_b_16 with random parameters, images, and the logits."""
    import h5py

    torch.set_default_dtype(torch.float32)
    torch.manual_seed(1)
    model = vit_b_16().eval()
    # torchvision begins with an output layer of zeros, a class token of zeros, and norms without effect.
    with torch.no_grad():
        for name, x in tensors(model):
            if name in ("output/weight", "encoder/class_token") or name.endswith("/bias"):
                x.add_(0.05 * torch.randn(x.shape))
            elif name.endswith("/scale"):
                x.add_(0.2 * torch.randn(x.shape))
    images = torch.randint(0, 256, (2, 224, 224, 3))
    # The second image is smooth, as photographs are.
    images[1] = 128 + 100 * torch.sin(torch.arange(224)[:, None, None] / 31 + torch.arange(224)[None, :, None] / 17 + torch.arange(3))
    with torch.no_grad():
        single = model(normalised(images, IMAGENET, torch.float32))
    with h5py.File(path, "w") as file:
        file.attrs.update(MADE)
        for name, x in tensors(model):
            file["parameters/" + name] = x.detach().numpy()
        with torch.no_grad():
            expected = model.double()(normalised(images, IMAGENET))
        file["images"] = images.to(torch.uint8).numpy()
        file["logits"] = expected.float().numpy()
    print(f"logits from {expected.min():.3f} to {expected.max():.3f}; "
          f"PyTorch's own error with float32: {(single - expected).abs().max():.2g}")


def write(content):
    print(json.dumps(MADE | content, indent=None, separators=(",", ":")))


def grids():
    """Returns grids whose element i is 0.3 sin(1 + 0.91 i), with three columns, in other sizes."""
    out = []
    for size, other in GRIDS:
        grid = (0.3 * torch.sin(1 + 0.91 * torch.arange(size * size * 3, dtype=torch.float64))).reshape(1, -1, 3)
        out.append({"from": size, "to": other, "result": flat(resized(grid, other))})
    return dict(columns=3, grids=out)


parser = argparse.ArgumentParser()
parser.add_argument("--grids", action="store_true")
parser.add_argument("--full", metavar="FILE.h5")
options = parser.parse_args()
torch.set_default_dtype(torch.float64)
if options.full:
    full(options.full)
elif options.grids:
    write(grids())
else:
    write(dict(targets=TARGETS, cases={name: run(c) for name, c in CASES.items()}))
