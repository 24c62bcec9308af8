"""Every plot; the only module that imports matplotlib. No computation: what is drawn comes ready."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from abex.errors import UserError
from abex.files import write_atomically

# Okabe and Ito's colours, told apart by colour-blind readers and in print, and dash patterns beyond them.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8C6D1F")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
STYLE = {
    "figure.figsize": (6.4, 4.2),
    "figure.dpi": 150,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.hashsalt": "abex",
    "pdf.fonttype": 42,
}


def canvas(**options: Any) -> tuple[Any, Any]:
    """A figure and its axes in the house style, without a window."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(layout="constrained", **options)
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
    return figure, axes


def style_of(position: int) -> dict[str, Any]:
    """Colour and dashes of the line at ``position``."""
    return {
        "color": COLOURS[position % len(COLOURS)],
        "linestyle": DASHES[(position // len(COLOURS)) % len(DASHES)],
    }


def regret_curves(
    steps: Any,
    lines: Sequence[tuple[str, Any, Any, Any]],
    *,
    title: str = "Cumulative regret",
    subtitle: str = "",
    log: bool = True,
    path: str | Path | None = None,
) -> Any:
    """Lines ``(label, mean, low, high)`` over steps, bands where low and high are given, labels at the line's end."""
    figure, axes = canvas()
    for position, (label, mean, low, high) in enumerate(lines):
        style = style_of(position)
        axes.plot(steps, mean, label=label, linewidth=1.6, **style)
        if low is not None:
            axes.fill_between(steps, low, high, color=style["color"], alpha=0.18, linewidth=0)
    if log:
        axes.set_xscale("log")
    axes.set_xlim(float(steps[0]), float(steps[-1]))
    axes.set_xlabel("step")
    axes.set_ylabel("regret (sum of lost mean rewards)")
    entitle(axes, title, subtitle)
    label_ends(axes, steps, [(label, mean) for label, mean, _, _ in lines])
    return save(figure, path)


def step_costs(
    lines: dict[str, list[tuple[int, float, float, float]]], *, path: str | Path | None = None
) -> Any:
    """Nanoseconds per step over the number of arms: each policy as it plays (solid) and the textbook's loop (dotted).

    ``lines`` has for each policy rows ``(arms, ours, plain loop, textbook)``.
    """
    figure, axes = canvas()
    for position, (label, rows) in enumerate(lines.items()):
        colour = style_of(position)["color"]
        arms = [row[0] for row in rows]
        axes.plot(arms, [row[1] for row in rows], label=label, **style_of(position), marker="o", markersize=3)
        axes.plot(arms, [row[3] for row in rows], color=colour, linestyle=":", linewidth=1.0, alpha=0.7)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("arms")
    axes.set_ylabel("nanoseconds of CPU per step")
    entitle(axes, "What a step costs", "decision, Bernoulli reward and update; dotted: a loop over all arms")
    axes.legend(fontsize=8)
    return save(figure, path)


def label_ends(axes: Any, steps: Any, lines: Sequence[tuple[str, Any]]) -> None:
    """Name each line at its right end, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    room = (high - low) * 0.055
    ends = sorted((float(values[-1]), position, label) for position, (label, values) in enumerate(lines))
    heights = np.array([end for end, _, _ in ends])
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + room)
    heights -= max(0.0, heights[-1] - max(high, ends[-1][0])) if len(heights) else 0.0
    for (end, position, label), height in zip(ends, heights, strict=True):
        axes.annotate(
            label,
            xy=(float(steps[-1]), end),
            xytext=(1.02, float((height - low) / (high - low))),
            textcoords="axes fraction",
            color=COLOURS[position % len(COLOURS)],
            va="center",
            fontsize=9,
            annotation_clip=False,
        )


def entitle(axes: Any, title: str, subtitle: str = "") -> None:
    """A title at the left, and under it a line that says what was measured."""
    axes.set_title(title, loc="left", fontsize=11, pad=20 if subtitle else 6)
    if subtitle:
        axes.text(0.0, 1.02, subtitle, transform=axes.transAxes, fontsize=8.5, color="#555555")


def save(figure: Any, path: str | Path | None) -> Any:
    """Write the figure in the format of the path's ending (png, svg, pdf), without dates; return it."""
    if path is None:
        return figure
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise UserError(f"cannot draw {str(path)!r}: a figure's name ends in .png, .svg or .pdf")
    import matplotlib

    buffer = io.BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format=kind, metadata=metadata)
    write_atomically(path, buffer.getvalue())
    return figure
