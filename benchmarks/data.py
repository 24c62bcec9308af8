"""CPU seconds of loaders and of the Epinions pipeline; python benchmarks/data.py (needs ABEX_DATA or the cache).

With the word ``errors``: how well ratings are predicted instead, as docs/data.md shows it.

Ratios are against a baseline of the same run: the second load against the first, an epoch of SocialMF against the
same gradient in NumPy and SciPy, a step of RatingTable against a step of Bernoulli.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

SETS = ("mnist", "usps", "letter", "pendigits", "isolet", "facebook-combined", "epinions")


def cpu(action: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = action()
    return time.process_time() - began, result


def numpy_gradient(
    observed: Any, users: Any, items: Any, rows: Any, trust: Any, weights: Any
) -> tuple[Any, Any]:
    """The gradient of SocialMF with sparse matrices, as one would write it without a compiler."""
    from scipy.sparse import csr_array

    guess = 1.0 / (1.0 + np.exp(-np.einsum("nd,nd->n", users[rows], items[observed.items])))
    pull = (guess - observed.scaled) * guess * (1.0 - guess)
    matrix = csr_array((pull, observed.items, observed.rating_start), shape=(len(users), len(items)))
    apart = users - trust @ users
    social = weights.trust * (apart - trust.T @ apart)
    return matrix @ items + weights.user * users + social, matrix.T @ users + weights.item * items


def main() -> None:
    os.environ["ABEX_CACHE"] = tempfile.mkdtemp(prefix="abex-bench-")  # cold: compiles, parses and fits anew
    from scipy.sparse import csr_array

    from abex import Bernoulli, RatingTable, simulate
    from abex.lab.datasets import SocialMF, load
    from abex.lab.datasets.completion import binarise, filter_active
    from abex.lab.datasets.socialmf import (
        compiled_descent,
        fit,
        new_descent,
        observed_from,
        penalties_of,
        refit,
    )
    from abex.support.errors import UserError

    print(f"{'data set':<20}{'first load':>12}{'second load':>13}{'ratio':>8}")
    for name in SETS:
        try:
            first, _ = cpu(lambda name=name: load(name))
        except UserError as error:
            print(f"{name:<20}{str(error)[:80]}")
            continue
        second = median(cpu(lambda name=name: load(name))[0] for _ in range(3))
        print(f"{name:<20}{first:>10.2f} s{second:>11.3f} s{first / max(second, 1e-3):>7.1f}x")

    model = SocialMF()
    stages: list[tuple[str, float]] = []
    spent, raw = cpu(lambda: load("epinions"))
    stages.append(("load (parsed above)", spent))
    spent, kept = cpu(lambda: filter_active(raw))
    stages.append(("filter", spent))
    spent, fitted = cpu(lambda: fit(kept, model, 0))
    stages.append((f"fit, {max(fitted.errors)} epochs, compilation included", spent))
    spent, factors = cpu(lambda: refit(kept, model, 0, fitted.epochs))
    stages.append((f"fit to all ratings, {fitted.epochs} epochs", spent))
    spent, table = cpu(lambda: binarise(kept, factors))
    stages.append(("complete and binarise", spent))
    print("\nEpinions pipeline")
    for title, spent in stages:
        print(f"  {title:<50}{spent:>8.2f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(
        f"  {'all stages; peak memory of this process':<50}{sum(s for _, s in stages):>8.2f} s  {peak:.0f} MB"
    )

    observed, weights = observed_from(kept, np.ones(kept.ratings.size, dtype=bool)), penalties_of(model)
    rows = np.repeat(np.arange(kept.n_users), np.diff(observed.rating_start))
    degree = np.maximum(np.diff(observed.trust_start), 1)
    shares = np.repeat(1.0 / degree, np.diff(observed.trust_start))
    trust = csr_array((shares, observed.trustees, observed.trust_start), shape=(kept.n_users, kept.n_users))
    search = new_descent(factors.users, factors.items)
    descend, ours, theirs = compiled_descent(), [], []
    for epoch in range(1, 12):
        ours.append(cpu(lambda e=epoch: descend(observed, weights, search, e, e, 1e-9))[0])
        theirs.append(
            cpu(lambda: numpy_gradient(observed, search.users, search.items, rows, trust, weights))[0]
        )
    print(f"\nan epoch of SocialMF: {1e3 * median(ours):.2f} ms, NumPy and SciPy {1e3 * median(theirs):.2f} ms, "
          f"ratio {median(theirs) / median(ours):.1f}x")  # fmt: skip

    ratings = RatingTable(table)
    plain = Bernoulli(ratings.true_means)
    steps = {"RatingTable": ratings, "Bernoulli": plain}
    found: dict[str, list[float]] = {name: [] for name in steps}
    for seed in range(5):
        for name, environment in steps.items():
            curves = simulate(
                "Uniform", environment, horizon=500_000, replications=1, seed=seed, progress=False
            )
            found[name].append(float(curves.nanoseconds.mean()))
    ns = {name: median(values) for name, values in found.items()}
    print(f"a step with 4,711 arms, uniform policy: RatingTable {ns['RatingTable']:.1f} ns, "
          f"Bernoulli {ns['Bernoulli']:.1f} ns, ratio {ns['RatingTable'] / ns['Bernoulli']:.2f}")  # fmt: skip


def baselines(ratings: Any, train: Any) -> dict[str, Any]:
    """A prediction for every rating: the mean of all, of its user, of its item (of all where there is none)."""
    overall = float(ratings.ratings[train].mean(dtype=np.float64))
    guesses = {"mean of all": np.full(ratings.ratings.size, overall)}
    for name, owners, n in (
        ("mean of the user", ratings.users, ratings.n_users),
        ("mean of the item", ratings.items, ratings.n_items),
    ):
        count = np.bincount(owners[train], minlength=n)
        total = np.bincount(owners[train], weights=ratings.ratings[train], minlength=n)
        guesses[name] = np.where(count > 0, total / np.maximum(count, 1), overall)[owners]
    return guesses


def errors(n_seeds: int = 5) -> None:
    """Root mean squared errors on held-out ratings; every seed splits them anew, 80 : 10 : 10."""
    from abex.lab.datasets import SocialMF, load
    from abex.lab.datasets.completion import filter_active
    from abex.lab.datasets.socialmf import TEST, TRAIN, VALIDATION, fit, hold_out, rmse

    models = {  # the first two have the weights that were best on the validation ratings, the third Jamali and Ester's
        "matrix factorisation": SocialMF(trust_weight=0.0),
        "SocialMF": SocialMF(),
        "SocialMF, published weights": SocialMF(user_penalty=0.1, item_penalty=0.1, trust_weight=5.0),
    }
    ratings = filter_active(load("epinions"))
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(n_seeds):
        fold = hold_out(ratings, seed)
        guesses = baselines(ratings, fold == TRAIN)
        for name, model in models.items():
            guesses[name] = fit(ratings, model, seed).predict(ratings.users, ratings.items)
        for name, guess in guesses.items():
            held, test = (
                rmse(guess[fold == part], ratings.ratings[fold == part]) for part in (VALIDATION, TEST)
            )
            found.setdefault(name, []).append((held, test))
    print(f"{'root mean squared error':<30}{'validation':>12}{'test':>10}{'std. error':>12}")
    for name, pairs in found.items():
        held, test = np.array(pairs).T
        spread = test.std(ddof=1) / np.sqrt(n_seeds)
        print(f"{name:<30}{held.mean():>12.4f}{test.mean():>10.4f}{spread:>12.4f}")


if __name__ == "__main__":
    errors() if "errors" in sys.argv[1:] else main()
