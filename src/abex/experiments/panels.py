"""The figures of an experiment: the paper's layout, and the views we find better."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from abex.experiments.outcomes import Drawn, Outcome, interval
from abex.figures import canvas, canvases, entitle, label_ends, save, style_of

FORMATS = ("png", "svg", "pdf")


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Write both figures of an experiment in all formats; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, figure in (("", paper_figure(outcome)), ("-views", views(outcome))):
        for kind in FORMATS:
            path = folder / f"{outcome.experiment.id}{name}.{kind}"
            save(figure, path)
            figure.set_layout_engine("none")  # the first format has laid it out for all
            paths.append(path)
    return paths


def paper_figure(outcome: Outcome) -> Any:
    """As in the paper: regret against steps, or smoothed test error against CPU seconds."""
    figure, axes = canvas(figsize=(7.2, 4.2))
    boosting = outcome.experiment.kind == "boosting"
    _lines(axes, outcome, "seconds" if boosting else "step", limits=_limits(outcome))
    entitle(axes, outcome.experiment.title, _subtitle(outcome))
    return figure


def views(outcome: Outcome) -> Any:
    """Log axes, work done instead of time, and the final losses with their intervals."""
    boosting = outcome.experiment.kind == "boosting"
    figure, (left, middle, right) = canvases(3, figsize=(13.5, 4.4))
    _lines(left, outcome, "step", log_x=True, log_y=True, labels=False)
    entitle(left, "On log axes")
    if boosting:
        _lines(middle, outcome, "evaluations", log_x=True, log_y=True, labels=False)
        entitle(middle, "Against the work: weak learners tried")
    else:
        _differences(middle, outcome)
        entitle(middle, f"Paired differences to {outcome.lines[0].label if outcome.lines else ''}")
    _finals(right, outcome)
    entitle(right, "At the end")
    return figure


def _lines(
    axes: Any, outcome: Outcome, x: str, *, log_x: bool = False, log_y: bool = False, labels: bool = True,
    limits: tuple[float, float] | None = None,
) -> None:  # fmt: skip
    for position, drawn in enumerate(outcome.lines):
        style = style_of(position)
        across = xs(drawn, x)
        mean, (low, high) = drawn.loss.mean(axis=0), interval(drawn.loss)
        axes.plot(across, mean, linewidth=1.6, label=drawn.label, **style)
        axes.fill_between(across, low, high, color=style["color"], alpha=0.18, linewidth=0)
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
        lowest = min((float(interval(d.loss)[0][0]) for d in outcome.lines), default=1.0)
        if lowest <= 0.0:
            axes.set_ylim(bottom=max(1e-2, min(float(d.loss.mean(axis=0)[-1]) for d in outcome.lines) / 1e3))
    axes.set_xlabel(x_name(outcome, x))
    axes.set_ylabel(outcome.loss_name)
    if labels and outcome.lines:
        end = max(float(xs(drawn, x)[-1]) for drawn in outcome.lines)
        axes.set_xlim(right=end)
        top = np.inf
        if limits is not None:
            axes.set_ylim(*limits)
            top = limits[1]
        ends = [(drawn.label, float(drawn.final.mean())) for drawn in outcome.lines]
        shown = [(f"{label} \u2191" if loss > top else label, [min(loss, top)]) for label, loss in ends]
        label_ends(axes, [end], shown)


def _limits(outcome: Outcome) -> tuple[float, float] | None:
    """The range of the paper's lines: a baseline far above is named with an arrow, the views show it."""
    finals = {drawn.label: float(drawn.final.mean()) for drawn in outcome.lines}
    if not finals:
        return None
    if outcome.experiment.kind == "boosting":  # the end of the curves, not the first iterations
        return 0.9 * min(finals.values()), 2.0 * float(np.median(list(finals.values())))
    main = [finals[drawn.label] for drawn in outcome.lines if drawn.line.group != "baseline"]
    return (0.0, 1.1 * max(main)) if main else None


def _differences(axes: Any, outcome: Outcome) -> None:
    """Regret of each line minus that of the first, paired by replication."""
    if not outcome.lines:
        return
    reference = outcome.lines[0]
    axes.axhline(0.0, color=style_of(0)["color"], linewidth=1.2)
    for position, drawn in enumerate(outcome.lines[1:], start=1):
        n = min(len(drawn.loss), len(reference.loss))
        if drawn.step.size != reference.step.size:
            continue
        differences = drawn.loss[:n] - reference.loss[:n]
        low, high = interval(differences)
        style = style_of(position)
        axes.plot(drawn.step, differences.mean(axis=0), linewidth=1.4, **style)
        axes.fill_between(drawn.step, low, high, color=style["color"], alpha=0.18, linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=10.0)
    axes.set_xlabel("step")
    axes.set_ylabel("regret more than the first line's")


def _finals(axes: Any, outcome: Outcome) -> None:
    """Mean loss at the end, its 95 % interval, and every run as a small mark."""
    for position, drawn in enumerate(outcome.lines):
        colour = style_of(position)["color"]
        low, high = interval(drawn.final)
        row = len(outcome.lines) - 1 - position
        axes.plot(drawn.final, np.full(drawn.final.size, row), "|", color=colour, alpha=0.5, markersize=7)
        axes.plot([float(low), float(high)], [row, row], color=colour, linewidth=2.5)
        axes.plot([float(drawn.final.mean())], [row], "o", color=colour, markersize=5)
    axes.set_yticks(range(len(outcome.lines)), [drawn.label for drawn in reversed(outcome.lines)])
    if outcome.experiment.kind == "bandit" and outcome.lines:
        axes.set_xscale("log")
    axes.set_xlabel(outcome.loss_name)


def xs(drawn: Drawn, x: str) -> Any:
    """The values of an x axis: steps, CPU seconds (mean over runs) or evaluations."""
    values = getattr(drawn, x)
    return values if values.ndim == 1 else values.mean(axis=0)


def x_name(outcome: Outcome, x: str) -> str:
    """What an x axis shows, with its unit."""
    boosting = outcome.experiment.kind == "boosting"
    names = {
        "step": "boosting iteration" if boosting else "step",
        "seconds": "CPU time of training (s)" if boosting else "CPU time (s)",
        "evaluations": "weak learners tried" if boosting else "pulls",
    }
    return names[x]


def _subtitle(outcome: Outcome) -> str:
    runs = max((len(drawn.replications) for drawn in outcome.lines), default=0)
    return f"mean of {runs} runs, 95 % confidence band{' (unfinished)' if outcome.missing else ''}"
