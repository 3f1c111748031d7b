#!/usr/bin/env python3
"""Writes lib/heed/ops/gelu_table.inc: polynomials for the normal distribution in gelu, by Chebyshev interpolation.

Needs mpmath from PyPI. Run from the top of the source tree: python3 scripts/make_gelu_table.py The tail of the normal
distribution is 1 - Phi(w sqrt 2) = erfc(w) / 2 = exp(-w^2) t Q(u) / 2 for w >= 0, with t = 1 / (1 + w / 2) and u = 2 t
- 1. Q is smooth on -1 <= u <= 1, and the polynomials approximate Q.
"""

import argparse
import pathlib

argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()

import mpmath as mp  # noqa: E402

mp.mp.dps = 60


def q(u):
    t = (u + 1) / 2
    if t < mp.mpf(10) ** -3:  # asymptotic series of erfc(w) exp(w^2)
        w = 2 / t - 2 if t > 0 else None
        if w is None:
            return 1 / (2 * mp.sqrt(mp.pi))
        series = mp.nsum(lambda k: (-1) ** int(k) * mp.fac2(2 * int(k) - 1) / (2 * w * w) ** int(k), [0, 12])
        return series / (w * mp.sqrt(mp.pi)) / t
    w = 2 / t - 2
    return mp.erfc(w) * mp.exp(w * w) / t


def fit(degree):
    """Returns the coefficients of the interpolant at Chebyshev's nodes, in powers of u, lowest first."""
    n = degree + 1
    nodes = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / n) for k in range(n)]
    values = [q(x) for x in nodes]
    chebyshev = [2 * sum(values[k] * mp.cos(j * mp.pi * (k + mp.mpf(1) / 2) / n) for k in range(n)) / n
                 for j in range(n)]
    chebyshev[0] /= 2
    before, current = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    powers = [mp.mpf(0)] * n
    for j in range(n):
        for i, c in enumerate(before):
            powers[i] += chebyshev[j] * c
        following = [mp.mpf(0)] + [2 * c for c in current]
        for i, c in enumerate(before):
            following[i] -= c
        before, current = current, following
    return powers


def worst(powers):
    points = [mp.mpf(k) / 500 - 1 for k in range(1001)]
    return max(abs(mp.polyval(powers[::-1], u) - q(u)) for u in points)


def main():
    lines = ["// Coefficients of the polynomial Q in gelu-inl.h, the lowest power first. "
             "Written by scripts/make_gelu_table.py."]
    for name, kind, degree, digits, end in (("kTailFloat", "float", 10, 9, "F"), ("kTailDouble", "double", 26, 17, "")):
        powers = fit(degree)
        lines.append(f"// The largest error of this polynomial is {mp.nstr(worst(powers), 2)}.")
        lines.append(f"inline constexpr {kind} {name}[] = {{")
        lines += [f"    {float(c):.{digits}g}{end}," for c in powers]
        lines.append("};")
        print(lines[-len(powers) - 3])
    pathlib.Path("lib/heed/ops/gelu_table.inc").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
