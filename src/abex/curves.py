"""Regret curves: what a simulation returns, with the statistics a comparison needs."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError, nearest, one_of, real_number
from abex.files import write_atomically
from abex.intervals import mean_of
from abex.randomness import stream
from abex.reading import arrays_of

FORMAT = "abex-curves"
RESAMPLES = 1_000
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curves:
    """Regret of several policies at several steps in several replications.

    Attributes
    ----------
    policies : tuple of str
        Their names with the parameters that differ from the default.
    checkpoints : int array (C,)
        The recorded steps; the last is the horizon.
    regret, hits : float array (policies, replications, C)
        Cumulative regret, and cumulative pulls of a best arm. Replication r of every policy faced the same rewards.
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
    hits: Floats
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

    def band(self, policy: Any, level: float = 0.95, method: str = "student") -> tuple[Floats, Floats]:
        """Confidence band of the mean over replications: Student's, or by the percentile bootstrap."""
        return interval_of_mean(self.regret[self.index(policy)], level, method)

    def difference(
        self, first: Any, second: Any, level: float = 0.95, method: str = "student"
    ) -> tuple[Floats, Floats, Floats]:
        """Mean of (regret of first - regret of second) over paired replications, and its interval.

        Both faced the same rewards, so the interval is that of the paired differences. Below 0: first is better.
        """
        paired = self.regret[self.index(first)] - self.regret[self.index(second)]
        return np.asarray(paired.mean(axis=0)), *interval_of_mean(paired, level, method)

    def best_share(self, policy: Any) -> Floats:
        """Share of the steps so far at which a best arm was pulled."""
        return np.asarray(self.hits[self.index(policy)].mean(axis=0) / self.checkpoints)

    def report(self, policy: Any) -> dict[str, float]:
        """Mean of what the policy reports about itself."""
        return {key: float(np.mean(values)) for key, values in self.reports[self.index(policy)].items()}

    def to_frame(self) -> Any:
        """All numbers as a pandas data frame: policy, replication, step, regret, hits."""
        import pandas

        policies, replications, points = self.regret.shape
        index = pandas.MultiIndex.from_product(
            [self.policies, range(replications), self.checkpoints.tolist()],
            names=["policy", "replication", "step"],
        )
        frame = pandas.DataFrame({"regret": self.regret.ravel(), "hits": self.hits.ravel()}, index=index)
        assert len(frame) == policies * replications * points
        return frame.reset_index()

    def plot(self, path: str | Path | None = None, *, level: float = 0.95, log: bool = True) -> Any:
        """Draw mean regret with confidence bands; returns the matplotlib figure, saves it where ``path`` is given."""
        from abex.figures import regret_curves

        lines = [
            (name, self.mean(name), *(self.band(name, level) if self.regret.shape[1] > 1 else (None, None)))
            for name in self.policies
        ]
        where = " on a graph" if self.about.get("graph") else ""
        kind = (
            f"{self.about['environment'].split('(')[0]}, {self.about['arms']} arms{where}: "
            if self.about
            else ""
        )
        subtitle = f"{kind}mean of {self.regret.shape[1]} replications, {level:.0%} confidence band"
        return regret_curves(self.checkpoints, lines, subtitle=subtitle, log=log, path=path)

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
            hits=self.hits,
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
            arrays = {name: file[name] for name in ("checkpoints", "regret", "hits", "nanoseconds")}
            curves = cls(
                policies=tuple(header["policies"]),
                reports=tuple(header["reports"]),
                about=dict(header["about"]),
                **arrays,
            )
            shape = (len(curves.policies), arrays["nanoseconds"].shape[1], arrays["checkpoints"].size)
            if arrays["regret"].shape != shape or arrays["hits"].shape != shape:
                raise ValueError("arrays of different sizes")
        except FileNotFoundError as error:
            raise UserError(f"cannot read curves from {str(path)!r}: there is no such file") from error
        except Exception as error:  # a damaged archive can fail in many ways inside zipfile, zlib and numpy
            raise UserError(
                f"cannot read curves from {str(path)!r}: the file is damaged or not ours"
            ) from error
        return curves


def interval_of_mean(values: Floats, level: float = 0.95, method: str = "student") -> tuple[Floats, Floats]:
    """Confidence interval of the mean over the first axis; NaN with one value.

    >>> low, high = interval_of_mean(np.array([[1.0], [2.0], [3.0]]))
    >>> round(float(low[0]), 2), round(float(high[0]), 2)
    (-0.48, 4.48)
    """
    real_number("level", level, above=0.0, most=1.0 - 1e-9)
    one_of("method", method, ("student", "bootstrap"))
    if method == "student":
        return mean_of(values).interval(level)
    mean = values.mean(axis=0)
    rng = stream(0, "bootstrap")
    draws = rng.multinomial(len(values), np.full(len(values), 1.0 / len(values)), size=RESAMPLES)
    means = draws @ values.reshape(len(values), -1) / len(values)
    low, high = np.quantile(means, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
    return low.reshape(mean.shape), high.reshape(mean.shape)


__all__: Sequence[str] = ["Curves", "interval_of_mean"]
