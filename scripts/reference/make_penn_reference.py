#!/usr/bin/env python3
"""Writes tests/text/reference/penn_detokenizer.json: lines of Penn Treebank tokens, and the output of Moses' script
detokenizer.perl -penn for these lines.

Needs perl and detokenizer.perl, which is part of PyPI's package mosestokenizer 1.2.1 (the file records the versions).
Run from the top of the source tree:
    python3 scripts/reference/make_penn_reference.py PATH/detokenizer.perl
"""
import hashlib
import json
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

LINES = [
    "\u4e2d \u6587 a", "\u65e5\u672c \u3002 \u300c \u30ab\u30ca \u300d", "\ud55c \uad6d", "` ` `` ``", "' '' ' a", "' a ' b '",
    '" a "', "\u201e a \u201c", "\u201c a \u201d", "``` a", "x-LRB-y a-RRB- -LRB--RRB-", "-LRB- -LRB- a -RRB- -RRB- .",
    "-LSB- a -RSB- -LCB- b -RCB-", "-lrb- a -rrb-", "a(b c)d ( e )", "can not can not can not", "D' ye gim me Gon na got ta Lem me",
    "'t is 'T was wan na", "more 'n More 'n", "it 's It 'S , 's we 'll '5 'x", "Jones ' house", "n't n't do n't N'T", "and @/@ or @/@ @-@ a",
    "&apos; a &apos;&apos; &quot; b &quot;", "&amp;lt; &#91; a &#93; &bar; b", "$ 5 , \u20ac 3 % \u00bf a ?! \u00a1 b !", "a \\ : ; b",
    "  a   b  ", "<a ' b>", "\u00e9 'S \u00e9t\u00e9 '\u00e9", "( ' a ' )", "-- a -- b ...", "1990 's 's", "`` -LRB- a '' -RRB-", "cannot gimme 'tis",
]
WORDS = (" ".join(LINES)).split(" ") + ["``", "''", "`", "'", '"', "-LRB-", "-RRB-", "can", "not", "n't", "'s", "@/@", "a", "is"] * 3


def random_lines(count):
    rng = random.Random(6)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 12))) for _ in range(count)]


def detokenized(script, lines, *options):
    command = ["perl", script, "-q", "-l", "en", "-penn", *options]
    out = subprocess.run(command, input="".join(line + "\n" for line in lines).encode(), capture_output=True, check=True)
    return out.stdout.decode().split("\n")[:-1]


def main():
    script = sys.argv[1]
    perl = subprocess.run(["perl", "-e", "print $^V"], capture_output=True, text=True, check=True).stdout
    lines = LINES + random_lines(150)
    cases = [list(case) for case in zip(lines, detokenized(script, lines), detokenized(script, lines, "-u"), strict=True)]
    reference = {
        "made_by": "scripts/reference/make_penn_reference.py",
        "made_with": {"perl": perl, "detokenizer.perl": "that of mosestokenizer 1.2.1, SHA-256 "
                      + hashlib.sha256(pathlib.Path(script).read_bytes()).hexdigest()},
        "fields": ["tokens", "-penn", "-penn -u"],
        "cases": cases,
    }
    path = ROOT / "tests" / "text" / "reference" / "penn_detokenizer.json"
    path.write_text(json.dumps(reference, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
