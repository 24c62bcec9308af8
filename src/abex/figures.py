"""Every plot; the only module that imports matplotlib. No computation: what is drawn comes ready."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from abex.errors import UserError
from abex.extras import needed
from abex.files import write_atomically

# Okabe and Ito's colours, told apart by colour-blind readers and in print, and dash patterns beyond them.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8C6D1F")
MARKS = ("o", "s", "D", "P", "^", "v", "<", ">", "X", "p")
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
    with needed():
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg

    with matplotlib.rc_context(STYLE):
        figure = _shown_figure()(layout="constrained", **options)
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
    return figure, axes


@cache
def _shown_figure() -> Any:
    """A class of figures that a notebook shows, without pyplot and whatever backend is chosen."""
    import matplotlib.figure

    class Figure(matplotlib.figure.Figure):
        def _repr_png_(self) -> bytes:
            return drawn(self, "png")

    return Figure


def canvases(columns: int, *, rows: int = 1, **options: Any) -> tuple[Any, list[Any]]:
    """A figure and its axes, row by row, in the house style."""
    with needed():
        import matplotlib

    figure, axes = canvas(**options)
    axes.remove()
    with matplotlib.rc_context(STYLE):
        several = list(figure.subplots(rows, columns, squeeze=False).flat)
    return figure, several


def plain_log_ticks(axis: Any) -> None:
    """Plain numbers on a log axis that spans a decade or two, and no more of them than fit."""
    with needed():
        from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    class FewTicks(LogLocator):
        def tick_values(self, vmin: float, vmax: float) -> Any:
            decades = float(np.log10(vmax / vmin)) if vmin > 0.0 else np.inf
            if decades < 0.5:
                return MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(vmin, vmax)
            self.set_params(
                subs=(1.0, 2.0, 5.0) if decades < 1.3 else (1.0, 3.0) if decades < 2.6 else (1.0,)
            )
            return super().tick_values(vmin, vmax)

    axis.set_major_locator(FewTicks())
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def style_of(position: int) -> dict[str, Any]:
    """Colour and dashes of the line at ``position``; neighbours differ in both, and forty lines in one of them.

    >>> len({str(style_of(position)) for position in range(40)})
    40
    """
    return {
        "color": COLOURS[position % len(COLOURS)],
        "linestyle": DASHES[position % len(DASHES)],
    }


def regret_curves(
    steps: Any,
    lines: Sequence[tuple[str, Any, Any, Any]],
    *,
    title: str = "Cumulative regret",
    subtitle: str = "",
    log: bool = True,
    axes: Any = None,
    figsize: tuple[float, float] | None = None,
    path: str | Path | None = None,
) -> Any:
    """Lines ``(label, mean, low, high)`` over steps, bands where low and high are given, labels at the line's end.

    Into the ``axes`` given, which are returned, or into a new figure, which is.
    """
    given = axes
    if given is None:
        tall = max(4.2, 0.24 * len(lines) + 1.2)  # room for the labels
        figure, axes = canvas(figsize=figsize or (6.4, tall))
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
    if given is not None:
        save(given.figure, path)
        return given
    return save(figure, path)


def schedule_and_bounds(
    steps: Any,
    regret: tuple[Any, Any, Any],
    bounds: dict[str, Any],
    phases: Sequence[tuple[int, int]],
    *,
    title: str,
    subtitle: str = "",
    path: str | Path | None = None,
) -> Any:
    """Simulated regret (mean, low, high) and bounds on it over steps, both logarithmic; exploration ``phases`` in grey."""
    figure, axes = canvas()
    for first, last in phases:
        axes.axvspan(first - 0.5, last + 0.5, color="#BBBBBB", alpha=0.5, linewidth=0)
    mean, low, high = (np.maximum(values, 1e-3) for values in regret)
    axes.plot(steps, mean, linewidth=1.8, label="simulated regret", **style_of(0))
    axes.fill_between(steps, low, high, color=style_of(0)["color"], alpha=0.18, linewidth=0)
    for position, (label, values) in enumerate(bounds.items(), start=1):
        axes.plot(
            steps, values, linewidth=1.3, label=label, color=style_of(position)["color"], linestyle="--"
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(float(steps[0]), float(steps[-1]))
    axes.set_xlabel("step")
    axes.set_ylabel("regret (sum of lost mean rewards)")
    axes.legend(loc="upper left", fontsize=9)
    entitle(axes, title, subtitle)
    return save(figure, path)


def step_costs(lines: dict[str, list[tuple[int, float, float]]], *, path: str | Path | None = None) -> Any:
    """Nanoseconds per step over the number of arms: each policy as it plays (solid) and the textbook's loop (dotted).

    ``lines`` has for each policy rows ``(arms, ours, textbook)``.
    """
    figure, axes = canvas()
    for position, (label, rows) in enumerate(lines.items()):
        colour = style_of(position)["color"]
        arms = [row[0] for row in rows]
        axes.plot(arms, [row[1] for row in rows], label=label, color=colour, marker="o", markersize=3)
        axes.plot(arms, [row[2] for row in rows], color=colour, linestyle=":", linewidth=1.0, alpha=0.7)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("arms")
    axes.set_ylabel("nanoseconds of CPU per step")
    entitle(axes, "What a step costs", "decision, Bernoulli reward and update; dotted: a loop over all arms")
    axes.legend(
        fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False
    )  # dotted lines fill the corners
    return save(figure, path)


def label_ends(axes: Any, steps: Any, lines: Sequence[tuple[str, Any]]) -> None:
    """Name each line at its right end, with a piece of the line, moved apart where they would overlap."""
    end = float(steps[-1])
    ends = sorted(
        (_height(axes, end, float(v[-1])), position, label) for position, (label, v) in enumerate(lines)
    )
    heights = np.array([height for height, _, _ in ends])
    heights = spread(heights, 0.055 * 4.2 / float(axes.figure.get_figheight()))
    for (_, position, label), height in zip(ends, heights, strict=True):
        axes.plot(
            [1.015, 1.09],
            [height, height],
            transform=axes.transAxes,
            clip_on=False,
            linewidth=1.6,
            **style_of(position),
        )
        axes.annotate(
            label,
            xy=(1.0, height),
            xytext=(1.1, float(height)),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=COLOURS[position % len(COLOURS)],
            va="center",
            fontsize=9,
            annotation_clip=False,
        )


def spread(heights: Any, room: float) -> Any:
    """Heights in rising order moved apart by at least ``room``, as little as possible, and below 1 where they fit.

    >>> spread(np.array([0.1, 0.5, 0.5, 0.9]), 0.1).round(2).tolist()
    [0.1, 0.45, 0.55, 0.9]
    """
    offsets = room * np.arange(len(heights))
    blocks: list[
        list[float]
    ] = []  # least squares with rising values: neighbours that collide share their mean
    for value in np.asarray(heights) - offsets:
        blocks.append([float(value), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, n), (b, m) = blocks[-2], blocks.pop()
            blocks[-1] = [(n * a + m * b) / (n + m), n + m]
    moved = np.array([value for value, count in blocks for _ in range(int(count))]) + offsets
    return moved - max(0.0, moved[-1] - 1.0) if len(moved) else moved


def _height(axes: Any, x: float, y: float) -> float:
    """Where a point stands, as a fraction of the axes' height, whatever their scale."""
    return float(axes.transAxes.inverted().transform(axes.transData.transform((x, y)))[1])


def entitle(axes: Any, title: str, subtitle: str = "") -> None:
    """A title at the left, and under it a line that says what was measured."""
    axes.set_title(title, loc="left", fontsize=11, pad=20 if subtitle else 6)
    if subtitle:
        axes.text(0.0, 1.02, subtitle, transform=axes.transAxes, fontsize=8.5, color="#555555")


def kind_of(path: str | Path) -> str:
    """The format that a path's ending names."""
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise UserError(f"cannot draw {str(path)!r}: a figure's name ends in .png, .svg or .pdf")
    return kind


def save(figure: Any, path: str | Path | None) -> Any:
    """Write the figure in the format of the path's ending (png, svg, pdf), without dates; return it."""
    if path is not None:
        write_atomically(path, drawn(figure, kind_of(path)))
    return figure


def drawn(figure: Any, kind: str = "png") -> bytes:
    """The figure as a file of this format, without dates."""
    with needed():
        import matplotlib

    buffer = io.BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def image_tag(figure: Any, about: str) -> str:
    """The figure within a page."""
    content = base64.b64encode(drawn(figure)).decode()
    width = round(96 * float(figure.get_figwidth()))
    return f'<img alt="{html.escape(about)}" width="{width}" src="data:image/png;base64,{content}">'


def error_curves(
    counts: Any,
    lines: Sequence[tuple[str, Any]],
    *,
    title: str = "Error",
    subtitle: str = "",
    across: str = "classifiers",
    path: str | Path | None = None,
) -> Any:
    """Error in per cent over the number of classifiers, labels at the line's end."""
    figure, axes = canvas()
    for position, (label, errors) in enumerate(lines):
        axes.plot(counts, errors, label=label, linewidth=1.6, **style_of(position))
    if len(counts) > 1:
        axes.set_xscale("log")
        axes.set_xlim(float(counts[0]), float(counts[-1]))
    if all(np.min(errors) > 0 for _, errors in lines):
        axes.set_yscale("log")
    axes.set_xlabel(across)
    axes.set_ylabel("error (per cent)")
    axes.legend()
    entitle(axes, title, subtitle)
    return save(figure, path)


def confusion(
    counts: Any, names: Sequence[str], *, title: str = "Confusion", path: str | Path | None = None
) -> Any:
    """How often each class (row) was taken for each other (column); colours leave the diagonal out."""
    figure, axes = canvas(figsize=(6.4, 5.6))
    table = np.asarray(counts)
    wrong = table.astype(float)
    np.fill_diagonal(wrong, 0.0)
    axes.imshow(wrong, cmap="Blues")
    axes.grid(visible=False)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true class")
    for i in range(table.shape[0]) if len(names) <= 30 else ():
        for j in range(table.shape[1]):
            if table[i, j]:
                dark = i != j and wrong[i, j] > wrong.max() / 2
                axes.text(
                    j,
                    i,
                    str(table[i, j]),
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if dark else "black",
                )
    entitle(axes, title)
    return save(figure, path)


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


def policy_values(
    rows: Sequence[tuple[str, str, float, float, float]],
    logged: float,
    *,
    level: float = 0.95,
    path: str | Path | None = None,
) -> Any:
    """Values of policies from a log, a line each: policy, estimator, value and the ends of its interval (NaN: no answer).

    ``logged`` is the mean reward of the log itself.
    """
    figure, axes = canvas(figsize=(7.2, 1.4 + 0.32 * len(rows)))
    policies = list(dict.fromkeys(row[0] for row in rows))
    for place, (policy, _, value, low, high) in enumerate(rows):
        y, look = len(rows) - 1 - place, style_of(policies.index(policy))
        if value == value:
            axes.plot([low, high], [y, y], color=look["color"], linewidth=1.6)
            axes.plot([value], [y], marker="o", markersize=5, color=look["color"])
        else:
            axes.text(
                logged, y, "  the log cannot tell", va="center", fontsize=8.5, color="#555555", style="italic"
            )
    axes.axvline(logged, color="#555555", linewidth=0.9, linestyle=":")
    axes.set_yticks(
        range(len(rows)),
        [f"{policy[:36]}, {estimator}" for policy, estimator, *_ in reversed(rows)],
        fontsize=8.5,
    )
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlabel("mean reward per decision")
    entitle(
        axes,
        "Value of policies from the log",
        f"{level:.0%} intervals; dotted: mean reward of the log itself",
    )
    return save(figure, path)
