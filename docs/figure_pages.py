"""A page for each figure of the paper, with its command and its verdicts, made from what docs/experiments.md says came out."""

from __future__ import annotations

import re
from pathlib import Path

from public_names import write_changed

Table = list[list[str]]  # rows of cells, the headings first
POINTS = (
    "Points of test error with 95 % intervals over seeds and test rows; **bold** is what survives the correction "
    "across all claims."
)
DATA = ("MNIST", "USPS", "ISOLET", "pendigits", "letter")


def tables_of(text: str) -> list[Table]:
    """The tables of a page of Markdown."""
    found = re.findall(r"(?:^\|.*\|$\n?)+", text, re.M)
    rows = [[line for line in table.splitlines() if not re.fullmatch(r"[|\-: ]+", line)] for table in found]
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in table] for table in rows]


def table_with(text: str, heading: str) -> Table:
    """The table whose first heading is, or begins with, ``heading``."""
    return next(table for table in tables_of(text) if table[0][0].startswith(heading))


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next one."""
    return re.split(r"^#+ .*$", text.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0].strip()


def markdown(table: Table) -> str:
    """A table as Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def experiments_of(text: str) -> dict[str, tuple[list[str], str]]:
    """Figure -> its experiments, and what they compare."""
    found = {}
    for names, figure, what in table_with(text, "experiment")[1:]:
        first, *others = re.findall(r"`([^`]*)`", names)
        full = [first] + [
            re.sub(r"-\w+-", other, first, count=1) if other[0] == "-" else other for other in others
        ]
        found[figure] = (full, what)
    return found


def verdicts_of(text: str, names: list[str]) -> str:
    """What came out of these experiments: the columns of their data sets, or what is said of the networks."""
    if not names[0].startswith("boosting"):
        return section(text, "On the networks")
    sets = [name for name in DATA if any(f"-{name.lower()}-" in one for one in names)]
    claims = table_with(text, "claim")
    varying = names[0].endswith("varying")
    columns = [0, *(claims[0].index(name) for name in sets)]
    about_pairs = ("(c, alpha)", "pure exploration")
    rows = [row for row in claims[1:] if varying == any(words in row[0] for words in about_pairs)]
    told = [markdown([[row[column] for column in columns] for row in [claims[0], *rows]])]
    if not varying:
        full_search = next(table for table in tables_of(text) if table[0][1:2] == ["full search drawn to"])
        told.append("How many times sooner than full search ABE gets down to an error, CPU time:")
        told.append(markdown([full_search[0], *(row for row in full_search[1:] if row[0] in sets)]))
    return "\n\n".join([POINTS, *told])


def page_of(text: str, figure: str, names: list[str], what: str) -> str:
    """The page of a figure."""
    commands = "\n".join(f"abex run {name}" for name in names)
    return f"""# {figure}

{what[0].upper()}{what[1:]}.

```
{commands}
abex report --open
```

Each command computes what the store does not hold yet, draws the panel as in the paper, and
judges every claim by its rule. `--dry-run` says how long it will take, `abex data` which data are missing; experiments
whose names end in `-quick` need none (`abex list`).

## Verdicts

{verdicts_of(text, names)}

[Experiments](../experiments.md) has the run behind these figures, the rules, and what follows.
"""


def write_figures(experiments: Path, folder: Path) -> None:
    """The pages of all figures, and one that lists them."""
    folder.mkdir(exist_ok=True)
    text = experiments.read_text(encoding="utf-8")
    listed = []
    for figure, (names, what) in sorted(experiments_of(text).items()):
        stem = figure.split(" (")[0].lower().replace(" ", "-")
        write_changed(folder / f"{stem}.md", page_of(text, figure, names, what))
        listed.append(stem)
    toc = "\n".join(listed)
    write_changed(
        folder / "index.md", f"# The paper's figures\n\n```{{toctree}}\n:maxdepth: 1\n\n{toc}\n```\n"
    )
