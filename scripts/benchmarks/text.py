"""Measures Moses' steps on a raw text with one thread, in MB of input per processor second, and the effect of
threads and of a longer text."""

import filecmp
import os

from .measure import run
from .report import counted

# Patterns that Moses users protect: tags, e-mail addresses, URLs.
PATTERNS = r"""<\/?\S+\/?>
<\S+( [a-zA-Z0-9]+\=\"?[^\"]\")+ ?\/?>
<\S+( [a-zA-Z0-9]+\=\'?[^\']\')+ ?\/?>
[\w\-\_\.]+\@([\w\-\_]+\.)+[a-zA-Z]{2,}
http[s]?:\/\/[^:\/\s]+(\/\w+)*\/[\w\-\.]*(\/)?
ftp[s]?:\/\/[^:\/\s]+(\/\w+)*\/[\w\-\.]*(\/)?
rsync:\/\/[^:\/\s]+(\/\w+)*\/[\w\-\.]*(\/)?
"""


def megabytes(path):
    return os.path.getsize(path) / 1e6


def per_second(command, source, output=None):
    """Returns a function that runs `command` on the file `source` and returns MB of input per processor second."""
    return lambda: megabytes(source) / max(run(command, source=source, target=output or os.devnull).cpu, 1e-9)


def library(bench, source, *arguments, environment=None):
    """Returns a function that runs a Python library on the file `source` and returns MB of input per second; the
    time is measured inside Python, without the start of Python."""
    return lambda: megabytes(source) / float(bench.peer("text_libraries.py", *arguments, source=source, environment=environment).output)


def tokenize(bench, *arguments):
    return [bench.tool("tokenize"), "-q", "-j", 1, *arguments]


def different_lines(ours, theirs):
    """Returns the number of lines that differ in more than white space at their ends."""
    if filecmp.cmp(ours, theirs, shallow=False):
        return 0
    with open(ours, "rb") as one, open(theirs, "rb") as other:
        first, second = one.read().split(b"\n"), other.read().split(b"\n")
    return sum(a.rstrip() != b.rstrip() for a, b in zip(first, second)) + abs(len(first) - len(second))


def perl_steps(bench, raw, tokens, truecaser):
    """Returns [(step, input, heed's arguments, Perl program with its arguments)]."""
    language, patterns = bench.materials.language, bench.path("patterns")
    with open(patterns, "w", encoding="utf-8") as file:
        file.write(PATTERNS)
    moses, escaped = "tokenizer/tokenizer.perl", ["-l", language, "--escape"]
    yield "tokenise", raw, escaped, [moses, "-q", "-l", language]
    yield "tokenise, hyphens split", raw, [*escaped, "-a"], [moses, "-q", "-a", "-l", language]
    yield "tokenise, Penn", raw, [*escaped, "--penn"], [moses, "-q", "-penn", "-l", language]
    yield "tokenise, protected patterns", raw, [*escaped, "--protect", patterns], [moses, "-q", "-l", language, "-protected", patterns]
    normalise = ["-l", language, "--mode", "none", "--normalize-punctuation"]
    yield "normalise punctuation", raw, normalise, ["tokenizer/normalize-punctuation.perl", "-l", language]
    yield "detokenise", tokens, ["-d", "-l", language], ["tokenizer/detokenizer.perl", "-q", "-l", language]
    yield "truecase", tokens, ["--mode", "none", "--truecase", truecaser], ["recaser/truecase.perl", "--model", truecaser]


def measure(bench):
    raw, language = bench.materials.text, bench.materials.language
    tokens, truecaser = bench.path("text.tokens"), bench.path("truecaser")
    run(tokenize(bench, "-l", language, "--escape", "-i", raw, "-o", tokens))
    run(tokenize(bench, "--mode", "none", "--train-truecaser", truecaser, "-i", tokens))
    moses = bench.options.moses
    if not moses and not bench.options.no_peers:
        bench.note("Moses' Perl programs are left out: --moses DIR names their folder.")
    ours, theirs = bench.path("ours"), bench.path("theirs")
    for what, source, arguments, (program, *options) in perl_steps(bench, raw, tokens, truecaser):
        programs = {"heed": per_second(tokenize(bench, *arguments), source, ours)}
        if moses and not bench.options.no_peers:
            programs[os.path.basename(program)] = per_second(["perl", os.path.join(moses, program), *options], source, theirs)
        for row in bench.compare(what, "MB/s", programs, more=True):
            if row.theirs:
                row.note = f"{different_lines(ours, theirs)} lines differ"
    if bench.peers.has("sacremoses"):
        programs = {"heed": per_second(tokenize(bench, "-l", language, "--escape"), raw)}
        programs["sacremoses"] = library(bench, raw, "sacremoses_tokenize", language)
        bench.compare("tokenise", "MB/s", programs, more=True)
    threads(bench, raw, language)


def threads(bench, raw, language):
    """Measures twenty times the text with several threads, by the wall clock."""
    long = bench.path("long")
    with open(raw, "rb") as file, open(long, "wb") as out:
        text = file.read()
        for _ in range(4 if bench.quick else 20):
            out.write(text)
    for count in sorted({1, bench.threads}):
        command = [bench.tool("tokenize"), "-q", "-j", count, "-l", language, "-i", long, "-o", os.devnull]
        bench.compare(f"tokenise, {counted(count)}", "MB/s", {"heed": lambda: megabytes(long) / run(command).wall}, more=True)
    for path in (raw, long):
        command = [bench.tool("tokenize"), "-q", "-l", language, "-i", path, "-o", os.devnull]
        bench.compare(f"memory for {megabytes(path):.0f} MB", "MB", {"heed": lambda: run(command, small=True).peak_mb})
