"""Measures the peak of matrix products on each instruction set, for the library and for heed. Other sections state
shares of this peak."""

import os

from .measure import ProgramError, run
from .report import counted

PRECISIONS = ("float32", "bfloat16", "int8")


def add_products(bench, printed):
    """Adds a row for each line of `heed_gemm_bench peak`: instruction set, number of threads, then for each
    precision the library's GFLOP/s, heed's GFLOP/s and heed's share; empty where a product does not exist. The
    greatest numbers become the machine's peaks."""
    for line in printed.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for precision, library, own in zip(PRECISIONS, cells[2::3], cells[3::3]):
            rates = [float(rate) for rate in (library, own) if rate]
            if rates:
                bench.peaks[precision] = max(bench.peaks.get(precision, 0), *rates)
            if own:
                theirs = {"peer": "library", "theirs": [float(library)]} if library else {}
                bench.add(f"{precision}, {cells[0]}, {counted(int(cells[1]))}", "GFLOP/s", [float(own)], more=True, **theirs)


def instruction_sets(program):
    """Returns the names of this machine's instruction sets from the oldest to the newest, as HEED_ISA spells them, or
    nothing when `heed_gemm_bench` is too old to list them."""
    names = run([program, "sets"]).output.split()
    return names if all(name.replace("_", "").isalnum() for name in names) else []


def used_set(bench):
    """Returns the instruction set that heed uses, or "" when no heed_gemm_bench says what this machine has."""
    program, chosen = bench.tool("heed_gemm_bench"), os.environ.get("HEED_ISA")
    if chosen or not os.access(program, os.X_OK):
        return chosen or ""
    return (instruction_sets(program) or [""])[-1]


def print_products(bench, program, name):
    """Returns what `heed_gemm_bench peak` prints for an instruction set. Where a library's product ends the program
    (oneDNN 2.6 with AMX on some virtual machines), only heed's own products are measured, and a note says so."""
    environment = {"HEED_ISA": name}
    try:
        return run([program, "peak"], environment=environment).output
    except ProgramError as error:
        bench.note(f"{name}: the library's products cannot be measured ({error}); the peak is that of heed's own.")
        return run([program, "own"], environment=environment).output


def measure(bench):
    program = bench.tool("heed_gemm_bench")
    if not os.access(program, os.X_OK):
        bench.note("No heed_gemm_bench beside heed's programs (cmake --build --preset release --target heed_gemm_bench).")
        return
    bench.say("gemm: about a minute")
    names = instruction_sets(program)
    if not names:
        bench.note(f"{program} is an older one (cmake --build --preset release --target heed_gemm_bench).")
        return
    for name in names:
        if (os.environ.get("HEED_ISA") or name) == name:
            add_products(bench, print_products(bench, program, name))
    printed = run([program]).output
    bench.note(f"```\n{printed.rstrip()}\n```")
