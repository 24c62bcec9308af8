"""The figures of an experiment: the paper's layout, and the views we find better."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from abex.lab.experiments.outcomes import NEAR, Drawn, Outcome, goals, paired_curve, ratio_curve
from abex.lab.experiments.verdicts import searched
from abex.support.figures import canvas, canvases, entitle, label_ends, plain_log_ticks, save, style_of
from abex.support.progress import Progress

FORMATS = ("png", "svg", "pdf")
COLUMN = (5.6, 3.7)  # inches: printed in a column its letters are those of a footnote
PAGE = 7.6  # inches: the width of a page
MARKS = 300  # runs of a line that are marked, when it has more


def draw(outcome: Outcome, folder: Path, show: bool | None = False) -> list[Path]:
    """Write the figures of an experiment in all formats; returns their paths. ``show``: with a progress bar."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    figures = {"": paper_figure, "-sooner": sooner_figure, "-views": views}
    if searched(outcome) is None:
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


def paper_figure(outcome: Outcome) -> Any:
    """As in the paper: regret against steps, or smoothed test error against CPU seconds."""
    figure, axes = canvas(figsize=COLUMN)
    across = outcome.experiment.task.paper_axis
    _lines(axes, outcome, across)
    _label(axes, outcome, across, _limits(outcome))
    entitle(axes, outcome.experiment.title, _subtitle(outcome))
    return figure


def sooner_figure(outcome: Outcome) -> Any:
    """How many times sooner the paper's lines and uniform choice get down to an error than full search, over target errors."""
    reference = searched(outcome)
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


def views(outcome: Outcome) -> Any:
    """Log axes, work and time, paired differences, and the end with its intervals; one legend for all."""
    panels = outcome.experiment.task.views
    rows = len(panels) // 2
    figure, axes = canvases(2, rows=rows, figsize=(PAGE, 2.9 * rows + 0.9))
    for place, view in zip(axes, panels, strict=True):
        if view in VIEWS:
            VIEWS[view](place, outcome)
        else:
            _lines(place, outcome, view, log=True)
            entitle(place, {"step": "On log axes", "evaluations": "By work", "seconds": "By time"}[view])
    figure.suptitle(f"{outcome.experiment.title}; {_subtitle(outcome)}", x=0.01, ha="left", fontsize=11)
    handles, labels = axes[0].get_legend_handles_labels()
    if labels:
        figure.legend(handles, labels, loc="outside lower left", ncols=3, fontsize=8.5, frameon=False)
    return figure


def _lines(axes: Any, outcome: Outcome, x: str, *, log: bool = False) -> None:
    task = outcome.experiment.task
    for position, drawn in enumerate(outcome.lines):
        style = style_of(position)
        across = xs(drawn, x)
        mean, (low, high) = drawn.mean, drawn.band()
        axes.plot(across, mean, linewidth=1.6, label=outcome.title_of(drawn), **style)
        axes.fill_between(across, low, high, color=style["color"], alpha=0.18, linewidth=0)
    if log and outcome.lines:
        if any(
            (xs(drawn, x) > 0).any() for drawn in outcome.lines
        ):  # very short runs take no time that can be measured
            axes.set_xscale("log")
        axes.set_yscale("log")
        if task.falls:  # before a hundredth of the run all lines fall alike
            axes.set_xlim(
                left=min(float(np.interp(d.step[-1] / 100, d.step, xs(d, x))) for d in outcome.lines)
            )
            start = float(
                np.median([float(np.interp(d.step[-1] / 100, d.step, d.mean)) for d in outcome.lines])
            )
            least = min(float(d.mean.min()) for d in outcome.lines)
            axes.set_ylim(0.93 * least, 1.1 * start)
            plain_log_ticks(axes.yaxis)
            if x == "seconds":
                plain_log_ticks(axes.xaxis)
        else:
            least = min(float(d.band()[0][0]) for d in outcome.lines)
            if not least > 0.0:
                end = min(float(d.mean[-1]) for d in outcome.lines)
                axes.set_ylim(bottom=max(1e-2, end / 1e3))
    axes.set_xlabel(task.axes[x])
    axes.set_ylabel(task.short_loss if log else task.loss_name.replace(", ", ",\n"))


def _label(axes: Any, outcome: Outcome, x: str, limits: tuple[float, float] | None) -> None:
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


def _limits(outcome: Outcome) -> tuple[float, float] | None:
    """The range of the paper's lines: a baseline far above is named with an arrow, the views show it."""
    finals = {drawn.label: float(drawn.mean[-1]) for drawn in outcome.lines}
    if not finals:
        return None
    if outcome.experiment.task.falls:  # the end of the curves, not the first iterations
        return 0.9 * min(finals.values()), 2.0 * float(np.median(list(finals.values())))
    main = [finals[drawn.label] for drawn in outcome.lines if drawn.line.group != "baseline"]
    return (0.0, 1.1 * max(main)) if main else None


def _differences(axes: Any, outcome: Outcome) -> None:
    """Loss of each line minus that of the first, paired by replication."""
    if not outcome.lines:
        return
    task = outcome.experiment.task
    reference = outcome.lines[0]
    entitle(axes, f"Paired differences to {reference.label}")
    axes.axhline(0.0, color=style_of(0)["color"], linewidth=1.2)
    for position, drawn in enumerate(outcome.lines[1:], start=1):
        gap = paired_curve(drawn, reference)
        if gap is None:
            continue
        mean, low, high = gap
        style = style_of(position)
        axes.plot(drawn.step, mean, linewidth=1.4, **style)
        axes.fill_between(drawn.step, low, high, color=style["color"], alpha=0.18, linewidth=0)
    axes.set_xscale("log")
    if task.falls:
        axes.set_xlim(left=reference.step[-1] / 100)
        axes.set_ylim(-2.0, 2.0)
        axes.set_ylabel(f"test error minus that of\n{reference.label} (points)")
    else:
        axes.set_yscale("symlog", linthresh=10.0)
        axes.set_ylabel(f"regret minus that of {reference.label}")
    axes.set_xlabel(task.axes["step"])


def _finals(axes: Any, outcome: Outcome) -> None:
    """Mean loss at the end, its 95 % interval, and every run as a small mark; of many runs some, and the worst ones."""
    for position, drawn in enumerate(outcome.lines):
        colour = style_of(position)["color"]
        found = drawn.estimate()
        row = len(outcome.lines) - 1 - position
        runs = np.sort(drawn.final)
        if runs.size > MARKS:
            runs = np.concatenate([runs[:: runs.size // MARKS], runs[-MARKS // 10 :]])
        axes.plot(runs, np.full(runs.size, row), "|", color=colour, alpha=0.5, markersize=7)
        axes.plot([float(bound) for bound in found.interval()], [row, row], color=colour, linewidth=2.5)
        axes.plot([float(found.mean)], [row], "o", color=colour, markersize=5)
    axes.set_yticks(range(len(outcome.lines)), [drawn.label for drawn in reversed(outcome.lines)], fontsize=8)
    if outcome.lines and not outcome.experiment.task.falls:
        axes.set_xscale("log")
        plain_log_ticks(axes.xaxis)
    axes.set_xlabel(outcome.experiment.task.short_loss)
    entitle(axes, "At the end, every run")


def _reached(axes: Any, outcome: Outcome) -> None:
    """CPU seconds until the error is near the reference's final one; lines that get there in half of their runs or more."""
    name, levels = goals(outcome)
    for position, drawn in enumerate(outcome.lines):
        row = len(outcome.lines) - 1 - position
        for level, mark in zip(levels, ("o", "D"), strict=True):
            middle = float(np.median(drawn.seconds_to(level)))
            if np.isfinite(middle):
                axes.plot([middle], [row], mark, color=style_of(position)["color"], markersize=5)
    axes.set_yticks(range(len(outcome.lines)), [""] * len(outcome.lines))  # the same rows as beside it
    axes.set_xscale("log")
    plain_log_ticks(axes.xaxis)
    axes.set_xlabel("CPU time of training (s), median")
    if levels:
        entitle(
            axes,
            f"Time to {levels[0]:.2g} % (\u25cf) and {levels[1]:.2g} % (\u25c6)",
            f"{NEAR[0]:g} and {NEAR[1]:g} times the end of {name}",
        )


VIEWS = {"differences": _differences, "finals": _finals, "reached": _reached}


def xs(drawn: Drawn, x: str) -> Any:
    """The values of an x axis: steps, CPU seconds (mean over runs) or evaluations."""
    values = getattr(drawn, x)
    return values if values.ndim == 1 else values.mean(axis=0)


def _subtitle(outcome: Outcome) -> str:
    runs = [len(drawn.replications) for drawn in outcome.lines] or [0]
    count = f"{max(runs):,}" if min(runs) == max(runs) else f"{min(runs):,} to {max(runs):,}"
    strata = " in strata" if outcome.experiment.strata else ""
    return f"mean of {count} runs{strata}, 95 % confidence band{' (unfinished)' if outcome.missing else ''}"
