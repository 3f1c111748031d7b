#!/usr/bin/env python3
"""Writes tests/text/reference/bpe.json: merges that subword-nmt has learnt and applied.

Needs subword-nmt 0.3.8 from PyPI (the file records the version). Run from the top of the source tree:
    python3 scripts/reference/make_bpe_reference.py
"""
import contextlib
import importlib.metadata
import io
import json
import pathlib
import random

from subword_nmt import apply_bpe, get_vocab, learn_bpe

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED = 20
learn_bpe.tqdm = lambda steps: steps


def quiet(function, *arguments, **options):
    with contextlib.redirect_stderr(io.StringIO()):
        return function(*arguments, **options)


def text_of(lines):
    return "".join(line + "\n" for line in lines)


def learn(lines, merges, min_frequency=2):
    out = io.StringIO()
    quiet(learn_bpe.learn_bpe, io.StringIO(text_of(lines)), out, merges, min_frequency)
    return out.getvalue()


def apply(codes, lines, merges=-1, separator="@@", counts=None, threshold=None, glossaries=None):
    vocabulary = apply_bpe.read_vocabulary(io.StringIO(counts), threshold) if counts else None
    bpe = apply_bpe.BPE(io.StringIO(codes), merges, separator, vocabulary, glossaries)
    try:
        return [bpe.process_line(line + "\n")[:-1] for line in lines]
    # With a vocabulary, text that contains the end-of-word mark makes subword-nmt recurse without end.
    except RecursionError:
        return None


def count(lines):
    out = io.StringIO()
    get_vocab.get_vocab(io.StringIO(text_of(lines)), out)
    return out.getvalue()


def random_lines(rng, alphabet, lines, words, length):
    def word():
        return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, length)))
    return [" ".join(word() for _ in range(rng.randint(1, words))) for _ in range(lines)]


def corpora(rng):
    for language in ("en", "fr"):
        lines = (ROOT / "data" / f"valid.{language}").read_text(encoding="utf-8").split("\n")[:150]
        yield f"data/valid.{language}", lines, 250
    yield "two letters, long words", random_lines(rng, "ab", 12, 4, 60), 120
    yield "three letters", random_lines(rng, "abc", 30, 6, 9), 200
    yield "the end-of-word mark as text", random_lines(rng, ["a", "</w>", "<", "/w>", "w"], 25, 5, 6), 150
    yield "code points of one to four bytes", random_lines(rng, "aé語😀\\.*", 25, 5, 8), 150
    yield "spaces around and between", ["  aa  ab  ", " ", "", "ab aa", "aa ab "], 10


def learnt_cases(rng):
    for name, lines, merges in corpora(rng):
        codes = learn(lines, merges)
        applied = apply(codes, lines)
        unseen = ["".join(rng.sample(line.replace(" ", ""), len(line.replace(" ", "")))) for line in lines[:10]]
        counts = count(applied)
        yield {
            "name": name, "lines": lines, "merges": merges, "codes": codes, "applied": applied, "counts": counts,
            "codes_min_frequency_5": learn(lines, merges, 5), "unseen": unseen, "unseen_applied": apply(codes, unseen),
            "half": merges // 4, "half_applied": apply(codes, lines[:20], merges // 4),
            "threshold": 4, "restricted": apply(codes, lines[:20] + unseen, counts=counts, threshold=4),
        }


def counted_cases(rng):
    """Yields words with counts: very different frequencies, symbols that come from several merges, words with count
    0."""
    for name, alphabet, length, merges, least in (("two letters", "ab", 25, 400, 1), ("three letters", "abc", 12, 300, 1),
                                                  ("words that occur 0 times", "abc", 20, 300, 0)):
        words = sorted({"".join(rng.choice(alphabet) for _ in range(rng.randint(1, length))) for _ in range(120)})
        counts = {word: min(int(rng.paretovariate(0.35)), 1 << 40) for word in words}
        for word in words[::9]:
            counts[word] = min(counts[word], least)
        out = io.StringIO()
        lines = io.StringIO("".join(f"{word} {count}\n" for word, count in counts.items()))
        quiet(learn_bpe.learn_bpe, lines, out, merges, 1, is_dict=True)
        yield {"name": name, "words": counts, "merges": merges, "codes": out.getvalue()}


OLD_CODES = "l o\nlo w\ne r\ner </w>\nn e\nlow </w>\nl o\nx x\nxx x\n"
TWO_WAYS = "#version: 0.2\na b\nb c\nab c\na bc\nabc d</w>\nabc a\nabc abc\n"


def applied_cases():
    lines = ["low lower newer lo o xxx xxxx xxxxx", "slower low", "abcd abcabc aabcc bcabc abcabcd x"]
    for name, codes in (("version 0.1", OLD_CODES), ("one symbol by two merges", TWO_WAYS)):
        yield {"name": name, "codes": codes, "lines": lines, "applied": apply(codes, lines),
               "separator": "~", "separated": apply(codes, lines, separator="~")}


def glossary_cases():
    """Yields cases of glossaries: literals, regular expressions, several at once, empty matches, with and without a
    vocabulary."""
    lines = ["low 1934USABUSA lower USA lowUSA newUSAer", "<en> a<en>b <fr>x <b> aa baab lowest", "12:30 3.14 low12low x y"]
    codes = "#version: 0.2\nl o\nlo w</w>\ne r</w>\n1 2\na a\nU S\nUS A</w>\nlo w\n"
    for glossaries in (["USA"], ["USA", "B"], ["<en>", "<fr>"], ["<\\w+>"], ["\\d+", "low"], ["a*"], ["USA|low", "er"],
                       ["(?:12|30)"], ["l", "lo", "low"], ["^low", "er$"]):
        yield {"codes": codes, "glossaries": glossaries, "lines": lines,
               "applied": apply(codes, lines, glossaries=glossaries),
               "counts": "low 3\nUSA 1\nlo@@ 1\n",
               "restricted": apply(codes, lines, glossaries=glossaries, counts="low 3\nUSA 1\nlo@@ 1\n")}


def bytes_case():
    """Returns a case with merges of bytes: subword-nmt gets each byte as the character with the byte's number."""
    lines = (ROOT / "data" / "valid.fr").read_text(encoding="utf-8").split("\n")[:60] + ["语言 é😀é", "x"]
    seen = [line.encode("utf-8").decode("latin-1") for line in lines]
    codes = learn(seen, 120)
    return {"lines": seen, "codes": codes, "applied": apply(codes, seen), "half_applied": apply(codes, seen, 60)}


def main():
    rng = random.Random(SEED)
    reference = {"made_by": "scripts/reference/make_bpe_reference.py",
                 "subword-nmt": importlib.metadata.version("subword-nmt"),
                 "learnt": list(learnt_cases(rng)), "given": list(applied_cases()),
                 "glossaries": list(glossary_cases()), "bytes": bytes_case(),
                 "counted": list(counted_cases(random.Random(SEED)))}
    path = ROOT / "tests" / "text" / "reference" / "bpe.json"
    path.write_text(json.dumps(reference, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
