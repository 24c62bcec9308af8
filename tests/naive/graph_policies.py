"""The law of each graph policy's next pull, recomputed from the whole history by the formulas as printed.

A history is a list of steps ``(arm, {seen arm: reward})``; ``shows(t)`` is the graph of step t as a matrix whose entry
(u, v) is 1 if pulling u shows v. Each function takes the policy, the history, the number of arms, the horizon and
``shows``, and returns the probability of each arm at the next step (ties share it).
"""

import itertools
import math
from functools import lru_cache

import numpy as np
from scipy.optimize import linprog

from tests.naive.graphs import has_cycle
from tests.naive.policies import best_of_betas, means_or, observed, posteriors, share, softmax

# -- what a policy takes from the graph ------------------------------------------------------------------


def groups(n):
    return itertools.chain.from_iterable(itertools.combinations(range(n), size) for size in range(1, n + 1))


def remembered(function):
    """Once for each matrix."""
    kept = {}

    def answer(table):
        key = table.tobytes()
        if key not in kept:
            kept[key] = function(table)
        return kept[key]

    return answer


def is_directed(table):
    return bool((table != table.T).any())


@remembered
def independence(table):
    """Largest set without an edge; without a cycle, where the graph is directed."""
    n = len(table)
    if is_directed(table):
        out = [set(np.flatnonzero(row)) for row in table]
        return max(len(s) for s in groups(n) if not has_cycle(out, s))
    return max(len(s) for s in groups(n) if table[np.ix_(s, s)].sum() == len(s))


@remembered
def clique_cover(table):
    """Smallest number of sets of mutually joined arms that hold every arm."""
    n = len(table)
    joined = [frozenset(s) for s in groups(n) if table[np.ix_(s, s)].all()]
    best = lru_cache(None)(
        lambda left: min((1 + best(left - s) for s in joined if min(left) in s), default=0) if left else 0
    )
    return best(frozenset(range(n)))


@remembered
def fractional_cover(table):
    """The least weights by which every arm is seen once; refuses a graph for which there are several."""
    n = len(table)
    found = linprog(np.ones(n), A_ub=-table.T, b_ub=-np.ones(n))
    ends = [
        linprog(
            sign * np.eye(n)[k],
            A_ub=np.vstack([-table.T, np.ones(n)]),
            b_ub=np.append(-np.ones(n), found.fun + 1e-9),
        ).fun
        for k in range(n)
        for sign in (1, -1)
    ]
    low, high = np.array(ends[::2]), -np.array(ends[1::2])
    assert (high - low < 1e-6).all(), "several solutions: take another graph"
    return found.x


@remembered
def dominating_set(table):
    """An arm that shows most unseen arms, again and again; refuses a graph where the result depends on ties."""

    def results(unseen):
        if not unseen:
            return {frozenset()}
        gains = [sum(table[k, j] for j in unseen) for k in range(len(table))]
        ends = set()
        for k in np.flatnonzero(np.array(gains) == max(gains)):
            ends |= {rest | {int(k)} for rest in results(unseen - set(np.flatnonzero(table[k])))}
        return ends

    (only,) = results(frozenset(range(len(table))))
    return sorted(only)


def mean_over_graphs(quantity, shows):
    return float(np.mean([quantity(shows(t)) for t in range(1, shows.typical + 1)]))


# -- aiming at an arm --------------------------------------------------------------------------------------


def aimed(aims, values, table):
    """Pull the largest value among the arms that show the arm aimed at."""
    law = np.zeros(len(aims))
    for j in np.flatnonzero(aims):
        who = np.flatnonzero(table[:, j])
        law[who] += aims[j] * share(values[who])
    return law


def ucb_max_n(policy, history, n, horizon, shows):
    t = len(history) + 1
    seen = [observed(history, k) for k in range(n)]
    bounds = [np.mean(x) + math.sqrt(policy.scale * math.log(t) / len(x)) if x else math.inf for x in seen]
    means = np.array([np.mean(x) if x else -1.0 for x in seen])
    aims = np.isinf(bounds) / np.isinf(bounds).sum() if np.isinf(bounds).any() else share(bounds)
    return aimed(aims, means, shows(t))


def ts_max_n(policy, history, n, horizon, shows):
    a, b = posteriors(policy, history, n)
    return aimed(best_of_betas(a, b), a / (a + b), shows(len(history) + 1))


# -- exponential weights -----------------------------------------------------------------------------------


def replay(history, n, shows, law_of, learn):
    """``law_of(t, scores)`` at every step, ``learn(t, scores, law, chance of being seen, rewards)`` after it."""
    scores = np.zeros(n)
    for t, (_, rewards) in enumerate(history, 1):
        law = law_of(t, scores)
        learn(t, scores, law, law @ shows(t), rewards)
    return law_of(len(history) + 1, scores)


def elp(policy, history, n, horizon, shows):
    beta = policy.beta
    if beta is None:
        alpha = policy.independence or mean_over_graphs(
            lambda table: clique_cover(table) if is_directed(table) else independence(table), shows
        )
        beta = min(math.sqrt(math.log(n) / (3 * alpha * horizon)), 1 / (2 * n))

    def law_of(t, scores):
        cover = fractional_cover(shows(t))
        gamma = beta * cover.sum()  # beta / v
        return (1 - gamma) * softmax(scores) + gamma * cover / cover.sum()

    def learn(t, scores, law, chance, rewards):
        for j, x in rewards.items():
            scores[j] += beta * x / chance[j]

    return replay(history, n, shows, law_of, learn)


def losing(policy, history, n, shows, eta, gamma):
    def law_of(t, scores):
        return (1 - gamma) * softmax(-eta * scores) + gamma / n

    def learn(t, scores, law, chance, rewards):
        for j, x in rewards.items():
            scores[j] += (1 - x) / max(chance[j], 1e-12)

    return replay(history, n, shows, law_of, learn)


def exp3_set(policy, history, n, horizon, shows):
    alpha = policy.independence or mean_over_graphs(independence, shows)
    eta = policy.eta or math.sqrt(2 * math.log(n) / (alpha * horizon))
    return losing(policy, history, n, shows, eta, 0.0)


def exp3_dom(policy, history, n, horizon, shows):
    """Weights of their own for each class b of sizes of the dominating set."""
    weights = {}

    def look(t):
        arms = dominating_set(shows(t))
        b = math.floor(math.log2(len(arms)))
        return arms, b, policy.gamma or min(0.5, math.sqrt(2**b * math.log(n) / horizon))

    def law_of(t, _):
        arms, b, gamma = look(t)
        law = (1 - gamma) * softmax(weights.setdefault(b, np.zeros(n)))
        law[arms] += gamma / len(arms)
        return law

    def learn(t, _, law, chance, rewards):
        _, b, gamma = look(t)
        for j, x in rewards.items():
            weights[b][j] -= gamma * (1 - x) / chance[j] / 2**b

    return replay(history, n, shows, law_of, learn)


def exp3_ix(policy, history, n, horizon, shows):
    spent = [0.0]

    def rate():
        return math.sqrt(math.log(n) / (n + sum(spent)))

    def learn(t, scores, law, chance, rewards):
        gamma = rate()
        for j, x in rewards.items():
            scores[j] += (1 - x) / (chance[j] + gamma)
        spent.append((law / (chance + gamma)).sum())

    return replay(history, n, shows, lambda t, scores: softmax(-rate() * scores), learn)


# -- ABE ---------------------------------------------------------------------------------------------------


def abe(policy, history, n, horizon, shows=None):
    """Algorithm 2: exploration is counted in the arms that a sweep covers for the first time."""
    sweep, covered, complete, position, step, due = [], set(), False, 0, 0, 0.0
    cover = None
    if policy.cover == "dominating":
        complete = True
        for arm in shows.sweep:
            new = set(np.flatnonzero(shows(1)[arm])) - covered
            sweep.append((arm, len(new)))
            covered |= new
    elif policy.cover == "lp":
        cover = fractional_cover(shows(1))
    for i in itertools.count(1):
        rate = policy.c * i**policy.alpha
        due = {
            "floor": n * math.floor(rate + 1e-9),
            "carry": due + n * rate,
            "ceil": n * math.ceil(rate - 1e-9),
        }[policy.rounding]
        while due > 1 - 1e-9:
            if step == len(history):
                if cover is not None:
                    return cover / cover.sum()
                if complete:
                    return np.eye(n)[sweep[position][0]]
                if getattr(policy, "order", "random") == "index":  # the next one not yet covered
                    last = sweep[-1][0] if sweep else 0
                    return np.eye(n)[next(k % n for k in range(last, last + n) if k % n not in covered)]
                return np.array([0.0 if k in covered else 1 / (n - len(covered)) for k in range(n)])
            arm, rewards = history[step]
            step += 1
            if cover is not None:
                due -= n / cover.sum()
            elif complete:
                due -= sweep[position][1]
                position = (position + 1) % len(sweep)
            else:
                new = set(rewards) - covered
                sweep.append((arm, len(new)))
                covered |= new
                due -= len(new)
                complete = len(covered) == n
                if complete and shows is not None and shows.varies:
                    sweep, covered, complete = [], set(), False
        for _ in range(n * 2**i):
            if step == len(history):
                means = means_or(history, n, policy.initial)
                return (
                    share(means) if np.isinf(means).any() else softmax(policy.eta * math.sqrt(step) * means)
                )
            step += 1
    raise AssertionError


GRAPH_LAWS = {
    "ABE": abe,
    "ELP": elp,
    "Exp3DOM": exp3_dom,
    "Exp3IXGraph": exp3_ix,
    "Exp3SET": exp3_set,
    "TSMaxN": ts_max_n,
    "UCBMaxN": ucb_max_n,
}
