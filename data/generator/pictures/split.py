"""Splits the scenes into train, valid and test. No sentence occurs in two of the parts."""

from grammar.pairs import digest

from . import scenes

# For each part: number of pictures, number of descriptions of one figure, number of pictures of each of them. The
# other pictures have two figures, and each has a sentence of its own.
PARTS = {"train": (900, 52, 7), "valid": (100, 10, 4), "test": (100, 10, 4)}


def shuffled(items, purpose):
    """Returns the items in an order that depends only on them and the purpose."""
    return sorted(items, key=lambda item: digest(f"{purpose}|{item}"))


def split():
    """Returns for each part its scenes in mixed order."""
    singles = iter(shuffled(scenes.descriptions(), "one figure"))
    doubles = iter(shuffled(scenes.pairs(), "two figures"))
    parts = {}
    for part, (wanted, descriptions, repeats) in PARTS.items():
        found = [scenes.single(one, n) for one in take(descriptions, singles) for n in range(repeats)]
        found += [scenes.double(*one) for one in take(wanted - len(found), doubles)]
        parts[part] = shuffled(found, "order")
    return parts


def take(count, iterator):
    """Returns the next `count` items."""
    return [next(iterator) for _ in range(count)]
