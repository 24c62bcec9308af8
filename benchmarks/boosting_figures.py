"""Figures of boosting_front.py: errors against the time of a fit, and mean ranks with their critical difference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from abex.support.figures import MARKS, canvas, entitle, in_style, plain_log_ticks, save, style_of


def canvases(columns: int, *, rows: int = 1, **options: Any) -> tuple[Any, list[Any]]:
    """A figure and its axes, row by row, in the house style."""
    figure, axes = canvas(**options)
    axes.remove()
    with in_style():
        several = list(figure.subplots(rows, columns, squeeze=False).flat)
    return figure, several


def error_against_time(
    panels: dict[str, Sequence[tuple[str, Any, Any]]],
    ours: str,
    *,
    subtitle: str = "",
    path: str | Path | None = None,
) -> Any:
    """Panels of series ``(label, seconds, errors in per cent)``, the same labels everywhere: lower left is better.

    A series begins with a filled mark and goes on with hollow ones; those with the first word of the label ``ours`` have colours.
    Where a rival would be better in both respects than the first mark of ``ours`` is shaded. Errors beyond six times the least
    are left out.
    """
    columns = 3
    rows = -(-(len(panels) + 1) // columns)
    figure, several = canvases(columns, rows=rows, figsize=(10.0, 3.3 * rows))
    for axes, (title, points) in zip(several, panels.items(), strict=False):
        for position, (label, seconds, errors) in enumerate(points):
            colour = style_of(position)["color"] if label.split()[0] == ours.split()[0] else "#777777"
            look = {
                "color": colour,
                "marker": MARKS[position % len(MARKS)],
                "markersize": 6,
                "linewidth": 1.0,
            }
            axes.plot(seconds, errors, mfc="white", **look)
            axes.plot(seconds[:1], errors[:1], label=label, **look)
            if label == ours:
                axes.fill_between([1e-9, seconds[0]], 1e-9, errors[0], color=colour, alpha=0.12, linewidth=0)
        every = [(x, y) for _, seconds, errors in points for x, y in zip(seconds, errors, strict=True)]
        least = min(y for _, y in every)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(min(x for x, _ in every) / 1.4, max(x for x, _ in every) * 1.4)
        axes.set_ylim(least / 1.2, min(6.0 * least, 1.3 * max(y for _, y in every)))
        plain_log_ticks(axes.xaxis)
        plain_log_ticks(axes.yaxis)
        axes.set_xlabel("CPU seconds of fit")
        entitle(axes, title, subtitle)
    for axes in several[::columns]:
        axes.set_ylabel("test error (per cent)")
    for axes in several[len(panels) :]:
        axes.axis("off")
    several[len(panels)].legend(
        *several[0].get_legend_handles_labels(), fontsize=9, loc="center left", frameon=False
    )
    return save(figure, path)


def critical_differences(
    diagrams: dict[str, tuple[dict[str, float], float]], ours: str, *, path: str | Path | None = None
) -> Any:
    """Mean ranks on a line, best first, one panel a title -> (label -> mean rank, critical difference).

    The bar begins at the best rank and is as long as the critical difference: whatever lies under it is not told from the best.
    """
    most = max(len(found) for found, _ in diagrams.values())
    figure, several = canvases(1, rows=len(diagrams), figsize=(7.2, (0.9 + 0.3 * most) * len(diagrams)))
    for axes, (title, (found, critical)) in zip(several, diagrams.items(), strict=True):
        ordered = sorted(found.items(), key=lambda item: item[1])
        best = ordered[0][1]
        axes.axvspan(best, best + critical, color="#777777", alpha=0.15, linewidth=0)
        for height, (label, rank) in enumerate(ordered):
            colour = style_of(0)["color"] if label == ours else "#444444"
            axes.plot([1.0, rank], [height, height], color=colour, linewidth=0.8, alpha=0.5)
            axes.plot([rank], [height], "o", color=colour, markersize=6)
            axes.annotate(
                f"{label}  {rank:.2f}", (rank, height), xytext=(8, 0), textcoords="offset points", va="center",
                fontsize=9, color=colour,
            )  # fmt: skip
        axes.set_ylim(len(ordered) - 0.4, -0.6)
        axes.set_xlim(1.0, most + 1.5)
        axes.set_yticks([])
        axes.set_xlabel("mean rank of the test error (1 is best)")
        entitle(axes, title, f"shaded: within the critical difference {critical:.2f} of the best")
    return save(figure, path)
