"""Pages of the arena: its tables as Markdown, as HTML with a heat map, and as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from abex.lab.arena.instances import Instance
from abex.lab.arena.score_tables import instance_table, parts_of, played_text, tables_of
from abex.lab.arena.scores import Results, score_all
from abex.lab.arena.study import Entry
from abex.support import tables
from abex.support.errors import UserError
from abex.support.intervals import mean_of

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0f141a; --line: #30363d; } }
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 96em; padding: 0 1em; }
body { color: var(--ink); background: var(--paper); }
table { border-collapse: collapse; } th, td { padding: 2px 6px; text-align: right; vertical-align: top; } th { cursor: pointer; }
tbody tr { border-top: 1px solid var(--line); } .words { text-align: left; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
.map th { font-weight: normal; text-align: left; } .map td { font-size: 11px; min-width: 2.4em; }
.map td[style] { color: #1b1f24; }
.map tr:last-child th:not(:first-child) { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; }
div { overflow-x: auto; }
@media (min-width: 60em) { th:first-child, td:first-child { white-space: nowrap; } }
@media (max-width: 60em) { th:first-child, td:first-child { max-width: 9em; overflow-wrap: anywhere; } }
"""
#: sorts by a heading, sets words to the left, colours the map: white for the best, through yellow to red at 30 times its regret
SCRIPT = """
const key = cell => { const n = parseFloat(cell.textContent.replaceAll(',', '')); return isNaN(n) ? cell.textContent : n; };
const before = (x, y) => typeof x === typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x === 'number' ? -1 : 1;
const heads = t => [...[...t.tHead.rows].at(-1).cells];
document.querySelectorAll('table').forEach(t => heads(t).forEach((h, i) => h.addEventListener('click', () => {
  const up = h.dataset.up = h.dataset.up === '1' ? '-1' : '1';
  t.tBodies[0].append(...[...t.tBodies[0].rows].sort((a, b) => up * before(key(a.cells[i]), key(b.cells[i]))));
})));
document.querySelectorAll('table:not(.map)').forEach(t => heads(t).forEach((h, i) => {
  const cells = [...t.tBodies[0].rows].map(row => row.cells[i]);
  if (cells.every(cell => isNaN(parseFloat(cell.textContent)))) [h, ...cells].forEach(cell => cell.classList.add('words'));
}));
document.querySelectorAll('.map tbody td:not(:first-child)').forEach(cell => {
  const share = Math.min(Math.log(parseFloat(cell.textContent)) / Math.log(30), 1);
  if (!isNaN(share)) cell.style.background = `hsl(${50 - 50 * share} 90% ${97 - 40 * share}%)`;
});
"""


def write_page(
    folder: Path, name: str, results: Results, entries: Sequence[Entry], instances: Sequence[Instance]
) -> tuple[Path, Path, Path]:
    """Write ``name.html``, ``name.json`` and all tables as ``name.md`` into a folder; returns their paths."""
    page, numbers, tables = (folder / f"{name}.{ending}" for ending in ("html", "json", "md"))
    write(page, html_of(name, results, entries, instances))
    write(numbers, json.dumps(numbers_of(results, instances), indent=1))
    write(tables, markdown_of(results, entries, instances))
    return page, numbers, tables


def write(path: Path, text: str) -> None:
    """Write a file of the arena, its folder with it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {str(path)!r}, a file of the arena: {error}") from error


def numbers_of(results: Results, instances: Sequence[Instance]) -> dict[str, object]:
    """Scores of every part, and mean regrets."""
    scores = {
        name: [dataclasses.asdict(score) for score in score_all(results, part)]
        for name, part in parts_of(results, instances).items()
    }
    regrets: dict[str, dict[str, list[float]]] = {}
    for (policy, instance), played in results.items():
        mean, error, _ = mean_of(played.regret)
        regrets.setdefault(policy, {})[instance] = [
            mean,
            0.0 if error != error else error,
            played.regret.size,
        ]
    return {"scores": scores, "mean regret, standard error, replications": regrets}


def markdown_of(results: Results, entries: Sequence[Entry], instances: Sequence[Instance]) -> str:
    """All tables as Markdown, but that of single instances."""
    found = tables_of(results, entries, instances)
    sections = [f"## {title}\n\n{markdown_table(frame)}" for title, frame in found.items()]
    return "\n".join([f"{played_text(results, instances)}\n", *sections])


def markdown_table(frame: Any) -> str:
    """A data frame of texts."""
    return f"{tables.markdown_table(frame.columns, frame.itertuples(index=False))}\n"


def html_of(name: str, results: Results, entries: Sequence[Entry], instances: Sequence[Instance]) -> str:
    """The page."""
    body = [
        f"<h1>Every policy on many problems: {escape(name)}</h1>",
        "<p>Score: mean regret over that of the best policy on the instance, both at least 0.1 % of uniform choice's and",
        " what a policy must lose there unless it loses more where one arm is another one; in",
        f" boosting, error over that of the best. Click a heading to sort. {played_text(results, instances)}</p>",
    ]
    every = instance_table(results, instances)
    for title, frame in {**tables_of(results, entries, instances), "Every instance": every}.items():
        shown = frame.to_html(
            index=False,
            border=0,
            na_rep="-",
            float_format="%.1f",
            justify="unset",
            classes="map" * (frame is every),
        )
        body.append(f"<h2>{escape(title)}</h2><div>{shown}</div>")
    head = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>{escape(name)}</title><style>{STYLE}</style>"
    )
    return f"{head}<body>{''.join(body)}<script>{SCRIPT}</script></body></html>\n"
