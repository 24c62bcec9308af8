"""The rating pipeline with dense matrices and dictionaries."""

from collections import Counter

import numpy as np


def social_objective(U, V, observed, trust, *, user, item, social):
    """The objective of SocialMF, term by term; ``observed`` lists (u, i, rating in [0, 1]), ``trust`` pairs."""
    n_users = len(U)
    T = np.zeros((n_users, n_users))
    for u, v in trust:
        T[u, v] = 1.0
    degree = T.sum(axis=1)
    T[degree > 0] /= degree[degree > 0, None]
    total = 0.5 * user * (U**2).sum() + 0.5 * item * (V**2).sum()
    for u, i, rating in observed:
        total += 0.5 * (1.0 / (1.0 + np.exp(-U[u] @ V[i])) - rating) ** 2
    return total + 0.5 * social * ((U - T @ U) ** 2).sum()


def active(rows, trust, more_than):
    """Kept users and items, mean rating of each kept pair, distinct trust pairs among kept users."""
    user_rows, item_rows = Counter(u for u, _, _ in rows), Counter(i for _, i, _ in rows)
    trusted = {v for _, v in trust} if trust else set(user_rows)
    users = sorted(u for u, count in user_rows.items() if count > more_than and u in trusted)
    items = sorted(i for i, count in item_rows.items() if count > more_than)
    pairs = {}
    for u, i, rating in rows:
        if u in users and i in items:
            pairs.setdefault((u, i), []).append(rating)
    means = {pair: sum(values) / len(values) for pair, values in pairs.items()}
    return users, items, means, {(u, v) for u, v in trust if u in users and v in users and u != v}


def completed(U, V, observed, lowest, highest):
    """The completed table (users, items)."""
    table = lowest + (highest - lowest) / (1.0 + np.exp(-(U @ V.T)))
    for (u, i), rating in observed.items():
        table[u, i] = rating
    return table
