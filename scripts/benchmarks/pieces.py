"""Measures cutting raw text into unigram and BPE pieces beside SentencePiece, with SentencePiece's own models; one
thread."""

from .measure import run
from .text import different_lines, library, megabytes, per_second, tokenize


def measure(bench):
    raw, size = bench.materials.text, bench.sizes[0]
    command = [bench.tool("build-vocab"), "-q", "--type", "unigram", "-s", size, "--mode", "none", "-j", 1, "-o", bench.path("unigram.vocab"), raw]
    programs = {"heed": lambda: megabytes(raw) / run(command).cpu}
    peer = bench.peers.has("sentencepiece")
    if peer:
        programs["SentencePiece"] = library(bench, raw, "sentencepiece_learn", raw, "unigram", size, bench.path("unigram"))
    bench.compare(f"learn unigram {size}", "MB/s", programs, more=True)
    if not peer:
        bench.compare("unigram pieces", "MB/s", {"heed": per_second(tokenize(bench, "-m", bench.path("unigram.vocab")), raw)}, more=True)
        return
    bench.peer("text_libraries.py", "sentencepiece_learn", raw, "bpe", size, bench.path("bpe"))
    texts = {"": raw, **({", unseen text": bench.materials.unseen} if bench.materials.unseen else {})}
    for kind in ("unigram", "bpe"):
        model, ours, theirs = bench.path(f"{kind}.model"), bench.path("ours"), bench.path("theirs")
        for name, text in texts.items():
            programs = {
                "heed": per_second(tokenize(bench, "-m", model, "--output-format", "id"), text),
                "SentencePiece": library(bench, text, "sentencepiece_encode", model, theirs),
            }
            for row in bench.compare(f"{kind} pieces{name}", "MB/s", programs, more=True):
                run(tokenize(bench, "-m", model, "-i", text, "-o", ours))
                if row.theirs:
                    row.note = f"{different_lines(ours, theirs)} lines differ"
