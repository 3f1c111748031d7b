"""The command line of `scripts/bench`: chooses sections, prepares peers and materials, prints the report."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from . import curves, gemm, gpu, growth, images, learning, loading, machine, measured, memory, neighbour, pieces, quote, report, scores
from . import text, training, translation, venv
from .chart import chart
from .materials import HERE, ROOT, Materials
from .measure import PeerError, ProgramError, Row, alternate, run

# Name of a section: (function, share of the total time, peers that the section needs, description for --help).
SECTIONS = {
    "gemm": (gemm.measure, 1, [], "the machine's peak in matrix products, in GFLOP/s; other sections give shares of it"),
    "train": (training.measure, 10, ["torch"], "target tokens a second beside PyTorch, tuned for the processor"),
    "images": (images.measure, 3, ["torch", "torchvision"], "training on images, images a second beside PyTorch's modules; only with --only images"),
    "translate": (translation.measure, 8, ["ctranslate2", "h5py"], "output pieces a second beside CTranslate2, greedy and beam"),
    "latency": (loading.latency, 3, ["ctranslate2", "h5py"], "one sentence after the other, median and 95th percentile"),
    "load": (loading.load, 1, ["ctranslate2", "h5py"], "from the start of the process until a base model is ready, and to its first translation"),
    "memory": (memory.measure, 2, ["torch", "ctranslate2", "h5py"], "peak of training and translating"),
    "neighbour": (neighbour.measure, 4, ["torch", "ctranslate2", "h5py"], "what is left of the speed beside a busy foreign thread"),
    "growth": (growth.measure, 2, [], "time against batch, length and vocabulary; --svg FILE draws it"),
    "text": (text.measure, 3, ["sacremoses"], "Moses' steps on a raw text, one thread; threads and memory"),
    "learn": (learning.measure, 3, ["youtokentome", "tokenizers", "subword_nmt"], "learning and applying BPE"),
    "pieces": (pieces.measure, 2, ["sentencepiece"], "unigram and BPE pieces beside SentencePiece, one thread"),
    "bleu": (scores.measure, 4, ["sacrebleu"], "scores of a corrupted text beside sacreBLEU"),
    "gpu": (gpu.measure, 10, ["torch"], "training and translating on a GPU beside PyTorch on the same GPU; only with --only gpu"),
    "curves": (curves.measure, 15, [], "the loss of training in bfloat16 beside float32, of three seeds each; only with --only curves"),
}
ON_REQUEST = ("curves", "gpu", "images")  # run only if --only names them


def parser():
    """Returns the parser of the command line."""
    listing = "\n".join(f"  {name:10} {help}" for name, (_, _, _, help) in SECTIONS.items())
    result = argparse.ArgumentParser(
        prog="scripts/bench",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measures heed beside the field's programs, one run after the other in turn, on the same work. Prints Markdown:\n"
        "for each measurement the best and the median run, and how many times better heed's median is. The last line of\n"
        "the report sums it up, to be quoted: shares of the machine's peak in matrix products, and ratios to the peers.\n"
        f"Everything takes less than half an hour on two processors.\n\nsections:\n{listing}",
        epilog="examples:\n  scripts/bench --multi30k ~/multi30k --moses ~/mosesdecoder/scripts > bench.md\n"
        "  scripts/bench --only train,translate --repeat 5 --minutes 0\n  scripts/bench --only text --text news.de --language de --no-peers",
    )
    add = result.add_argument
    add("--only", metavar="SECTION[,..]", help="these sections instead of all")
    add("--quick", action="store_true", help="one run of each, the tiny configuration, less work")
    add("--repeat", type=int, metavar="N", help="runs of each measurement (default 3)")
    add("--minutes", type=float, default=26, metavar="M", help="leave out runs, except the first of each measurement, to end within M minutes; 0: leave out none (default 26)")
    add("--tsv", metavar="FILE", help="write all rows as tab-separated values too")
    add("--svg", metavar="FILE", help="draw the curves of growth and of losses")
    add("--measured", metavar="FILE", help="set this machine's row in the table of FILE, as in tests/bench/MEASURED.md; not with --quick")
    add("--bin", metavar="DIR", default=os.environ.get("HEED_BIN"), help="heed's programs (default $HEED_BIN, else they are built)")
    add("--venv", metavar="DIR", help="a virtual environment with the peers (default build/bench-venv, which is made)")
    add("--no-peers", action="store_true", help="measure heed alone")
    add("--moses", metavar="DIR", help="Moses' scripts: tokenizer/*.perl, recaser/truecase.perl")
    add("--multi30k", metavar="DIR", help="Multi30k's train, val and test_2016_flickr .gz (default the project's data/)")
    add("--model", metavar="FILE", help="a trained model to translate with (default: a tiny one is trained)")
    add("--draft", metavar="FILE", help="a small model with the vocabulary of --model, to measure the latency with --draft-model too")
    add("--configs", default=None, metavar="C[,..]", help="to train: tiny, mini, small, base, big (default tiny,mini,base)")
    add("--updates", type=int, metavar="N", help="updates of a training run (default 20, fewer for larger models; 600 for curves)")
    add("--precisions", default="float32,int8", metavar="P[,..]", help="to translate with: float32, bfloat16, int8")
    add("--source", metavar="FILE", help="raw text to translate, also .gz (default: the test set)")
    add("--text", metavar="FILE", help="raw text of the text sections, also .gz (default: the training text)")
    add("--language", metavar="L", help="of the text")
    add("--unseen", metavar="FILE", help="another raw text, to apply learned pieces to")
    add("--sizes", metavar="N[,..]", help="of the vocabularies to learn (default 8000; 1000 from the project's small text)")
    add("--threads", type=int, default=1, metavar="N", help="for learning BPE; more than 1 is measured by the wall clock (default 1)")
    add("--lines", type=int, metavar="N", help="lines to score (default 20000)")
    add("--device", default="cuda:0", metavar="D", help="to measure in the section gpu (default cuda:0; cpu tries the section out)")
    add("--rows", metavar="REGEX", help="only the measurements of the section bleu whose name this finds")
    return result


class Bench:
    """What every section receives: the options, heed's programs, the peers, the materials, and the rows measured so
    far."""

    def __init__(self, options, tools, peers, work):
        self.options, self.tools, self.peers, self.work = options, tools, peers, work
        self.quick = options.quick
        self.repeat = options.repeat or (1 if options.quick else 3)
        self.threads = machine.processors()
        self.commit = ""
        self.rows, self.notes, self.panels, self.peaks = [], [], [], {}
        self.section, self.until = "", float("inf")
        given = (options.multi30k, options.model, options.source, options.text, options.unseen, options.language)
        self.materials = Materials(work, self.tool, self.say, *given)
        small = not options.multi30k and not options.text
        self.sizes = [int(size) for size in (options.sizes or ("1000" if small else "8000")).split(",")]

    def tool(self, name):
        """Returns the path of one of heed's programs."""
        return os.path.join(self.tools, name)

    def path(self, name):
        """Returns the path of a file in the working folder."""
        return os.path.join(self.work, name)

    def say(self, message):
        """Prints a message about the progress to standard error."""
        print(f"bench: {message}", file=sys.stderr, flush=True)

    def note(self, text):
        """Adds a paragraph below the section's table."""
        self.notes.append(text)

    def peer(self, program, *arguments, source=None, environment=None):
        """Runs one of the programs in peers/ with the Python in which the peers are installed."""
        command = [self.peers.python, os.path.join(HERE, "peers", program), *arguments]
        try:
            return run(command, source=source, environment={"PYTHONWARNINGS": "ignore", **(environment or {})})
        except ProgramError as error:
            raise PeerError(str(error)) from None

    def add(self, what, unit, heed, more=False, **other):
        """Adds a row with heed's measured values, in `unit`, to the present section, and returns the row. `more` is
        True if a higher value is better; `other` has further fields of Row."""
        self.rows.append(Row(self.section, what, unit, more, heed, **other))
        return self.rows[-1]

    def compare(self, what, unit, programs, more=False):
        """Measures heed (the first program) and the other programs in turn, and adds a row for heed beside each of
        the others; without others, adds one row. Returns the rows."""
        values, failed = alternate(programs, self.repeat, lambda: time.monotonic() > self.until)
        heed, *others = programs
        rows = [self.add(what, unit, values[heed], more, peer=name, theirs=values[name], note=failed.get(name, "")) for name in others]
        rows = rows or [self.add(what, unit, values[heed], more)]
        shown = [f"{name} {report.number(rows[0].best(numbers))}" for name, numbers in values.items() if numbers]
        self.say(f"{self.section}: {what}: {', '.join(shown)} {unit}" + "".join(f"; {name} failed: {why}" for name, why in failed.items()))
        return rows


def built_tools(chosen, say):
    """Returns the folder of heed's programs; builds the programs when the user has not chosen a folder."""
    if chosen:
        missing = [name for name in ("train", "translate") if not os.access(os.path.join(chosen, name), os.X_OK)]
        if missing:
            raise FileNotFoundError(f"{chosen}: no {missing[0]} in it (name the folder with heed's programs)")
        return os.path.abspath(chosen)
    say("building heed (build/release)")
    targets = ["tokenize", "build-vocab", "train", "translate", "bleu", "heed_gemm_bench"]
    for command in (["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release", "--target", *targets]):
        made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if made.returncode != 0:
            sys.stderr.write(made.stdout + made.stderr)
            raise ProgramError(f"{' '.join(command[:4])} failed (scripts/setup installs what building needs)")
    return os.path.join(ROOT, "build", "release", "bin")


def get_peers(options, sections, say):
    """Returns the peers that the sections need and the virtual environment of --venv has. Without --venv, they are
    installed in build/bench-venv."""
    wanted = {module for name in sections for module in SECTIONS[name][2]}
    if options.no_peers or not wanted:
        return venv.Peers(None, wanted)
    if options.venv:
        return venv.existing(options.venv, wanted)
    return venv.fetched(os.path.join(ROOT, "build", "bench-venv"), wanted, say)


def measure(bench, sections, minutes):
    """Runs the sections, each within its share of the remaining time, and prints the table of each section at once."""
    end = time.monotonic() + 60 * minutes if minutes else float("inf")
    for at, name in enumerate(sections):
        function, weight, _, help = SECTIONS[name]
        rest = sum(SECTIONS[later][1] for later in sections[at:])
        now = time.monotonic()
        bench.section, bench.until, bench.notes = name, now + (end - now) * weight / rest, []
        try:
            function(bench)
        except PeerError as error:
            bench.note(f"The rest of this section is left out: {error}")
            bench.say(f"{name}: the rest is left out: {error}")
        rows = [row for row in bench.rows if row.section == name]
        print(f"\n## {name}: {help}\n")
        if rows:
            print(report.markdown(rows), end="")
        for note in bench.notes:
            print(f"\n{note}")
        sys.stdout.flush()


def conclude(bench):
    """Prints the line that people quote, and sets this machine's row in the table that --measured names."""
    setting = quote.Setting(machine.heed_version(bench.tools), bench.commit, machine.cpu_name(machine.cpu_fields()), gemm.used_set(bench), bench.threads)
    line = quote.line(setting, bench.rows, bench.peers.versions)
    if line:
        print(f"\n{line}")
    if bench.options.measured:
        cells = measured.cells(setting, bench.rows, bench.peers.versions, time.strftime("%Y-%m-%d"))
        measured.write(bench.options.measured, cells)


def main():
    """Runs the command line, and returns the exit status of `scripts/bench`."""
    options = parser().parse_args()
    sections = options.only.split(",") if options.only else [name for name in SECTIONS if name not in ON_REQUEST]
    unknown = [name for name in sections if name not in SECTIONS]
    if unknown:
        parser().error(f"--only: no section '{unknown[0]}' (there are {', '.join(SECTIONS)})")
    if options.draft and not options.model:
        parser().error("--draft: needs --model, the model that it drafts for")
    if options.draft and "latency" not in sections:
        parser().error("--draft: is measured in the section latency only")
    lacking = [name for name in measured.SECTIONS if name not in sections]
    if options.measured and (options.quick or options.no_peers or lacking):
        parser().error(f"--measured: a row needs the sections {', '.join(measured.SECTIONS)}, and neither --quick nor --no-peers")
    if options.svg and not {"growth", "curves"} & set(sections):
        parser().error("--svg: draws the sections growth and curves only")
    for option, path in (("--tsv", options.tsv), ("--svg", options.svg)):
        folder = os.path.dirname(path or "") or "."
        if not os.path.isdir(folder):  # noticed before the measurements
            parser().error(f"{option} {path}: there is no folder {folder}")
    say = lambda message: print(f"bench: {message}", file=sys.stderr, flush=True)  # noqa: E731
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM too removes the working folder
    start = time.monotonic()
    work = tempfile.mkdtemp(prefix="heed-bench-")
    try:
        if options.measured:
            measured.read(options.measured)  # so that a wrong file is an error before the measurements
        tools = built_tools(options.bin, say)
        peers = get_peers(options, sections, say)
        bench = Bench(options, tools, peers, work)
        bench.commit = machine.commit(ROOT, tools)
        print(f"# heed beside its peers\n\n{machine.head(tools, peers)}", end="", flush=True)
        measure(bench, sections, options.minutes)
        if options.tsv:
            with open(options.tsv, "w", encoding="utf-8") as file:
                file.write(report.tsv(bench.rows))
        if options.svg and bench.panels:
            with open(options.svg, "w", encoding="utf-8") as file:
                file.write(chart(bench.panels))
        print(f"\n{(time.monotonic() - start) / 60:.1f} minutes; load {os.getloadavg()[0]:.2f} at the end")
        conclude(bench)
        return 0
    except (ProgramError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(work, ignore_errors=True)
