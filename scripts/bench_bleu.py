#!/usr/bin/env python3
"""Measures `bleu` beside sacreBLEU, run after run alternately; called by `scripts/bench bleu TEXT`.

TEXT (plain or .gz, one sentence a line) is repeated and corrupted with a fixed seed: `short` pairs of single sentences,
`long` pairs of two or three joined with a third of the words wrong, `few` the first twentieth of these (sacreBLEU's TER takes
a second for 70 of them), `systems` of 3,004 joined lines. Each figure is
the median of the runs' processor seconds (user and system, start of the process included), on one thread; a row
also says whether both printed the same (the signature's version and the explanation of a paired test left out).
"""

import argparse
import gzip
import multiprocessing
import os
import random
import re
import statistics
import subprocess
import sys
import time


def corrupted(rng, line, words, rate):
    """A line with words replaced, inserted, moved in groups of up to five, or lost."""
    parts, out, at = line.split(" "), [], 0
    while at < len(parts):
        kind = rng.random() / rate
        if kind >= 1:
            out.append(parts[at])
        elif kind < 0.3:
            out.append(rng.choice(words))
        elif kind < 0.5:
            out += [rng.choice(words), parts[at]]
        elif kind < 0.8:
            many = rng.randrange(1, 6)
            to = rng.randrange(len(out) + 1)
            out[to:to] = parts[at : at + many]
            at += many - 1
        at += 1
    return " ".join(out)


def make_inputs(text, folder, count):
    with (gzip.open if text.endswith(".gz") else open)(text, "rb") as file:
        lines = [line for line in file.read().decode().split("\n") if line]
    words = [word for line in lines for word in line.split(" ")]
    rng = random.Random(1)

    def write(name, lines):
        with open(os.path.join(folder, name), "wb") as file:
            file.write("".join(line + "\n" for line in lines).encode())

    for name, number, joined, rate, systems in (("short", count, (1, 1), 0.3, ["hyp"]), ("long", count, (2, 3), 0.35, ["hyp"]),
                                                ("systems", 3004, (2, 2), 0.3, ["one", "two"])):  # fmt: skip
        references, at = [], 0
        for _ in range(number):
            many = rng.randint(*joined)
            references.append(corrupted(rng, " ".join(lines[(at + k) % len(lines)] for k in range(many)), words, 0.1))
            at += many
        write(f"{name}.ref", references)
        for system in systems:
            hypotheses = [corrupted(rng, line, words, rate) for line in references]
            write(f"{name}.{system}", hypotheses)
        if name == "long":
            write("few.ref", references[: number // 20])
            write("few.hyp", hypotheses[: number // 20])
    write("3000.ref", references[:3000])
    write("3000.hyp", references[3:3003])


def run(command, folder, printed="printed"):
    """(processor seconds, wall seconds, peak memory in MB) of a command; its output becomes the file `printed`."""
    start = time.perf_counter()
    with open(os.path.join(folder, printed), "wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        if process.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit {process.returncode}")
        return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def apart(function, *args):
    """Whether function(*args) ends well in a process of its own: a process that is started inherits the peak memory of the
    one that starts it, so this one stays small."""
    process = multiprocessing.Process(target=function, args=args)
    process.start()
    process.join()
    return process.exitcode == 0


def check_same(folder, *names):
    if len({neutral(os.path.join(folder, name)) for name in names}) > 1:
        sys.exit(1)


def neutral(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        text = file.read()
    text = re.sub(r'(version(:|": "))(heed\.)?[0-9.]+', r"\1", text)
    return re.sub(r"-+\nPaired.*\n\n(?=-----------------\nMetric)", "", text, flags=re.S)


SHORT, LONG = ["short.ref", "-i", "short.hyp"], ["long.ref", "-i", "long.hyp"]
SYSTEMS, ALL = ["systems.ref", "-i", "systems.one", "systems.two", "-f", "text"], ["-m", "bleu", "chrf", "ter"]
ROWS = [  # name, arguments, the factor wanted
    ("BLEU", SHORT, 50),
    ("BLEU, intl", [*SHORT, "-tok", "intl"], 50),
    ("BLEU, long lines", LONG, 50),
    ("chrF", [*SHORT, "-m", "chrf"], 50),
    ("chrF++", [*SHORT, "-m", "chrf", "-cw", "2"], 50),
    ("chrF, long lines", [*LONG, "-m", "chrf"], 50),
    ("TER", [*SHORT, "-m", "ter"], 20),
    ("TER, long lines (a twentieth)", ["few.ref", "-i", "few.hyp", "-m", "ter"], 20),
    ("sentence BLEU", [*SHORT, "-sl"], 50),
    ("BLEU with confidence interval", [*SHORT, "-ci"], 100),
    ("paired bootstrap, BLEU", [*SYSTEMS, "-pbs"], 20),
    ("paired bootstrap, BLEU chrF TER", [*SYSTEMS, "-pbs", *ALL], 20),
    ("paired randomisation, BLEU", [*SYSTEMS, "-par"], 20),
]


def compare(args, bleu, name, arguments, wanted):
    ours, theirs = [], []
    for _ in range(args.repeat):
        ours.append(run([bleu, *arguments, "-j", "1", "-q"], args.folder, "ours"))
        if args.peer:
            theirs.append(run([sys.executable, "-m", "sacrebleu", *arguments, "-q", "-nc"], args.folder, "theirs"))
    seconds = statistics.median(r[0] for r in ours)
    line = f"{name:32} heed {seconds:8.3f} s {max(r[2] for r in ours):6.0f} MB"
    if theirs:
        peer = statistics.median(r[0] for r in theirs)
        same = apart(check_same, args.folder, "ours", "theirs")
        line += f"   sacreBLEU {peer:8.2f} s {max(r[2] for r in theirs):6.0f} MB   {peer / seconds:6.1f} x (wanted {wanted})"
        line += "   same output" if same else "   OUTPUT DIFFERS"
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--bin", required=True, help="folder with bleu")
    parser.add_argument("--folder", required=True, help="an empty folder to work in")
    parser.add_argument("--lines", type=int, default=100000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", help="rows whose name this regular expression finds")
    args = parser.parse_args()
    args.peer = subprocess.run([sys.executable, "-m", "sacrebleu", "--version"], capture_output=True).returncode == 0
    if not args.peer:
        print("sacreBLEU is not installed for this Python: heed alone")
    bleu = os.path.join(args.bin, "bleu")
    if not apart(make_inputs, args.text, args.folder, args.lines):
        sys.exit(1)
    print(f"{args.lines} lines, one thread, processor seconds, median of {args.repeat}")
    for name, arguments, wanted in ROWS:
        if not args.only or re.search(args.only, name):
            compare(args, bleu, name, arguments, wanted)
    walls = sorted(run([bleu, "3000.ref", "-i", "3000.hyp"], args.folder)[1] for _ in range(4 * args.repeat))
    print(f"3,000 lines, start included      wall: median {1000 * walls[len(walls) // 2]:.1f} ms, max {1000 * walls[-1]:.1f} ms (wanted 60)")
    outputs = []
    for threads in range(1, (os.cpu_count() or 1) + 1):
        outputs.append(f"threads.{threads}")
        runs = [run([bleu, *LONG, "-m", "ter", "-j", str(threads)], args.folder, outputs[-1]) for _ in range(args.repeat)]
        print(f"TER, long lines, -j {threads:<12} wall: min {min(r[1] for r in runs):.3f} s")
    print("the same output with any number of threads" if apart(check_same, args.folder, *outputs) else "OUTPUT DEPENDS ON THE THREADS")


if __name__ == "__main__":
    main()
