"""Formats rows as Markdown and as TSV."""

from statistics import median

COLUMNS = ["measurement", "unit", "heed best", "heed median", "peer", "peer best", "peer median", "ratio", "of peak", "runs", "note"]


def number(x):
    """Returns a number with three significant digits, or with all digits before the decimal point, and commas at
    thousands."""
    if x == 0:
        return "0"
    if abs(x) >= 100:
        return f"{x:,.0f}"
    return f"{x:.3g}" if abs(x) >= 0.001 else f"{x:.2e}"


def counted(threads):
    return f"{threads} thread{'s' if threads != 1 else ''}"


def cells(row, show):
    theirs = [row.peer, show(row.best(row.theirs)), show(median(row.theirs))] if row.theirs else [row.peer, "", ""]
    return [
        row.what,
        row.unit,
        show(row.best(row.heed)),
        show(median(row.heed)),
        *theirs,
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.share is None else f"{100 * row.share:.0f} %",
        str(len(row.heed)),
        row.note,
    ]


def markdown(rows):
    """Returns a Markdown table of the rows, without columns that are empty in all rows."""
    table = [cells(row, number) for row in rows]
    used = [c for c in range(len(COLUMNS)) if any(line[c] for line in table)]
    right = {c for c in used if COLUMNS[c] not in ("measurement", "unit", "peer", "note")}
    lines = [[COLUMNS[c] for c in used], ["---:" if c in right else "---" for c in used], *([line[c] for c in used] for line in table)]
    return "".join("| " + " | ".join(part.replace("|", "\\|") for part in line) + " |\n" for line in lines)


def tsv(rows):
    """Returns all rows as TSV with a line of column names; numbers have six digits."""
    lines = [["section", *COLUMNS], *([row.section, *cells(row, "{:.6g}".format)] for row in rows)]
    return "".join("\t".join(line).replace("\n", " ") + "\n" for line in lines)
