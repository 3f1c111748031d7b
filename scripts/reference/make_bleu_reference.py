#!/usr/bin/env python3
"""Writes tests/text/reference/mteval.json and tests/metrics/reference/bleu.json with the results of sacreBLEU.

Needs sacrebleu 2.6.0 from PyPI (the files record the versions). Run from the top of the source tree:
    python3 scripts/reference/make_bleu_reference.py
"""
import argparse
import contextlib
import io
import json
import pathlib
import random
import sys

import regex
import sacrebleu
from sacrebleu.metrics import BLEU
from sacrebleu.metrics.bleu import _get_tokenizer
from sacrebleu.utils import print_results_table

MODES = ["13a", "intl", "char", "zh", "none"]
TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"

LINES = [
    "", " ", "Hello, world.", "It's 3.5 km, isn't it?", "1,000,000.00", "1,000,", "1990.", "In 1990. Then", ".5 and 5.",
    "a..b", "a...b", "1..2", "1...2", "1....2", "..1", "...", ",", ".", "-", "1-2-3", "1--2", "a-b", "-5", "5-", "x5-y",
    "a.,b", "1.,2", "1,.2", "3,a.4", "a,1", "1,a", "a,,1", "a,.,1", "end...", "end…", "(a)[b]{c}<d>", "a/b:c;d@e",
    "a'b`c^d_e", 'he said "no"', "#1 $2 %3 &4 *5 +6 =7", "&quot;a&quot; &amp; &lt;b&gt;", "&amp;lt; &amp;quot; &amp;amp;",
    "&apos; &#91; &#93; &bar;", "<skipped>a<skipped>", "<skip<skipped>ped>", "a-\nb", "a\nb", "a -\n b", "tab\there",
    "no\u00a0break", "ideographic\u3000space", "next\u0085line", "x\u001cy\u001dz\u001ew\u001fv", "zero\u200bwidth",
    "line\u2028sep\u2029para", "em\u2003en\u2002thin\u2009hair\u200anarrow\u202fmath\u205fogham\u1680end", "\ufeffbom",
    "Müller’s „Straße“ – 5 €.", "l’été, c’est «bien» !", "今天天气很好。明天呢?", "東京は、1,000円です。", "١٢٣٫٤٥، ٦",
    "½.5 x², 3²-4", "№5,Ⅻ.7", "a·b¿c¡d", "5€ €5 5.€ €.5", "+-*/=", "1.a.2", "é.é", "é,5", "5,é", "5-é", "é-5", "٣.٣", "٣-٣",
    "👍🏽 ok!", "e\u0301.", "a,\u0301b", "\u2026\u2026", "1…2…a", "…1", "1…", "—1—", "a—b", "$.5", "5$.", "$$", "x\x00y.z",
    "http://www.example.com/a?b=c&d=e", "U.S.A. vs. U.K.", "3.14159.26", "1.2.3.4", "12:30-13:45", "a\\b|c~d", "''``",
    "\u2000a\u2001b", "\u2a6d\u2a6e \u2f80\u2f81\u2fa1\u2fa2", "\U00020000\u9fbc\u9fbb", "5.中", "中.5", "，。", " .5", ".a",
    " leading", "trailing ", "  two  spaces  ", "\u200fשלום, עולם.", "ДОМ. 5,5", "½½", "ª.º", "A\u00adB", "1\u20662",
    "100.000,00-5.", "Mr. O'Neill-Smith's #hashtag @user", "<a href=\"x\">y</a>", "&lt;&lt;", "&&amp;&", "& amp;",
]
LOWER = [
    "ΑΣ", "ΣΑΣ", "Σ", "ΑΣ.", "ΑΣΑ", "ΟΔΥΣΣΕΥΣ ΚΑΙ ΣΟΦΟΣ", "Α\u0301Σ\u0301", "ΑΣ\u0301Β", "A'Σ'B", "A\u00adΣ", "1Σ", "Σ1",
    "İstanbul", "DİYARBAKIR", "IĞDIR", "STRASSE STRAẞE", "ÅÉÎ", "ǅ ǈ", "ⅣⅫ", "ⒶⓏ", "ＡＢＣ", "ЁЖ", "ԱԲ", "Ა", "Ꭰ", "𐐀", "𞤀",
    "K Å Ω", "ϴ", "Ⱥ", "Ɐ", "Hello ẞ İ", "ΑΣ ΒΣ,ΓΣ", "AΣ\u200bB", "\u0345Σ", "aΣ\u0345", "ΑΣ\u00b7Α",
]


def random_lines(count):
    """Returns random lines over an alphabet for which several rules of the tokenisers apply at the same place."""
    rng = random.Random(13)
    alphabet = list("aB1290..,,--  '()&$%/") + ["é", "—", "…", "€", "½", "٣", "中", "\u00a0", "&amp;", "&lt;", "«", "\t"]
    return ["".join(rng.choice(alphabet) for _ in range(rng.randint(1, 24))) for _ in range(count)]


def mteval():
    tokenizers = {mode: _get_tokenizer(mode)() for mode in MODES}
    cases = []
    for line in LINES + random_lines(400):
        case = {"input": line}
        for mode in MODES[:4]:
            case[mode] = tokenizers[mode](line)
        cases.append(case)
    return {"made_with": versions(), "cases": cases,
            "lower": [{"input": text, "output": text.lower()} for text in LOWER + LINES]}


WORDS = ["the", "cat", "sat", "on", "a", "mat", ".", ",", "Dog", "dog", "1,000", "3.5", "it's", "“so”", "über", "ΣΑΣ", "&quot;", "x-y"]


def corpora():
    """Yields (name, hypotheses, reference streams)."""
    rng = random.Random(4)

    def sentence(length):
        return " ".join(rng.choice(WORDS) for _ in range(length))

    def perturbed(line):
        words = line.split(" ")
        for _ in range(rng.randint(0, 3)):
            at = rng.randrange(len(words))
            words[at:at + rng.randint(0, 2)] = [rng.choice(WORDS)]
        return " ".join(words)

    first = [sentence(rng.randint(1, 16)) for _ in range(30)]
    hyps = [perturbed(line) for line in first]
    yield "one reference", hyps, [first]
    yield "three references", hyps, [first, [perturbed(perturbed(x)) for x in first], [sentence(rng.randint(0, 9)) for _ in first]]
    yield "empty hypotheses", ["", "the cat sat on the mat", "", "a dog"], [["a b c", "the cat sat on a mat", "", "a dog"]]
    yield "all hypotheses empty", ["", ""], [["a b", "c"]]
    yield "all empty", ["", ""], [["", ""]]
    yield "empty references", ["a b c d e"], [[""]]
    yield "no match", ["q w e r t"], [["a b c d e"]]
    yield "unigrams only", ["a c b e d"], [["b a d c e"]]
    yield "three words", ["a b c"], [["a b c"]]
    yield "one word", ["cat"], [["cat"]]
    yield "one-word lines", ["cat", "dog", "mat", "x"], [["cat", "dog", "cat", "y"]]
    yield "reference lengths tie", ["a b c d e f"], [["a b c d e f g h"], ["a b c d"]]
    yield "shorter reference second", ["a b c d e"], [["a b c d e f g"], ["a b c"], [""]]
    yield "clipping over references", ["the the the the cat cat"], [["the cat the"], ["cat the cat cat"]]
    yield "entities", ["&amp;lt; b &gt; &amp;quot; c", "&apos;s &#91;"], [["< b > &quot; c", "' s ["]]
    yield "white space", ["a\u00a0b\u3000c d\u2003e \u0085", "x\ty z  w"], [["a b c d e", "x y z w"]]
    yield "scripts", ["今天天气很好。", "Müller’s „Straße“ – 5 €.", "ОНА СКАЗАЛА: «ДА»", "ΟΔΥΣΣΕΥΣ ΣΟΦΟΣ", "İSTANBUL 1,5"], [
        ["今天天气不好。", "Müllers „Straße“ - 5 €.", "Она сказала: «да»", "οδυσσευς σοφος", "i̇stanbul 1,5"]]
    yield "long", [" ".join(str(i % 7) for i in range(300))], [[" ".join(str(i % 5) for i in range(310))]]


def settings():
    yield {}
    for mode in MODES[1:]:
        yield {"tokenize": mode}
        yield {"tokenize": mode, "lowercase": True}
    yield {"lowercase": True}
    for method, values in {"floor": [None, 0.0, 0.01, 2.5], "add-k": [None, 0.0, 0.5, 3.0], "none": [None]}.items():
        for value in values:
            yield {"smooth_method": method, "smooth_value": value}
            yield {"smooth_method": method, "smooth_value": value, "effective_order": True}
    yield {"effective_order": True}
    for order in [1, 2, 3, 5, 8]:
        yield {"max_ngram_order": order}
        yield {"max_ngram_order": order, "effective_order": True, "smooth_method": "floor"}


def score_case(options, hyps, refs):
    metric = BLEU(force=True, **options)
    score = metric.corpus_score(hyps, refs)
    signature = metric.get_signature().format()
    case = {"options": options, "score": score.score, "precisions": score.precisions, "bp": score.bp,
            "text": score.format(2, False, signature, False)}
    if options in ({}, {"lowercase": True}):  # the output formats do not depend on the settings
        case["json"] = {width: score.format(width, False, signature, True) for width in [0, 1, 4, 15]}
        case["score_only"] = {width: score.format(width, True, signature, False) for width in [0, 3, 9]}
    sentence = BLEU(force=True, **{**options, "effective_order": True})
    case["sentences"] = [sentence.sentence_score(hyp, list(lines)).score for hyp, *lines in zip(hyps, *refs)]
    return case


def table(names, width, form):
    """Returns what sacreBLEU's command line prints for several systems."""
    metric = BLEU()
    hyps = [["the cat sat on the mat"], ["the cat sat"], ["the cat sat on a mat ."]]
    refs = [["the cat sat on the mat"]]
    results = {"System": list(names), "BLEU": []}
    for hyp in hyps[:len(names)]:
        results["BLEU"].append(metric.corpus_score(hyp, refs).format(width, True))
    args = argparse.Namespace(format=form, width=width, paired_bs=False, paired_ar=False)
    out = io.StringIO()
    import sacrebleu.utils
    sacrebleu.utils.Color.ENABLE_COLORS = False
    with contextlib.redirect_stdout(out):
        print_results_table(results, {"BLEU": metric.get_signature().format()}, args)
    return {"names": names, "width": width, "format": form, "hypotheses": hyps[:len(names)], "references": refs,
            "output": out.getvalue()}


def bleu():
    cases = []
    for name, hyps, refs in corpora():
        cases.append({"name": name, "hypotheses": hyps, "references": refs,
                      "results": [score_case(options, hyps, refs) for options in settings()]})
    tables = [table(names, width, form) for form in ["text", "json"] for width in [0, 1, 4]
              for names in [["one.txt", "two.txt"], ["a", "longer/name/of.system", "é\"x"]]]
    return {"made_with": versions(), "cases": cases, "tables": tables}


def versions():
    return {"sacrebleu": sacrebleu.__version__, "regex": regex.__version__, "python": sys.version.split()[0]}


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=True, indent=None, separators=(",", ":"))
        file.write("\n")
    print(path, path.stat().st_size, "bytes")


write(TESTS / "text/reference/mteval.json", mteval())
write(TESTS / "metrics/reference/bleu.json", bleu())
