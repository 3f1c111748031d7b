"""Texts, vocabularies and models for the measurements. Each is made once, when a section first asks for it."""

import gzip
import os
import re
from dataclasses import dataclass
from functools import cached_property

from .machine import processors
from .measure import run

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


@dataclass(frozen=True)
class Config:
    """The sizes of `train --task transformer-NAME`."""

    layers: int
    width: int
    heads: int
    ffn: int
    dropout: float

    def flops(self, pieces, source, target, hypotheses=1):
        """Returns the floating-point operations of the matrix products in the forward pass of one sentence pair; a
        multiply-add counts as 2. Lengths include </s>. The keys and values of the source are computed once for all
        hypotheses."""
        d, f = self.width, self.ffn
        encoder = source * (4 * d * d + 2 * d * f + 2 * source * d)
        decoder = hypotheses * target * (6 * d * d + 2 * d * f + target * d + 2 * source * d) + source * 2 * d * d
        return 2 * (self.layers * (encoder + decoder) + hypotheses * target * d * pieces)


CONFIGS = {
    "tiny": Config(4, 128, 4, 256, 0.3),
    "mini": Config(3, 256, 4, 1024, 0.1),
    "small": Config(6, 512, 4, 1024, 0.1),
    "base": Config(6, 512, 8, 2048, 0.1),
    "big": Config(6, 1024, 16, 4096, 0.3),
}


def unpacked(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        yield from file


class Materials:
    """Makes the materials in the folder `work`. `tool` returns the path of one of heed's programs; `say` reports
    what is being made."""

    def __init__(self, work, tool, say, multi30k=None, model=None, source=None, text=None, unseen=None, language=None):
        self.work, self.tool, self.say, self.model_given = work, tool, say, model
        if multi30k and not os.path.exists(os.path.join(multi30k, "train.en.gz")):
            raise FileNotFoundError(f"{multi30k}: no train.en.gz in it (name the folder with Multi30k's .gz files)")
        self.languages = ("en", "de") if multi30k else ("en", "fr")
        ending = ".gz" if multi30k else ""
        folder = multi30k or os.path.join(ROOT, "data")
        self.train = [os.path.join(folder, f"train.{language}{ending}") for language in self.languages]
        self.validation = [os.path.join(folder, f"{'val' if multi30k else 'valid'}.{language}{ending}") for language in self.languages]
        self.test = source or os.path.join(folder, ("test_2016_flickr.en" if multi30k else "test.en") + ending)
        self.unseen_given, self.text_given, self.language = unseen, text, language or ("en" if text else self.languages[1])

    def path(self, name):
        return os.path.join(self.work, name)

    @cached_property
    def _vocabulary(self):
        path = self.path("vocabulary")
        command = [self.tool("build-vocab"), "--type", "bpe", "--merges", 10000, "--lowercase", "--normalize-punctuation"]
        said = run([*command, "--language", ",".join(self.languages), "-o", path, *self.train]).messages
        return path, int(re.search(r"([\d,]+) pieces", said).group(1).replace(",", ""))

    @property
    def vocabulary(self):
        """Returns the path of a vocabulary with joint merges of both sides: 10,000, or as many as the text has."""
        return self._vocabulary[0]

    @property
    def pieces(self):
        """Returns the number of pieces in the vocabulary, reserved pieces included."""
        return self._vocabulary[1]

    @cached_property
    def ids(self):
        """Returns the two files with the ids of the training text's sides."""
        files = [self.path(f"ids.{language}") for language in self.languages]
        for language, text, file in zip(self.languages, self.train, files):
            command = [self.tool("tokenize"), "-q", "-m", self.vocabulary, "-l", language, "--output-format", "id"]
            run([*command, "-i", text, "-o", file])
        return files

    @cached_property
    def lengths(self):
        """Returns the lengths (source, target) of the training pairs in pieces, </s> included."""
        with open(self.ids[0], "rb") as source, open(self.ids[1], "rb") as target:
            return [(len(s.split()) + 1, len(t.split()) + 1) for s, t in zip(source, target)]

    def first_lines(self, path, count):
        """Returns a file with the first `count` lines of another file, whose lines are repeated if there are too
        few."""
        result = self.path(f"{count}.{os.path.basename(path).removesuffix('.gz')}")
        if not os.path.exists(result):
            written = 0
            with open(result, "wb") as out:
                while written < count:
                    for line in unpacked(path):
                        out.write(line)
                        written += 1
                        if written == count:
                            break
        return result

    @cached_property
    def text(self):
        """Returns a raw text of at least 2 MB: the user's text, or the target side of the training text; a short
        text is repeated."""
        result, size = self.path("text"), 0
        with open(result, "wb") as out:
            while size < 2_000_000:
                for line in unpacked(self.text_given or self.train[1]):
                    size += out.write(line)
        return result

    @cached_property
    def unseen(self):
        """Returns another raw text of the user, or None."""
        if not self.unseen_given:
            return None
        with open(self.path("unseen"), "wb") as out:
            out.writelines(unpacked(self.unseen_given))
        return self.path("unseen")

    def train_command(self, config, *more, model=None, vocabulary=None):
        command = [self.tool("train"), "-q", "-t", *self.train, "-v", vocabulary or self.vocabulary]
        command += ["-m", model or self.path("trained.h5"), "--task", f"transformer-{config}", "--tied-embeddings-all"]
        return [*command, "--dropout", CONFIGS[config].dropout, "--save-freq", "1Gu", "-j", processors(), *more]

    def untrained(self, config, vocabulary=None, name=None):
        """Returns a model after one update, without the training state, for speed measurements with a fixed number
        of output pieces."""
        path, raw = self.path(f"untrained-{name or config}.h5"), self.path("raw.h5")
        if not os.path.exists(path):
            self.say(f"making a model of the {config} configuration")
            run(self.train_command(config, "--after", "1u", "--mini-batch-words", 256, model=raw, vocabulary=vocabulary))
            run([self.tool("train"), "-q", "--average", raw, "-o", path])
            os.remove(raw)
        return path

    @cached_property
    def tiny(self):
        """Returns the user's model, or a tiny model that is trained for a minute or two, so that its hypotheses end
        with </s>."""
        if self.model_given:
            return self.model_given
        self.say("training a tiny model for 300 updates")
        path = self.path("tiny.h5")
        run(self.train_command("tiny", "--after", "300u", "-l", 0.003, "--lr-warmup", 100, model=path))
        return path
