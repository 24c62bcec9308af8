"""Style and saving of figures, and curves of regret; the only module that imports matplotlib."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from abex.support.errors import UserError
from abex.support.extras import needed
from abex.support.files import write_atomically

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
    """A class of figures that notebooks show, without pyplot and with any backend."""
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
    """The height of a point as a fraction of the axes, whatever their scale."""
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
