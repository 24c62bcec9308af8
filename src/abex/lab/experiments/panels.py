"""The figures of an experiment: the paper's, and how much sooner an error is reached; the report draws all else, interactive."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from abex.lab.experiments.outcomes import ExperimentResult, LineResult, ratio_curve
from abex.lab.experiments.verdicts import full_search_line
from abex.support.figures import canvas, draw_line, entitle, height_with, legend_below, plain_log_ticks, save
from abex.support.progress import Progress

FORMATS = ("png", "svg", "pdf")
#: inches without the legend: its letters can be read in a column of a paper, and on a phone
WIDE, TALL = 4.6, 3.4


def draw(outcome: ExperimentResult, folder: Path, show: bool | None = False) -> list[Path]:
    """Write the figures of an experiment in all formats; returns their paths. ``show``: with a progress bar."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    figures = {"": paper_figure, "-sooner": sooner_figure}
    if full_search_line(outcome) is None:
        del figures["-sooner"]
    with Progress(f"drawing {outcome.experiment.id}", len(figures) * len(FORMATS), show) as bar:
        for name, make in figures.items():
            figure = make(outcome)
            for kind in FORMATS:
                path = folder / f"{outcome.experiment.id}{name}.{kind}"
                save(figure, path)
                figure.set_layout_engine(
                    None
                )  # the first format has laid it out for all: drawn once, not twice
                paths.append(path)
                bar.advance()
    return paths


def paper_figure(outcome: ExperimentResult) -> Any:
    """As in the paper: regret against steps, or smoothed test error against CPU seconds."""
    task, limits = outcome.experiment.task, _limits(outcome)
    top = np.inf if limits is None else limits[1]
    across = [xs(drawn, task.paper_axis) for drawn in outcome.lines]
    main = [x for x, drawn in zip(across, outcome.lines, strict=True) if not drawn.line.plateau] or across
    end = max((float(x[-1]) for x in main), default=1.0)  # full search goes on, and would squeeze all others
    ends = [float(np.interp(end, x, drawn.mean)) for x, drawn in zip(across, outcome.lines, strict=True)]
    names = [
        outcome.title_of(drawn) + " \u2191" * (loss > top)
        for drawn, loss in zip(outcome.lines, ends, strict=True)
    ]
    falling = [names[place] for place in sorted(range(len(ends)), key=lambda place: -ends[place])]
    figure, axes = canvas(figsize=(WIDE, height_with(falling, WIDE, TALL)))
    for place, drawn in enumerate(outcome.lines):
        draw_line(axes, place, len(names), across[place], (names[place], drawn.mean, *drawn.band()))
    axes.set_xlim(0.0, end)
    if limits is not None:
        axes.set_ylim(*limits)
    axes.set_xlabel(task.axes[task.paper_axis])
    axes.set_ylabel(textwrap.fill(task.loss_name, 28))
    legend_below(axes, falling)
    entitle(axes, outcome.experiment.title, textwrap.fill(subtitle(outcome), 52))
    return figure


def sooner_figure(outcome: ExperimentResult) -> Any:
    """How many times sooner the paper's lines and uniform choice get down to an error than full search, over target errors."""
    reference = full_search_line(outcome)
    assert reference is not None
    shown = [
        (position, drawn, rows)
        for position, drawn in enumerate(outcome.lines)
        if drawn.line.group == "paper" or drawn.label == "uniform"
        if (
            rows := [
                row for row in ratio_curve(drawn, reference) if row[2] == 1.0 and np.isfinite(row[1].mean)
            ]
        )
    ]
    names = [drawn.label for _, drawn, _ in shown]
    figure, axes = canvas(figsize=(WIDE, height_with(names, WIDE, TALL)))
    for position, drawn, rows in shown:
        bounds = np.array([[*row[1].interval(), row[1].mean] for row in rows])
        high, low, mean = np.exp(-bounds).T
        draw_line(axes, position, len(names), [row[0] for row in rows], (drawn.label, mean, low, high))
    axes.axhline(1.0, color="#777777", linewidth=1.0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.invert_xaxis()
    plain_log_ticks(axes.xaxis)
    plain_log_ticks(axes.yaxis)
    axes.set_xlabel("target test error (%)")
    axes.set_ylabel(f"CPU time of {reference.label}\ndivided by the line's")
    legend_below(axes, names)
    end = (
        "until its validation error stops falling"
        if reference.ended
        else "before it had surely stopped falling"
    )
    entitle(
        axes,
        f"{outcome.experiment.title}, against {reference.label}",
        f"which ran for {reference.step[-1]:,.0f} iterations,\n{end}",
    )
    return figure


def _limits(outcome: ExperimentResult) -> tuple[float, float] | None:
    """The range of the paper's lines: a baseline far above is named with an arrow, the report shows it."""
    finals = {drawn.label: float(drawn.mean[-1]) for drawn in outcome.lines}
    if not finals:
        return None
    if outcome.experiment.task.falls:  # the end of the curves, not the first iterations
        return 0.9 * min(finals.values()), 2.0 * float(np.median(list(finals.values())))
    main = [finals[drawn.label] for drawn in outcome.lines if drawn.line.group != "baseline"]
    return (0.0, 1.1 * max(main)) if main else None


def xs(drawn: LineResult, x: str) -> Any:
    """The values of an x axis: steps, CPU seconds (mean over runs) or evaluations."""
    values = getattr(drawn, x)
    return values if values.ndim == 1 else values.mean(axis=0)


def subtitle(outcome: ExperimentResult) -> str:
    """What the lines of a figure are: of how many runs."""
    runs = [len(drawn.replications) for drawn in outcome.lines] or [0]
    count = f"{max(runs):,}" if min(runs) == max(runs) else f"{min(runs):,} to {max(runs):,}"
    strata = " in strata" if outcome.experiment.strata else ""
    return f"mean of {count} runs{strata}, 95 % confidence band{' (unfinished)' if outcome.missing else ''}"
