#!/usr/bin/env python3
"""Runs one task with a Python library for text and prints its seconds, without the start of Python, the import and
the reading of the text from standard input.

usage: text_libraries.py [--wall] WORK ARGUMENT...       processor seconds; with --wall, wall-clock seconds
"""

import sys
import time


def lines():
    return sys.stdin.buffer.read().decode().split("\n")[:-1]


# Each task is a generator that yields twice: when it is ready to begin, and when it is done. Only the time between
# counts.


def huggingface_learn(text, size, model):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=int(size), special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False)
    yield
    tokenizer.train([text], trainer)
    yield
    tokenizer.save(model)


def huggingface_batch(model):
    from tokenizers import Tokenizer

    tokenizer, text = Tokenizer.from_file(model), lines()
    yield
    tokenizer.encode_batch(text)
    yield


def huggingface_single(model):
    from tokenizers import Tokenizer

    tokenizer, text = Tokenizer.from_file(model), lines()
    yield
    for line in text:
        tokenizer.encode(line)
    yield


def youtokentome_learn(text, size, model, threads):
    import youtokentome

    yield
    youtokentome.BPE.train(data=text, model=model, vocab_size=int(size), n_threads=int(threads))
    yield


def youtokentome_encode(model):
    import youtokentome

    bpe, text = youtokentome.BPE(model=model, n_threads=1), lines()
    yield
    bpe.encode(text, output_type=youtokentome.OutputType.SUBWORD)
    yield


def subword_nmt_learn(path, size, model):
    from subword_nmt.learn_bpe import learn_bpe

    with open(path, encoding="utf-8") as text, open(model, "w", encoding="utf-8") as codes:
        yield
        learn_bpe(text, codes, int(size))
        yield


def subword_nmt_apply(model):
    from subword_nmt.apply_bpe import BPE

    with open(model, encoding="utf-8") as codes:
        bpe, text = BPE(codes), lines()
    yield
    for line in text:
        bpe.process_line(line)
    yield


def sacremoses_tokenize(language):
    from sacremoses import MosesTokenizer

    moses, text = MosesTokenizer(lang=language), lines()
    yield
    for line in text:
        moses.tokenize(line, return_str=True, escape=True)
    yield


def sentencepiece_learn(text, kind, size, model):
    import sentencepiece

    yield
    sentencepiece.SentencePieceTrainer.train(
        input=text, model_type=kind, vocab_size=int(size), model_prefix=model, num_threads=1, minloglevel=2
    )
    yield


def sentencepiece_encode(model, output):
    import sentencepiece

    processor, text = sentencepiece.SentencePieceProcessor(model_file=model), lines()
    yield
    for line in text:
        processor.encode(line, out_type=int)
    yield
    with open(output, "w", encoding="utf-8") as out:
        out.writelines(" ".join(processor.encode(line, out_type=str)) + "\n" for line in text)


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--wall"]
    clock = time.perf_counter if "--wall" in sys.argv else time.process_time
    work = globals()[arguments[0]](*arguments[1:])
    next(work)
    start = clock()
    next(work)
    sys.__stdout__.write(f"{clock() - start}\n")
    for _ in work:
        pass


main()
