"""Regret curves: what a simulation returns, with the statistics a comparison needs."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError, nearest, one_of, real_number, shown
from abex.support.extras import installed, needed
from abex.support.files import write_atomically
from abex.support.intervals import mean_of
from abex.support.reading import arrays_of
from abex.support.tables import html_table, latex_table, markdown_table

FORMAT = "abex-curves"
HEADINGS = ("policy", "regret", "95 % interval", "optimal pulls")
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Curves:
    """Regret of several policies at several steps in several replications.

    Attributes
    ----------
    policies : tuple of str
        Their names with the parameters that differ from the default.
    checkpoints : int array (C,)
        The recorded steps; the last is the horizon.
    regret, optimal_pulls : float array (policies, replications, C)
        Cumulative regret, and cumulative pulls of an optimal arm. Replication r of every policy faced the same rewards.
    nanoseconds : float array (policies, replications)
        CPU time per step.
    reports : tuple of dict
        What each policy reports about itself, a list over replications (ABE: its exploration slots).
    about : dict
        Environment, graph, horizon, replications and seed.
    """

    policies: tuple[str, ...]
    checkpoints: NDArray[np.int64]
    regret: Floats
    optimal_pulls: Floats
    nanoseconds: Floats
    reports: tuple[dict[str, list[float]], ...] = ()
    about: dict[str, Any] = field(default_factory=dict)

    def index(self, policy: Any) -> int:
        """Position of a policy, given as a value, as its full name, or as a name that only one has."""
        name = str(policy)
        if name in self.policies:
            return self.policies.index(name)
        matches = [i for i, known in enumerate(self.policies) if known.split("(")[0] == name]
        if len(matches) != 1:
            why = "fits several" if matches else f"is not here{nearest(name, self.policies)}"
            raise UserError(f"policy {name!r} {why}; there are: {', '.join(self.policies)}")
        return matches[0]

    def mean(self, policy: Any) -> Floats:
        """Mean regret at each checkpoint."""
        return np.asarray(self.regret[self.index(policy)].mean(axis=0))

    def standard_error(self, policy: Any) -> Floats:
        """Standard error of the mean; NaN with one replication."""
        return np.asarray(mean_of(self.regret[self.index(policy)]).error)

    def quantile(self, policy: Any, q: float) -> Floats:
        """The q-quantile over replications at each checkpoint."""
        real_number("q", q, least=0.0, most=1.0)
        return np.asarray(np.quantile(self.regret[self.index(policy)], q, axis=0))

    def band(self, policy: Any, level: float = 0.95) -> tuple[Floats, Floats]:
        """Student's confidence band of the mean over replications."""
        return interval_of_mean(self.regret[self.index(policy)], level)

    def difference(self, first: Any, second: Any, level: float = 0.95) -> PairedDifference:
        """Mean of (regret of first - regret of second) over paired replications, and its interval.

        Both faced the same rewards, so the interval is that of the paired differences. Below 0: first is better.

        Returns
        -------
        PairedDifference
            ``mean, low, high`` at each checkpoint; it prints as a sentence about the last one.
        """
        one, two = self.index(first), self.index(second)
        paired = self.regret[one] - self.regret[two]
        values = np.asarray(paired.mean(axis=0)), *interval_of_mean(paired, level)
        names = (self.policies[one], self.policies[two])
        return PairedDifference(values, names, int(self.checkpoints[-1]), len(paired), level)

    def optimal_pull_rate(self, policy: Any) -> Floats:
        """Share of the steps so far at which an optimal arm was pulled."""
        return np.asarray(self.optimal_pulls[self.index(policy)].mean(axis=0) / self.checkpoints)

    def report(self, policy: Any) -> dict[str, float]:
        """Mean of what the policy reports about itself."""
        return {key: float(np.mean(values)) for key, values in self.reports[self.index(policy)].items()}

    def to_frame(self) -> Any:
        """All numbers as a pandas data frame: policy, replication, step, regret, optimal_pulls."""
        with needed():
            import pandas

        policies, replications, points = self.regret.shape
        index = pandas.MultiIndex.from_product(
            [self.policies, range(replications), self.checkpoints.tolist()],
            names=["policy", "replication", "step"],
        )
        columns = {"regret": self.regret.ravel(), "optimal_pulls": self.optimal_pulls.ravel()}
        frame = pandas.DataFrame(columns, index=index)
        assert len(frame) == policies * replications * points
        return frame.reset_index()

    def plot(
        self,
        path: str | Path | None = None,
        *,
        policies: Sequence[Any] | None = None,
        order: str = "given",
        labels: Mapping[str, str] | Sequence[str] | None = None,
        log: bool | str = True,
        legend: str = "ends",
        style: str = "screen",
        title: str | None = None,
        level: float = 0.95,
        figsize: tuple[float, float] | None = None,
        ax: Any = None,
    ) -> Any:
        """Draw mean regret with confidence bands.

        Parameters
        ----------
        path : str or Path, optional
            Where to save the figure; the ending says how (.png, .svg, .pdf).
        policies : sequence, optional
            Which to draw, in this order: all unless given.
        order : str
            ``"given"``, or ``"regret"``: the least regret at the end first.
        labels : dict or list of str, optional
            Names of the lines: by policy, or one for each in the order of ``policies``.
        log : bool or str
            Logarithmic axes: ``"x"`` (or True) of steps, ``"y"`` of regret, ``"both"``, or none (False).
        legend : str
            Names of the lines at their ``"ends"``, or in a legend ``"inside"``, ``"outside"`` or ``"below"`` the axes. Names that
            would take more than half of the picture stand below.
        style : str
            ``"screen"``; ``"paper"`` is one column of a paper, 3.3 inches in type of 8 points, and ``"paper-wide"`` two: neither
            has a title, which is what captions are for.
        title : str, optional
            What stands above.
        level : float
            Confidence of the bands.
        figsize : (float, float), optional
            Width and height in inches, in the place of those of the style.
        ax : matplotlib axes, optional
            Where to draw; a figure of our own unless given.

        Returns
        -------
        matplotlib figure
            Which a notebook shows; or ``ax`` where that is given.
        """
        from abex.support.figures import regret_curves

        chosen = self if policies is None else self[list(policies)]
        called = dict(zip(chosen.policies, chosen._labels(labels), strict=True))
        if one_of("order", order, ("given", "regret")) == "regret":
            chosen = chosen[chosen._by_regret()]
        lines = [
            (
                called[name],
                chosen.mean(name),
                *(chosen.band(name, level) if chosen.regret.shape[1] > 1 else (None, None)),
            )
            for name in chosen.policies
        ]
        where = " on a graph" if self.about.get("graph") else ""
        kind = (
            f"{self.about['environment'].split('(')[0]}, {self.about['arms']} arms{where}: "
            if self.about
            else ""
        )
        subtitle = f"{kind}mean of {self.regret.shape[1]} replications, {level:.0%} confidence band"
        on_screen = style == "screen"
        return regret_curves(
            self.checkpoints,
            lines,
            title="Cumulative regret" if title is None and on_screen else title or "",
            subtitle=subtitle if on_screen else "",
            log=log,
            legend=legend,
            style=style,
            axes=ax,
            figsize=figsize,
            path=path,
        )

    def __getitem__(self, policies: Any) -> Curves:
        """The curves of one policy, or of a list of them, in that order.

        >>> from abex import Bernoulli, Thompson, UCB1, simulate
        >>> curves = simulate([Thompson(), UCB1()], Bernoulli([0.6, 0.4]), horizon=100, replications=4)
        >>> curves["UCB1"].policies, curves[["UCB1", "Thompson"]].policies
        (('UCB1',), ('UCB1', 'Thompson'))
        """
        several = policies if isinstance(policies, list | tuple) else [policies]
        if not several:
            raise UserError(f"name at least one policy; there are: {', '.join(self.policies)}")
        places = [self.index(policy) for policy in several]
        if len(set(places)) < len(places):
            raise UserError(f"a policy is named twice: {shown(list(map(str, several)))}")
        return replace(
            self,
            policies=tuple(self.policies[place] for place in places),
            regret=self.regret[places],
            optimal_pulls=self.optimal_pulls[places],
            nanoseconds=self.nanoseconds[places],
            reports=tuple(self.reports[place] for place in places) if self.reports else (),
        )

    def _by_regret(self) -> list[str]:
        """The policies, the least regret at the end first."""
        return sorted(self.policies, key=lambda name: float(self.mean(name)[-1]))

    def _labels(self, labels: Mapping[str, str] | Sequence[str] | None) -> list[str]:
        """A name for each line."""
        if isinstance(labels, Mapping):
            given = {self.index(policy): str(label) for policy, label in labels.items()}
            return [given.get(place, name) for place, name in enumerate(self.policies)]
        called = list(self.policies if labels is None else labels)
        if isinstance(labels, str) or len(called) != len(self.policies):
            raise UserError(
                f"labels must name each of the {len(self.policies)} policies, got {shown(labels)}"
            )
        return [str(label) for label in called]

    def table(self, level: float = 0.95, format: str | None = None) -> Any:
        """The end of the run, a row for each policy, least regret first; in words, as `HEADINGS` names them.

        Parameters
        ----------
        level : float
            Confidence of the intervals.
        format : str, optional
            Text as ``"markdown"``, ``"html"`` or ``"latex"`` (for the package booktabs), the least regret in bold; a list of rows
            unless given.
        """
        rows: list[tuple[str, ...]] = []
        for name in self._by_regret():
            low, high = (float(side[-1]) for side in self.band(name, level))
            interval = f"{low:.1f} to {high:.1f}" if low == low else "-"
            rate = float(self.optimal_pull_rate(name)[-1])
            rows.append((name, f"{float(self.mean(name)[-1]):.1f}", interval, f"{rate:.1%}"))
        if format is None:
            return rows
        headings = (*HEADINGS[:2], f"{level:.0%} interval", *HEADINGS[3:])
        best = {row[1] for row in rows[:1]}
        bold = [(row[0], f"**{row[1]}**" if row[1] in best else row[1], *row[2:]) for row in rows]
        if one_of("format", format, ("markdown", "html", "latex")) == "markdown":
            return markdown_table(headings, bold)
        if format == "latex":
            return latex_table(headings, bold)
        return re.sub(r"\*\*([^*<]*)\*\*", r"<b>\1</b>", html_table(headings, bold, self._about()))

    def _about(self) -> str:
        """What was played, in a line."""
        policies, replications, _ = self.regret.shape
        where = str(self.about.get("environment", "")).split("(")[0]
        where = f" in {where} with {self.about['arms']} arms" if where else ""
        where += " on a graph" if self.about.get("graph") else ""
        many = "1 policy" if policies == 1 else f"{policies} policies"
        return f"{many}{where}, {int(self.checkpoints[-1]):,} steps, {replications:,} replications"

    def __repr__(self) -> str:
        return f"<Curves: {self._about()}>"

    def _repr_html_(self) -> str:
        """Figure and final table, for notebooks; without matplotlib the table alone."""
        table = html_table(HEADINGS, self.table(), self._about())
        if not installed("matplotlib"):
            return table
        from abex.support.figures import image_tag

        return f"{image_tag(self.plot(), f'Regret of {self._about()}')}{table}"

    def save(self, path: str | Path) -> None:
        """Write a ``.npz`` file of plain arrays and a JSON header; atomic."""
        header = {
            "format": FORMAT,
            "version": 1,
            "policies": self.policies,
            "reports": self.reports,
            "about": self.about,
        }
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            header=np.frombuffer(json.dumps(header).encode(), np.uint8),
            checkpoints=self.checkpoints,
            regret=self.regret,
            optimal_pulls=self.optimal_pulls,
            nanoseconds=self.nanoseconds,
        )
        write_atomically(path, buffer.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Curves:
        """Read what `save` wrote; nothing in the file is executed."""
        try:
            if not Path(path).exists():
                raise FileNotFoundError
            file = arrays_of(Path(path))
            header = json.loads(bytes(file["header"]))
            if header["format"] != FORMAT:
                raise ValueError("another format")
            arrays = {name: file[name] for name in ("checkpoints", "regret", "optimal_pulls", "nanoseconds")}
            curves = cls(
                policies=tuple(header["policies"]),
                reports=tuple(header["reports"]),
                about=dict(header["about"]),
                **arrays,
            )
            shape = (len(curves.policies), arrays["nanoseconds"].shape[1], arrays["checkpoints"].size)
            if arrays["regret"].shape != shape or curves.optimal_pulls.shape != shape:
                raise ValueError("arrays of different sizes")
        except FileNotFoundError as error:
            raise UserError(f"cannot read curves from {str(path)!r}: there is no such file") from error
        except Exception as error:  # a damaged archive can fail in many ways inside zipfile, zlib and numpy
            raise UserError(
                f"cannot read curves from {str(path)!r}: the file is damaged or not ours"
            ) from error
        return curves


class PairedDifference(tuple[Floats, Floats, Floats]):
    """``mean, low, high`` of paired differences of regret at each checkpoint; it prints as a sentence about the last one."""

    first: str
    second: str
    step: int
    replications: int
    level: float

    def __new__(
        cls,
        values: tuple[Floats, Floats, Floats],
        names: tuple[str, str],
        step: int,
        replications: int,
        level: float,
    ) -> PairedDifference:
        """Values and what they are about."""
        self = super().__new__(cls, values)
        self.first, self.second = names
        self.step, self.replications, self.level = step, replications, level
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self), (self.first, self.second), self.step, self.replications, self.level

    @property
    def mean(self) -> Floats:
        """Mean of the differences, regret of the first - regret of the second."""
        return self[0]

    @property
    def low(self) -> Floats:
        """Lower end of the interval."""
        return self[1]

    @property
    def high(self) -> Floats:
        """Upper end of the interval."""
        return self[2]

    def __repr__(self) -> str:
        mean, low, high = (float(values[-1]) for values in self)
        after = f"After {self.step:,} steps"
        if not mean:
            return f"{after} {self.first} and {self.second} have the same regret."
        less = "less" if mean < 0.0 else "more"
        words = f"{after} {self.first} has {abs(mean):.4g} {less} regret than {self.second}"
        if low != low:
            return f"{words} in one replication, which says nothing about chance."
        interval = f"{self.level:.0%} interval of the difference {low:.4g} to {high:.4g}"
        interval += f", {self.replications:,} paired replications"
        better = {True: f"{self.first} is better", False: f"{self.second} is better"}
        verdict = better[mean < 0.0] if low > 0.0 or high < 0.0 else "which of them is better cannot be told"
        return f"{words} ({interval}): {verdict}."


def interval_of_mean(values: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Student's confidence interval of the mean over the first axis; NaN with one value.

    >>> low, high = interval_of_mean(np.array([[1.0], [2.0], [3.0]]))
    >>> round(float(low[0]), 2), round(float(high[0]), 2)
    (-0.48, 4.48)
    """
    real_number("level", level, above=0.0, most=1.0 - 1e-9)
    return mean_of(values).interval(level)


__all__: Sequence[str] = ["Curves", "PairedDifference", "interval_of_mean"]
