#!/usr/bin/env python3
"""Writes tests/text/reference/sentencepiece/: small models trained on data/, how SentencePiece cuts difficult lines, and
what SentencePiece's extra options and its normaliser alone (spm_normalize) make of these lines.

Needs sentencepiece 0.2.3 from PyPI (pieces.json records the version). The models have a few normalisation rules of
their own, because each rule map of SentencePiece takes 240 KB. Run from the top of the source tree:
    python3 scripts/reference/make_sentencepiece_reference.py [MODEL...]
With names of models, the script makes only these models and their results. The model unigram_spaces is different in every
run, because it is trained on a random part of the text.
"""
import json
import pathlib
import random
import sys
import tempfile

import sentencepiece

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED = 20

# Some rules of NFKC and nmt_nfkc: code points, and their replacements.
RULES = [("\u00a0", " "), ("\u3000", " "), ("\t", " "), ("\x01", ""), ("\x7f", ""), ("\u200b", " "), ("\ufeff", ""),
         ("\ufb01", "fi"), ("\u00bd", "1\u20442"), ("\u2026", "..."), ("e\u0301", "\u00e9"), ("a\u0300", "\u00e0"),
         ("\uff76\uff9e", "\u30ac"), ("\uff76", "\u30ab"), ("\u0301", " \u0301"), ("\ufdfa", "\u0635\u0644 \u0639")]
RULES += [(chr(0xff01 + i), chr(0x21 + i)) for i in range(94)]
FOLDING = RULES + [(chr(ord("A") + i), chr(ord("a") + i)) for i in range(26)] + [("\u00c9", "\u00e9"), ("\u0130", "i\u0307")]

MODELS = {
    "unigram": dict(model_type="unigram", rules=RULES, character_coverage=0.999),
    "unigram_bytes": dict(model_type="unigram", rules=FOLDING, character_coverage=0.998, byte_fallback=True,
                          user_defined_symbols=["<sep>", "ing", "\u2581\u2581", "New York", "\U0001F600"]),
    "unigram_spaces": dict(model_type="unigram", normalization_rule_name="identity", remove_extra_whitespaces=False,
                           split_by_whitespace=False, unk_surface="[?]", input_sentence_size=600),
    "unigram_suffix": dict(model_type="unigram", normalization_rule_name="identity", treat_whitespace_as_suffix=True,
                           denormalization=[("\u2047", "?"), (" .", ".")]),
    "bpe": dict(model_type="bpe", rules=FOLDING, character_coverage=0.998,
                user_defined_symbols=["<sep>", "ing", "\U0001F600"]),
    "unigram_unused": dict(model_type="unigram", normalization_rule_name="identity", unused=True),
    "bpe_unused": dict(model_type="bpe", normalization_rule_name="identity", unused=True),
    "bpe_bytes": dict(model_type="bpe", normalization_rule_name="identity", byte_fallback=True,
                      split_by_whitespace=False, add_dummy_prefix=False),
    "word": dict(model_type="word", rules=FOLDING, user_defined_symbols=["<sep>", "dog", "New York"]),
    "word_spaces": dict(model_type="word", normalization_rule_name="identity", add_dummy_prefix=False,
                        remove_extra_whitespaces=False, byte_fallback=True),
    "word_suffix": dict(model_type="word", normalization_rule_name="identity", treat_whitespace_as_suffix=True),
    "char": dict(model_type="char", rules=RULES, character_coverage=0.99,
                 user_defined_symbols=["<sep>", "ing", "in", "New York", "\U0001F600"]),
    "char_bytes": dict(model_type="char", normalization_rule_name="identity", byte_fallback=True, control_symbols=["d"],
                       treat_whitespace_as_suffix=True, remove_extra_whitespaces=False),
}

LINES = [
    "", " ", "   ", " a ", "  two  spaces  ", "The dog sleeps in the garden.", "Le chien dort dans le jardin.",
    "\u2581", "\u2581a \u2581 b\u2581", "a\u2581\u2581b", "caf\u00e9 cafe\u0301 \u0301 \u0301x", "a\u0300 a\u0316\u0300",
    "\uff34\uff48\uff45 \uff44\uff4f\uff47 \uff11\uff12\uff0e", "\uff76\uff9e\uff76", "\ufb01ne \u00bd \u2026 \ufdfa",
    "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645", "\u05e9\u05dc\u05d5\u05dd dog",
    "\U0001F600\U0001F468\u200d\U0001F469\u200d\U0001F467 dog\U0001F600dog", "zero\u200bwidth\ufeffjoin\u200c\u200d",
    "con\x01trol\x7f\x85tab\tform\x0cfeed", "nul\x00byte", "\u3000wide\u3000space\u00a0hard",
    "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0 the \u65e5\u672c", "<unk> <s> </s> <pad>", "<0x41><0xE3> <0x0A>",
    "<sep>New York<sep>", "sleeping  ing inging Ing", "NewYork New  York", "a" * 120, "x\u0301" * 30,
    "\u0130 \u1e9e \u00df \u00c9", "\u2028line\u2029ends\x85here", "\ufffd\ufffd", "\U0010ffff\ue000", "mid\rdle",
    "a \u2047 b .", "...!!!???", "3.14 1,000 1234567890", "http://www.example.com/a?b=c&d=e", "  \u0301 a  ",
]


def rules_file(folder, name, rules):
    def code_points(text):
        return " ".join(f"{ord(c):X}" for c in text)
    path = folder / name
    path.write_text("".join(f"{code_points(a)}\t{code_points(b)}\n" for a, b in sorted(set(rules))), encoding="utf-8")
    return str(path)


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def with_unused_pieces(model):
    """Returns the model with every third piece of several bytes marked as unused: field 3, `type`, becomes 5."""
    out, at, count = b"", 0, 0
    while model[at] == 0x0A:
        size, start = read_varint(model, at + 1)
        piece = model[start:start + size]
        at = start + size
        if b"\x18" not in piece[-2:-1] and piece[1] > 1:
            count += 1
            piece += b"\x18\x05" if count % 3 == 0 else b""
        assert len(piece) < 0x80
        out += bytes([0x0A, len(piece)]) + piece
    return out + model[at:]


def train(folder, name, options, out):
    options = dict(options)
    unused = options.pop("unused", False)
    if "rules" in options:
        options["normalization_rule_tsv"] = rules_file(folder, name + ".tsv", options.pop("rules"))
    if "denormalization" in options:
        options["denormalization_rule_tsv"] = rules_file(folder, name + ".out.tsv", options.pop("denormalization"))
    text = folder / "text"
    lines = []
    for language in ("en", "fr"):
        lines += (ROOT / "data" / f"train.{language}").read_text(encoding="utf-8").split("\n")[:1200]
    text.write_text("\n".join(line for line in lines if line) + "\n", encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / name), vocab_size=600, num_threads=1, minloglevel=2,
        hard_vocab_limit=False, **options)
    # The training specification in the model names temporary files of this run, which are removed.
    model = (folder / f"{name}.model").read_bytes()
    if unused:
        model = with_unused_pieces(model)
    (out / f"{name}.model").write_bytes(model.replace(str(folder).encode(), b"/" + b"x" * (len(str(folder)) - 1)))


def random_lines(rng):
    alphabet = list("ab eEingT .\u2581\u0301\u200b\u65e5\uff21\u00e9\u00df\t\u00a0") + ["<sep>", "dog ", "le ", "\U0001F600"]
    return ["".join(rng.choice(alphabet) for _ in range(rng.randint(1, 40))) for _ in range(40)]


def cases(path, lines):
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    unigram = "unigram" in path.name
    for line in lines:
        pieces, ids = model.encode(line, out_type=str), model.encode(line)
        case = {"line": line, "pieces": pieces, "ids": ids, "text": model.decode(pieces), "text_of_ids": model.decode(ids)}
        if unigram and line and len(line) < 60:
            case["n_best"] = model.NBestEncode(line, nbest_size=4, out_type=str)
        yield case


def option_cases(path, lines):
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    alone = sentencepiece.SentencePieceNormalizer(
        model_file=str(path), add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=True)
    for line in lines:
        yield {"line": line, "normalized": alone.normalize(line),
               "reverse:bos:eos": model.encode(line, out_type=str, reverse=True, add_bos=True, add_eos=True),
               "unk": model.encode(line, out_type=str, emit_unk_piece=True)}


def write(path, reference):
    path.write_text(json.dumps(reference, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def main():
    out = ROOT / "tests" / "text" / "reference" / "sentencepiece"
    out.mkdir(exist_ok=True)
    lines = LINES + random_lines(random.Random(SEED))
    reference = {"made_by": "scripts/reference/make_sentencepiece_reference.py", "sentencepiece": sentencepiece.__version__,
                 "models": json.loads((out / "pieces.json").read_text(encoding="utf-8"))["models"] if sys.argv[1:] else {}}
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or MODELS:
            train(pathlib.Path(folder), name, MODELS[name], out)
            reference["models"][name] = list(cases(out / f"{name}.model", lines))
    write(out / "pieces.json", reference)
    reference["models"] = {name: list(option_cases(out / f"{name}.model", LINES)) for name in ("unigram", "bpe", "word")}
    write(out / "options.json", reference)


if __name__ == "__main__":
    main()
