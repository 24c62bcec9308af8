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

from abex.support.errors import UserError, one_of, shown
from abex.support.extras import needed
from abex.support.files import write_atomically

# Okabe and Ito's colours, told apart by colour-blind readers and in print, and dash patterns beyond them.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8C6D1F")
MARKS = ("o", "s", "D", "P", "^", "v", "X")  # as many as share no divisor with the colours or the dashes
PLAIN_LINES = 5  # as many differ by their dashes alone; of more each has a mark as well
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
    "legend.fontsize": 9,
    "svg.hashsalt": "abex",
    "pdf.fonttype": 42,
}
#: what differs from `STYLE`: for slides and pages, for one column of a paper, and for its whole width
PAPER = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "axes.linewidth": 0.6, "font.family": "serif", "mathtext.fontset": "cm", "figure.dpi": 300,
}  # fmt: skip
STYLES: dict[str, dict[str, Any]] = {
    "screen": {},
    "paper": {**PAPER, "figure.figsize": (3.3, 2.4)},
    "paper-wide": {**PAPER, "figure.figsize": (6.9, 2.8)},
}
LEGENDS = ("ends", "inside", "outside", "below")
ROW = 1.5  # the height of a row of a legend, in letters
LOGS = {True: "x", False: "", "x": "x", "y": "y", "both": "xy"}


def in_style(style: str = "screen") -> Any:
    """A context in which matplotlib draws in the house style."""
    with needed():
        import matplotlib

    return matplotlib.rc_context({**STYLE, **STYLES[style]})


def canvas(style: str = "screen", **options: Any) -> tuple[Any, Any]:
    """A figure and its axes in the house style, without a window."""
    with in_style(style):
        from matplotlib.backends.backend_agg import FigureCanvasAgg

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


def mark_of(position: int, lines: int) -> str:
    """The mark of a line, where there are more lines than dashes: with its dashes it tells twenty lines apart in grey.

    >>> len({(str(style_of(position)["linestyle"]), mark_of(position, 20)) for position in range(20)})
    20
    >>> len({(style_of(position)["color"], mark_of(position, 20)) for position in range(20)})
    20
    >>> mark_of(0, 5)
    ''
    """
    return MARKS[position % len(MARKS)] if lines > PLAIN_LINES else ""


def regret_curves(
    steps: Any,
    lines: Sequence[tuple[str, Any, Any, Any]],
    *,
    title: str = "Cumulative regret",
    subtitle: str = "",
    log: bool | str = True,
    legend: str = "ends",
    style: str = "screen",
    axes: Any = None,
    figsize: tuple[float, float] | None = None,
    path: str | Path | None = None,
) -> Any:
    """Lines ``(label, mean, low, high)`` over steps, bands where low and high are given, named as ``legend`` says.

    Into the ``axes`` given, which are returned, or into a new figure, which is: there names that would take more than half of
    the picture stand below it, in columns.
    """
    one_of("legend", legend, LEGENDS)
    one_of("style", style, tuple(STYLES))
    if log not in LOGS:
        raise UserError(f"log must be True, False, 'x', 'y' or 'both', got {shown(log)}")
    with in_style(style):
        given = axes
        if given is None:
            wide, tall = figsize or STYLES[style].get("figure.figsize", STYLE["figure.figsize"])
            names = [label for label, _, _, _ in lines]
            legend = legend if _has_room(names, legend, style, wide, tall) else "below"
            if figsize is None and legend == "below":
                tall = height_with(names, wide, tall, style)
            elif figsize is None and legend != "inside":
                tall = max(tall, 0.24 * len(lines) + 1.2)  # room for the labels
            _, axes = canvas(style, figsize=(wide, tall))
        for position, curve in enumerate(lines):
            draw_line(axes, position, len(lines), steps, curve, width=1.6 if style == "screen" else 1.0)
        if "x" in LOGS[log]:
            axes.set_xscale("log")
        if "y" in LOGS[log]:
            axes.set_yscale("log")
        axes.set_xlim(float(steps[0]), float(steps[-1]))
        axes.set_xlabel("step")
        axes.set_ylabel("regret (sum of lost mean rewards)" if style == "screen" else "regret")
        entitle(axes, title, subtitle)
        if legend == "ends":
            label_ends(axes, steps, [(label, mean) for label, mean, _, _ in lines])
        elif legend == "inside":
            axes.legend()
        elif legend == "outside":
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        else:
            legend_below(axes, [label for label, _, _, _ in lines], style)
        save(axes.figure, path)
        return axes.figure if given is None else given


def _has_room(names: Sequence[str], legend: str, style: str, wide: float, tall: float) -> bool:
    """Whether these names leave half of a figure to its lines, its sides in inches."""
    if legend == "inside" and len(names) * ROW * _legend_size(style) > 36.0 * tall:
        return False
    return legend == "below" or max(_widths(names, style)) <= 36.0 * wide


def height_with(names: Sequence[str], wide: float, tall: float, style: str = "screen") -> float:
    """The height of a figure with a legend of these names below, in inches."""
    rows = -(-len(names) // _columns(names, wide, style)) if names else 0
    return tall + rows * ROW * _legend_size(style) / 72.0


def _columns(names: Sequence[str], wide: float, style: str) -> int:
    """How many columns of a legend fit into so many inches: each is as wide as its longest name, the first are the longest."""
    widths = _widths(names, style)
    for columns in range(len(names), 1, -1):
        parts = np.array_split(widths, columns)
        if sum(float(part.max()) for part in parts) <= 72.0 * wide - 2.0 * _legend_size(style):
            return columns
    return 1


def _widths(names: Sequence[str], style: str) -> Any:
    """Points that each name takes in a legend, the piece of its line and the gap to the next column with it."""
    size = _legend_size(style)
    with in_style(style):
        from matplotlib.textpath import TextPath

        texts = [float(TextPath((0.0, 0.0), name, size=size).get_extents().width) for name in names]
    return np.array(texts) + 4.6 * size


def _legend_size(style: str) -> float:
    return float({**STYLE, **STYLES[style]}["legend.fontsize"])


def legend_below(axes: Any, names: Sequence[str], style: str = "screen") -> None:
    """A legend under the axes of the lines of these names, first column first, in as many columns as fit."""
    lines = {line.get_label(): line for line in axes.lines}
    with in_style(style):
        axes.figure.legend(
            [lines[name] for name in names],
            names,
            loc="outside lower center",
            ncols=_columns(names, float(axes.figure.get_figwidth()), style),
            handlelength=2.6,
            columnspacing=1.2,
        )


def draw_line(
    axes: Any, position: int, lines: int, across: Any, curve: tuple[str, Any, Any, Any], width: float = 1.6
) -> None:
    """The line at ``position`` of so many, ``(label, mean, low, high)``, with its band where it has one."""
    label, mean, low, high = curve
    look = style_of(position)
    mark = mark_of(position, lines)
    axes.plot(
        across,
        mean,
        label=label,
        linewidth=width,
        marker=mark,
        markersize=2.4 + width,
        markevery=0.15,
        **look,
    )
    if low is not None:
        axes.fill_between(across, low, high, color=look["color"], alpha=0.18, linewidth=0)


def label_ends(axes: Any, steps: Any, lines: Sequence[tuple[str, Any]]) -> None:
    """Name each line beside its right end, moved apart where they would overlap, with a leader and a piece of the line."""
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    end = float(steps[-1])
    ends = sorted(
        (_height(axes, end, float(v[-1])), position, label) for position, (label, v) in enumerate(lines)
    )
    size = min(9.0, axes.xaxis.label.get_size())
    room = 0.055 * (4.2 / float(axes.figure.get_figheight())) * (size / 9.0)
    heights = spread(np.array([height for height, _, _ in ends]), room)
    inches = axes.figure.dpi_scale_trans + ScaledTranslation(1.0, 0.0, axes.transAxes)
    right = blended_transform_factory(inches, axes.transAxes)  # inches beside the right side
    beside = {"transform": right, "clip_on": False}
    for (true, position, label), height in zip(ends, heights, strict=True):
        look = style_of(position)
        mark = mark_of(position, len(lines))
        if abs(height - true) > 0.001:
            axes.plot([0.0, 0.08], [true, height], color=look["color"], linewidth=0.6, **beside)
        axes.plot(
            [0.08, 0.22, 0.36],
            [height] * 3,
            linewidth=axes.lines[0].get_linewidth(),
            marker=mark,
            markersize=axes.lines[0].get_markersize(),
            markevery=[1],
            **look,
            **beside,
        )
        axes.text(0.41, float(height), label, color=look["color"], va="center", fontsize=size, **beside)


def spread(heights: Any, room: float) -> Any:
    """Heights in rising order moved apart by at least ``room``, as little as possible, and between 0 and 1 where they fit.

    >>> spread(np.array([0.1, 0.5, 0.5, 0.9]), 0.1).round(2).tolist()
    [0.1, 0.45, 0.55, 0.9]
    >>> spread(np.array([0.01, 0.02, 0.03]), 0.1).round(2).tolist()
    [0.0, 0.1, 0.2]
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
    moved = np.array([value for value, count in blocks for _ in range(int(count))])
    top = 1.0 - room * (len(moved) - 1)
    return np.clip(moved, min(0.0, top), top) + offsets


def _height(axes: Any, x: float, y: float) -> float:
    """The height of a point as a fraction of the axes, whatever their scale."""
    return float(axes.transAxes.inverted().transform(axes.transData.transform((x, y)))[1])


def entitle(axes: Any, title: str, subtitle: str = "") -> None:
    """A title at the left, and under it a line that says what was measured."""
    size = 0.77 * axes.title.get_size()
    rows = len(subtitle.splitlines())
    axes.set_title(title, loc="left", pad=6.0 + (0.4 + 1.2 * rows) * size * bool(rows))
    if subtitle:
        axes.annotate(
            subtitle,
            (0.0, 1.0),
            (0.0, 5.0),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=size,
            color="#555555",
        )


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
    buffer = io.BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    with in_style():
        figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def image_tag(figure: Any, about: str) -> str:
    """The figure within a page."""
    content = base64.b64encode(drawn(figure)).decode()
    width = round(96 * float(figure.get_figwidth()))
    return f'<img alt="{html.escape(about)}" width="{width}" src="data:image/png;base64,{content}">'
