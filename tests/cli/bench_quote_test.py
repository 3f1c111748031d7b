"""Tests the line that people quote from scripts/bench, and the table of tests/bench/MEASURED.md. Nothing is measured."""

import contextlib
import io
import os
import shutil
import sys
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

ROOT = os.environ["HEED_SOURCE"]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from benchmarks import command, gemm, loading, machine, measured, quote, training, translation  # noqa: E402
from benchmarks.measure import ProgramError, Row  # noqa: E402

SETTING = quote.Setting("0.1.0", "abc1234", "AMD EPYC 9R14", "avx512_bf16", 2)
PLACE = "heed 0.1.0 (commit abc1234) on AMD EPYC 9R14, 2 threads, avx512_bf16: "
VERSIONS = {"torch": "2.9.0+cpu", "ctranslate2": "4.6.0"}


def row(section, quote, ours, theirs=None, share=None, peer="", more=True):
    return Row(section, "", "", more, [ours], peer, [theirs] if theirs else [], share, "", quote)


TRAINING = [
    row("train", ("tiny", "bfloat16", ""), 180, 100, 0.474, "PyTorch"),
    row("train", ("tiny", "float32", ""), 120, 100, 0.7, "PyTorch"),
    row("train", ("mini", "bfloat16", ""), 135, 100, 0.586, "PyTorch"),
    row("train", ("base", "bfloat16", ""), 115, None, 0.65, "PyTorch"),
    row("train", (), 90),  # the first epoch
]
TRANSLATING = [
    row("translate", ("tiny", "int8", "greedy"), 500, 100, 0.2, "CTranslate2"),
    row("translate", ("base", "float32", "greedy"), 150, 100, 0.8, "CTranslate2"),
    row("translate", ("base", "int8", "greedy"), 297, 100, 0.41, "CTranslate2"),
    row("translate", ("base", "int8", "beam 4"), 430, 100, 0.35, "CTranslate2"),
]
LATENCY = [
    row("latency", ("base", "int8", "1 thread"), 20, 42, None, "CTranslate2", more=False),
    row("latency", ("base", "int8", "2 threads"), 10, 40, None, "CTranslate2", more=False),
]
TEXT = [
    row("text", (), 80, 10, None, "tokenizer.perl"),
    row("text", (), 246, 20, None, "detokenizer.perl"),
    row("text", (), 60),
    row("learn", (), 30, 20, None, "HF encode"),
    row("bleu", (), 10, 25, None, "sacreBLEU", more=False),
]
TRAINING_SAID = "training tiny/mini/base in bfloat16 at 47/59/65 % of the peak and 1.80/1.35/- times as fast as PyTorch 2.9.0"
TRANSLATING_SAID = "translating base in int8, greedy/beam 4, at 41/35 % of the peak and 2.97/4.30 times as fast as CTranslate2 4.6.0"


class LineTest(unittest.TestCase):
    def line(self, rows, versions=VERSIONS, setting=SETTING):
        return quote.line(setting, rows, versions)

    def test_all(self):
        text = "on text 8-12.3 times as fast as Moses, 1.5 as HF tokenizers, 2.5 as sacreBLEU"
        self.assertEqual(self.line(TRAINING + TRANSLATING + LATENCY + TEXT), PLACE + "; ".join([TRAINING_SAID, TRANSLATING_SAID, text]))

    def test_short(self):
        self.assertLess(len(self.line(TRAINING + TRANSLATING)), 300)

    def test_only_what_was_measured(self):
        self.assertEqual(self.line(TRANSLATING), PLACE + TRANSLATING_SAID)
        latency = "one line of base in int8, 1 thread/2 threads, 2.10/4.00 times as fast as CTranslate2 4.6.0"
        self.assertEqual(self.line(LATENCY), PLACE + latency)
        self.assertEqual(self.line(TEXT[2:4]), PLACE + "on text 1.5 times as fast as HF tokenizers")
        self.assertEqual(self.line([row("train", ("tiny", "float32", ""), 9, None, 0.5)]), PLACE + "training tiny in float32 at 50 % of the peak")
        without_share = row("translate", ("the model given", "float32", "greedy"), 9, 4, None, "CTranslate2")
        self.assertEqual(
            self.line([without_share], {}, quote.Setting("0.1.0", "", "Cortex", "", 1)),
            "heed 0.1.0 on Cortex, 1 thread: translating the model given in float32, greedy, 2.25 times as fast as CTranslate2",
        )

    def test_nothing_to_quote(self):
        self.assertEqual(self.line([]), "")
        self.assertEqual(self.line([row("train", ("tiny", "float32", ""), 9), row("latency", (), 9, 18, None, "CTranslate2"), TEXT[2]]), "")


class MeasuredTest(unittest.TestCase):
    def setUp(self):
        self.row = measured.cells(SETTING, TRAINING + TRANSLATING + LATENCY, VERSIONS, "2026-11-23")
        self.file = os.path.join(ROOT, "tests", "bench", "MEASURED.md")

    def test_cells(self):
        self.assertEqual(self.row[:3], ["AMD EPYC 9R14", "avx512_bf16", "2"])
        self.assertEqual(self.row[3], "tiny/mini/base in bfloat16 47/59/65 %, tiny in float32 70 %")
        self.assertEqual(self.row[4], "tiny/mini/base in bfloat16 1.80/1.35/-, tiny in float32 1.20 (PyTorch 2.9.0)")
        self.assertEqual(self.row[5], "tiny in int8 20 %, base in float32 80 %, base in int8 41/35 %")
        self.assertEqual(self.row[6], "tiny in int8 5.00, base in float32 1.50, base in int8 2.97/4.30 (CTranslate2 4.6.0)")
        self.assertEqual(self.row[7:], ["base in int8 2.10/4.00 (CTranslate2 4.6.0)", "abc1234", "2026-11-23"])
        self.assertEqual(measured.cells(SETTING, [], {}, "today")[3:], ["-"] * 5 + ["abc1234", "today"])

    def test_row_is_appended_then_replaced(self):
        before = measured.read(self.file)
        once = measured.with_row(before, self.row)
        new = measured.formatted(self.row)
        self.assertEqual([line for line in once.splitlines() if line != new], before.splitlines())
        self.assertTrue(once.splitlines()[once.splitlines().index(new) - 1].startswith("| "))
        other = [*self.row[:8], "def5678", "later"]
        self.assertEqual(measured.with_row(once, other), once.replace(new, measured.formatted(other)))
        more_threads = [*self.row[:2], "4", *self.row[3:]]
        self.assertEqual(len(measured.with_row(once, more_threads).splitlines()), len(once.splitlines()) + 1)

    def test_end_of_a_run_writes_the_row(self):
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(self.file, folder)
            peers = SimpleNamespace(versions=VERSIONS)
            bench = SimpleNamespace(tools=folder, commit="abc1234", threads=2, rows=TRANSLATING, peers=peers, options=SimpleNamespace(measured=path))
            patches = {"heed_version": "0.1.0", "cpu_name": "Cortex"}
            with mock.patch.multiple(machine, **{name: mock.Mock(return_value=value) for name, value in patches.items()}):
                with mock.patch.object(gemm, "used_set", return_value="native"), contextlib.redirect_stdout(io.StringIO()) as out:
                    command.conclude(bench)
            self.assertEqual(out.getvalue(), f"\nheed 0.1.0 (commit abc1234) on Cortex, 2 threads, native: {TRANSLATING_SAID}\n")
            row = next(line for line in measured.read(path).splitlines() if line.startswith("| Cortex | native | 2 | - | - | tiny in int8 20 %"))
            self.assertRegex(row, r" \| abc1234 \| \d{4}-\d\d-\d\d \|$")

    def test_file_without_the_table(self):
        with self.assertRaisesRegex(ProgramError, "README.md: no table of measurements in it"):
            measured.read(os.path.join(ROOT, "README.md"))


class SectionsTest(unittest.TestCase):
    """Runs the sections with invented speeds: each names the rows that the line quotes."""

    def test_line_of_a_run(self):
        options = command.parser().parse_args(["--only", "train,translate,latency"])
        peers = SimpleNamespace(versions=VERSIONS, has=lambda module: True, missing={})
        bench = command.Bench(options, "", peers, "")
        bench.repeat, bench.threads, bench.peaks = 1, 2, {"bfloat16": 4.0, "int8": 1.0}
        bench.say = lambda message: None
        bench.materials = mock.Mock(model_given=None)
        peer = mock.Mock(**{"translate.return_value": {"pieces_per_second": 5.0}, "call.return_value": {"p50_ms": 3.0, "p95_ms": 4.0}})
        invented = {
            training: {"description": "", "fast_precision": "bfloat16", "flops_of_a_token": 1e8, "heed": (30.0, 1), "first_epoch": None},
            translation: {"heed": (20.0, 1), "Peer": peer, "share_of_peak": 0.25, "differing": (0, 1)},
            loading: {"heed_latency": {"p50_ms": 2.0, "p95_ms": 3.0}, "Peer": peer},
        }
        patches = [mock.patch.object(module, name, return_value=value) for module, values in invented.items() for name, value in values.items()]
        patches += [mock.patch.object(training, "pytorch", return_value={"tokens_per_second": 10.0}), mock.patch("os.remove")]
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)
        for section, measure in (("train", training.measure), ("translate", translation.measure), ("latency", loading.latency)):
            bench.section = section
            measure(bench)
        self.assertEqual(
            quote.line(SETTING, bench.rows, VERSIONS),
            PLACE + "training tiny/mini/base in bfloat16 at 75/75/75 % of the peak and 3.00/3.00/3.00 times as fast as PyTorch 2.9.0; "
            "translating base in int8, greedy/beam 4, at 25/25 % of the peak and 4.00/4.00 times as fast as CTranslate2 4.6.0",
        )
        row = measured.cells(SETTING, bench.rows, VERSIONS, "today")
        speeds = ", ".join(f"{model} in {precision} 1.50/1.50" for model in ("tiny", "base") for precision in ("float32", "int8"))
        self.assertEqual(row[7], f"{speeds} (CTranslate2 4.6.0)")

    def test_latency_with_a_draft_model(self):
        options = command.parser().parse_args(["--model", "base.h5", "--draft", "tiny.h5", "--precisions", "int8", "--quick"])
        bench = command.Bench(options, "", SimpleNamespace(has=lambda module: False, missing={}), "")
        bench.repeat, bench.threads, bench.section = 1, 1, "latency"
        bench.say, bench.materials = lambda message: None, mock.Mock(model_given="base.h5", tiny="base.h5")
        with mock.patch.object(loading, "heed_latency", side_effect=lambda *arguments: {"p50_ms": 1.0 if arguments[-1] else 2.0, "p95_ms": 3.0}):
            loading.latency(bench)
        medians = {row.what: row.heed for row in bench.rows if row.what.endswith("median")}
        self.assertEqual(medians, {"the model given, int8, 1 thread, median": [2.0], "the model given with its draft, int8, 1 thread, median": [1.0]})
        self.assertEqual([row.peer for row in bench.rows if row.theirs == [2.0]], ["no draft"])
        self.assertEqual([row.quote for row in bench.rows if row.quote], [("the model given", "int8", "1 thread")])


class MachineTest(unittest.TestCase):
    def test_name(self):
        name = machine.cpu_name
        self.assertEqual(name({"model name": "Intel(R) Core(TM) i7-1065G7 CPU @ 1.30GHz"}), "Intel Core i7-1065G7 CPU @ 1.30GHz")
        vague = {"model name": "Intel(R) Xeon(R) Processor", "cpu family": "6", "model": "207"}
        self.assertEqual(name(vague), "Intel Xeon Processor (family 6, model 207)")

    def test_commit_of_other_programs_is_unknown(self):
        self.assertEqual(machine.commit(ROOT, "/usr/bin"), "")

    def test_instruction_set(self):
        bench = SimpleNamespace(tool=lambda name: "/nowhere")
        with mock.patch.dict(os.environ, {"HEED_ISA": "avx2"}):
            self.assertEqual(gemm.used_set(bench), "avx2")
        with mock.patch.dict(os.environ, {"HEED_ISA": ""}):
            self.assertEqual(gemm.used_set(bench), "")
            with mock.patch("os.access", return_value=True), mock.patch.object(gemm, "instruction_sets", return_value=["sse2", "amx"]):
                self.assertEqual(gemm.used_set(bench), "amx")


if __name__ == "__main__":
    unittest.main()
