"""The law of each graph policy's next pull, recomputed from the whole history by the formulas as printed.

A history is a list of steps ``(arm, {seen arm: reward})``; ``shows(t)`` is the graph of step t as a matrix whose entry
(u, v) is 1 if pulling u shows v. Each function takes the policy, the history, the number of arms, the horizon and
``shows``, and returns the probability of each arm at the next step (ties share it).
"""

import itertools
import math
from functools import lru_cache

import numpy as np
from scipy.optimize import linprog, minimize_scalar

from tests.naive.graphs import has_cycle
from tests.naive.policies import best_of_betas, kl, means_or, observed, posteriors, share, softmax

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


def first_dominating_set(table):
    """The same; among equals the lowest number (what is done on graphs drawn at each step)."""
    unseen, found = np.ones(len(table)), []
    while unseen.any():
        found.append(int(np.argmax(table @ unseen)))
        unseen = unseen * (1 - table[found[-1]])
    return sorted(found)


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


def exp3_g(policy, history, n, horizon, shows):
    alpha = policy.independence or mean_over_graphs(independence, shows)
    gamma = policy.gamma or min(math.sqrt(1 / (alpha * horizon)), 0.5)
    return losing(policy, history, n, shows, 2 * gamma, gamma)


def exp3_dom(policy, history, n, horizon, shows):
    """Weights of their own for each class b of sizes of the dominating set."""
    weights = {}

    def look(t):
        arms = (first_dominating_set if shows.drawn else dominating_set)(shows(t))
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


def exp3_gpp(policy, history, n, horizon, shows):
    """Sizes of the exploration sets count from the first step at which every arm has been observed."""
    sizes, latest = [], [0]
    losses = [[] for _ in range(n)]

    def law_of(t, scores):
        fresh = np.array([not x for x in losses])
        if fresh.any():
            return fresh / fresh.sum()
        radius = [math.sqrt((policy.a * math.log(t) + math.log(n)) / (2 * len(x))) for x in losses]
        lowest = min(min(1.0, np.mean(x) + r) for x, r in zip(losses, radius, strict=True))
        gaps = [max(0.0, max(0.0, np.mean(x) - r) - lowest) for x, r in zip(losses, radius, strict=True)]
        members, hidden = [], set(range(n))
        for k in sorted(range(n), key=lambda k: (gaps[k], k)):
            if k in hidden:
                members.append(k)
                hidden -= set(np.flatnonzero(shows(t)[k]))
        latest[0] = len(members)
        eta = 0.5 * math.sqrt(math.log(n) / (sum(sizes) + len(members)))
        floors = np.zeros(n)
        for k in members:
            floors[k] = min(1 / (2 * n), 0.5 * math.sqrt(math.log(n) / (t * len(members))))
            if gaps[k] > 0:
                floors[k] = min(floors[k], policy.b * math.log(t) / (t * gaps[k] ** 2))
        return (1 - floors.sum()) * softmax(-eta * scores) + floors

    def learn(t, scores, law, chance, rewards):
        started = all(losses)
        if started:
            sizes.append(latest[0])
        for j, x in rewards.items():
            losses[j].append(1 - x)
            if started:
                scores[j] += (1 - x) / max(chance[j], 1e-12)

    return replay(history, n, shows, law_of, learn)


# -- plans -------------------------------------------------------------------------------------------------


def epsilon_greedy_lp(policy, history, n, horizon, shows):
    t = len(history) + 1
    cover = fractional_cover(shows(t))
    epsilon = min(1.0, policy.c * cover.sum() / (policy.d**2 * t))
    return epsilon * cover / cover.sum() + (1 - epsilon) * share(means_or(history, n, 0.0))


def ucb_lp(policy, history, n, horizon, shows):
    return ucb_lp_step(history, n, horizon, shows)[0]


def ucb_lp_step(history, n, horizon, shows):
    """The law, and the arms not dropped. Arms of a phase are raised one after the other, by number."""
    cover = fractional_cover(shows(1))
    left, step = set(range(n)), 0
    for phase in range(math.floor(0.5 * math.log2(horizon / math.e)) + 1):
        if len(left) == 1:
            break
        wide = 4.0**-phase  # the square of the phase's gap
        wanted = math.ceil(2 * math.log(horizon * wide) / wide)
        by_program = cover.sum() <= len(left)
        for k in range(n):
            while True:
                before = history[:step]
                pulls = sum(arm == k for arm, _ in before)
                if (
                    pulls >= math.ceil(wanted * cover[k] - 1e-9)
                    if by_program
                    else (k not in left or len(observed(before, k)) >= wanted)
                ):
                    break
                if step == len(history):
                    return np.eye(n)[k], left
                step += 1
        means = {k: np.mean(observed(history[:step], k)) for k in left}
        radius = math.sqrt(math.log(horizon * wide) / (2 * wanted))
        left = {k for k in left if not means[k] + radius < max(means.values()) - radius}
    means = means_or(history, n, 0.0)
    return share([means[k] if k in left else -1.0 for k in range(n)]), left


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


# -- information -------------------------------------------------------------------------------------------


def information(policy, history, n, shows):
    """Expected regret and information gain of each pull, from Beta posteriors in the middle of ``grid`` cells."""
    x = (np.arange(policy.grid) + 0.5) / policy.grid
    seen = [observed(history, k) for k in range(n)]
    logs = np.array([sum(s) * np.log(x) + (len(s) - sum(s)) * np.log(1 - x) for s in seen])
    density = np.exp(logs - logs.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    below = np.cumsum(density, axis=1) - density / 2  # half of the own cell
    moment = (np.cumsum(density * x, axis=1) - density * x / 2) / below
    best, given = np.zeros(n), np.zeros((n, n))
    for k in range(n):
        weight = density[k] * np.delete(below, k, axis=0).prod(axis=0)
        best[k] = weight.sum()
        given[k] = [(weight * (x if j == k else moment[j])).sum() / best[k] for j in range(n)]
    best /= best.sum()
    regret = np.array([sum(best[k] * (given[k, k] - given[k, j]) for k in range(n)) for j in range(n)])
    told = np.array([sum(best[k] * kl(given[k, j], best @ given[:, j]) for k in range(n)) for j in range(n)])
    return regret, shows(len(history) + 1) @ told


def information_ratio(law, regret, gain):
    return (law @ regret) ** 2 / (law @ gain)


def least_ratio(regret, gain):
    """Over the laws on two arms, by search."""
    n = len(regret)
    return min(
        minimize_scalar(
            lambda q, i=i, j=j: information_ratio(q * np.eye(n)[i] + (1 - q) * np.eye(n)[j], regret, gain),
            bounds=(0, 1),
            method="bounded",
            options={"xatol": 1e-9},
        ).fun
        for i in range(n)
        for j in range(i + 1)
    )


GRAPH_LAWS = {
    "ABE": abe,
    "ELP": elp,
    "EpsilonGreedyLP": epsilon_greedy_lp,
    "Exp3DOM": exp3_dom,
    "Exp3G": exp3_g,
    "Exp3GPlusPlus": exp3_gpp,
    "Exp3IXGraph": exp3_ix,
    "Exp3SET": exp3_set,
    "TSMaxN": ts_max_n,
    "UCBLP": ucb_lp,
    "UCBMaxN": ucb_max_n,
}
