"""What the peers have in common: sentence pairs as ids, the batches in which they train on them, and sinusoids."""

import math

PADDING, START, END = 0, 2, 3


def round_up(n, multiple):
    return -(-n // multiple) * multiple


def read_ids(path):
    with open(path, encoding="utf-8") as file:
        return [[int(word) for word in line.split()] + [END] for line in file]


def make_batches(pairs, words, multiple):
    """Sorts pairs by target length, rounded up to a multiple of `multiple`, and cuts them into batches of at most
    `words` padded target tokens. A batch that is at least a quarter full is not continued with longer sentences."""
    result, batch, width = [], [], 0
    for length, pair in sorted(((round_up(len(p[1]), multiple), p) for p in pairs), key=lambda x: (x[0], len(x[1][0]))):
        if batch and ((len(batch) + 1) * length > words or (length > width and len(batch) * width > words // 4)):
            result.append(batch)
            batch = []
        batch.append(pair)
        width = length
    return result + [batch] if batch else result


def pad(row, width):
    return row + [PADDING] * (width - len(row))


def sinusoids(length, width):
    import torch  # by now, the peer has set what torch reads when it is imported

    angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10000) / width))
    return torch.stack([angles.sin(), angles.cos()], 2).view(length, width)
