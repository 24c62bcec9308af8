"""One page of the arena: a heat map of policies and instances, sortable, and the numbers as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from abex.arena.grids import GROUPS
from abex.arena.instances import Instance
from abex.arena.scores import SCORE_COLUMNS, Results, Score, score_all, table
from abex.errors import UserError

STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 96em; padding: 0 1em; color: #222; background: #fff; }
table { border-collapse: collapse; } th, td { padding: 2px 6px; text-align: right; } th { cursor: pointer; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; white-space: nowrap; }
.map th.i { writing-mode: vertical-rl; transform: rotate(180deg); font-weight: normal; text-align: left; white-space: nowrap; }
.map th.g { text-align: left; cursor: default; border-left: 2px solid #888; } .map .first { border-left: 2px solid #888; }
.map td.c { font-size: 11px; min-width: 2.4em; } .scroll { overflow-x: auto; }
"""
SCRIPT = """
const heads = t => [...t.tHead.rows].at(-1).cells;
document.querySelectorAll('table').forEach(t => [...heads(t)].forEach((h, i) => h.addEventListener('click', () => {
  const rows = [...t.tBodies[0].rows], up = h.dataset.up = h.dataset.up === '1' ? '0' : '1';
  const key = r => { const v = r.cells[i].dataset.v; return v === undefined ? r.cells[i].textContent : v === '' ? 1e99 : +v; };
  rows.sort((a, b) => { const x = key(a), y = key(b); return (x < y ? -1 : x > y ? 1 : 0) * (up === '1' ? 1 : -1); });
  rows.forEach(r => t.tBodies[0].append(r));
})));
"""


def write_page(folder: Path, name: str, results: Results, instances: Sequence[Instance]) -> tuple[Path, Path]:
    """Write ``name.html`` and ``name.json`` into a folder; returns their paths."""
    page, numbers = folder / f"{name}.html", folder / f"{name}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        page.write_text(html_of(name, results, instances), encoding="utf-8")
        numbers.write_text(json.dumps(numbers_of(results, instances), indent=1), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write the page of the arena into {str(folder)!r}: {error}") from error
    return page, numbers


def parts_of(results: Results, instances: Sequence[Instance]) -> dict[str, list[Instance]]:
    """All instances that were played, stochastic and graphs together, plain coins, and each group."""
    _, played, _ = table(results, instances)
    parts = {"all groups": played, "stochastic and graphs": [i for i in played if i.group in GROUPS[:2]]}
    parts["plain coins"] = [i for i in played if i.coins]
    for group in GROUPS:
        parts[group] = [i for i in played if i.group == group]
    return {name: part for name, part in parts.items() if part}


def numbers_of(results: Results, instances: Sequence[Instance]) -> dict[str, object]:
    """Scores of every part, and mean regrets."""
    scores = {
        name: [dataclasses.asdict(score) for score in score_all(results, part)]
        for name, part in parts_of(results, instances).items()
    }
    regrets: dict[str, dict[str, list[float]]] = {}
    for (policy, instance), played in results.items():
        error = (
            float(played.regret.std(ddof=1) / math.sqrt(played.regret.size))
            if played.regret.size > 1
            else 0.0
        )
        regrets.setdefault(policy, {})[instance] = [float(played.regret.mean()), error, played.regret.size]
    return {"scores": scores, "mean regret, standard error, replications": regrets}


def html_of(name: str, results: Results, instances: Sequence[Instance]) -> str:
    """The page."""
    body = [
        f"<h1>{escape(name)}</h1>",
        "<p>Score: mean regret over that of the best policy on the instance, both at least 0.1 % of uniform choice's; in",
        " boosting, error over that of the best. Click a heading to sort.</p>",
    ]
    for part, members in parts_of(results, instances).items():
        body.append(
            f"<h2>{escape(part)} ({len(members)} instances)</h2>{_score_table(score_all(results, members))}"
        )
    body.append(f"<h2>Every instance</h2><div class=scroll>{_heat_map(results, instances)}</div>")
    head = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>{escape(name)}</title><style>{STYLE}</style>"
    )
    return f"{head}<body>{''.join(body)}<script>{SCRIPT}</script></body></html>\n"


def _score_table(scores: list[Score]) -> str:
    heads = SCORE_COLUMNS
    rows = []
    for s in scores:
        low, high = s.geometric_interval
        cells = [
            _cell(s.geometric),
            f"<td>{low:.2f} .. {high:.2f}</td>",
            _cell(s.mean),
            _cell(s.quantile),
            _cell(s.worst),
        ]
        cells += [
            f"<td>{escape(s.worst_instance)}</td>",
            f"<td data-v={s.linear_runs}>{s.linear_runs} of {s.runs}</td>",
        ]
        rows.append(f"<tr><td>{escape(s.policy)}</td>{''.join(cells)}</tr>")
    titles = "".join(f"<th>{head}</th>" for head in heads)
    body = f"<thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f"<div class=scroll><table>{body}</table></div>"


def _cell(value: float) -> str:
    return f"<td data-v={value:.6g}>{value:.2f}</td>"


def _heat_map(results: Results, instances: Sequence[Instance]) -> str:
    names, played, scores = table(results, instances)
    sizes = {
        group: sum(one.group == group for one in played) for group in dict.fromkeys(i.group for i in played)
    }
    groups = "".join(f"<th class=g colspan={size}>{escape(group)}</th>" for group, size in sizes.items())
    first = [j == 0 or one.group != played[j - 1].group for j, one in enumerate(played)]
    heads = "".join(
        f'<th class="i{" first" * starts}">{escape(one.name)}</th>'
        for one, starts in zip(played, first, strict=True)
    )
    rows = []
    for name, row in zip(names, scores, strict=True):
        cells = "".join(_coloured(float(value), starts) for value, starts in zip(row, first, strict=True))
        rows.append(f"<tr><td>{escape(name)}</td>{cells}</tr>")
    head = f"<thead><tr><th></th>{groups}</tr><tr><th>policy</th>{heads}</tr></thead>"
    return f"<table class=map>{head}<tbody>{''.join(rows)}</tbody></table>"


def _coloured(score: float, first: bool) -> str:
    """White for the best, through yellow to red at 30 times its regret; ``first`` of its group."""
    kind = "c first" if first else "c"
    if math.isnan(score):
        return f'<td class="{kind}" data-v="">&ndash;</td>'
    share = min(math.log(score) / math.log(30.0), 1.0)
    colour = f"hsl({50 - 50 * share:.0f} 90% {97 - 40 * share:.0f}%)"
    return f'<td class="{kind}" data-v={score:.6g} style="background:{colour}">{score:.1f}</td>'
