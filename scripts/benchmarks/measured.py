"""Keeps the table of tests/bench/MEASURED.md: one row for each processor, instruction set and number of threads."""

from .measure import ProgramError
from .quote import groups, label, ratios, shares, with_version

SECTIONS = ("gemm", "train", "translate", "latency")  # that a row needs
KEY = 3  # number of columns that distinguish the rows
COLUMNS = (
    "CPU",
    "instruction set",
    "threads",
    "training: share of the peak",
    "training: times as fast as PyTorch",
    "translating, greedy/beam 4: share of the peak",
    "translating, greedy/beam 4: times as fast as CTranslate2",
    "one line, 1/all threads: times as fast as CTranslate2",
    "commit",
    "date",
)


def cell(found, show, peer=""):
    """Returns what `show` says of each group, and the peer in parentheses; "-" where nothing was measured."""
    parts = [f"{label(group)} {show(group)}" for group in found if show(group)]
    return ", ".join(parts) + (f" ({peer})" if peer else "") if parts else "-"


def cells(setting, rows, versions, date):
    """Returns this machine's row as a list with one text for each column."""
    training, translating, latency = (groups(rows, section) for section in SECTIONS[1:])
    torch, ctranslate2 = (with_version(peer, versions) for peer in ("PyTorch", "CTranslate2"))
    speeds = [cell(training, shares), cell(training, ratios, torch), cell(translating, shares), cell(translating, ratios, ctranslate2)]
    machine = [setting.cpu, setting.instruction_set or "-", str(setting.threads)]
    return [*machine, *speeds, cell(latency, ratios, ctranslate2), setting.commit or "-", date]


def formatted(columns):
    return f"| {' | '.join(columns)} |"


def key(line):
    return [part.strip() for part in line.split("|")[1 : KEY + 1]]


def with_row(text, row):
    """Returns the text with the row in its table, in place of the row of the same key or else behind the last row.
    Raises ValueError when the text has no such table."""
    lines = text.splitlines()
    first = end = lines.index(formatted(COLUMNS)) + 2
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    same = [at for at in range(first, end) if key(lines[at]) == row[:KEY]]
    lines[same[0] if same else end : same[0] + 1 if same else end] = [formatted(row)]
    return "\n".join(lines) + "\n"


def read(path):
    """Returns the text of a file with the table."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if formatted(COLUMNS) not in text.splitlines():
        raise ProgramError(f"{path}: no table of measurements in it (begin with a copy of tests/bench/MEASURED.md)")
    return text


def write(path, row):
    """Sets the row in the table of a file."""
    text = with_row(read(path), row)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
