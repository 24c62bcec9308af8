"""How well ratings are predicted: root mean squared errors on held-out ratings, all methods in one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.datasets.factorisation import TEST, TRAIN, VALIDATION, fit, hold_out, rmse
from abex.datasets.socialmf import SocialMF
from abex.datasets.types import Ratings
from abex.errors import UserError

#: the first two have the weights that were best on Epinions' validation ratings, the third Jamali and Ester's
MODELS = {
    "matrix factorisation": SocialMF(trust_weight=0.0),
    "SocialMF": SocialMF(),
    "SocialMF, published weights": SocialMF(user_penalty=0.1, item_penalty=0.1, trust_weight=5.0),
}


class RatingError(NamedTuple):
    """Errors of one method: means over seeds and their standard errors."""

    method: str
    validation: float
    test: float
    test_error: float


def rating_errors(
    ratings: Ratings, models: dict[str, SocialMF] | None = None, seeds: Sequence[int] = range(5)
) -> list[RatingError]:
    """Errors of the means and of the models, each seed with its own split of the ratings, 80 : 10 : 10.

    Models are fitted to the training fold and stopped by the validation fold; the test fold is looked at once.

    Examples
    --------
    >>> from abex.datasets import synthetic_ratings
    >>> rows = rating_errors(synthetic_ratings(seed=1), {"SocialMF": SocialMF()}, seeds=[0])
    >>> [row.method for row in rows]
    ['mean of all', 'mean of the user', 'mean of the item', 'SocialMF']
    """
    if ratings.ratings.size < 10:
        raise UserError(f"{ratings.name} has {ratings.ratings.size} ratings, at least 10 are needed")
    chosen = MODELS if models is None else models
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in seeds:
        fold = hold_out(ratings, seed)
        guesses = baselines(ratings, fold == TRAIN)
        for name, model in chosen.items():
            guesses[name] = fit(ratings, model, seed).predict(ratings.users, ratings.items)
        for name, guess in guesses.items():
            errors = [rmse(guess[fold == part], ratings.ratings[fold == part]) for part in (VALIDATION, TEST)]
            found.setdefault(name, []).append((errors[0], errors[1]))
    rows = []
    for name, pairs in found.items():
        table = np.array(pairs)
        spread = float(table[:, 1].std(ddof=1) / np.sqrt(len(table))) if len(table) > 1 else float("nan")
        rows.append(RatingError(name, float(table[:, 0].mean()), float(table[:, 1].mean()), spread))
    return rows


def baselines(ratings: Ratings, train: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
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
