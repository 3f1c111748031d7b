#!/usr/bin/env python3
"""Translates with CTranslate2 and the weights of a heed checkpoint, and prints the measured times as JSON.

usage: translate_ctranslate2.py convert MODEL.h5 FOLDER [--quantization int8]
       translate_ctranslate2.py tune FOLDER PIECES [options]        finds the fastest threads and batch, by a short sweep
       translate_ctranslate2.py translate FOLDER PIECES [options]   pieces per second of a text
       translate_ctranslate2.py latency FOLDER PIECES [options]     milliseconds of one sentence after the other
       translate_ctranslate2.py first FOLDER PIECES [options]       the first sentence only; measure the process
PIECES is text in pieces, as `tokenize -m MODEL.h5` writes it. Output pieces are counted without </s>.
"""

import argparse
import json
import os
import resource
import time

import ctranslate2


def convert(checkpoint, folder, quantization):
    """Writes the CTranslate2 model of a heed checkpoint (see heed-checkpoint(5)) with sinusoidal positions."""
    import h5py
    import numpy as np

    file = h5py.File(checkpoint, "r")
    config, parameters = dict(file["config"].attrs), file["parameters"]

    def setting(name):
        value = config[name]
        return value.decode() if isinstance(value, bytes) else value

    def array(*path):
        data = parameters["/".join(path)][()]
        return (data.astype("uint32") << 16).view("float32") if data.dtype == "uint16" else data.astype("float32")

    def linear(spec, *paths):
        spec.weight = np.concatenate([array(path, "weight") for path in paths])
        spec.bias = np.concatenate([array(path, "bias") for path in paths])

    def norm(spec, path):
        spec.gamma, spec.beta = array(path, "scale"), array(path, "bias")

    if setting("transformer_positions") != "sinusoidal" or setting("transformer_ffn_activation") != "relu":
        raise SystemExit(f"{checkpoint}: only sinusoidal positions and ReLU can be converted")
    width, pre_norm, tied = int(setting("dim_emb")), setting("transformer_norm") == "pre", setting("tied_embeddings")
    layers = (int(setting("enc_depth")), int(setting("dec_depth")))
    spec = ctranslate2.specs.TransformerSpec.from_config(layers, int(setting("transformer_heads")), pre_norm=pre_norm)
    angles = np.arange(1024)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    positions = np.stack([np.sin(angles), np.cos(angles)], 2).reshape(1024, width).astype("float32")
    shared = tied == "all"
    spec.encoder.embeddings[0].weight = array("embeddings", "shared" if shared else "source", "weight")
    spec.decoder.embeddings.weight = array("embeddings", "shared" if shared else "target", "weight")
    spec.decoder.projection.weight = array("output/weight") if tied == "none" else spec.decoder.embeddings.weight
    if "output/bias" in parameters:
        spec.decoder.projection.bias = array("output/bias")
    for side in ("encoder", "decoder"):
        part = getattr(spec, side)
        part.position_encodings.encodings = positions
        for number, layer in enumerate(part.layer):
            at = f"{side}/layers/{number}/"
            own, other = at + "self_attention/", at + "cross_attention/"
            linear(layer.self_attention.linear[0], own + "query", own + "key", own + "value")
            linear(layer.self_attention.linear[1], own + "output")
            norm(layer.self_attention.layer_norm, at + "self_attention_norm")
            if side == "decoder":
                linear(layer.attention.linear[0], other + "query")
                linear(layer.attention.linear[1], other + "key", other + "value")
                linear(layer.attention.linear[2], other + "output")
                norm(layer.attention.layer_norm, at + "cross_attention_norm")
            linear(layer.ffn.linear_0, at + "feed_forward/in")
            linear(layer.ffn.linear_1, at + "feed_forward/out")
            norm(layer.ffn.layer_norm, at + "feed_forward_norm")
        if pre_norm:
            norm(part.layer_norm, f"{side}/norm")
    spec.register_source_vocabulary(list(file["text/source/vocabulary"].asstr()[()]))
    spec.register_target_vocabulary(list(file["text/target/vocabulary"].asstr()[()]))
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = float(setting("norm_epsilon"))
    spec.validate()
    spec.optimize(quantization=quantization)
    os.makedirs(folder, exist_ok=True)
    spec.save(folder)


def read(path, lines):
    with open(path, encoding="utf-8", newline="\n") as file:
        return [line.split() for line in file][:lines]


def open_model(options, inter, intra):
    return ctranslate2.Translator(options.folder, device="cpu", compute_type=options.precision, inter_threads=inter, intra_threads=intra)


def search(options, batch):
    result = {"beam_size": options.beam, "max_batch_size": batch, "length_penalty": 1, "max_decoding_length": 1000}
    if options.fixed_length:
        result |= {"min_decoding_length": options.fixed_length, "max_decoding_length": options.fixed_length}
    return result


def seconds(translator, text, how):
    start = time.perf_counter()
    results = translator.translate_batch(text, **how)
    return time.perf_counter() - start, [result.hypotheses[0] for result in results]


def tune(options):
    """Finds the fastest setting on some lines. The threads of one sentence times the batches at a time are the
    number of processors."""
    text = read(options.pieces, options.lines)
    cores = options.threads
    best = None
    for inter, intra in sorted({(cores, 1), (1, cores)}):
        translator = open_model(options, inter, intra)
        for batch in (32, 128):
            how = search(options, batch)
            seconds(translator, text[:batch], how)
            spent = seconds(translator, text, how)[0]
            if best is None or spent < best[0]:
                best = (spent, {"inter": inter, "intra": intra, "batch": batch})
        del translator
    return best[1]


def translate(options):
    text = read(options.pieces, options.lines)
    start = time.perf_counter()
    translator = open_model(options, options.inter, options.intra)
    loaded = time.perf_counter() - start
    how = search(options, options.batch)
    seconds(translator, text[:64], how)
    spent, hypotheses = seconds(translator, text, how)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.writelines(" ".join(pieces) + "\n" for pieces in hypotheses)
    count = sum(map(len, hypotheses))
    return {"pieces_per_second": count / spent, "pieces": count, "seconds": spent, "load_seconds": loaded}


def latency(options):
    text = read(options.pieces, options.lines)
    translator, how = open_model(options, 1, options.threads), search(options, 1)
    for line in text[:5]:
        seconds(translator, [line], how)
    spent = sorted(1000 * seconds(translator, [line], how)[0] for line in text)
    return {"p50_ms": spent[len(spent) // 2], "p95_ms": spent[int(0.95 * len(spent))]}


def first(options):
    start = time.perf_counter()
    translator = open_model(options, 1, options.threads)
    loaded = time.perf_counter() - start
    seconds(translator, read(options.pieces, 1), search(options, 1))
    return {"load_seconds": loaded, "first_seconds": time.perf_counter() - start}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    converter = commands.add_parser("convert")
    converter.add_argument("checkpoint")
    converter.add_argument("folder")
    converter.add_argument("--quantization", choices=["int8", "bfloat16"], help="of the weights in the file; else float32")
    for name in ("tune", "translate", "latency", "first"):
        command = commands.add_parser(name)
        command.add_argument("folder")
        command.add_argument("pieces")
        command.add_argument("--precision", default="float32", help="CTranslate2's compute type")
        command.add_argument("--beam", type=int, default=1)
        command.add_argument("--fixed-length", type=int, help="output pieces of every line")
        command.add_argument("--lines", type=int, help="only the first ones")
        command.add_argument("--threads", type=int, default=os.cpu_count(), help="of one sentence; of all, in tune")
        command.add_argument("--inter", type=int, default=1, help="batches at a time, in translate")
        command.add_argument("--intra", type=int, default=1, help="threads of a batch, in translate")
        command.add_argument("--batch", type=int, default=64, help="sentences, in translate")
        command.add_argument("--output", help="where the pieces go, in translate")
    options = parser.parse_args()
    if options.command == "convert":
        convert(options.checkpoint, options.folder, options.quantization)
        return
    result = {"tune": tune, "translate": translate, "latency": latency, "first": first}[options.command](options)
    print(json.dumps({**result, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}))


main()
