"""Trains a vision Transformer of torchvision on random images that are in memory already, without reading and augmenting
them, and prints {"images_per_second": ...}. The settings are those that were fastest on processors: autocast to bfloat16,
fused AdamW, attention by scaled_dot_product_attention, and channels last."""

import argparse
import json
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
parser.add_argument("--precision", choices=["float32", "bfloat16"], default="bfloat16")
o = parser.parse_args()

torch.manual_seed(o.seed)
torch.set_num_threads(o.threads)
if o.model == "vit":
    model = VisionTransformer(o.size, o.patch, o.depth, o.heads, o.width, o.ffn, num_classes=10)
else:
    model = SwinTransformer([o.patch, o.patch], o.width, o.depths, o.stage_heads, [o.window, o.window], stochastic_depth_prob=0.0, num_classes=10)
model = model.train().to(memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, fused=True)
images = torch.randn(o.batch, 3, o.size, o.size).to(memory_format=torch.channels_last)
labels = torch.randint(0, 10, (o.batch,))
loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)


def update():
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=o.precision == "bfloat16"):
        loss = loss_of(model(images).float(), labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


for _ in range(3):
    update()
start, done = time.perf_counter(), 0
while done < o.updates and time.perf_counter() - start < o.seconds:
    update()
    done += 1
print(json.dumps({"images_per_second": done * o.batch / (time.perf_counter() - start)}))
