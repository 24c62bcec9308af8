r"""SocialMF: matrix factorisation in which a user's taste is near that of the people the user trusts.

With g the logistic function, ratings R scaled to [0, 1] and T the row-normalised trust matrix, minimise

.. math:: \tfrac12\sum_{(u,i)}(g(U_u\cdot V_i)-R_{ui})^2 + \tfrac{\lambda_U}2|U|^2 + \tfrac{\lambda_V}2|V|^2
          + \tfrac{\lambda_T}2\sum_u\bigl|U_u-\sum_v T_{uv}U_v\bigr|^2

by full-batch gradient descent with Adam's step sizes (Jamali and Ester, RecSys 2010, eq. 13). For a user u who trusts nobody
the social term is :math:`\tfrac{\lambda_T}2|U_u|^2`, as the formula says with T_u = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import compiled, kernel
from abex.lab.datasets.types import Ratings
from abex.support.errors import real_number, whole_number
from abex.support.progress import Progress
from abex.support.randomness import stream

FIRST_DECAY, SECOND_DECAY, TINY = 0.9, 0.999, 1e-8  # Kingma and Ba 2015
TRAIN, VALIDATION, TEST = 0, 1, 2
EPOCHS_BETWEEN_CHECKS = 5
FIRST_SPREAD = 0.1  # standard deviation of the factors at the start


@dataclass(frozen=True)
class SocialMF:
    """Hyper-parameters; ``trust_weight=0`` is plain matrix factorisation.

    The defaults had the least validation error on the filtered Epinions ratings (docs/data.md has the grid; the
    penalty is the smallest one tried).

    Parameters
    ----------
    dimension : int
        Length of the taste vectors U_u and V_i.
    user_penalty, item_penalty, trust_weight : float
        The factors lambda_U, lambda_V and lambda_T.
    learning_rate : float
        Adam's step.
    most_epochs, patience : int
        Training ends after so many epochs, or once the validation error has not improved for ``patience``.
    """

    dimension: int = 10
    user_penalty: float = 0.01
    item_penalty: float = 0.01
    trust_weight: float = 0.1
    learning_rate: float = 0.005
    most_epochs: int = 1000
    patience: int = 50

    def __post_init__(self) -> None:
        whole_number("dimension", self.dimension, least=1, most=1000)
        whole_number("most_epochs", self.most_epochs, least=1)
        whole_number("patience", self.patience, least=1)
        for name in ("user_penalty", "item_penalty", "trust_weight"):
            real_number(name, getattr(self, name), least=0.0)
        real_number("learning_rate", self.learning_rate, above=0.0)


class RatingsCsr(NamedTuple):
    """Ratings by user and trust by truster, both as compressed rows."""

    rating_start: NDArray[np.int64]  # (users + 1,)
    items: NDArray[np.int32]  # (ratings,)
    scaled: NDArray[np.float64]  # (ratings,), in [0, 1]
    trust_start: NDArray[np.int64]  # (users + 1,)
    trustees: NDArray[np.int32]  # (trust pairs,)


class Penalties(NamedTuple):
    """The factors of the penalties."""

    user: float
    item: float
    trust: float


Matrix = NDArray[np.float64]  # (users or items, dimension)


class DescentState(NamedTuple):
    """Where the descent is: factors, their gradients, Adam's two averages, the users' distance to their friends."""

    users: Matrix  # (users, dimension)
    items: Matrix  # (items, dimension)
    user_slope: Matrix
    item_slope: Matrix
    user_first: Matrix
    user_second: Matrix
    item_first: Matrix
    item_second: Matrix
    social_residual: Matrix  # (users, dimension): U - T U


def new_descent(users: NDArray[np.float64], items: NDArray[np.float64]) -> DescentState:
    """A descent that begins at the given factors."""
    fresh = [np.zeros_like(array) for array in (users, items, users, users, items, items, users)]
    return DescentState(users.copy(), items.copy(), *fresh)


def penalties_of(model: SocialMF) -> Penalties:
    """The penalties of a model, for the kernels."""
    return Penalties(float(model.user_penalty), float(model.item_penalty), float(model.trust_weight))


@kernel
def logistic(x: float) -> float:
    """1 / (1 + exp(-x)), without overflow."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    z = math.exp(x)
    return z / (1.0 + z)


@kernel
def slopes(observed: RatingsCsr, penalties: Penalties, descent: DescentState) -> float:
    """The objective; its gradient into ``user_slope`` and ``item_slope``."""
    users, items, user_slope, item_slope = (
        descent.users,
        descent.items,
        descent.user_slope,
        descent.item_slope,
    )
    n_users, dimension = users.shape
    loss = 0.0
    for i in range(items.shape[0]):
        for d in range(dimension):
            item_slope[i, d] = penalties.item * items[i, d]
            loss += 0.5 * penalties.item * items[i, d] * items[i, d]
    for u in range(n_users):
        for d in range(dimension):
            user_slope[u, d] = penalties.user * users[u, d]
            loss += 0.5 * penalties.user * users[u, d] * users[u, d]
        user, user_pull = users[u], user_slope[u]
        for place in range(observed.rating_start[u], observed.rating_start[u + 1]):
            i = observed.items[place]
            item, item_pull = items[i], item_slope[i]
            product = 0.0
            for d in range(dimension):
                product += user[d] * item[d]
            guess = logistic(product)
            miss = guess - observed.scaled[place]
            loss += 0.5 * miss * miss
            pull = miss * guess * (1.0 - guess)
            for d in range(dimension):
                user_pull[d] += pull * item[d]
            for d in range(dimension):  # two loops: each becomes vector instructions
                item_pull[d] += pull * user[d]
    if penalties.trust > 0.0:
        loss += social_slopes(observed, penalties, descent)
    return loss


@kernel
def social_slopes(observed: RatingsCsr, penalties: Penalties, descent: DescentState) -> float:
    """The social term; adds its gradient, trust * (I - T)'(I - T) U, to ``user_slope``."""
    users, residual, user_slope = descent.users, descent.social_residual, descent.user_slope
    n_users, dimension = users.shape
    loss = 0.0
    for u in range(n_users):
        first = observed.trust_start[u]
        last = observed.trust_start[u + 1]
        far = residual[u]
        for d in range(dimension):
            far[d] = users[u, d]
        for place in range(first, last):
            friend = users[observed.trustees[place]]
            for d in range(dimension):
                far[d] -= friend[d] / (last - first)
        for d in range(dimension):
            loss += 0.5 * penalties.trust * far[d] * far[d]
    for u in range(n_users):
        first = observed.trust_start[u]
        last = observed.trust_start[u + 1]
        for d in range(dimension):
            user_slope[u, d] += penalties.trust * residual[u, d]
        # the reverse term: u pulls at those whom u trusts, by T_uv = 1/|N_u|
        for place in range(first, last):
            friend_slope = user_slope[observed.trustees[place]]
            for d in range(dimension):
                friend_slope[d] -= penalties.trust * residual[u, d] / (last - first)
    return loss


@kernel
def adam(values: Any, slope: Any, first: Any, second: Any, epoch: int, rate: float) -> None:
    """One step of Adam; epochs count from 1."""
    first_scale = 1.0 - FIRST_DECAY**epoch
    second_scale = 1.0 - SECOND_DECAY**epoch
    for row in range(values.shape[0]):
        for d in range(values.shape[1]):
            g = slope[row, d]
            first[row, d] = FIRST_DECAY * first[row, d] + (1.0 - FIRST_DECAY) * g
            second[row, d] = SECOND_DECAY * second[row, d] + (1.0 - SECOND_DECAY) * g * g
            step = (first[row, d] / first_scale) / (math.sqrt(second[row, d] / second_scale) + TINY)
            values[row, d] -= rate * step


@kernel
def descend(
    observed: RatingsCsr,
    penalties: Penalties,
    descent: DescentState,
    first_epoch: int,
    last_epoch: int,
    rate: float,
) -> float:
    """Epochs ``first_epoch`` to ``last_epoch``; the objective before the last of them."""
    loss = 0.0
    for epoch in range(first_epoch, last_epoch + 1):
        loss = slopes(observed, penalties, descent)
        adam(descent.users, descent.user_slope, descent.user_first, descent.user_second, epoch, rate)
        adam(descent.items, descent.item_slope, descent.item_first, descent.item_second, epoch, rate)
    return loss


@cache
def compiled_descent() -> Any:
    """`descend`, compiled."""
    return compiled(slopes, social_slopes, adam, logistic)(descend)


# -- the fit: to a part of the ratings, stopped by another, and to all -------------------------------------------------


@dataclass(frozen=True, eq=False)
class Factors:
    """A fitted factorisation and how the fit went."""

    users: NDArray[np.float64]  # (users, dimension)
    items: NDArray[np.float64]  # (items, dimension)
    lowest: float
    highest: float
    epochs: int  # of the factors kept
    errors: dict[int, float]  # epoch -> validation error, where it was measured

    def predict(self, users: NDArray[Any], items: NDArray[Any]) -> NDArray[np.float64]:
        """Ratings of the pairs."""
        return self._ratings(np.einsum("nd,nd->n", self.users[users], self.items[items]))

    def rows(self, first: int, last: int) -> NDArray[np.float64]:
        """Ratings of users first..last-1 for all items."""
        return self._ratings(self.users[first:last] @ self.items.T)

    def _ratings(self, product: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.lowest + (self.highest - self.lowest) * (0.5 * (1.0 + np.tanh(0.5 * product)))


Rows = NDArray[np.bool_]  # of ratings: which are meant


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
    ratings: Ratings, model: SocialMF, seed: int, train: Rows, validation: Rows, most_epochs: int
) -> Factors:
    observed = observed_from(ratings, train)
    descent = new_descent(*first_factors(ratings, model, float(observed.scaled.mean()), seed))
    descend, penalties = compiled_descent(), penalties_of(model)
    best = Factors(descent.users, descent.items, ratings.lowest, ratings.highest, 0, {})
    epoch, least = 0, math.inf
    with Progress("fit the ratings", most_epochs) as bar:
        while epoch < most_epochs:
            first, epoch = epoch + 1, min(epoch + EPOCHS_BETWEEN_CHECKS, most_epochs)
            descend(observed, penalties, descent, first, epoch, model.learning_rate)
            found = replace(best, users=descent.users, items=descent.items, epochs=epoch)
            guess = found.predict(ratings.users[validation], ratings.items[validation])
            best.errors[epoch] = error = rmse(guess, ratings.ratings[validation])
            if error < least or not validation.any():
                best, least = replace(found, users=descent.users.copy(), items=descent.items.copy()), error
            elif epoch - best.epochs >= model.patience:
                break
            bar.advance(epoch + 1 - first)
    return best


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
