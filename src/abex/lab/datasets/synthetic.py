"""Made-up ratings and trust with the shape of the real ones: long tails, friends with like tastes."""

from __future__ import annotations

import numpy as np

from abex.lab.datasets.types import Ratings
from abex.support.errors import UserError, real_number, whole_number
from abex.support.randomness import stream
from abex.support.reading import check_size


def synthetic_ratings(
    n_users: int = 300,
    n_items: int = 350,
    *,
    ratings_per_user: float = 40.0,
    trust_per_user: float = 8.0,
    dimension: int = 4,
    homophily: float = 3.0,
    noise: float = 0.5,
    seed: int = 0,
) -> Ratings:
    """Ratings 1..5 of a population in which people tend to trust those whose taste is near theirs.

    Tastes and items are random vectors; a rating is the rounded sum of the item's quality, the match of taste
    and item, and noise. How many ratings a user writes, an item gets and how much trust a user earns have long
    tails. The result goes through the same pipeline as Epinions.

    Parameters
    ----------
    ratings_per_user, trust_per_user : float
        Means.
    dimension : int
        Length of the taste vectors.
    homophily : float
        0: trust is blind; larger: it goes to like-minded people.
    noise : float
        Standard deviation of a rating's noise, in stars.

    Examples
    --------
    >>> synthetic_ratings(n_users=100, n_items=80, seed=1).n_users
    100
    """
    n_users = whole_number("n_users", n_users, least=2, most=100_000)
    n_items = whole_number("n_items", n_items, least=1, most=1_000_000)
    dimension = whole_number("dimension", dimension, least=1, most=1000)
    per_user = real_number("ratings_per_user", ratings_per_user, above=0.0)
    trust_mean = real_number("trust_per_user", trust_per_user, least=0.0, most=n_users - 1)
    real_number("homophily", homophily, least=0.0, most=1e6)
    real_number("noise", noise, least=0.0, most=1e6)
    if per_user > n_items:
        raise UserError(f"ratings_per_user = {per_user:g} is more than the {n_items} items")
    check_size(8 * n_users * max(n_items, n_users), f"ratings by {n_users:,} users of {n_items:,} items")
    rng = stream(seed, "synthetic ratings")
    tastes = rng.standard_normal((n_users, dimension)) / np.sqrt(dimension)
    features = rng.standard_normal((n_items, dimension))
    quality = 3.6 + 0.6 * rng.standard_normal(n_items)
    written = np.clip(rng.poisson(per_user * rng.gamma(2.0, 0.5, n_users)), 1, n_items)
    popularity = rng.pareto(1.5, n_items) + 0.2
    users = np.repeat(np.arange(n_users, dtype=np.int32), written)
    # the Gumbel trick draws each user's items without replacement, by popularity
    scores = np.log(popularity) + rng.gumbel(size=(n_users, n_items))
    items = np.concatenate([np.argsort(-row)[:count] for row, count in zip(scores, written, strict=True)])
    match = np.einsum("nd,nd->n", tastes[users], features[items])
    stars = np.rint(quality[items] + match + noise * rng.standard_normal(users.size))
    renown = np.log(rng.pareto(2.0, n_users) + 0.5)
    near = tastes @ tastes.T / (np.linalg.norm(tastes, axis=1)[:, None] * np.linalg.norm(tastes, axis=1))
    wish = renown + homophily * near + rng.gumbel(size=(n_users, n_users))
    np.fill_diagonal(wish, -np.inf)
    given = np.minimum(rng.poisson(trust_mean, n_users), n_users - 1)
    trustees = np.concatenate([np.argsort(-row)[:count] for row, count in zip(wish, given, strict=True)])
    return Ratings(
        name=f"synthetic {n_users} x {n_items}",
        users=users,
        items=items.astype(np.int32),
        ratings=np.clip(stars, 1.0, 5.0).astype(np.float32),
        trusters=np.repeat(np.arange(n_users, dtype=np.int32), given),
        trustees=trustees.astype(np.int32),
        user_labels=np.arange(n_users),
        item_labels=np.arange(n_items),
        description="Made up by a seeded generator.",
        licence="public domain",
    )
