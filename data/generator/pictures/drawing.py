"""Draws shapes. All arithmetic is on integers, so that every machine computes the same pixels.

Places and sizes are in units of 1/32 of a pixel. A pixel has 4 x 4 samples; the share of the samples that lie in a
shape mixes the colour of the shape with the background, which gives smooth edges."""

SIDE = 32  # width and height of a picture in pixels
UNIT = 32  # units in a pixel
SAMPLES = 4  # samples in a pixel, in each direction

# Each test tells whether the point (x, y), relative to the centre of the shape, lies in a shape of radius r.
# x grows to the right and y grows downwards.
SHAPES = {
    "circle": lambda x, y, r: x * x + y * y <= r * r,
    "ring": lambda x, y, r: 9 * r * r <= 25 * (x * x + y * y) <= 25 * r * r,
    "square": lambda x, y, r: 8 * max(abs(x), abs(y)) <= 7 * r,
    "diamond": lambda x, y, r: abs(x) + abs(y) <= r,
    "triangle": lambda x, y, r: 8 * abs(y) <= 7 * r and 16 * abs(x) <= 8 * y + 7 * r,
    "cross": lambda x, y, r: max(abs(x), abs(y)) <= r and 10 * min(abs(x), abs(y)) <= 3 * r,
}


def draw(background, figures):
    """Returns the rows of a picture, each a list of (red, green, blue). A figure is (shape, colour, x, y, radius)
    with the place of the centre; figures must not touch each other."""
    rows = [[background] * SIDE for _ in range(SIDE)]
    for shape, colour, x, y, radius in figures:
        for row in range(max(0, (y - radius) // UNIT), min(SIDE, (y + radius) // UNIT + 1)):
            for column in range(max(0, (x - radius) // UNIT), min(SIDE, (x + radius) // UNIT + 1)):
                share = coverage(SHAPES[shape], column * UNIT - x, row * UNIT - y, radius)
                if share > 0:
                    rows[row][column] = mix(background, colour, share)
    return rows


def coverage(inside, left, top, radius):
    """Returns the number of samples of a pixel that lie in the shape. (left, top) is the corner of the pixel."""
    step = UNIT // SAMPLES
    offsets = range(step // 2, UNIT, step)
    return sum(inside(left + dx, top + dy, radius) for dy in offsets for dx in offsets)


def mix(background, colour, share):
    """Returns the colour of a pixel with `share` of its samples in the shape."""
    whole = SAMPLES * SAMPLES
    return tuple((b * (whole - share) + c * share + whole // 2) // whole for b, c in zip(background, colour))
