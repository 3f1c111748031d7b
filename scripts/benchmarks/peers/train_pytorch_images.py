"""Trains a vision Transformer of torchvision on random images that are in memory already, without reading and augmenting
them, and prints {"images_per_second": ...}. The settings are those that were fastest on processors: autocast to bfloat16,
fused AdamW, attention by scaled_dot_product_attention, and channels last.

With --folder, trains on the lists that scripts/cifar10 writes there, with its options (crops with a border of 4, flips,
warm-up and cosine), and prints {"accuracy": ...} in percent of the held-out images. With --init xavier, all matrices begin with
Glorot's initialisation, as in heed, and not with torchvision's."""

import argparse
import json
import math
import os
import time

import torch
from torchvision.models import SwinTransformer, VisionTransformer

parser = argparse.ArgumentParser()
parser.add_argument("model", choices=["vit", "swin"])
for name in ("size", "patch", "width", "depth", "heads", "ffn", "window"):
    parser.add_argument(f"--{name}", type=int, default=0)
parser.add_argument("--depths", type=int, nargs="+")
parser.add_argument("--stage-heads", type=int, nargs="+")
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--updates", type=int, default=10)
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--folder")
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--init", choices=["torchvision", "xavier"], default="torchvision")
parser.add_argument("--precision", choices=["float32", "bfloat16"], default="bfloat16")
o = parser.parse_args()

torch.manual_seed(o.seed)
torch.set_num_threads(o.threads)
if o.model == "vit":
    model = VisionTransformer(o.size, o.patch, o.depth, o.heads, o.width, o.ffn, num_classes=10)
else:
    model = SwinTransformer([o.patch, o.patch], o.width, o.depths, o.stage_heads, [o.window, o.window], stochastic_depth_prob=0.0, num_classes=10)
if o.init == "xavier":
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            torch.nn.init.xavier_uniform_(module.weight)
        elif isinstance(module, torch.nn.Conv2d):
            torch.nn.init.xavier_uniform_(module.weight.view(len(module.weight), -1))
model = model.train().to(memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.05, fused=True)
loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)


def update(images, labels):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=o.precision == "bfloat16"):
        loss = loss_of(model(images).float(), labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def measure_speed():
    images = torch.randn(o.batch, 3, o.size, o.size).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (o.batch,))
    for _ in range(3):
        update(images, labels)
    start, done = time.perf_counter(), 0
    while done < o.updates and time.perf_counter() - start < o.seconds:
        update(images, labels)
        done += 1
    return done * o.batch / (time.perf_counter() - start)


def read_list(part):
    """Returns all images of a list, [N, 3, H, W] in 0 ... 1, and the numbers of their classes."""
    with open(os.path.join(o.folder, f"{part}.images")) as images, open(os.path.join(o.folder, f"{part}.labels")) as labels:
        pixels = torch.stack([decode_image(os.path.join(o.folder, line.strip())) for line in images])
        names = [line.strip() for line in labels]
    classes = sorted(set(names))
    return pixels.float() / 255, torch.tensor([classes.index(name) for name in names])


def normalised(images):
    mean, deviation = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])[:, None, :, None, None]
    return ((images - mean) / deviation).to(memory_format=torch.channels_last)


def cropped_and_flipped(images):
    """Moves each image by up to 4 pixels, with black behind the border, and mirrors every second one."""
    n, _, height, width = images.shape
    padded = torch.nn.functional.pad(images, (4, 4, 4, 4))
    y = torch.randint(0, 9, (n, 1)) + torch.arange(height)
    x = torch.randint(0, 9, (n, 1)) + torch.arange(width)
    x = torch.where(torch.rand(n, 1) < 0.5, x.flip(1), x)
    return padded.permute(0, 2, 3, 1)[torch.arange(n)[:, None, None], y[:, :, None], x[:, None, :]].permute(0, 3, 1, 2)


def measure_accuracy():
    (images, labels), (valid, valid_labels) = read_list("train"), read_list("valid")
    total, done, peak = o.epochs * math.ceil(len(images) / o.batch), 0, 0.0015
    for _ in range(o.epochs):
        for some in torch.randperm(len(images)).split(o.batch):
            done += 1
            rate = peak * done / 1000 if done < 1000 else peak / 2 * (1 + math.cos(math.pi * (done - 1000) / max(1, total - 1000)))
            for group in optimizer.param_groups:
                group["lr"] = rate
            update(normalised(cropped_and_flipped(images[some])), labels[some])
    model.eval()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=o.precision == "bfloat16"):
        right = sum((model(normalised(x)).argmax(1) == y).sum().item() for x, y in zip(valid.split(500), valid_labels.split(500)))
    return 100 * right / len(valid_labels)


if o.folder:
    from torchvision.io import decode_image

    print(json.dumps({"accuracy": measure_accuracy()}))
else:
    print(json.dumps({"images_per_second": measure_speed()}))
