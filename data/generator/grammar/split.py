"""Chooses the pairs and splits them into train, valid and test. Only built sentences are held out, never fixed
expressions, and each of their words stays frequent in the training part."""

from collections import Counter

from .pairs import digest


def words(line):
    """Returns the words of a sentence as the split counts them: in lower case, without punctuation at their ends."""
    return [word for word in (part.strip(".,!?") for part in line.lower().split()) if word]


def sort_key(pair):
    """Returns a sort key: short sentences first, as in a textbook; then by the text."""
    return len(words(pair[0])), len(words(pair[1])), pair[0].lower(), pair[0]


def thin(pairs, fixed, wanted, least):
    """Drops built pairs until only `wanted` pairs are left. A pair is dropped only while each of its words stays in
    at least `least` other pairs."""
    counts = count_words(pairs)
    dropped = set()
    for pair in sorted(pairs, key=lambda one: digest("thin|" + one[0])):
        if len(pairs) - len(dropped) <= wanted:
            break
        sets = [set(words(pair[side])) for side in (0, 1)]
        if pair not in fixed and all(counts[side][word] > least for side in (0, 1) for word in sets[side]):
            dropped.add(pair)
            for side in (0, 1):
                counts[side].subtract(sets[side])
    return [pair for pair in pairs if pair not in dropped]


def count_words(pairs):
    """Returns for each side the number of sentences in which each word occurs."""
    counts = [Counter(), Counter()]
    for pair in pairs:
        for side in (0, 1):
            counts[side].update(set(words(pair[side])))
    return counts


def split(pairs, fixed, held_out, least):
    """Returns (train, valid, test). `fixed` pairs stay in train; valid and test get `held_out` pairs each. A pair is
    held out only while each of its words stays in at least `least` training sentences of its language."""
    counts = count_words(pairs)
    held = []
    for pair in sorted(pairs, key=lambda one: digest("held out|" + one[0])):
        if len(held) == 2 * held_out:
            break
        if pair in fixed or len(words(pair[0])) < 3:
            continue
        sets = [set(words(pair[side])) for side in (0, 1)]
        if all(counts[side][word] > least for side in (0, 1) for word in sets[side]):
            held.append(pair)
            for side in (0, 1):
                counts[side].subtract(sets[side])
    if len(held) < 2 * held_out:
        raise ValueError(f"only {len(held)} pairs can be held out, {2 * held_out} are wanted")
    held_set = set(held)
    train = [pair for pair in pairs if pair not in held_set]
    return [sorted(part, key=sort_key) for part in (train, held[:held_out], held[held_out:])]
