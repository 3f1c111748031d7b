"""The peak in matrix products that heed's own benchmark finds; the other sections' shares are of it."""

import os
import re

from .measure import run

PRECISIONS = ("float32", "bfloat16", "int8")


def peaks(printed):
    """{precision: GFLOP/s} of all threads: the greatest number of a line that names the precision, or of its last line."""
    result = {}
    for line in printed.splitlines():
        found = re.match(r"\s*(?:peak: )?(?P<start>.*?)(?P<precision>float32|bfloat16|int8)\b(?P<rest>.*)", line)
        if not found or "in hardware" in line:
            continue
        text = found["start"] if line.startswith("peak") else found["rest"].rpartition(":")[2]
        numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]
        if numbers:
            result[found["precision"]] = max(result.get(found["precision"], 0), *numbers)
    return result


def measure(bench):
    program = bench.tool("heed_gemm_bench")
    if not os.access(program, os.X_OK):
        bench.note("No heed_gemm_bench beside heed's programs (cmake --build --preset release --target heed_gemm_bench).")
        return
    bench.say("gemm: a quarter of a minute")
    printed = run([program]).output
    bench.peaks = peaks(printed)
    for precision in PRECISIONS:
        if precision in bench.peaks:
            bench.add(f"peak in {precision}, {bench.threads} threads", "GFLOP/s", [bench.peaks[precision]], more=True)
    bench.note(f"```\n{printed.rstrip()}\n```")
