"""The page: a template, a style sheet, a script, and the numbers as JSON; nothing is fetched from anywhere."""

from __future__ import annotations

import html
import json
import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from abex.lab.experiments.experiment import Experiment
from abex.lab.experiments.outcomes import (
    ExperimentResult,
    LineResult,
    collect,
    paired_curve,
    ratio_curve,
    target_losses,
)
from abex.lab.experiments.panels import xs
from abex.lab.experiments.verdicts import (
    FAILS,
    HOLDS,
    OPEN,
    PLURAL,
    RULES_IN_WORDS,
    ClaimVerdict,
    Verdicts,
    full_search_line,
    judge_all,
)
from abex.lab.results import Store
from abex.support.figures import COLOURS
from abex.support.files import write_atomically
from abex.support.intervals import mean_of
from abex.web import drawing_script, resource

PLACE = re.compile(r"<!--([a-z]+)-->|/\*([a-z]+)\*/")
MARKS = {HOLDS: "yes", FAILS: "no", OPEN: "open"}
LAST_COLUMNS = ("exploration slots", "CPU s", "runs", "which")
GROUPS = {"paper": "in the paper", "authors": "its authors' code", "baseline": "baseline", "own": "ours"}


def write_report(store: Store, path: str | Path, refresh: int | None = None) -> int:
    """Write the page about all experiments of a store; returns its size in bytes. It is there whole or not at all."""
    outcomes = []
    for plain in store.experiments().values():
        outcomes.append(collect(Experiment.from_json(plain), store))
    content = make_page(outcomes, refresh=refresh, arenas=arena_pages(store, Path(path))).encode()
    write_atomically(path, content)
    return len(content)


def arena_pages(store: Store, path: Path) -> dict[str, str]:
    """The pages that `abex arena` has put beside a store: name -> address as seen from the report at ``path``."""
    found = sorted(Path(store.path).parent.glob("arena-v*.html"))
    return {
        page.stem: quote(os.path.relpath(page.resolve(), path.resolve().parent).replace(os.sep, "/"))
        for page in found
    }


def make_page(
    outcomes: list[ExperimentResult], refresh: int | None = None, arenas: dict[str, str] | None = None
) -> str:
    """The page as text. With ``refresh`` it reloads itself every so many seconds; ``arenas`` are linked by their names."""
    ordered = sorted(outcomes, key=_order)
    judged = list(zip(ordered, judge_all(ordered), strict=True))
    data = {outcome.experiment.id: figure_data(outcome) for outcome, _ in judged}
    parts = {
        "refresh": f'<meta http-equiv="refresh" content="{refresh}">' if refresh else "",
        "style": resource("abex.web", "style.css") + resource("abex.lab.report", "style.css"),
        "script": resource("abex.web", "charts.js") + resource("abex.lab.report", "script.js"),
        "bundle": drawing_script(),
        "data": json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        "summary": _summary(judged),
        "contents": "".join(
            f'<li><a href="#{o.experiment.id}">{_e(o.experiment.title)}</a></li>' for o, _ in judged
        )
        + "".join(
            f'<li><a href="{_e(address)}">Every policy on many problems: {_e(name)}</a></li>'
            for name, address in (arenas or {}).items()
        ),
        "overview": _overview(judged),
        "first": "".join(_section(outcome, verdicts) for outcome, verdicts in judged[:1]),
        "sections": "".join(_section(outcome, verdicts) for outcome, verdicts in judged[1:]),
        "rules": "".join(f"<dt>{_e(rule)}</dt><dd>{_e(text)}</dd>" for rule, text in RULES_IN_WORDS.items()),
        "environment": _environment(),
    }
    # in one pass: what a part says is text, even where it looks like a place of the template
    return PLACE.sub(lambda place: parts[place[1] or place[2]], resource("abex.lab.report", "page.html"))


def _order(outcome: ExperimentResult) -> tuple[bool, str]:
    return (not outcome.experiment.figure, f"{outcome.experiment.figure} {outcome.experiment.id}")


def _e(text: Any) -> str:
    return html.escape(str(text))


# -- numbers ---------------------------------------------------------------------------------------------------


def figure_data(outcome: ExperimentResult) -> dict[str, Any]:
    """What the script draws: lines with bands over three x axes, and their paired differences to the first line."""
    first = outcome.lines[0] if outcome.lines else None
    rows: list[dict[str, Any]] = []
    for drawn in outcome.lines:
        mean, (low, high) = drawn.mean, drawn.band()
        gap = None if first is None else paired_curve(drawn, first)
        across = {x: xs(drawn, x) for x in ("step", "seconds", "evaluations")}
        for i in range(drawn.step.size):
            row = {"line": drawn.label, "loss": mean[i], **_band("low", "high", low[i], high[i])}
            row |= {x: values[i] for x, values in across.items()}
            if gap is not None:
                row |= {"gap": gap[0][i], **_band("gap_low", "gap_high", gap[1][i], gap[2][i])}
            rows.append({name: _short(value) for name, value in row.items()})
    return {
        "falls": outcome.experiment.task.falls,
        "wide": any(
            drawn.line.plateau for drawn in outcome.lines
        ),  # full search takes far longer than all others
        "loss": outcome.loss_name,
        "first": first.label if first else "",
        "axes": outcome.experiment.task.axes,
        "lines": [
            {
                "label": drawn.label,
                "title": outcome.title_of(drawn),
                "colour": COLOURS[i % len(COLOURS)],
                "dash": i // len(COLOURS),
            }
            for i, drawn in enumerate(outcome.lines)
        ],
        "rows": rows,
    }


def _band(low_name: str, high_name: str, low: float, high: float) -> dict[str, float]:
    """The bounds of a band; too few runs have none."""
    return {low_name: low, high_name: high} if np.isfinite(low) else {}


def _short(value: Any) -> Any:
    """Five digits are enough to draw."""
    return value if isinstance(value, str) else float(f"{float(value):.5g}")


# -- words -----------------------------------------------------------------------------------------------------


def _summary(judged: list[tuple[ExperimentResult, Verdicts]]) -> str:
    verdicts = [verdict for _, found in judged for verdict in found]

    def counts(answers: list[str], form: str) -> list[str]:
        return [
            form.format(mark=MARKS[answer], count=answers.count(answer), words=words)
            for answer, words in PLURAL.items()
        ]

    alone = counts([v.answer for v in verdicts], '<li class="{mark}"><b>{count}</b> {words}</li>')
    together = ", ".join(counts([v.overall for v in verdicts], "{count} {words}"))
    missing = sum(outcome.missing for outcome, _ in judged)
    unfinished = f" {missing} cells are still missing: the verdicts are preliminary." if missing else ""
    return (
        f'<ul class="counts">{"".join(alone)}</ul><p>{len(judged)} experiments, {len(verdicts)} claims, each by itself. '
        f"All together (Holm): {together}.{unfinished}</p>"
    )


def _overview(judged: list[tuple[ExperimentResult, Verdicts]]) -> str:
    rows = [
        f'<tr><td><a href="#{outcome.experiment.id}">{_e(outcome.experiment.title)}</a></td>'
        f"<td>{_e(verdict.claim.text)}</td><td>{_e(verdict.measured)}</td>"
        f"{_alone(verdict)}{_together(verdict)}</tr>"
        for outcome, verdicts in judged
        for verdict in verdicts
    ]
    return _table(("experiment", "claim", "measured", "by itself", "with all others"), rows, "verdicts")


def _alone(verdict: ClaimVerdict) -> str:
    """The cell of a table with the answer of a claim by itself, and the rule and margin that gave it."""
    margin = f", margin {verdict.claim.margin:g}" if verdict.claim.margin else ""
    rule = f"<small>rule: {_e(verdict.rule)}{margin}</small>"
    return f'<td class="{MARKS[verdict.answer]}">{verdict.answer}{rule}</td>'


def _together(verdict: ClaimVerdict) -> str:
    """The cell of a table with the answer that is corrected across all claims."""
    if verdict.overall_p is not None:
        p = f"<small>p {verdict.overall_p:.2g}</small>"
    else:
        p = "" if verdict.overall == OPEN else "<small>exact</small>"
    return f'<td class="{MARKS[verdict.overall]}">{verdict.overall}{p}</td>'


def _table(columns: tuple[str, ...], rows: list[str], kind: str = "lines") -> str:
    head = "".join(f'<th scope="col"><button type="button">{_e(column)}</button></th>' for column in columns)
    body = (
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(_named_cells(row, columns) for row in rows)}</tbody>"
    )
    return f'<div class="wide"><table class="sortable {kind}">{body}</table></div>'


def _named_cells(row: str, columns: tuple[str, ...]) -> str:
    """A row whose cells carry the names of their columns, for narrow screens, where each stands in a line of its own."""
    names = iter(columns)
    return re.sub(r"<td", lambda _: f'<td data-column="{_e(next(names))}"', row)


def _section(outcome: ExperimentResult, verdicts: Verdicts) -> str:
    experiment = outcome.experiment
    claims = [
        f"<tr><td>{_e(v.claim.text)}<small>{_e(v.claim.where)}</small></td><td>{_e(v.measured)}</td>"
        f"{_alone(v)}{_together(v)}</tr>"
        for v in verdicts
    ]
    extra = _extra(outcome)
    lines = [
        _line_row(d, outcome, [column[i] for column in extra.values()]) for i, d in enumerate(outcome.lines)
    ]
    seeds = f"seed {experiment.seed}, {experiment.seeds:,} replications unless the table says otherwise"
    if experiment.strata:
        parts = (
            f"{_e(s.name)} (weight {s.weight:.3f}, {s.share:.0%} of the runs)" for s in experiment.strata
        )
        seeds += f"; strata: {', '.join(parts)}"
    tuning = any(len(line.candidates) > 1 for line in experiment.lines)
    chosen = (
        f" Parameters chosen on {experiment.validation_seeds} validation runs of each candidate."
        if tuning
        else ""
    )
    unfinished = f' <b class="open">{outcome.missing} cells are missing.</b>' if outcome.missing else ""
    deviations = "".join(f"<li>{_e(text)}</li>" for text in experiment.deviations)
    loss = outcome.loss_name.split(",")[0].split(" (")[0]
    spread = {name: "" for d in outcome.lines[:1] for name in experiment.task.spread(d)}
    columns = ("line", "policy drawn", loss, "95 % interval", *spread, *extra, *LAST_COLUMNS)
    heads = ("claim", "measured", "by itself", "with all others")
    verdict_table = _table(heads, claims, "verdicts") if claims else ""
    return f"""
<section id="{experiment.id}" class="experiment">
<h2>{_e(experiment.title)}</h2>
<p class="about">{_e(experiment.figure)}{" &middot; " if experiment.figure else ""}length {experiment.length:,} &middot;
 {seeds}.{chosen}{unfinished}</p>
<div class="figure" data-figure="{experiment.id}"><div class="controls"></div><div class="plot"></div></div>
{verdict_table}
<p class="command">Command: <code>{_e(experiment.command or f"abex run {experiment.name}")}</code></p>
{_table(columns, lines)}
{_sooner(outcome)}
<details><summary>Problem and deviations from the paper</summary>
<pre>{_e(json.dumps(_brief(experiment.problem), indent=1))}</pre><ul>{deviations}</ul></details>
</section>"""


def _sooner(outcome: ExperimentResult) -> str:
    """The table of times to target errors against full search, where there is one."""
    reference = full_search_line(outcome)
    if reference is None:
        return ""
    lines = [drawn for drawn in outcome.lines if drawn is not reference and drawn.line.group == "paper"]
    curves = [ratio_curve(drawn, reference) for drawn in lines]
    rows = []
    for at, (target, _, _, seconds) in enumerate(ratio_curve(reference, reference)):
        cells = [f"{target:.3g}", f"{seconds:.3g}", *(_times(curve[at]) for curve in curves)]
        rows.append(f"<tr>{''.join(f'<td>{_e(cell)}</td>' for cell in cells)}</tr>")
    end = (
        "where its error on validation rows has stopped falling"
        if reference.ended
        else "where it was cut before it had surely stopped falling"
    )
    columns = (
        "target error (%)",
        f"CPU s of {reference.label}",
        *(f"{d.label}: times sooner" for d in lines),
    )
    about = f"{reference.label.capitalize()} is drawn to iteration {reference.step[-1]:,.0f}, {end}."
    return f"<details><summary>Times to target errors</summary><p>{_e(about)}</p>{_table(columns, rows)}</details>"


def _times(row: tuple[float, Any, float, float]) -> str:
    """How many times sooner, with its interval; how many runs get there where not all do."""
    _, found, share, _ = row
    if share < 1.0:
        return f"{share:.0%} of runs get there"
    low, high = found.interval()
    shown = f"{np.exp(-found.mean):.3g}"
    return f"{shown} ({np.exp(-high):.3g} to {np.exp(-low):.3g})" if np.isfinite(low) else shown


def _extra(outcome: ExperimentResult) -> dict[str, list[str]]:
    """Columns by name: losses at the steps that claims ask about, and in boosting the CPU time to errors worth reaching."""
    steps = sorted({claim.at for claim in outcome.experiment.claims if claim.at is not None})
    levels = target_losses(outcome)[1] if outcome.experiment.task.falls else ()
    columns = {
        f"at {step:,}": [_number(mean_of(d.loss_at(step), d.strata).mean, "") for d in outcome.lines]
        for step in steps
    }
    for level in levels:
        name = f"CPU s to {level:.3g} %"
        columns[name] = [_number(np.median(d.seconds_to(level)), "never") for d in outcome.lines]
    return columns


def _number(value: Any, otherwise: str) -> str:
    return f"{float(value):.3g}" if np.isfinite(value) else otherwise


def _line_row(drawn: LineResult, outcome: ExperimentResult, extra: list[str]) -> str:
    found = drawn.estimate()
    low, high = found.interval()
    slots = drawn.numbers.get("exploration_slots")
    cells = (
        outcome.title_of(drawn),
        drawn.policy if drawn.played in ("", drawn.policy) else f"{drawn.policy}, here {drawn.played}",
        f"{found.mean:.2f}",
        f"{low:.2f} to {high:.2f}" if np.isfinite(low) else "too few runs",
        *outcome.experiment.task.spread(drawn).values(),
        *extra,
        "" if slots is None and drawn.played in ("", drawn.policy) else f"{np.mean(slots or [0.0]):.0f}",
        f"{drawn.seconds[:, -1].mean():.2g}",
        f"{len(drawn.replications):,}",
        GROUPS.get(drawn.line.group, drawn.line.group),
    )
    return f"<tr>{''.join(f'<td>{_e(cell)}</td>' for cell in cells)}</tr>"


def _brief(problem: Any) -> Any:
    """A problem without its long lists."""
    if isinstance(problem, dict):
        return {name: _brief(value) for name, value in problem.items()}
    return f"{len(problem)} values" if isinstance(problem, list) and len(problem) > 20 else problem


def _environment() -> str:
    import abex

    def of(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "not installed"

    packages = ", ".join(f"{name} {of(name)}" for name in ("numpy", "numba", "scipy", "scikit-learn"))
    return _e(
        f"abex {abex.__version__}, Python {sys.version.split()[0]}, {packages}, {platform.system()} {platform.machine()}"
    )
