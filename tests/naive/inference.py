"""Tests and intervals that hold at every moment, written out in NumPy: the slow companion of `abex.inference`."""

import numpy as np
from scipy.special import logsumexp

RATES = np.geomspace(0.003, 6.0, 18)
MOMENT_RATES = np.geomspace(2e-4, 0.9, 24)
STAKES = 0.01 * 2.0 ** np.arange(8)


def log_growth(n, s, m, sign):
    """S+ or S- as it is printed."""
    eta = sign * RATES
    return logsumexp(eta * s - n * np.log(1.0 + m * (np.exp(eta) - 1.0))) - np.log(RATES.size)


def log_growth_of_moments(rewards, m, sign):
    """From the rewards themselves."""
    bound = m if sign > 0 else 1.0 - m
    d, v = sign * (rewards - m).sum() / bound, ((rewards - m) ** 2).sum() / bound**2
    return mixed(d, v)


def mixed(d, v):
    """The mixture over rates of moments, the larger ones with larger shares."""
    psi, shares = -np.log(1.0 - MOMENT_RATES) - MOMENT_RATES, MOMENT_RATES**0.25
    return logsumexp(MOMENT_RATES * d - psi * v, b=shares / shares.sum(), axis=-1)


def log_growth_of_both(x, y, m, other, sign):
    """Of the means of two arms: the mean of the product of both mixtures and of one over paired rates."""
    bounds = (m, 1.0 - other) if sign > 0 else (1.0 - m, other)
    d = [sign * (x - m).sum() / bounds[0], -sign * (y - other).sum() / bounds[1]]
    v = [((x - m) ** 2).sum() / bounds[0] ** 2, ((y - other) ** 2).sum() / bounds[1] ** 2]
    rates = np.minimum(MOMENT_RATES * bounds[1] / bounds[0], 0.95)
    shares = MOMENT_RATES**0.25 / (MOMENT_RATES**0.25).sum()
    exponents = sum(
        rate * shift + (np.log(1.0 - rate) + rate) * spread
        for rate, shift, spread in zip((MOMENT_RATES, rates), d, v, strict=True)
    )
    return np.logaddexp(mixed(d[0], v[0]) + mixed(d[1], v[1]), logsumexp(exponents, b=shares)) - np.log(2.0)


def least_sum(first, second, grid):
    """The least over a grid of means of two growths, functions of the mean."""
    return min(first(m) + second(m) for m in grid)


def least_difference(one, other, d, sign, grid):
    """The evidence of sums against a difference d of the means of two arms, each (number, sum)."""
    return least_sum(
        lambda m: log_growth(*one, m + d, sign),
        lambda m: log_growth(*other, m, -sign),
        [m for m in grid if 0.0 <= m + d <= 1.0],
    )


def leader(arms, rewards, n_arms):
    """The first arm of the largest mean, None without observations."""
    means = [rewards[arms == k].mean() if (arms == k).any() else -1.0 for k in range(n_arms)]
    return int(np.argmax(means)) if max(means) >= 0.0 else None


def bets(arms, rewards, probabilities, n_arms):
    """The wealth against each arm, and its largest mean so far, from the definition."""
    wealth, best = np.ones((n_arms, 8)), np.ones(n_arms)
    for t in range(len(arms)):
        lead, p, x = leader(arms[:t], rewards[:t], n_arms), probabilities[t], rewards[t]
        for k in range(n_arms):
            if lead is None or k == lead or arms[t] not in (lead, k) or p[lead] == 0.0 or p[k] == 0.0:
                continue
            m = [(rewards[:t][arms[:t] == a].sum() + 0.5) / ((arms[:t] == a).sum() + 1.0) for a in (lead, k)]
            pi = p[lead] / (p[lead] + p[k])
            c = pi * m[0] + (1.0 - pi) * m[1]
            y = (1.0 - pi) * (x - c) if arms[t] == lead else -pi * (x - c)
            wealth[k] *= 1.0 + np.minimum(STAKES / np.sqrt(c * (1.0 - c)), 0.95 / max(c, 1.0 - c)) * y
            best[k] = max(best[k], wealth[k].mean())
    return wealth, best


def leaders_sums(arms, rewards, n_arms):
    """Number and sum of the plays that each arm made while it led."""
    count, total = np.zeros(n_arms), np.zeros(n_arms)
    for t in range(len(arms)):
        if leader(arms[:t], rewards[:t], n_arms) == arms[t]:
            count[arms[t]] += 1.0
            total[arms[t]] += rewards[t]
    return count, total


class PlayerBets:
    """What a player knows for who asks who won, worked out anew from all that ever happened; arms by their labels."""

    def __init__(self, arms, in_order):
        self.arms, self.in_order = list(arms), in_order
        self.rows = []  # decisions and observations, in their order
        self.first = 0  # that is not settled
        self.actions = []  # rows in the order in which they are settled, and arms that went

    def decided(self, name, arm, law):
        """``law``: the probability of each arm, empty where they are unknown."""
        self.rows.append({"id": name, "arm": arm, "law": law, "paid": "open", "also": {}})

    def closed(self, name, paid, also):
        """A reward, or None for a decision that will have none."""
        row = next(row for row in self.rows if row["id"] == name)
        row["paid"], row["also"] = paid, also
        if not self.in_order:
            self.actions.append(row)
        self._settle()

    def observed(self, arm, paid, also):
        self.rows.append({"id": None, "arm": arm, "law": {}, "paid": paid, "also": also})
        if not self.in_order:
            self.actions.append(self.rows[-1])
        self._settle()

    def removed(self, arm):
        self.actions.append(arm)
        self.arms.remove(arm)

    def _settle(self):
        while self.in_order and self.first < len(self.rows) and self.rows[self.first]["paid"] != "open":
            self.actions.append(self.rows[self.first])
            self.first += 1

    def known(self):
        """Observations by arm, plays of leaders, wealth and evidence."""
        seen, led, leading, gone = {}, set(), {}, set()
        wealth, best = {}, {}

        def mean(arm):
            return np.mean(seen[arm])

        def observe(arm, paid, law):
            met = [k for k in order if k in seen and k not in gone]
            lead = max(met, key=mean) if met else None
            rivals = (
                [k for k in order if k not in gone and k != lead and law.get(k, 0) > 0]
                if law.get(lead, 0) > 0
                else []
            )
            if rivals and law.get(arm, 0) > 0:
                led.add(lead)
            for k in rivals:
                if arm not in (lead, k):
                    continue
                m = [(sum(seen.get(a, [])) + 0.5) / (len(seen.get(a, [])) + 1.0) for a in (lead, k)]
                pi = law[lead] / (law[lead] + law[k])
                c = pi * m[0] + (1.0 - pi) * m[1]
                y = (1.0 - pi) * (paid - c) if arm == lead else -pi * (paid - c)
                stakes = np.minimum(STAKES / np.sqrt(c * (1.0 - c)), 0.95 / max(c, 1.0 - c))
                wealth[k] = wealth.get(k, np.ones(8)) * (1.0 + stakes * y)
                best[k] = max(best.get(k, 1.0), wealth[k].mean())
            if arm == lead:
                leading.setdefault(arm, []).append(paid)
            seen.setdefault(arm, []).append(paid)

        order = list(dict.fromkeys([*self.arms, *(row["arm"] for row in self.rows)]))
        order.sort()
        for action in self.actions:
            if not isinstance(action, dict):
                gone.add(action)
                if action in led:
                    wealth, best, led = {}, {}, set()
                continue
            if action["paid"] is None:
                continue
            if action["arm"] not in gone:
                observe(action["arm"], action["paid"], action["law"])
            for arm, paid in action["also"].items():
                if arm not in gone:
                    observe(arm, paid, {})
        return {
            "observations": [len(seen.get(k, [])) for k in self.arms],
            "sums": [sum(seen.get(k, [])) for k in self.arms],
            "squares": [sum(x * x for x in seen.get(k, [])) for k in self.arms],
            "leading": [len(leading.get(k, [])) for k in self.arms],
            "leading_sums": [sum(leading.get(k, [])) for k in self.arms],
            "wealth": [wealth.get(k, np.ones(8)) for k in self.arms],
            "evidence": [best.get(k, 1.0) for k in self.arms],
        }


def weighted_terms(arms, rewards, target, laws, drawn=False):
    """h, h phi and the square of h (phi - c) of each decision; ``drawn`` takes the weight drawn for the largest."""
    rows = np.arange(len(arms))
    before = np.concatenate([[0.0], np.cumsum(rewards)[:-1]])
    c = (before + 0.5) / (rows + 1.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        weights = np.where(target > 0.0, target / laws, 0.0)
    w = weights[rows, arms]
    h = 1.0 / ((w if drawn else weights.max(axis=1)) * np.maximum(c, 1.0 - c))
    shift = h * w * (rewards - c)
    return np.array([h, h * c + shift, shift**2])


def weighted_sums(arms, rewards, target, laws):
    """Their sums."""
    return weighted_terms(arms, rewards, target, laws).sum(axis=1)
