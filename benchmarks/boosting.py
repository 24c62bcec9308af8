"""Microseconds of CPU per boosting iteration, against what one would write first, in one run.

    python benchmarks/boosting.py --sets pendigits,letter

Baselines: AdaBoost.MH with presorted features as one plain Numba loop that follows the formulas (an exponential per weight),
the same with two constants in place of the exponentials ("tuned"), the same in NumPy, and scikit-learn's AdaBoost with
stumps on one random feature. All find one stump on one random feature per iteration, without
tracking errors; runs are interleaved and medians are shown. The C++ column is the package MultiBoost as
measured once (-O3, error tracking included); it is quoted, not run. Memory is the peak of the preparation, without the
room for 20,000 stumps and pulls, over the coded data and weights.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

import numba
import numpy as np

from abex.boosting.examples import Examples
from abex.boosting.fit import Shared, new_fit
from abex.boosting.selection import Candidate
from abex.boosting.settings import PRODUCT, TREE, Settings
from abex.boosting.weights import first_weights
from abex.kernels import Record, fields_of
from abex.lab.datasets import load
from abex.policies import Uniform

SETS = ("pendigits", "usps", "letter", "isolet", "mnist")
CPP = {
    "pendigits": (4200, 16_100),
    "usps": (7650, 144_000),
    "letter": (22_450, 90_000),
    "isolet": (16_550, 1_577_000),
    "mnist": (92_000, 5_431_000),
}
REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", default=",".join(SETS))
    names = parser.parse_args().sets.split(",")
    print("us of CPU per iteration (median of", REPEATS, "interleaved runs)")
    head = f"{'data':<10}{'ours':>8}{'presorted':>11}{'tuned':>8}{'NumPy':>9}{'sklearn':>9}{'C++':>8}"
    print(
        head
        + f"{'x pres.':>9}{'x tuned':>9}{'x C++':>7}{'full':>9}{'x C++':>7}{'tree':>6}{'prod':>6}{'memory':>8}"
    )
    for name in names:
        data = load(name)
        print(row(name, data.X_train, data.y_train), flush=True)
    prediction(names)


def size_of(record: Record) -> int:
    """Bytes of all arrays of a record."""
    return sum(getattr(getattr(record, name), "nbytes", 0) for name in fields_of(record))


def row(name: str, X: np.ndarray, y: np.ndarray) -> str:
    signs = np.where(y[:, None] == np.unique(y), 1, -1).astype(np.int8)
    begin(X, signs, 10).advance(10)  # what the compiler needs is not ours
    tracemalloc.start()
    ours = begin(X, signs, 20_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    peak -= size_of(ours.learners) + size_of(ours.pulls)
    coded = size_of(ours.binned) + ours.weights.values.nbytes
    full = begin(X, signs, 100, Candidate(None))
    presorted = Presorted(X, signs)
    tuned = Presorted(X, signs, tuned=True)
    plain = Plain(X, signs)
    contestants = {
        "ours": lambda: timed(lambda: ours.advance(2000), 2000),
        "presorted": lambda: timed(lambda: presorted.advance(20), 20),
        "tuned": lambda: timed(lambda: tuned.advance(20), 20),
        "NumPy": lambda: timed(lambda: plain.advance(5), 5),
        "sklearn": lambda: scikit_learn(X, y),
        "full": lambda: timed(lambda: full.advance(5), 5),
    }
    for warm_up in (ours, presorted, tuned, full):
        warm_up.advance(2)
    times = {key: [] for key in contestants}
    for _ in range(REPEATS):
        for key, run in contestants.items():
            times[key].append(run())
    us = {key: 1e6 * float(np.median(value)) for key, value in times.items()}
    tree, product = learner_cost(X, signs, TREE), learner_cost(X, signs, PRODUCT)
    one, every = CPP.get(name, (np.nan, np.nan))
    return (
        f"{name:<10}{us['ours']:>8.1f}{us['presorted']:>11,.0f}{us['tuned']:>8,.0f}{us['NumPy']:>9,.0f}{us['sklearn']:>9,.0f}{one:>8,}"
        f"{us['presorted'] / us['ours']:>9.0f}{us['tuned'] / us['ours']:>9.0f}{one / us['ours']:>7.0f}"
        f"{us['full']:>9,.0f}{every / us['full']:>7.0f}"
        f"{tree:>6.2f}{product:>6.2f}{peak / coded:>8.2f}"
    )


def begin(X, signs, size, candidate=None, **settings):
    examples, candidate = Examples(X, signs, np.ones(len(X))), candidate or Candidate(Uniform())
    return new_fit(examples, Settings(dtype=np.float32, **settings), candidate, size, Shared())


def timed(work, count: int) -> float:
    before = time.process_time()
    work()
    return (time.process_time() - before) / count


def learner_cost(X, signs, kind) -> float:
    """CPU of a tree or product over that of as many stump searches as it has inner stumps times features tried."""
    count, tried = 20, 4
    leaves = 16 if kind == TREE else 1
    fit = begin(X, signs, 2 * count, Candidate(Uniform(), tried), kind=kind, terms=3, leaves=leaves)
    stumps = begin(X, signs, 4000)
    stumps.advance(100)
    fit.advance(count)
    one = timed(lambda: stumps.advance(2000), 2000)
    whole = timed(lambda: fit.advance(count), count)
    inner = float((fit.learners.feature[count : 2 * count] >= 0).sum(axis=1).mean())
    return whole / (one * inner * tried)


def scikit_learn(X, y, count: int = 5) -> float:
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    stump = DecisionTreeClassifier(max_depth=1, max_features=1, random_state=0)
    boosted = AdaBoostClassifier(stump, n_estimators=count, random_state=0)
    before = time.process_time()
    boosted.fit(X, y)
    return (time.process_time() - before) / max(1, len(boosted.estimators_))


@numba.njit(cache=True, error_model="numpy")
def presorted_iteration(values, order, signs, weights, tuned):
    """Best stump on one presorted feature, then the update: the loop one writes first."""
    n, labels = weights.shape
    edges = np.zeros(labels)
    for i in range(n):
        for k in range(labels):
            edges[k] += weights[i, k] * signs[i, k]
    best, cut = 0.0, np.inf
    votes = np.zeros(labels)
    for m in range(n - 1):
        i = order[m]
        for k in range(labels):
            edges[k] -= 2.0 * weights[i, k] * signs[i, k]
        if values[order[m + 1]] > values[i]:
            total = 0.0
            for k in range(labels):
                total += abs(edges[k])
            if total > best:
                best, cut = total, 0.5 * (values[i] + values[order[m + 1]])
                for k in range(labels):
                    votes[k] = 1.0 if edges[k] > 0.0 else -1.0
    coefficient = 0.5 * np.log((1.0 + best) / (1.0 - best))
    up, down = np.exp(coefficient), np.exp(-coefficient)
    total = 0.0
    for i in range(n):
        side = 1.0 if values[i] > cut else -1.0
        for k in range(labels):
            if tuned:
                weights[i, k] *= down if side * votes[k] * signs[i, k] > 0.0 else up
            else:
                weights[i, k] *= np.exp(-coefficient * side * votes[k] * signs[i, k])
            total += weights[i, k]
    for i in range(n):
        for k in range(labels):
            weights[i, k] /= total
    return best


class Presorted:
    """AdaBoost.MH over presorted features."""

    def __init__(self, X, signs, tuned: bool = False) -> None:
        self.tuned = tuned
        self.rng = np.random.default_rng(0)
        varying = np.flatnonzero(X.min(axis=0) < X.max(axis=0))
        chosen = self.rng.choice(varying, min(60, varying.size), replace=False)
        self.columns = [np.ascontiguousarray(X[:, j], dtype=np.float64) for j in chosen]
        self.orders = [np.argsort(column, kind="stable").astype(np.int32) for column in self.columns]
        self.signs = signs.astype(np.float64)
        self.weights = first_weights(signs, np.ones(len(X)))

    def advance(self, count: int) -> None:
        """Iterate."""
        for _ in range(count):
            j = self.rng.integers(len(self.columns))
            presorted_iteration(self.columns[j], self.orders[j], self.signs, self.weights, self.tuned)


class Plain(Presorted):
    """The same in NumPy: one cumulative sum, one exponential."""

    def advance(self, count: int) -> None:
        """Iterate."""
        for _ in range(count):
            j = self.rng.integers(len(self.columns))
            order, values = self.orders[j], self.columns[j]
            signed = (self.weights * self.signs)[order]
            edges = signed.sum(axis=0) - 2 * np.cumsum(signed, axis=0)
            gap = np.flatnonzero(np.diff(values[order]) > 0)
            totals = np.abs(edges[gap]).sum(axis=1)
            m = gap[totals.argmax()]
            votes = np.where(edges[m] > 0, 1.0, -1.0)
            side = np.where(values > (values[order[m]] + values[order[m + 1]]) / 2, 1.0, -1.0)
            edge = totals.max()
            coefficient = 0.5 * np.log((1 + edge) / (1 - edge))
            self.weights *= np.exp(-coefficient * self.signs * votes * side[:, None])
            self.weights /= self.weights.sum()


def prediction(names: list[str]) -> None:
    """Seconds of CPU to score the test set by a model of 50,000 stumps."""
    for name in names:
        data = load(name)
        signs = np.where(data.y_train[:, None] == np.unique(data.y_train), 1, -1).astype(np.int8)
        fit = begin(data.X_train, signs, 50_000)
        seconds = timed(lambda fit=fit: fit.advance(50_000), 1)
        model = fit.model()
        model.scores(data.X_test[:2])
        taken = timed(lambda model=model, data=data: model.scores(data.X_test), 1)
        wrong = np.mean(model.scores(data.X_test).argmax(axis=1) != data.y_test)
        print(
            f"{name}: 50,000 stumps fitted in {seconds:.1f} s, score {len(data.y_test):,} rows in {taken:.3f} s, "
            f"error {100 * wrong:.2f} %"
        )


if __name__ == "__main__":
    main()
