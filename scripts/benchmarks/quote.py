"""Sums up a report in one line that people can quote. Groups the rows that the line and tests/bench/MEASURED.md show
side by side, such as the shares of the peak of all configurations in one precision."""

from dataclasses import dataclass

from .report import counted, number

TRANSLATING = ("int8", "bfloat16", "float32")  # precisions for translating; the line quotes the first that was measured
TEXT_SECTIONS = ("text", "learn", "pieces", "bleu")
MODULES = {"PyTorch": "torch", "CTranslate2": "ctranslate2"}  # peers that are quoted with their version


@dataclass
class Setting:
    """What was measured, and on which machine. Unknown parts are empty."""

    heed: str  # version
    commit: str
    cpu: str
    instruction_set: str
    threads: int

    def __str__(self):
        commit = f" (commit {self.commit})" if self.commit else ""
        parts = [self.cpu, counted(self.threads), self.instruction_set]
        return f"heed {self.heed}{commit} on {', '.join(part for part in parts if part)}"


def groups(rows, section):
    """Returns lists of rows with a share of the peak or a ratio to a peer. A list of training holds the
    configurations of one precision; another list holds the ways to translate with one model in one precision: greedy
    and with a beam, or the numbers of threads."""
    result = {}
    for row in rows:
        if row.section == section and row.quote and (row.share is not None or row.ratio is not None):
            model, precision, _ = row.quote
            result.setdefault(precision if section == "train" else (model, precision), []).append(row)
    return list(result.values())


def label(group):
    """Returns the models and the precision of a group, such as "tiny/base in float32"."""
    return "/".join(dict.fromkeys(row.quote[0] for row in group)) + f" in {group[0].quote[1]}"


def ways(group):
    return "/".join(row.quote[2] for row in group if row.quote[2])


def joined(values, show):
    """Returns the values with slashes between them and "-" for each None, or "" when all are None."""
    if all(value is None for value in values):
        return ""
    return "/".join("-" if value is None else show(value) for value in values)


def shares(group):
    numbers = joined([row.share for row in group], lambda share: f"{100 * share:.0f}")
    return numbers and f"{numbers} %"


def ratios(group):
    return joined([row.ratio for row in group], "{:.2f}".format)


def with_version(peer, versions):
    """Returns the name of a peer and its version without the build, such as "+cpu"."""
    version = versions.get(MODULES[peer], "").partition("+")[0]
    return f"{peer} {version}".rstrip()


def clause(verb, group, versions):
    """Returns what a group says of heed, such as "training tiny in float32 at 70 % of the peak and 1.90 times as fast
    as PyTorch 2.9"."""
    parts = [f"at {shares(group)} of the peak"] if shares(group) else []
    if ratios(group):
        peer = next(row.peer for row in group if row.peer)
        parts.append(f"{ratios(group)} times as fast as {with_version(peer, versions)}")
    way = f", {ways(group)}," if ways(group) else ""
    return f"{verb} {label(group)}{way} {' and '.join(parts)}"


def preferred(found):
    """Returns the group of the last model in the first precision of TRANSLATING."""
    last = [group for group in found if group[0].quote[0] == found[-1][0].quote[0]]
    return min(last, key=lambda group: (*TRANSLATING, group[0].quote[1]).index(group[0].quote[1]))


def program(peer):
    """Returns the name under which the line quotes a peer: Moses' scripts together, and the ways to call one library
    together."""
    return "Moses" if peer.endswith(".perl") else "HF tokenizers" if peer.startswith("HF ") else peer


def on_text(rows):
    """Returns the least and the greatest ratio to each program that works on text, such as "8-12 times as fast as
    Moses, 2.5 as sacreBLEU", or ""."""
    found = {}
    for row in rows:
        if row.section in TEXT_SECTIONS and row.ratio is not None:
            found.setdefault(program(row.peer), []).append(row.ratio)
    spans = {name: "-".join(dict.fromkeys(number(end) for end in (min(them), max(them)))) for name, them in found.items()}
    return ", ".join(f"{span} as {name}" for name, span in spans.items()).replace(" as ", " times as fast as ", 1)


def line(setting, rows, versions):
    """Returns the line, or "" when the rows hold neither a share of the peak nor a ratio to a peer. To stay short, the
    line names each peer once: it quotes the time of one line only where no other translating was measured. `versions`
    gives the versions of the peers' modules."""
    training, translating, latency = (groups(rows, section) for section in ("train", "translate", "latency"))
    clauses = [clause("training", training[0], versions)] if training else []
    clauses += [clause("translating", preferred(translating), versions)] if translating else []
    clauses += [clause("one line of", preferred(latency), versions)] if latency and not translating else []
    clauses += [f"on text {on_text(rows)}"] if on_text(rows) else []
    return f"{setting}: {'; '.join(clauses)}" if clauses else ""
