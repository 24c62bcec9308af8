"""What a policy must lose on an instance, by its definition: search over all distributions, raises and regrets."""

import math

import numpy as np
from scipy.optimize import minimize


def distance(values, chances, mean):
    """The least KL divergence to a distribution on the same values and 1 that has this mean."""
    values, chances = np.append(values, 1.0), np.append(chances, 0.0)
    seen = chances > 0.0

    def divergence(q):
        return float(np.sum(chances[seen] * np.log(chances[seen] / q[seen])))

    found = minimize(
        divergence,
        np.full(values.size, 1.0 / values.size),
        bounds=[(1e-12, 1.0)] * values.size,
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1.0},
            {"type": "ineq", "fun": lambda q: q @ values - mean},
        ],
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 1000},
    )
    assert found.success
    return found.fun


def kl(p, q):
    return sum(a * math.log(a / b) for a, b in ((p, q), (1.0 - p, 1.0 - q)) if a > 0.0)


def lost_on_all(means, horizon, regrets, raises):
    """The least of these regrets of coins that is at least what it makes necessary."""
    best = max(means)
    for regret in regrets:
        must = 0.0
        for mean in means:
            gap, pulls = best - mean, 0.0
            for up in raises:
                here, there = regret / (gap * horizon) if gap else 1.0, 1.0 - regret / (up * horizon)
                if here < there and best + up < 1.0:
                    pulls = max(pulls, kl(here, there) / kl(mean, best + up))
            must += gap * pulls
        if regret >= must:
            return regret
    raise AssertionError
