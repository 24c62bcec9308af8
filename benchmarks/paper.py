"""What `abex reproduce` found, as the pages show it: pictures of the panels, verdicts, and the tables of docs/experiments.md.

    abex reproduce --results FOLDER
    python -m benchmarks.paper FOLDER

Pictures and verdicts are written of every panel that is complete; the tables only when all are, since the verdicts of each
are corrected for all. Then docs/experiments.md is to be read through: its sentences about the tables are a person's.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.tables import commit, machine

from abex.lab.experiments import collect, known_experiments
from abex.lab.experiments.experiment import Experiment, brief
from abex.lab.experiments.outcomes import ExperimentResult, LineResult, compared, ratio_curve
from abex.lab.experiments.panels import paper_figure, subtitle
from abex.lab.experiments.verdicts import (
    FAILS,
    HOLDS,
    OPEN,
    PLURAL,
    ClaimVerdict,
    full_search_line,
    judge_all,
)
from abex.lab.results import Store
from abex.support.figures import drawn
from abex.support.tables import markdown_table

DOCS = Path(__file__).resolve().parents[1] / "docs"
SETS = {"mnist": "MNIST", "usps": "USPS", "isolet": "ISOLET", "pendigits": "pendigits", "letter": "letter"}
SHORT = {HOLDS: "yes", FAILS: "no", OPEN: "?"}
COUNTED = re.compile(r"\d+ claims, the paper's and ours, \d+ hold, \d+ do not, \d+ cannot be told")
#: lines of the networks' tables: experiment, line, what it is called there
ON_FACEBOOK = (
    ("facebook-comparison", "ABE", "ABE (0.1, 0.7), rate 0.4"),
    ("facebook-comparison", "TS-N", "TS-N"),
    ("facebook-comparison", "BGE", "BGE"),
    ("facebook-comparison", "BGE, authors' code", "BGE, authors' code"),
    ("facebook-comparison", "ELP", "ELP, tuned"),
    ("facebook-varying", "(1, 0.5)", "ABE (1, 0.5): it does explore"),
    ("facebook-varying", "eta 1", "ABE (0.1, 0.7), rate 1"),
    ("facebook-varying", "eta 2", "ABE (0.1, 0.7), rate 2"),
    ("facebook-comparison", "ABE, tuned", "ABE, tuned"),
    ("facebook-comparison", "TS-MaxN", "TS-MaxN"),
)
ON_EPINIONS = (
    ("epinions-comparison", "ABE", "ABE (0.1, 0.7), rate 0.4"),
    ("epinions-comparison", "TS-U", "TS-U"),
    ("epinions-comparison", "BGE", "BGE"),
    ("epinions-comparison", "BGE, authors' code", "BGE, authors' code"),
    ("epinions-comparison", "ELP", "ELP, tuned"),
    ("epinions-varying", "(1, 0.5)", "ABE (1, 0.5): it does explore"),
    ("epinions-varying", "eta 1", "ABE (0.1, 0.7), rate 1"),
    ("epinions-varying", "eta 2", "ABE (0.1, 0.7), rate 2"),
    ("epinions-comparison", "ABE, tuned", "ABE, tuned"),
)
#: claims on boosting: kind of experiment, place of the claim, what it is called in the table, whether its difference is shown
IN_BOOSTING = (
    ("comparison", 0, "ABE as good as EXP3.P and BGE (within 0.25 points)", False),
    ("comparison", 1, "the same, all of them tuned", False),
    ("comparison", 2, "ABE better than uniform choice, at the end", True),
    ("comparison", 3, "the same with a rate tuned on validation data", True),
    ("comparison", 4, "ABE better after 2,000 iterations", True),
    ("comparison", 5, "the same with a rate tuned for that", True),
    ("varying", 1, "the choice of (c, alpha) matters", False),
    ("comparison", 6, "pure exploration used", False),
    ("comparison", 7, "sooner than full search, to every target error", False),
)


class Panel(NamedTuple):
    """A panel of the paper with its verdicts."""

    name: str
    outcome: ExperimentResult
    verdicts: list[ClaimVerdict]


def panels_of(store: Store) -> list[Panel]:
    """The panels that a store holds completely, with verdicts corrected across all of them."""
    names = [name for name in known_experiments() if not name.endswith("-quick")]
    stored = [Experiment.from_json(plain) for plain in store.experiments().values()]
    outcomes = [collect(one, store) for one in stored if one.name in names]
    whole = [one for one in outcomes if one.lines and not one.missing]
    return [
        Panel(one.experiment.name, one, verdicts)
        for one, verdicts in zip(whole, judge_all(whole), strict=True)
    ]


# -- pictures ----------------------------------------------------------------------------------------------------


def picture(outcome: ExperimentResult) -> str:
    """The panel as SVG, its paths to a hundredth of a point."""

    def rounded(path: re.Match[str]) -> str:
        return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", path[0])

    return re.sub(r' d="[^"]*"', rounded, drawn(paper_figure(outcome), "svg").decode())


def told(panel: Panel) -> dict[str, Any]:
    """What the page of its figure says about a panel."""
    experiment = panel.outcome.experiment
    falling = sorted(panel.outcome.lines, key=lambda line: -line.estimate().mean)
    ends = ", ".join(f"{line.label} {line.estimate().mean:,.4g}" for line in falling)
    return {
        "figure": experiment.figure,
        "title": experiment.title,
        "alt": f"{experiment.task.short_loss} at the end, from the largest down: {ends}",
        "sampled": f"{subtitle(panel.outcome)}; {experiment.length:,} steps, seed {experiment.seed}",
        "verdicts": [
            {"claim": one.claim.text, "alone": one.answer, "together": one.overall, "measured": one.measured}
            for one in panel.verdicts
        ],
        "loss": experiment.task.short_loss,
        "lines": [
            [
                panel.outcome.title_of(line),
                policy_of(line),
                mean_with_interval(line),
                f"{len(line.replications):,}",
            ]
            for line in panel.outcome.lines
        ],
    }


def policy_of(line: LineResult) -> str:
    """The policy that was drawn, and the simpler one that it is at this length."""
    another = line.played not in ("", line.policy)
    return f"`{brief(line.policy)}`" + (f", here `{brief(line.played)}`" if another else "")


def mean_with_interval(line: LineResult) -> str:
    """The loss at the end with its interval; a regret needs no decimals."""
    found = line.estimate()
    low, high = found.interval()
    form = "{:,.2f}" if max(abs(found.mean), 1.0) < 100.0 else "{:,.0f}"
    shown = [form.format(float(value)) for value in (found.mean, low, high)]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]" if np.isfinite(low) else shown[0]


# -- tables ------------------------------------------------------------------------------------------------------


def network_table(panels: dict[str, Panel], title: str, rows: tuple[tuple[str, str, str], ...]) -> str:
    """Lines of a network with what they lose."""
    found = []
    for name, label, called in rows:
        line = panels[name].outcome.get(label)
        assert line is not None
        if "tuned" in called:
            called += f": `{brief(line.policy)}`"
        elif line.played not in ("", line.policy):
            called += f" = `{brief(line.played)}`"
        quantiles = [f"{line.quantile(q):,.0f}" for q in (0.5, 0.95)]
        locked = panels[name].outcome.experiment.task.spread(line)["locked"]
        found.append([called, mean_with_interval(line), *quantiles, locked, f"{len(line.replications):,}"])
    return markdown_table((title, "mean regret", "median", "95 % quantile", "locked runs", "runs"), found)


def claims_table(panels: dict[str, Panel]) -> str:
    """What holds in boosting, by data set."""
    rows = []
    for kind, place, called, is_shown in IN_BOOSTING:
        here = [panels[f"boosting-{data}-{kind}"] for data in SETS]
        rows.append([called, *(answer_of(one.outcome, one.verdicts[place], is_shown) for one in here)])
    return markdown_table(("claim", *SETS.values()), rows)


def answer_of(outcome: ExperimentResult, verdict: ClaimVerdict, is_shown: bool) -> str:
    """Yes, no or a question mark, bold where that survives the correction; with the difference where it is asked for."""
    claim = verdict.claim
    if claim.rule == "explores":
        slots = re.match(r"[\d,.]+", verdict.measured)
        return f"{slots[0]} slots" if slots else verdict.measured
    short = SHORT[verdict.answer]
    short = f"**{short}**" if verdict.overall == verdict.answer != OPEN else short
    first, second = outcome.get(claim.first), outcome.get(claim.second[0])
    found = compared(first, second, claim.at) if is_shown and first and second else None
    if found is None:
        return short
    low, high = found.interval()
    return f"{short}, {found.mean:+.2f} [{low:+.2f}, {high:+.2f}]"


def search_table(panels: dict[str, Panel]) -> str:
    """How many times sooner than full search ABE gets down to an error: early, half way, and near full search's least."""
    rows = []
    for data, called in SETS.items():
        outcome = panels[f"boosting-{data}-comparison"].outcome
        reference, line = full_search_line(outcome), outcome.get("ABE")
        assert reference is not None
        assert line is not None
        curve = ratio_curve(line, reference)
        late = max(place for place, row in enumerate(curve) if row[0] >= curve[-1][0] + 0.25)
        end = f"{reference.step[-1]:,.0f} iterations" + (
            ", where it stops falling" if reference.ended else ", still falling"
        )
        rows.append([called, end, *(times(curve[place]) for place in (0, len(curve) // 2, late))])
    return markdown_table(
        ("", "full search drawn to", "early", "halfway", "at its least + 0.25 points"), rows
    )


def times(row: tuple[float, Any, float, float]) -> str:
    """How many times sooner, and to which error."""
    target, found, _, _ = row
    return f"{np.exp(-found.mean):.2g} x to {target:.1f} %"


def counts(verdicts: list[ClaimVerdict], answer: Callable[[ClaimVerdict], str]) -> str:
    """How many hold, do not, and cannot be told."""
    found = [answer(one) for one in verdicts]
    hold, fail, open_ = (found.count(one) for one in PLURAL)
    return f"{hold} hold, {fail} do not, {open_} cannot be told"


def tables_of(panels: dict[str, Panel], store: Store, made_from: str) -> str:
    """What docs/experiments.md includes, each part between two comments."""
    verdicts = [verdict for panel in panels.values() for verdict in panel.verdicts]
    seconds = sum(float(found.get("seconds", 0.0)) for _, found in store.measured())
    size = Path(store.path).stat().st_size / 1e6
    seeds = panels["boosting-mnist-comparison"].outcome.experiment.seeds
    alone, together = (counts(verdicts, of) for of in (lambda one: one.answer, lambda one: one.overall))
    parts = {
        "counts": f"All fourteen panels on the real data, tuned lines on validation data, 50,000 steps (MNIST 30,000), {seeds} "
        f"seeds in boosting: {len(store):,} cells, {size:.0f} MB, {seconds / 60.0:.0f} minutes of CPU time ({machine()}, "
        f"commit {made_from}). Of {len(verdicts)} claims, the paper's and ours, {alone}, each by itself; corrected across all of "
        f"them (Holm), {together}.",
        "facebook": network_table(panels, "Facebook, 50,000 steps", ON_FACEBOOK),
        "epinions": network_table(panels, "Epinions, 50,000 steps", ON_EPINIONS),
        "claims": claims_table(panels),
        "full search": search_table(panels),
    }
    return "\n".join(f"<!-- {name} -->\n\n{text}\n\n<!-- end -->\n" for name, text in parts.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of `abex reproduce`")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the pages are")
    parser.add_argument(
        "--commit", default=commit(), help="what `abex reproduce` was run from, unless it is this one"
    )
    options = parser.parse_args()
    with Store(options.results / "cells.sqlite") as store:
        panels = {panel.name: panel for panel in panels_of(store)}
        folder = options.docs / "figures" / "paper"
        folder.mkdir(parents=True, exist_ok=True)
        for name, panel in panels.items():
            (folder / f"{name}.svg").write_text(picture(panel.outcome), encoding="utf-8")
        shown = {name: told(panel) for name, panel in sorted(panels.items())}
        (folder / "panels.json").write_text(json.dumps(shown, indent=1) + "\n", encoding="utf-8")
        absent = sorted(
            name for name in known_experiments() if not name.endswith("-quick") and name not in panels
        )
        print(f"{len(panels)} panels written into {folder}")
        if absent:
            print(f"the tables of experiments.md stay, since these are not complete: {', '.join(absent)}")
            return
        (options.docs / "experiments_tables.md").write_text(
            tables_of(panels, store, options.commit), encoding="utf-8"
        )
        verdicts = [verdict for panel in panels.values() for verdict in panel.verdicts]
        sentence = f"{len(verdicts)} claims, the paper's and ours, {counts(verdicts, lambda one: one.answer)}"
        for page in options.docs.glob("*.md"):
            text = page.read_text(encoding="utf-8")
            if (changed := COUNTED.sub(sentence, text)) != text:
                page.write_text(changed, encoding="utf-8")
        print(f"{sentence}; now read docs/experiments.md through")


if __name__ == "__main__":
    main()
