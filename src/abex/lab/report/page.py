"""The page: a template, a style sheet, a script, and the numbers as JSON; nothing is fetched from anywhere."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from abex.lab.experiments.experiment import Experiment, brief
from abex.lab.experiments.outcomes import (
    ExperimentResult,
    LineResult,
    collect,
    paired_curve,
    ratio_curve,
    target_losses,
)
from abex.lab.experiments.panels import subtitle, xs
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
from abex.support.extras import needed
from abex.support.figures import COLOURS
from abex.support.files import write_atomically
from abex.support.intervals import mean_of
from abex.web import drawing_script, resource

MARKS = {HOLDS: "yes", FAILS: "no", OPEN: "open"}
LAST_COLUMNS = ("exploration slots", "CPU s", "runs", "which")
GROUPS = {"paper": "in the paper", "authors": "its authors' code", "baseline": "baseline", "own": "ours"}


class TableCell(NamedTuple):
    """A cell of a table: its text, what stands below it in small letters, how it is marked, and the section it leads to."""

    text: str
    small: str = ""
    mark: str = ""
    link: str = ""


def write_report(store: Store, path: str | Path) -> int:
    """Write the page about all experiments of a store; returns its size in bytes. It is there whole or not at all."""
    outcomes = []
    for plain in store.experiments().values():
        outcomes.append(collect(Experiment.from_json(plain), store))
    content = make_page(outcomes, arena_pages(store, Path(path))).encode()
    write_atomically(path, content)
    return len(content)


def arena_pages(store: Store, path: Path) -> dict[str, str]:
    """The pages that `abex arena` has put beside a store: name -> address as seen from the report at ``path``."""
    found = sorted(Path(store.path).parent.glob("arena-v*.html"))
    return {
        page.stem: quote(os.path.relpath(page.resolve(), path.resolve().parent).replace(os.sep, "/"))
        for page in found
    }


def make_page(outcomes: list[ExperimentResult], arenas: dict[str, str] | None = None) -> str:
    """The page as text; ``arenas`` are linked by their names."""
    with needed():
        from jinja2 import Environment

    ordered = sorted(outcomes, key=_order)
    judged = list(zip(ordered, judge_all(ordered), strict=True))
    data = {outcome.experiment.id: figure_data(outcome) for outcome, _ in judged}
    verdicts = [verdict for _, found in judged for verdict in found]
    counts = {
        kind: [(MARKS[answer], answers.count(answer), words) for answer, words in PLURAL.items()]
        for kind, answers in (
            ("alone", [one.answer for one in verdicts]), ("together", [one.overall for one in verdicts]),
        )
    }  # fmt: skip
    template = Environment(autoescape=True).from_string(resource("abex.lab.report", "page.html"))
    return template.render(
        style=resource("abex.web", "style.css") + resource("abex.lab.report", "style.css"),
        script=resource("abex.web", "charts.js") + resource("abex.lab.report", "script.js"),
        bundle=drawing_script(),
        data=json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        counts=counts,
        n_claims=len(verdicts),
        missing=sum(outcome.missing for outcome, _ in judged),
        arenas=arenas or {},
        overview=[
            [
                TableCell(outcome.experiment.title, link=outcome.experiment.id),
                v.claim.text,
                v.measured,
                *_answers(v),
            ]
            for outcome, found in judged
            for v in found
        ],
        sections=[_section(outcome, found) for outcome, found in judged],
        rules=RULES_IN_WORDS,
        environment=_environment(),
    )


def _order(outcome: ExperimentResult) -> tuple[bool, str]:
    return (not outcome.experiment.figure, f"{outcome.experiment.figure} {outcome.experiment.id}")


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


def _answers(verdict: ClaimVerdict) -> tuple[TableCell, TableCell]:
    """The answer of a claim by itself with the rule and margin that gave it, and the one corrected across all claims."""
    margin = f", margin {verdict.claim.margin:g}" if verdict.claim.margin else ""
    exact = "" if verdict.overall == OPEN else "exact"
    p = exact if verdict.overall_p is None else f"p {verdict.overall_p:.2g}"
    return (
        TableCell(verdict.answer, f"rule: {verdict.rule}{margin}", MARKS[verdict.answer]),
        TableCell(verdict.overall, p, MARKS[verdict.overall]),
    )


def _section(outcome: ExperimentResult, verdicts: Verdicts) -> dict[str, Any]:
    """What the template says about an experiment."""
    experiment = outcome.experiment
    extra = _extra(outcome)
    seeds = f"seed {experiment.seed}, {experiment.seeds:,} replications unless the table says otherwise"
    if experiment.strata:
        parts = (f"{s.name} (weight {s.weight:.3f}, {s.share:.0%} of the runs)" for s in experiment.strata)
        seeds += f"; strata: {', '.join(parts)}"
    loss = outcome.loss_name.split(",")[0].split(" (")[0]
    spread = {name: "" for d in outcome.lines[:1] for name in experiment.task.spread(d)}
    return {
        "experiment": experiment,
        "seeds": seeds,
        "tuned": any(len(line.candidates) > 1 for line in experiment.lines),
        "missing": outcome.missing,
        "sampled": subtitle(outcome),
        "claims": [[TableCell(v.claim.text, v.claim.where), v.measured, *_answers(v)] for v in verdicts],
        "columns": ("line", "policy drawn", loss, "95 % interval", *spread, *extra, *LAST_COLUMNS),
        "lines": [
            _line_row(d, outcome, [column[i] for column in extra.values()])
            for i, d in enumerate(outcome.lines)
        ],
        "sooner": _sooner(outcome),
        "problem": json.dumps(_brief(experiment.problem), indent=1),
    }


def _sooner(outcome: ExperimentResult) -> dict[str, Any] | None:
    """The table of times to target errors against full search, where there is one."""
    reference = full_search_line(outcome)
    if reference is None:
        return None
    lines = [drawn for drawn in outcome.lines if drawn is not reference and drawn.line.group == "paper"]
    curves = [ratio_curve(drawn, reference) for drawn in lines]
    end = (
        "where its error on validation rows has stopped falling"
        if reference.ended
        else "where it was cut before it had surely stopped falling"
    )
    return {
        "about": f"{reference.label.capitalize()} is drawn to iteration {reference.step[-1]:,.0f}, {end}.",
        "columns": (
            "target error (%)",
            f"CPU s of {reference.label}",
            *(f"{d.label}: times sooner" for d in lines),
        ),
        "rows": [
            [f"{target:.3g}", f"{seconds:.3g}", *(_times(curve[at]) for curve in curves)]
            for at, (target, _, _, seconds) in enumerate(ratio_curve(reference, reference))
        ],
    }


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


def _line_row(drawn: LineResult, outcome: ExperimentResult, extra: list[str]) -> tuple[str, ...]:
    found = drawn.estimate()
    low, high = found.interval()
    slots = drawn.numbers.get("exploration_slots")
    is_another = drawn.played not in ("", drawn.policy)
    return (
        outcome.title_of(drawn),
        brief(drawn.policy) + (f", here {brief(drawn.played)}" if is_another else ""),
        f"{found.mean:.2f}",
        f"{low:.2f} to {high:.2f}" if np.isfinite(low) else "too few runs",
        *outcome.experiment.task.spread(drawn).values(),
        *extra,
        "" if slots is None and not is_another else f"{np.mean(slots or [0.0]):.0f}",
        f"{drawn.seconds[:, -1].mean():.2g}",
        f"{len(drawn.replications):,}",
        GROUPS.get(drawn.line.group, drawn.line.group),
    )


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
    return f"abex {abex.__version__}, Python {sys.version.split()[0]}, {packages}, {platform.system()} {platform.machine()}"
