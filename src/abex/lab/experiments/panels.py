"""The figures of an experiment: the paper's, and how much sooner an error is reached; the report draws all else, interactive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from abex.lab.experiments.outcomes import ExperimentResult, LineResult, ratio_curve
from abex.lab.experiments.verdicts import full_search_line
from abex.support.figures import canvas, entitle, label_ends, plain_log_ticks, save, style_of
from abex.support.progress import Progress

FORMATS = ("png", "svg", "pdf")
COLUMN = (5.6, 3.7)  # inches: printed in a column its letters are those of a footnote


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
    figure, axes = canvas(figsize=COLUMN)
    across = outcome.experiment.task.paper_axis
    _lines(axes, outcome, across)
    _label(axes, outcome, across, _limits(outcome))
    entitle(axes, outcome.experiment.title, subtitle(outcome))
    return figure


def sooner_figure(outcome: ExperimentResult) -> Any:
    """How many times sooner the paper's lines and uniform choice get down to an error than full search, over target errors."""
    reference = full_search_line(outcome)
    assert reference is not None
    figure, axes = canvas(figsize=COLUMN)
    shown = [
        (i, one) for i, one in enumerate(outcome.lines) if one.line.group == "paper" or one.label == "uniform"
    ]
    for position, drawn in shown:
        rows = [row for row in ratio_curve(drawn, reference) if row[2] == 1.0 and np.isfinite(row[1].mean)]
        if not rows:
            continue
        style = style_of(position)
        target = [row[0] for row in rows]
        axes.plot(
            target, [float(np.exp(-row[1].mean)) for row in rows], linewidth=1.6, label=drawn.label, **style
        )
        bounds = [row[1].interval() for row in rows]
        low, high = (np.exp([-bound[side] for bound in bounds]) for side in (1, 0))
        axes.fill_between(target, low, high, color=style["color"], alpha=0.18, linewidth=0)
    axes.axhline(1.0, color="#777777", linewidth=1.0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.invert_xaxis()
    plain_log_ticks(axes.xaxis)
    plain_log_ticks(axes.yaxis)
    axes.set_xlabel("target test error (%)")
    axes.set_ylabel(f"CPU time of {reference.label}\ndivided by the line's")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=8.5, frameon=False, loc="upper left")
    end = (
        "until its validation error stops falling"
        if reference.ended
        else "before it had surely stopped falling"
    )
    entitle(
        axes,
        f"{outcome.experiment.title}, against {reference.label}",
        f"which ran for {reference.step[-1]:,.0f} iterations, {end}",
    )
    return figure


def _lines(axes: Any, outcome: ExperimentResult, x: str) -> None:
    task = outcome.experiment.task
    for position, drawn in enumerate(outcome.lines):
        style = style_of(position)
        across = xs(drawn, x)
        mean, (low, high) = drawn.mean, drawn.band()
        axes.plot(across, mean, linewidth=1.6, label=outcome.title_of(drawn), **style)
        axes.fill_between(across, low, high, color=style["color"], alpha=0.18, linewidth=0)
    axes.set_xlabel(task.axes[x])
    axes.set_ylabel(task.loss_name.replace(", ", ",\n"))


def _label(axes: Any, outcome: ExperimentResult, x: str, limits: tuple[float, float] | None) -> None:
    """Names at the ends of the lines; a line that ends above the picture has an arrow."""
    if not outcome.lines:
        return
    main = [drawn for drawn in outcome.lines if not drawn.line.plateau] or list(outcome.lines)
    end = max(float(xs(drawn, x)[-1]) for drawn in main)  # full search goes on, and would squeeze all others
    axes.set_xlim(0.0, end)
    top = np.inf
    if limits is not None:
        axes.set_ylim(*limits)
        top = limits[1]
    ends = [
        (outcome.title_of(drawn), float(np.interp(end, xs(drawn, x), drawn.mean))) for drawn in outcome.lines
    ]
    label_ends(
        axes, [end], [(f"{label} \u2191" if loss > top else label, [min(loss, top)]) for label, loss in ends]
    )


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
