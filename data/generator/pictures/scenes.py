"""Chooses what the pictures show. A scene is (sentence, label, figures, background). The sentence says which figures
the picture has and how they stand to each other. A hash of the sentence and of a number draws the rest: the place,
the exact size, the exact colour and the background."""

from grammar.pairs import digest

from .drawing import SHAPES, SIDE, UNIT

COLOURS = {
    "red": (214, 40, 40),
    "orange": (240, 130, 20),
    "yellow": (240, 215, 40),
    "green": (40, 160, 70),
    "blue": (40, 90, 215),
    "purple": (140, 60, 170),
}
RADII = {"large": (6 * UNIT, 13 * UNIT // 2), "small": (7 * UNIT // 2, 4 * UNIT)}  # least and greatest
CELL = SIDE * UNIT // 2  # side of a cell; a picture has 2 x 2 cells
# The cells (column, row) of the first and the second figure. None: the same column or row for both, drawn by chance.
RELATIONS = {
    "above": ((None, 0), (None, 1)),
    "below": ((None, 1), (None, 0)),
    "to the left of": ((0, None), (1, None)),
    "to the right of": ((1, None), (0, None)),
}
SHIFT = UNIT  # greatest distance of a figure from the middle of its cell, in each direction
COLOUR_JITTER = 10  # greatest difference of a value of red, green or blue from COLOURS
BACKGROUND = (196, 248)  # darkest and lightest background
TINT = 6  # greatest difference of a value of red, green or blue from the grey of the background


class Chance:
    """Draws numbers that depend only on the text."""

    def __init__(self, text):
        self.text = text
        self.drawn = 0

    def draw(self, low, high):
        """Returns a number of low to high, both included."""
        self.drawn += 1
        return low + int(digest(f"{self.text}|{self.drawn}"), 16) % (high - low + 1)


def descriptions():
    """Returns all descriptions of one figure: (size, colour, shape)."""
    return [(size, colour, shape) for size in RADII for colour in COLOURS for shape in SHAPES]


def pairs():
    """Returns all descriptions of two figures: (first, relation, second). The first figure is the large one."""
    large = [one for one in descriptions() if one[0] == "large"]
    small = [one for one in descriptions() if one[0] == "small"]
    return [(first, relation, second) for first in large for relation in RELATIONS for second in small]


def noun_phrase(description):
    """Returns a description in words, for example "a small red circle"."""
    return "a " + " ".join(description)


def single(description, number):
    """Returns the scene of one figure; `number` tells the scenes with the same description apart."""
    sentence = noun_phrase(description)
    chance = Chance(f"{sentence}|{number}")
    cell = (chance.draw(0, 1), chance.draw(0, 1))
    return sentence, description[2], [figure(description, cell, chance)], background(chance)


def double(first, relation, second):
    """Returns the scene of two figures: the first is above, below, to the left or to the right of the second."""
    sentence = f"{noun_phrase(first)} {relation} {noun_phrase(second)}"
    chance = Chance(sentence)
    side = chance.draw(0, 1)
    cells = [tuple(side if cell is None else cell for cell in pair) for pair in RELATIONS[relation]]
    figures = [figure(one, cell, chance) for one, cell in zip((first, second), cells)]
    return sentence, first[2], figures, background(chance)


def figure(description, cell, chance):
    """Returns a figure as drawing.draw takes it, near the middle of a cell (column, row)."""
    size, colour, shape = description
    x, y = ((2 * place + 1) * CELL // 2 + chance.draw(-SHIFT, SHIFT) for place in cell)
    values = tuple(min(255, max(0, value + chance.draw(-COLOUR_JITTER, COLOUR_JITTER))) for value in COLOURS[colour])
    return shape, values, x, y, chance.draw(*RADII[size])


def background(chance):
    """Draws a light grey with a tint."""
    grey = chance.draw(*BACKGROUND)
    return tuple(grey + chance.draw(-TINT, TINT) for _ in range(3))
