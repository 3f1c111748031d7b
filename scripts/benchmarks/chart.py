"""Draws line charts as SVG, side by side."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 360, 300  # size of one chart, in pixels
LEFT, RIGHT, TOP, BOTTOM = 64, 28, 52, 48  # margins around the axes, in pixels
COLOURS = ["#1f6fb2", "#d1722c", "#3a9150"]


def ticks(greatest):
    """Returns about five round numbers from 0 to the first round number that is at least `greatest`."""
    power = 1.0
    while power * 10 <= greatest:
        power *= 10
    while power > greatest:
        power /= 10
    step = next(power * factor for factor in (0.2, 0.25, 0.5, 1, 2, 2.5) if power * factor * 5 >= greatest)
    count = 1
    while count * step < greatest * (1 - 1e-9):
        count += 1
    return [step * i for i in range(count + 1)]


def text(x, y, what, anchor="middle", size=12, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{more}>{escape(what)}</text>'


def panel(title, x_label, y_label, curves):
    """Returns the SVG of one chart: axes from 0 and the curves {name: [[(x, y)]]}. Curves of the same name have the
    same colour; a name that begins with '-' means dashed curves."""
    points = [point for alike in curves.values() for curve in alike for point in curve]
    x_ticks, y_ticks = ticks(max(x for x, _ in points)), ticks(max(y for _, y in points))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def at(x, y):
        return LEFT + x / x_ticks[-1] * (right - LEFT), bottom - y / y_ticks[-1] * (bottom - TOP)

    parts = [text((LEFT + right) / 2, 20, title, size=14)]
    for x in x_ticks:
        parts.append(text(at(x, 0)[0], bottom + 16, f"{x:,g}"))
    for y in y_ticks:
        height = at(0, y)[1]
        parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{height:.1f}" y2="{height:.1f}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, height + 4, f"{y:,g}", "end"))
    parts.append(f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#444"/>')
    parts.append(text((LEFT + right) / 2, HEIGHT - 12, x_label))
    middle = (TOP + bottom) / 2
    parts.append(text(16, middle, y_label, more=f' transform="rotate(-90 16 {middle:.1f})"'))
    for number, (name, alike) in enumerate(curves.items()):
        reference = name.startswith("-")
        colour = "#888" if reference else COLOURS[number % len(COLOURS)]
        dashes = ' stroke-dasharray="5 4"' if reference else ""
        for curve in alike:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in curve))
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{2 if len(alike) == 1 else 1}"{dashes}/>')
            if not reference and len(alike) == 1:
                parts += ['<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>'.format(*at(*point), colour) for point in curve]
        across = LEFT + (right - LEFT) * (number + 0.5) / len(curves)
        parts.append(text(across, 40, name.removeprefix("-"), more=f' fill="{colour}"'))
    return "".join(parts)


def chart(panels):
    """Returns the SVG of several charts [(title, x label, y label, curves)], side by side."""
    width = WIDTH * len(panels)
    drawn = "".join(f'<g transform="translate({WIDTH * i} 0)">{panel(*part)}</g>\n' for i, part in enumerate(panels))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}" '
        f'font-family="sans-serif">\n<rect width="{width}" height="{HEIGHT}" fill="white"/>\n{drawn}</svg>\n'
    )
