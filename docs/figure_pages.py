"""A page for each figure of the paper: its panels as pictures with their verdicts, which `python -m benchmarks.paper` writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from public_names import write_changed

BADGES = {"holds": "success", "does not hold": "danger", "cannot be told": "warning"}


def experiments_of(text: str) -> dict[str, tuple[list[str], str]]:
    """Figure -> its experiments, and what they compare: the first table of docs/experiments.md."""
    table = re.search(r"^\| experiment \|.*\n.*\n((?:\|.*\n)+)", text, re.M)
    assert table is not None
    found = {}
    for row in table[1].splitlines():
        names, figure, what = (cell.strip() for cell in row.strip("|").split("|"))
        first, *others = re.findall(r"`([^`]*)`", names)
        full = [first] + [
            re.sub(r"-\w+-", other, first, count=1) if other[0] == "-" else other for other in others
        ]
        found[figure] = (full, what)
    return found


def badge(answer: str) -> str:
    """A verdict in its colour."""
    return f"{{bdg-{BADGES[answer]}}}`{answer}`"


def verdict_of(one: dict[str, str]) -> str:
    """A claim with its verdict by itself, the one with all others where that differs, and what was measured."""
    both = one["alone"] if one["alone"] == one["together"] else ""
    told = (
        badge(both) if both else f"{badge(one['alone'])} by itself, with all others {badge(one['together'])}"
    )
    return f"- {told} **{one['claim']}**: {one['measured']}"


def panel_of(name: str, panels: dict[str, Any]) -> str:
    """The part of the page about a panel: picture, verdicts beside it, numbers to unfold."""
    panel = panels.get(name)
    if panel is None:
        return f"## `{name}`\n\nWhat came out stands on the page of [all experiments](../experiments.md#what-came-out)."
    verdicts = "\n".join(map(verdict_of, panel["verdicts"]))
    rows = "\n".join("| " + " | ".join(row) + " |" for row in panel["lines"])
    return f"""## {panel["figure"]}. {panel["title"]}

:::::{{grid}} 1 1 2 2
:gutter: 3

::::{{grid-item}}
```{{figure}} ../figures/paper/{name}.svg
:alt: "{panel["alt"]}"

{panel["sampled"][0].upper()}{panel["sampled"][1:]}: `abex run {name}`
```
::::

::::{{grid-item}}
{verdicts}
::::
:::::

:::{{dropdown}} The lines in numbers
| line | policy | {panel["loss"]}, 95 % interval | runs |
|---|---|---|---|
{rows}
:::"""


def page_of(figure: str, names: list[str], what: str, panels: dict[str, Any]) -> str:
    """The page of a figure."""
    commands = "\n".join(f"abex run {name}" for name in names)
    parts = "\n\n".join(panel_of(name, panels) for name in names)
    return f"""# {figure}

{what[0].upper()}{what[1:]}. Each verdict stands by itself; where another stands beside it, that one is corrected
across all claims of {len(panels)} panels (Holm).

{parts}

## To compute it

This needs `pip install '.[report]'`.

```
{commands}
abex report --open
```

Each command computes what the store does not hold yet, draws the panel as in the paper, and
judges every claim by its rule. `--dry-run` says how long it will take, `abex data` which data are missing; experiments
whose names end in `-quick` need none (`abex list`). [Experiments](../experiments.md) has the run behind these figures, the rules,
and what follows.
"""


def write_figures(experiments: Path, folder: Path) -> None:
    """The pages of all figures, and one that lists them."""
    folder.mkdir(exist_ok=True)
    panels = json.loads(
        (experiments.parent / "figures" / "paper" / "panels.json").read_text(encoding="utf-8")
    )
    listed = []
    for figure, (names, what) in sorted(experiments_of(experiments.read_text(encoding="utf-8")).items()):
        stem = figure.split(" (")[0].lower().replace(" ", "-")
        write_changed(folder / f"{stem}.md", page_of(figure, names, what, panels))
        listed.append(stem)
    toc = "\n".join(listed)
    write_changed(
        folder / "index.md", f"# The paper's figures\n\n```{{toctree}}\n:maxdepth: 1\n\n{toc}\n```\n"
    )
