"""The classifiers found: as a fit records them, and as the model that it leaves, a sum of votes which scores examples.

A model of stumps is additive: all stumps on a feature together are one step function of its value. So
scores cost one table look-up per feature, however many stumps there are. Products and trees are
evaluated one by one, compiled.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from abex.boosting.binning import BinnedFeatures
from abex.boosting.examples import check_sparse
from abex.boosting.predictor import add_learners, add_steps, find_errors
from abex.boosting.settings import KINDS, STUMP
from abex.kernels import Record, fields_of, kernel
from abex.support.errors import UserError

GRID_BITS = 40  # scores are rounded to 2^-40 of the sum of the coefficients
MAX_EDGE = 1.0 - 1e-7  # an edge of 1 would have an infinite coefficient
ROWS_AT_ONCE = 256  # rows that a classifier passes over: their scores stay in the nearest caches


class Learners(Record):
    """Classifiers: a stump has one node, a product its terms, a tree its inner nodes and leaves."""

    feature: NDArray[np.int32]  # (T, nodes), -1: no node
    missing_right: NDArray[np.bool_]  # (T, nodes)
    left: NDArray[np.int16]  # (T, nodes) trees: the next node, or ~leaf
    right: NDArray[np.int16]
    gain: NDArray[np.float32]  # (T, nodes) what the split added to the edge
    votes: NDArray[np.int8]  # (T, leaves, L)
    coefficient: NDArray[np.float64]  # (T,)
    edge: NDArray[np.float64]  # (T,)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        values = {name: getattr(self, name) for name in fields_of(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    def followed_by(self, others: Self) -> Self:
        """These and then the others."""
        joined = copy.copy(self)
        for name, array in others.arrays().items():
            setattr(joined, name, np.concatenate([getattr(self, name), array]))
        return joined

    def part(self, first: int, last: int) -> Self:
        """Classifiers first..last-1."""
        part = copy.copy(self)
        for name, array in self.arrays().items():
            setattr(part, name, array[first:last])
        return part


class WeakLearners(Learners):
    """The classifiers that a fit has found."""

    rank: NDArray[np.int32]  # (T, nodes)


def new_weak_learners(count: int, nodes: int, leaves: int, labels: int) -> WeakLearners:
    """Room for ``count`` classifiers."""
    return WeakLearners(
        feature=np.full((count, nodes), -1, np.int32),
        rank=np.zeros((count, nodes), np.int32),
        missing_right=np.zeros((count, nodes), np.bool_),
        left=np.zeros((count, nodes), np.int16),
        right=np.zeros((count, nodes), np.int16),
        gain=np.zeros((count, nodes), np.float32),
        votes=np.zeros((count, leaves, labels), np.int8),
        coefficient=np.zeros(count),
        edge=np.zeros(count),
    )


@kernel
def coefficient_of(edge: float, smoothing: float) -> float:
    """Coefficient a = (1/2) ln((e_plus + s) / (e_minus + s)), e_plus + e_minus = 1, e_plus - e_minus = edge."""
    edge = min(edge, MAX_EDGE)
    return 0.5 * math.log((0.5 + 0.5 * edge + smoothing) / (0.5 - 0.5 * edge + smoothing))


def committee_begins(edge: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Where committees begin among weak learners with these edges; after them too, if the last one is complete.

    >>> committee_begins(np.array([0.5, 0.6, 0.4, 0.5, 1.0, 0.5]), 3).tolist()
    [0, 3, 5]
    """
    found = [0]
    for end in [*(np.flatnonzero(edge >= MAX_EDGE) + 1).tolist(), edge.size + size]:
        found += range(found[-1] + size, min(end, edge.size) + 1, size)
        if found[-1] < end <= edge.size:
            found.append(end)
    return np.array(found, np.int64)


@kernel
def normaliser(edge: float, coefficient: float) -> float:
    """Z: the sum of the weights after an update over the sum before."""
    return 0.5 * (1.0 + edge) * math.exp(-coefficient) + 0.5 * (1.0 - edge) * math.exp(coefficient)


@kernel
def record_split(
    learners: WeakLearners, t: int, node: int, feature: int, rank: int, missing_right: bool, gain: float
) -> None:
    """Write a split, and what it added to the edge, into a node of learner t."""
    learners.feature[t, node] = feature
    learners.rank[t, node] = rank
    learners.missing_right[t, node] = missing_right
    learners.gain[t, node] = np.float32(min(max(gain, 0.0), 1.0))


@kernel
def record_votes(learners: WeakLearners, t: int, leaf: int, votes: NDArray[np.float64]) -> None:
    """Write the votes of a leaf of learner t."""
    for label in range(learners.votes.shape[2]):
        learners.votes[t, leaf, label] = np.int8(votes[label])


MAX_COEFFICIENT = coefficient_of(MAX_EDGE, 0.0)


class StepFunctions(NamedTuple):
    """The step function of every feature: scores ``values[value_start[j] + k]``, k the thresholds below x."""

    used: NDArray[np.int64]  # features with a stump
    start: NDArray[np.int64]  # (d + 1,) into thresholds; values of feature j start at start[j] + 2 j
    thresholds: NDArray[np.float64]
    values: NDArray[np.float64]  # (thresholds + 2 d, L): the last row of a feature is for a missing value


class Model(Learners):
    """T classifiers over L labels."""

    kind: int
    n_features: int
    threshold: NDArray[np.float64]  # (T, nodes)

    def __repr__(self) -> str:
        kind = KINDS[self.kind]
        return f"<Model: {self.n_learners:,} {kind}s, {self.labels} labels, {self.n_features:,} features>"

    @property
    def n_learners(self) -> int:
        """Number of classifiers."""
        return int(self.coefficient.size)

    @property
    def labels(self) -> int:
        """Number of labels."""
        return int(self.votes.shape[2])

    def scores(self, X: Any, mapper: Any = map) -> NDArray[np.float64]:
        """f_l(x) for each row and label, (n, L)."""
        self.check_rows(X)
        out = np.zeros((X.shape[0], self.labels))
        steps = self._step_functions if self.kind == STUMP else None

        def score(block: slice) -> None:
            if steps is not None:
                add_steps(dense(X[block]), *steps, out[block])
            else:
                add_learners(self, self.weighted_votes, 0, self.n_learners, columns_of(X[block]), out[block])

        for _ in mapper(score, blocks(X.shape[0])):
            pass
        return self.without_noise(out)

    def staged_scores(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Scores after each classifier; the array is a new one each time."""
        self.check_rows(X)

        def learners() -> Iterator[NDArray[np.float64]]:
            out = np.zeros((X.shape[0], self.labels))
            columns = columns_of(X)
            for t in range(self.n_learners):
                add_learners(self, self.weighted_votes, t, t + 1, columns, out)
                yield self.without_noise(out)

        return learners()

    def check_rows(self, X: Any) -> None:
        """Refuse rows that compiled code could not read: of another width, or in a damaged sparse matrix."""
        check_sparse("X", X)
        if len(X.shape) != 2 or X.shape[1] != self.n_features:
            raise UserError(f"X has the shape {X.shape}, but the model needs {self.n_features} columns")

    @property
    def total(self) -> float:
        """The largest score: the sum of the coefficients."""
        return float(self.coefficient.sum())

    @property
    def grain(self) -> float:
        """What scores are multiples of."""
        return float(2.0 ** (np.ceil(np.log2(max(self.total, 1e-300))) - GRID_BITS))

    def without_noise(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores rounded to a fine grid: labels whose votes are equal but for the order of addition tie."""
        rounded: NDArray[np.float64] = np.rint(scores / self.grain) * self.grain
        return rounded

    def errors(
        self, X: Any, label: NDArray[np.int64], ends: NDArray[np.int64], mapper: Any = map
    ) -> Iterator[NDArray[np.bool_]]:
        """Which rows the first ``ends[0]``, ``ends[1]``, ... classifiers get wrong, (ends, rows): some rows at a time."""
        self.check_rows(X)
        label, ends = np.asarray(label, np.int64), np.asarray(ends, np.int64)
        if label.shape != (X.shape[0],) or label.min(initial=0) < 0 or label.max(initial=0) >= self.labels:
            raise UserError(f"label must have a number from 0 to {self.labels - 1} for each row of X")
        if ends.size and (ends[0] < 0 or ends[-1] > self.n_learners or (np.diff(ends) < 0).any()):
            raise UserError(f"ends must be ascending numbers from 0 to {self.n_learners}")

        def judge(block: slice) -> NDArray[np.bool_]:
            wrong = np.zeros((ends.size, label[block].size), np.bool_)
            find_errors(self, self.weighted_votes, columns_of(X[block]), label[block], ends, wrong)
            return wrong

        found: Iterator[NDArray[np.bool_]] = mapper(judge, blocks(X.shape[0]))
        return found

    def importances(self, begins: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Share of each feature in the fall of the error bound, (d,); see `AdaBoostMHClassifier.feature_importances_`.

        ``begins`` are the classifiers with which a committee begins, each of which has a bound of its own; None: there is one.
        """
        begins = np.zeros(1, np.int64) if begins is None else begins
        kept = np.sqrt(1.0 - np.minimum(self.edge, MAX_EDGE) ** 2)  # of the bound, by each classifier
        fall = 1.0 - kept
        for part in np.split(np.arange(self.n_learners), begins[(begins > 0) & (begins < self.n_learners)]):
            fall[part] *= np.cumprod(np.append(1.0, kept[part[:-1]]))
        gain = self.gain.astype(np.float64)
        share = gain / np.maximum(gain.sum(axis=1, keepdims=True), 1e-300) * fall[:, None]
        there = self.feature >= 0
        importance = np.bincount(self.feature[there], weights=share[there], minlength=self.n_features)
        shared: NDArray[np.float64] = importance / (importance.sum() or 1.0)
        return shared

    @cached_property
    def weighted_votes(self) -> NDArray[np.float64]:
        """Votes times coefficients, (T, leaves, L)."""
        return self.votes * self.coefficient[:, None, None]

    @cached_property
    def _step_functions(self) -> StepFunctions:
        live = np.flatnonzero(self.feature[:, 0] >= 0)
        feature, threshold = self.feature[live, 0], self.threshold[live, 0]
        order = np.lexsort((threshold, feature))
        live, feature, threshold = live[order], feature[order].astype(np.int64), threshold[order]
        vote = self.votes[live, 0] * self.coefficient[live, None]
        start = np.searchsorted(feature, np.arange(self.n_features + 1))
        values = np.zeros((live.size + 2 * self.n_features, self.labels))
        used = np.unique(feature)
        for j in used:
            mine = slice(start[j], start[j + 1])
            at, count = start[j] + 2 * j, start[j + 1] - start[j]
            values[at] = -vote[mine].sum(axis=0)
            values[at + 1 : at + 1 + count] = values[at] + 2 * np.cumsum(vote[mine], axis=0)
            side = np.where(self.missing_right[live[mine], 0], 1.0, -1.0)
            values[at + 1 + count] = side @ vote[mine]
        return StepFunctions(used, start.astype(np.int64), threshold, values)


def model_from(kind: int, learners: WeakLearners, binned: BinnedFeatures, count: int) -> Model:
    """The first ``count`` learners as a model: ranks become thresholds."""
    found = {name: array[:count].copy() for name, array in learners.arrays().items()}
    feature, rank = found["feature"], found.pop("rank")
    there = feature >= 0
    threshold = np.full(feature.shape, np.inf)
    threshold[there & (rank < 0)] = -np.inf
    split = there & (rank >= 0)
    threshold[split] = binned.thresholds[binned.thresholds_start[feature[split]] + rank[split]]
    return Model(kind=kind, n_features=binned.bins.size, threshold=threshold, **found)


def blocks(n: int) -> list[slice]:
    """The rows that are scored at a time."""
    return [slice(first, first + ROWS_AT_ONCE) for first in range(0, n, ROWS_AT_ONCE)]


def dense(rows: Any) -> NDArray[np.float64]:
    """Rows as a contiguous array of doubles."""
    return np.ascontiguousarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


def columns_of(rows: Any) -> NDArray[np.float64]:
    """The same, the values of a feature side by side."""
    return np.ascontiguousarray(dense(rows).T)
