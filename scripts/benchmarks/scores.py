"""Measures `bleu` beside sacreBLEU in processor seconds on one thread, with the start of the process.

The text is repeated and corrupted with a fixed seed: `short` has pairs of single sentences; `long` has pairs of two or
three joined sentences with a third of the words wrong; `few` is the first twentieth of `long` (sacreBLEU's TER takes a
second for 70 of these lines); `systems` have 3,004 joined lines. Both programs must print the same text, except the
version in a signature and the explanation of a paired test.
"""

import filecmp
import multiprocessing
import os
import random
import re

from .measure import ProgramError, run
from .report import counted

SHORT, LONG = ["short.ref", "-i", "short.hyp"], ["long.ref", "-i", "long.hyp"]
SYSTEMS, ALL = ["systems.ref", "-i", "systems.one", "systems.two", "-f", "text"], ["-m", "bleu", "chrf", "ter"]
ROWS = {
    "BLEU": SHORT,
    "BLEU, intl": [*SHORT, "-tok", "intl"],
    "BLEU, long lines": LONG,
    "chrF": [*SHORT, "-m", "chrf"],
    "chrF++": [*SHORT, "-m", "chrf", "-cw", "2"],
    "chrF, long lines": [*LONG, "-m", "chrf"],
    "TER": [*SHORT, "-m", "ter"],
    "TER, long lines (a twentieth)": ["few.ref", "-i", "few.hyp", "-m", "ter"],
    "sentence BLEU": [*SHORT, "-sl"],
    "BLEU with confidence interval": [*SHORT, "-ci"],
    "paired bootstrap, BLEU": [*SYSTEMS, "-pbs"],
    "paired bootstrap, BLEU chrF TER": [*SYSTEMS, "-pbs", *ALL],
    "paired randomisation, BLEU": [*SYSTEMS, "-par"],
}
SYSTEM_LINES = 3004


def corrupted(rng, line, words, rate):
    """Returns the line with words replaced, inserted, removed, or moved in groups of up to five."""
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


def write_inputs(text, folder, count, systems):
    """Writes the pairs of `count` lines, the systems of `systems` lines, and 3000.{ref,hyp}."""
    with open(text, encoding="utf-8", newline="\n") as file:
        lines = [line for line in file.read().split("\n") if line]
    words = [word for line in lines for word in line.split(" ")]
    rng = random.Random(1)

    def write(name, lines):
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="\n") as file:
            file.writelines(line + "\n" for line in lines)

    for name, number, joined, rate, hypotheses in (
        ("short", count, (1, 1), 0.3, ["hyp"]),
        ("long", count, (2, 3), 0.35, ["hyp"]),
        ("systems", systems, (2, 2), 0.3, ["one", "two"]),
    ):
        references, at = [], 0
        for _ in range(number):
            many = rng.randint(*joined)
            references.append(corrupted(rng, " ".join(lines[(at + k) % len(lines)] for k in range(many)), words, 0.1))
            at += many
        write(f"{name}.ref", references)
        for system in hypotheses:
            changed = [corrupted(rng, line, words, rate) for line in references]
            write(f"{name}.{system}", changed)
        if name == "long":
            write("few.ref", references[: number // 20 + 1])
            write("few.hyp", changed[: number // 20 + 1])
    write("3000.ref", references[:3000])
    write("3000.hyp", (references[3:] + references)[: min(3000, len(references))])


def apart(function, *arguments):
    """Runs a function in its own process, because a new process inherits the peak memory of the process that starts
    it."""
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode != 0:
        raise ProgramError("the text to score cannot be made")


def neutral(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        text = file.read()
    text = re.sub(r'(version(:|": "))(heed\.)?[0-9.]+', r"\1", text)
    return re.sub(r"-+\nPaired.*\n\n(?=-----------------\nMetric)", "", text, flags=re.S)


def measure(bench):
    count = bench.options.lines or (2000 if bench.quick else 20000)
    apart(write_inputs, bench.materials.text, bench.work, count, min(SYSTEM_LINES, count))
    bleu, peer = bench.tool("bleu"), bench.peers.has("sacrebleu")
    files = lambda arguments: [bench.path(a) if re.search(r"\.(ref|hyp|one|two)$", a) else a for a in arguments]  # noqa: E731
    ours, theirs = bench.path("ours"), bench.path("theirs")
    memory = {"heed": [], "sacreBLEU": []}

    def seconds(name, command, target):
        done = run(command, target=target, small=True)
        memory[name].append(done.peak_mb)
        return done.cpu

    for name, arguments in ROWS.items():
        if bench.options.rows and not re.search(bench.options.rows, name):
            continue
        named = files(arguments)
        memory["heed"], memory["sacreBLEU"] = [], []
        programs = {"heed": lambda: seconds("heed", [bleu, *named, "-j", 1, "-q"], ours)}
        if peer:
            scorer = [bench.peers.python, "-m", "sacrebleu", *named, "-q", "-nc"]
            programs["sacreBLEU"] = lambda: seconds("sacreBLEU", scorer, theirs)
        for row in bench.compare(name, "s", programs):
            row.note = f"{max(memory['heed']):.0f} MB"
            if row.theirs:
                row.note += f" against {max(memory['sacreBLEU']):.0f}; {'same output' if neutral(ours) == neutral(theirs) else 'OUTPUT DIFFERS'}"
    bench.compare("3,000 lines by the wall clock", "s", {"heed": lambda: run([bleu, *files(["3000.ref", "-i", "3000.hyp"])]).wall})
    scaling(bench, bleu, files([*LONG, "-m", "ter"]))


def scaling(bench, bleu, arguments):
    outputs = []
    for threads in sorted({1, bench.threads}):
        outputs.append(bench.path(f"threads.{threads}"))
        what = f"TER, long lines, {counted(threads)}, wall clock"
        row = bench.compare(what, "s", {"heed": lambda: run([bleu, *arguments, "-j", threads], target=outputs[-1]).wall})[0]
        if len(outputs) > 1:
            same = filecmp.cmp(outputs[0], outputs[-1], shallow=False)
            row.note = "the same output" if same else "OUTPUT DIFFERS"
