"""Factors of ratings: fitted to a part of them, stopped by another, and fitted to all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.lab.datasets.socialmf import (
    DescentState,
    RatingsCsr,
    SocialMF,
    compiled_descent,
    new_descent,
    penalties_of,
)
from abex.lab.datasets.types import Ratings
from abex.support.progress import Progress
from abex.support.randomness import stream

TRAIN, VALIDATION, TEST = 0, 1, 2
EPOCHS_BETWEEN_CHECKS = 5
FIRST_SPREAD = 0.1  # standard deviation of the factors at the start


@dataclass(frozen=True, eq=False)
class Factors:
    """A fitted factorisation and how the fit went."""

    users: NDArray[np.float64]  # (users, dimension)
    items: NDArray[np.float64]  # (items, dimension)
    lowest: float
    highest: float
    epochs: int  # of the factors kept
    checked: NDArray[np.int64]  # (checks,) epochs at which the errors were measured
    train_rmse: NDArray[np.float64]  # (checks,)
    validation_rmse: NDArray[np.float64]  # (checks,)

    def predict(self, users: NDArray[Any], items: NDArray[Any]) -> NDArray[np.float64]:
        """Ratings of the pairs."""
        return predicted(self.users[users], self.items[items], self.lowest, self.highest)

    def rows(self, first: int, last: int) -> NDArray[np.float64]:
        """Ratings of users first..last-1 for all items."""
        product = self.users[first:last] @ self.items.T
        return self.lowest + (self.highest - self.lowest) * _logistic(product)


def _logistic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def hold_out(ratings: Ratings, seed: int, share: float = 0.1) -> NDArray[np.uint8]:
    """For each rating TRAIN, VALIDATION or TEST: a random tenth for each of the last two."""
    n = ratings.ratings.size
    order = stream(seed, "ratings", "hold out").permutation(n)
    held = int(n * share)
    fold = np.full(n, TRAIN, dtype=np.uint8)
    fold[order[:held]] = TEST
    fold[order[held : 2 * held]] = VALIDATION
    return fold


def observed_from(ratings: Ratings, rows: NDArray[np.bool_]) -> RatingsCsr:
    """The chosen ratings and all trust pairs, for the kernels."""
    order = np.flatnonzero(rows)
    order = order[np.argsort(ratings.users[order], kind="stable")]
    scaled = (ratings.ratings[order].astype(np.float64) - ratings.lowest) / (ratings.highest - ratings.lowest)
    trust = np.argsort(ratings.trusters, kind="stable")
    return RatingsCsr(
        _starts(ratings.users[order], ratings.n_users),
        ratings.items[order],
        scaled,
        _starts(ratings.trusters, ratings.n_users),
        ratings.trustees[trust],
    )


def _starts(owners: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n))]).astype(np.int64)


def fit(ratings: Ratings, model: SocialMF, seed: int) -> Factors:
    """Fit on the training fold; stop when the validation error no longer falls, keep the best factors."""
    fold = hold_out(ratings, seed)
    return _descent(ratings, model, seed, fold == TRAIN, fold == VALIDATION, model.most_epochs)


def refit(ratings: Ratings, model: SocialMF, seed: int, epochs: int) -> Factors:
    """Fit on all ratings for a number of epochs that `fit` found."""
    everything = np.ones(ratings.ratings.size, dtype=bool)
    return _descent(ratings, model, seed, everything, ~everything, epochs)


def _descent(
    ratings: Ratings,
    model: SocialMF,
    seed: int,
    train: NDArray[np.bool_],
    validation: NDArray[np.bool_],
    most_epochs: int,
) -> Factors:
    observed = observed_from(ratings, train)
    descent = new_descent(*first_factors(ratings, model, float(observed.scaled.mean()), seed))
    descend, penalties = compiled_descent(), penalties_of(model)
    best, kept = np.inf, (descent.users, descent.items, 0)
    checked: list[int] = []
    train_errors: list[float] = []
    validation_errors: list[float] = []
    with Progress("fit the ratings", most_epochs) as bar:
        for epoch in range(EPOCHS_BETWEEN_CHECKS, most_epochs + EPOCHS_BETWEEN_CHECKS, EPOCHS_BETWEEN_CHECKS):
            epoch = min(epoch, most_epochs)
            first = checked[-1] + 1 if checked else 1
            descend(observed, penalties, descent, first, epoch, model.learning_rate)
            checked.append(epoch)
            train_errors.append(_error(descent, ratings, train))
            validation_errors.append(_error(descent, ratings, validation))
            if validation_errors[-1] < best or not validation.any():
                best, kept = validation_errors[-1], (descent.users.copy(), descent.items.copy(), epoch)
            elif epoch - kept[2] >= model.patience:
                break
            bar.advance(epoch + 1 - first)
    return Factors(
        *kept[:2],
        lowest=ratings.lowest,
        highest=ratings.highest,
        epochs=kept[2],
        checked=np.array(checked),
        train_rmse=np.array(train_errors),
        validation_rmse=np.array(validation_errors),
    )


def predicted(
    user_factors: NDArray[np.float64], item_factors: NDArray[np.float64], lowest: float, highest: float
) -> NDArray[np.float64]:
    """Ratings of rows of users for rows of items, pair by pair."""
    product = np.einsum("nd,nd->n", user_factors, item_factors)
    return lowest + (highest - lowest) * _logistic(product)


def _error(descent: DescentState, ratings: Ratings, rows: NDArray[np.bool_]) -> float:
    users, items = descent.users[ratings.users[rows]], descent.items[ratings.items[rows]]
    return rmse(predicted(users, items, ratings.lowest, ratings.highest), ratings.ratings[rows])


def first_factors(
    ratings: Ratings, model: SocialMF, mean: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Random factors around a constant with which every prediction is the mean rating.

    Small factors around zero, the usual start, end at larger validation errors on Epinions (docs/data.md), and
    small made-up tables were seen to stop at once there, before the error began to fall.
    """
    rng = stream(seed, "factors")
    inside = min(max(mean, 0.01), 0.99)
    level = math.log(inside / (1.0 - inside)) / model.dimension
    size = math.sqrt(abs(level))
    users = size + FIRST_SPREAD * rng.standard_normal((ratings.n_users, model.dimension))
    items = math.copysign(size, level) + FIRST_SPREAD * rng.standard_normal(
        (ratings.n_items, model.dimension)
    )
    return users, items


def rmse(guess: NDArray[Any], truth: NDArray[Any]) -> float:
    """Root mean squared error; NaN if there is nothing to compare."""
    if np.size(truth) == 0:
        return float("nan")
    return float(np.sqrt(np.mean((np.asarray(guess, dtype=np.float64) - truth) ** 2)))
