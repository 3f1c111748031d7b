"""Measures the speed while another program keeps one processor busy, as a share of the undisturbed speed."""

import os
import subprocess
import sys
from contextlib import contextmanager
from statistics import median

from . import training, translation


@contextmanager
def neighbour():
    """Runs a program that computes without end on the last processor."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
        yield
    finally:
        process.kill()
        process.wait()


def beside_neighbour(program):
    with neighbour():
        return program()


def compare(bench, what, unit, programs):
    """Adds rows without and with the busy program. A note in each of the latter rows gives the remaining shares of
    the speed."""
    quiet = bench.compare(what, unit, programs, more=True)
    busy = bench.compare(f"{what}, busy neighbour", unit, {name: (lambda p=p: beside_neighbour(p)) for name, p in programs.items()}, more=True)
    for before, after in zip(quiet, busy):
        left = [f"heed keeps {100 * median(after.heed) / median(before.heed):.0f} %"]
        if before.theirs and after.theirs:
            left.append(f"{after.peer} {100 * median(after.theirs) / median(before.theirs):.0f} %")
        after.note = ", ".join(left)


def measure(bench):
    materials, updates = bench.materials, 6 if bench.quick else 12
    precision = training.fast_precision(bench)
    programs = {"heed": lambda: training.heed(bench, "tiny", updates, precision)[0]}
    if bench.peers.has("torch"):
        # PyTorch's threads spin at barriers, so that a step takes many seconds: few steps, and a time limit.
        programs["PyTorch"] = lambda: training.pytorch(bench, "tiny", 4, precision, seconds=20)["tokens_per_second"]
    compare(bench, f"training tiny, {precision}", "tokens/s", programs)
    text = materials.first_lines(materials.test, 200 if bench.quick else 1000)
    peer = translation.Peer(bench, materials.tiny, text) if translation.has_peer(bench) else None
    programs = {"heed": lambda: translation.heed(bench, materials.tiny, text, 4, "int8")[0]}
    if peer:
        programs["CTranslate2"] = lambda: peer.translate("int8", 4, None)["pieces_per_second"]
        programs["CTranslate2, all threads a batch"] = lambda: peer.call("translate", "int8", 4, None, "--intra", bench.threads)["pieces_per_second"]
    compare(bench, "translating tiny, int8, beam 4", "pieces/s", programs)
