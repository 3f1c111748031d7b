"""Measures learning BPE merges from Moses' tokens, and applying the merges, in MB of input per second."""

from .measure import run
from .text import library, megabytes, per_second, tokenize


def learn(bench, tokens, size):
    threads = bench.options.threads
    command = [bench.tool("build-vocab"), "-q", "--mode", "none", "-j", threads, "-s", size]
    command += ["--codes-output", bench.path(f"codes.{size}"), "-o", bench.path("learned"), tokens]
    wall = ["--wall"] if threads > 1 else []
    environment = {"RAYON_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false"}
    programs = {"heed": lambda: megabytes(tokens) / (run(command).wall if wall else run(command).cpu)}
    if bench.peers.has("youtokentome"):
        arguments = ["youtokentome_learn", tokens, size, bench.path(f"youtokentome.{size}"), threads]
        programs["YouTokenToMe"] = library(bench, tokens, *wall, *arguments)
    if bench.peers.has("tokenizers"):
        arguments = ["huggingface_learn", tokens, size, bench.path(f"huggingface.{size}")]
        programs["HF tokenizers"] = library(bench, tokens, *wall, *arguments, environment=environment)
    if bench.peers.has("subword_nmt") and not wall:
        programs["subword-nmt"] = library(bench, tokens, "subword_nmt_learn", tokens, size, bench.path("subword-nmt"))
    bench.compare(f"learn BPE {size}", "MB/s", programs, more=True)
    bench.compare(f"memory to learn BPE {size}", "MB", {"heed": lambda: run(command, small=True).peak_mb})


def apply(bench, tokens, what, size):
    codes = bench.path(f"codes.{size}")
    programs = {"heed": per_second(tokenize(bench, "--mode", "none", "-c", codes), tokens)}
    one_thread = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    if bench.peers.has("youtokentome"):
        programs["YouTokenToMe"] = library(bench, tokens, "youtokentome_encode", bench.path(f"youtokentome.{size}"))
    if bench.peers.has("tokenizers"):
        model = bench.path(f"huggingface.{size}")
        programs["HF encode_batch"] = library(bench, tokens, "huggingface_batch", model, environment=one_thread)
        programs["HF encode"] = library(bench, tokens, "huggingface_single", model, environment=one_thread)
    if bench.peers.has("subword_nmt"):
        programs["subword-nmt"] = library(bench, tokens, "subword_nmt_apply", codes)
    bench.compare(what, "MB/s", programs, more=True)


def measure(bench):
    texts = {"apply BPE": bench.materials.text}
    if bench.materials.unseen:
        texts["apply BPE, unseen text"] = bench.materials.unseen
    for what, text in texts.items():
        texts[what] = bench.path(what)
        run(tokenize(bench, "-l", bench.materials.language, "-i", text, "-o", texts[what]))
    for size in bench.sizes:
        learn(bench, texts["apply BPE"], size)
    for what, tokens in texts.items():
        apply(bench, tokens, what, bench.sizes[0])
