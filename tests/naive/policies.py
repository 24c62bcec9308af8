"""The law of each policy's next pull, recomputed from the whole history by the formulas as printed.

A history is a list of steps ``(arm, {seen arm: reward})``. Each function takes the policy, the history, the number of
arms and the horizon, and returns the probability of each arm at the next step (ties of an index share it).
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, betaln

from abex import TopTwo


def observed(history, k):
    return [seen[k] for _, seen in history if k in seen]


def share(scores):
    scores = np.asarray(scores, float)
    best = scores >= scores.max() - 1e-11
    return best / best.sum()


def softmax(scores):
    scores = np.asarray(scores, float)
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def indexed(index):
    def law(policy, history, n, horizon):
        t = len(history) + 1
        seen = [observed(history, k) for k in range(n)]
        return share([math.inf if not x else index(policy, np.array(x), t, n, horizon) for x in seen])

    return law


def kl(p, q):
    total = 0.0
    if p > 0:
        total += p * math.log(p / q) if q > 0 else math.inf
    if p < 1:
        total += (1 - p) * math.log((1 - p) / (1 - q)) if q < 1 else math.inf
    return total


def kl_bound(policy, x, t, n, horizon):
    level = math.log(t) + (policy.c * math.log(math.log(t)) if t >= 3 else 0.0)
    level = max(level, 0.0) / len(x)
    low, high = x.mean(), 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if kl(x.mean(), middle) <= level else (low, middle)
    return low


def ucbv(policy, x, t, n, horizon):
    level = policy.zeta * math.log(t)
    return x.mean() + math.sqrt(2 * x.var() * level / len(x)) + 3 * policy.c * level / len(x)


def moss(policy, x, t, n, horizon):
    rounds, factor = policy.horizon or horizon, 1
    if policy.anytime is not None:
        rounds, factor = t, (1 + policy.anytime) / 2
    return x.mean() + math.sqrt(factor * max(math.log(rounds / (n * len(x))), 0) / len(x))


def kl_bound_plus(policy, x, t, n, horizon):
    fair = (policy.horizon or horizon) / (n * len(x))
    log = max(math.log(fair), 0.0)
    level = max(math.log(fair * (1 + log**2)), 0.0) / len(x)
    low, high = x.mean(), 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if kl(x.mean(), middle) <= level else (low, middle)
    return low


def imed(policy, history, n, horizon):
    seen = [observed(history, k) for k in range(n)]
    if not all(seen):
        return share([0.0 if x else 1.0 for x in seen])
    top = max(np.mean(x) for x in seen)
    return share([-len(x) * kl(np.mean(x), top) - math.log(len(x)) for x in seen])


def maillard(divergence):
    def law(policy, history, n, horizon):
        seen = [observed(history, k) for k in range(n)]
        if not all(seen):
            return share([0.0 if x else 1.0 for x in seen])
        top = max(np.mean(x) for x in seen)
        return softmax([-len(x) * divergence(policy, np.mean(x), top) for x in seen])

    return law


def means_or(history, n, initial):
    seen = [observed(history, k) for k in range(n)]
    return np.array([np.mean(x) if x else (math.inf if initial is None else initial) for x in seen])


def boltzmann(policy, history, n, horizon):
    t = len(history) + 1
    eta = policy.eta * {"sqrt": math.sqrt(t - 1), "log": math.log(1 + t), "constant": 1.0}[policy.schedule]
    means = means_or(history, n, policy.initial)
    return share(means) if np.isinf(means).any() else softmax(eta * means)


def epsilon(policy, history, n, horizon):
    chance = policy.epsilon if policy.decay is None else min(1.0, policy.decay * n / (len(history) + 1))
    return chance / n + (1 - chance) * share(means_or(history, n, None))


def explore_then_commit(policy, history, n, horizon):
    due = policy.observations or max(1, math.ceil((horizon / n) ** (2 / 3) * math.log(horizon) ** (1 / 3)))
    counts = np.zeros(n)
    for step, (_, seen) in enumerate(history):
        for k in seen:
            counts[k] += 1
        if counts.min() >= due:
            return share(means_or(history[: step + 1], n, None))
    return share(-counts)


def weights(rule):
    """Exponential-weights policies: replay the history with the law that ``rule(state)`` gives at every step."""

    def law(policy, history, n, horizon):
        state = np.zeros(n)
        extra = {}
        for t, (arm, seen) in enumerate(history, 1):
            chances = rule(policy, state, t, n, horizon, extra)
            state = LEARN[type(policy).__name__](policy, state, chances, t, n, horizon, arm, seen[arm], extra)
        return rule(policy, state, len(history) + 1, n, horizon, extra)

    return law


def exp3_gamma(policy, n, horizon):
    return policy.gamma or min(1.0, math.sqrt(n * math.log(n) / ((math.e - 1) * horizon)))


def exp3_rule(policy, state, t, n, horizon, extra):
    gamma = exp3_gamma(policy, n, horizon)
    return (1 - gamma) * softmax(state) + gamma / n


def exp3_learn(policy, state, chances, t, n, horizon, arm, x, extra):
    estimate = np.zeros(n)
    estimate[arm] = x / chances[arm]
    return state + exp3_gamma(policy, n, horizon) * estimate / n


def exp3p_rates(policy, n, horizon):
    gamma = policy.gamma or min(0.6, 2 * math.sqrt(0.6 * n * math.log(n) / horizon))
    alpha = policy.alpha if policy.alpha is not None else 2 * math.sqrt(math.log(n * horizon / policy.delta))
    return gamma, alpha


def exp3p_rule(policy, state, t, n, horizon, extra):
    gamma, _ = exp3p_rates(policy, n, horizon)
    return (1 - gamma) * softmax(state) + gamma / n


def exp3p_learn(policy, state, chances, t, n, horizon, arm, x, extra):
    gamma, alpha = exp3p_rates(policy, n, horizon)
    estimate = np.zeros(n)
    estimate[arm] = x / chances[arm]
    return state + gamma / (3 * n) * (estimate + alpha / (chances * math.sqrt(n * horizon)))


def multiboost_rule(policy, state, t, n, horizon, extra):
    tried = extra.setdefault("tried", [])
    if len(tried) < n:
        return np.array([0.0 if k in tried else 1.0 / (n - len(tried)) for k in range(n)])
    raw = (1 - policy.gamma) * softmax(state) + policy.gamma / (t - n + 1)
    extra["raw"] = raw
    return raw / raw.sum()


def multiboost_learn(policy, state, chances, t, n, horizon, arm, x, extra):
    root = math.sqrt(n * policy.horizon)
    state = state.copy()
    if arm not in extra["tried"]:
        extra["tried"].append(arm)
        start = policy.alpha * policy.gamma / 3 * math.sqrt(policy.horizon / n)
        state[arm] = start + policy.gamma / (3 * n) * x * n + policy.alpha * n / root
    else:
        state[arm] += policy.gamma / (3 * n) * (x + policy.alpha / root) / extra["raw"][arm]
    return state


def ix_rate(policy, t, n):
    return policy.eta or math.sqrt(math.log(n) / (n * t))


def ix_rule(policy, state, t, n, horizon, extra):
    return softmax(-ix_rate(policy, t, n) * state)


def ix_learn(policy, state, chances, t, n, horizon, arm, x, extra):
    state = state.copy()
    state[arm] += (1 - x) / (chances[arm] + ix_rate(policy, t, n) / 2)
    return state


def floored(state, floors, t, n):
    eta = 0.5 * math.sqrt(math.log(n) / (t * n))
    floors = np.minimum(floors, min(1 / (2 * n), eta))
    return (1 - floors.sum()) * softmax(-eta * state) + floors


def old_rule(policy, state, t, n, horizon, extra):
    gaps = np.minimum(1.0, (state - state.min()) / t)
    with np.errstate(divide="ignore", invalid="ignore"):
        floors = np.where(gaps > 0, policy.c * math.log(t) ** 2 / (t * gaps**2), math.inf)
    return floored(state, floors, t, n)


def old_learn(policy, state, chances, t, n, horizon, arm, x, extra):
    state = state.copy()
    state[arm] += (1 - x) / chances[arm]
    return state


def new_rule(policy, state, t, n, horizon, extra):
    losses = extra.setdefault("losses", [[] for _ in range(n)])
    untried = np.array([not x for x in losses])
    if untried.any():
        return untried / untried.sum()
    radius = [math.sqrt(policy.a * math.log(t * n ** (1 / policy.a)) / (2 * len(x))) for x in losses]
    upper = min(min(1.0, np.mean(x) + r) for x, r in zip(losses, radius, strict=True))
    gaps = np.array([max(0.0, max(0.0, np.mean(x) - r) - upper) for x, r in zip(losses, radius, strict=True)])
    with np.errstate(divide="ignore", invalid="ignore"):
        floors = np.where(gaps > 0, policy.b * math.log(t) / (t * gaps**2), math.inf)
    return floored(state, floors, t, n)


def new_learn(policy, state, chances, t, n, horizon, arm, x, extra):
    state = state.copy()
    state[arm] += (1 - x) if not extra["losses"][arm] else (1 - x) / chances[arm]
    extra["losses"][arm].append(1 - x)
    return state


def tsallis_eta(policy, t, horizon):
    if type(policy).__name__ == "INF":
        return 2 / (policy.eta or math.sqrt(horizon))
    return (4 if policy.estimator == "RV" else 2) / math.sqrt(t)


def tsallis_rule(policy, state, t, n, horizon, extra):
    from scipy.optimize import brentq

    eta = tsallis_eta(policy, t, horizon)
    low, high = state.min() - 2 * math.sqrt(n) / eta - 1e-9, state.min() - 2 / eta
    x = brentq(lambda x: np.sum(4 / (eta * (state - x)) ** 2) - 1, low, high + 1e-12, xtol=1e-14)
    law = 4 / (eta * (state - x)) ** 2
    return law / law.sum()


def tsallis_learn(policy, state, chances, t, n, horizon, arm, x, extra):
    loss, eta = 1 - x, tsallis_eta(policy, t, horizon)
    if getattr(policy, "estimator", "IW") == "IW":
        return state + (np.arange(n) == arm) * loss / chances[arm]
    base = 0.5 * (chances >= eta**2)
    return state + (np.arange(n) == arm) * (loss - base) / chances + base


def shared_rates(policy, n, horizon):
    """Share of exploration, share of all weight."""
    hardness = (policy.changes + 1) * math.log(n * horizon) + math.e
    gamma = policy.gamma or min(1.0, math.sqrt(n * hardness / ((math.e - 1) * horizon)))
    return gamma, math.e * (1 / horizon if policy.alpha is None else policy.alpha)


def shared_rule(policy, state, t, n, horizon, extra):
    gamma, _ = shared_rates(policy, n, horizon)
    weights = np.exp(state - state.max())
    return (1 - gamma) * weights / weights.sum() + gamma / n


def shared_learn(policy, state, chances, t, n, horizon, arm, x, extra):
    gamma, share = shared_rates(policy, n, horizon)
    weights = np.exp(state - state.max())
    total = weights.sum()
    weights[arm] *= math.exp(gamma * x / (n * chances[arm]))
    return np.log(weights + share * total / n)


LEARN = {
    "Exp3S": shared_learn,
    "Exp3": exp3_learn,
    "Exp3P": exp3p_learn,
    "Exp3PMultiBoost": multiboost_learn,
    "Exp3IX": ix_learn,
    "Exp3PlusPlus": new_learn,
    "Exp3PlusPlus2014": old_learn,
    "TsallisINF": tsallis_learn,
    "INF": tsallis_learn,
}


# -- evidence-weighted Boltzmann exploration -------------------------------------------------------------------


def two_moments(mean, variance, goal, highest):
    if goal <= mean:
        return 0.0
    if goal >= highest:
        return math.inf
    room = highest - mean
    p = variance / (variance + room**2)
    return kl(p, 1 - (highest - goal) * room / (variance + room**2))


def evidence_tables(policy, history, n):
    """The tables that arms are drawn from as (share, number, mean, variance), the range seen, and how many alarms there were."""
    fresh = np.zeros((n, 3))  # number, sum and sum of squares of the rewards that count
    kept = [[] for _ in range(n)]  # (number, sum, sum of squares, exposure) at level 1
    era, past, said, unit, level, recent, prior, newness = None, None, None, None, 1.0, None, None, 1.0
    blocks, watched, patience, alarms, everything = [], None, 1.0, 0, []
    for _, rewards in history:
        for k, x in rewards.items():
            everything.append(x)
            low, high = min(everything), max(everything)
            before = fresh[k].copy()
            fresh[k] += 1, x, x * x
            if unit is not None:
                era[k].append((x, level))
                if k == unit:
                    kept[k].append((1, 0, 0, 0))
                    recent = recent[0] + x, recent[1] + past[k][1]
                    recent = tuple(part * min(1, 32 * high / recent[1]) for part in recent)
                    level = max(recent[0] / recent[1], 1e-3)
                else:
                    kept[k].append((1, x, x * x, level))
                    said[k] = order_odds(era[k], past[k], len(era[unit]), high)  # when it is observed
                    agreeing = sum(min(v, 0) for v in said.values())
                    newness = 1 / (
                        1 + math.exp(-(prior + sum(max(v, 0) for v in said.values()) + max(agreeing, -6)))
                    )
            if watched is None or (k != watched and fresh[k, 0] > fresh[watched, 0]):
                watched, blocks = k, [list(before)] if before[0] else []
            if not policy.forget or k != watched:
                continue
            blocks = merged([*blocks, [1, x, x * x]])
            older = first_block_after_change(blocks, low, high, patience)
            if older is None:
                continue
            alarms += 1
            old, new = np.sum(blocks[:older], axis=0), np.sum(blocks[older:], axis=0)
            blocks = blocks[older:]
            most = min(math.log(9), 0.3 * (n - 1))
            if unit is None or newness > 0.5:
                kept = [[(*row, row[0])] if row[0] else [] for row in fresh]
                kept[k] = [(old[0] + new[0], old[1], old[2], old[0])]
                prior = most if unit is None else min(prior + 4, most)
                patience = max(patience / 2, 1.0) if unit is not None else 1.0
            else:
                prior, patience = max(prior - 2, -2), min(1.2 * patience, 64)
            unit, said, newness = k, {}, 1 / (1 + math.exp(-prior))
            tables = [np.sum(rows, axis=0) if rows else None for rows in kept]
            past = [(0, 0.0) if row is None else (row[0], row[1] / row[3]) for row in tables]
            past[k] = past[k][0] - new[0], max(past[k][1], 1e-4 * high)
            recent = new[1], new[0] * past[k][1]
            recent = tuple(part * min(1, 32 * high / recent[1]) for part in recent)
            level = max((recent[0] + high / 2) / (recent[1] + high / 2), 1e-3)
            era = [[] for _ in range(n)]
            era[k] = [(new[1] / new[0], level)] * int(new[0])
            for j in range(n):
                if fresh[j, 0]:
                    mean = min(level * tables[j][1] / tables[j][3], 0.999 * high)
                    square = max(level * tables[j][2] / tables[j][3], mean**2)
                    fresh[j] = np.array([1, mean, square]) * min(2, past[j][0])
            fresh[k] = new
    number = fresh[:, 0]
    mean = np.divide(fresh[:, 1], number, out=np.zeros(n), where=number > 0)
    square = np.divide(fresh[:, 2], number, out=np.zeros(n), where=number > 0)
    result = [(newness, number, mean, np.maximum(square - mean**2, 0))]
    if unit is not None:
        sums = np.array([np.sum(rows, axis=0) if rows else (0, 0, 0, 1) for rows in kept], float)
        mean = np.minimum(level * sums[:, 1] / sums[:, 3], 0.999 * high)
        result.append(
            (1 - newness, sums[:, 0], mean, np.maximum(level * sums[:, 2] / sums[:, 3] - mean**2, 0))
        )
    return result, (min(everything), max(everything)), alarms


def order_odds(era, past, n_unit, high):
    """What the rewards of an era say for a new order, of an arm of which so many were seen before, with this mean."""
    if not era or not past[0] or not high:
        return 0.0
    n, paid = len(era), sum(x for x, _ in era) / high
    q = min(max(past[1] * sum(level for _, level in era) / n / high, 1e-4), 1 - 1e-4)

    def log_likelihood(strength):
        a, b = strength * q, strength * (1 - q)
        return betaln(min(paid, n) + a, n - min(paid, n) + b) - betaln(a, b)

    return log_likelihood(1 / (1 / past[0] + 1 / 4 + 1 / n_unit)) - log_likelihood(
        1 / (1 / past[0] + 1 / n_unit)
    )


def merged(blocks):
    """At most two blocks of each size: where there are three, the older two become one."""
    while True:
        sizes = [block[0] for block in blocks]
        three = [i for i in range(len(sizes) - 2) if sizes[i] == sizes[i + 1] == sizes[i + 2]]
        if not three:
            return blocks
        blocks[three[-1] : three[-1] + 2] = [list(np.add(blocks[three[-1]], blocks[three[-1] + 1]))]


def first_block_after_change(blocks, low, high, patience):
    """The border of the most likely change, None where nothing shows one."""
    total = np.sum(blocks, axis=0)
    if high == low or (total[0] > 32 and total[0] % 8):
        return None
    whole = (total[1] / total[0] - low) / (high - low)
    if not 1e-9 < whole < 1 - 1e-9:
        return None
    found = {}
    for i in range(1, len(blocks)):
        pair = np.sum(blocks[:i], axis=0), np.sum(blocks[i:], axis=0)
        found[i] = sum(m * kl(np.clip((paid / m - low) / (high - low), 0, 1), whole) for m, paid, _ in pair)
    best = max(found, key=found.get, default=None)
    return best if best is not None and found[best] > patience * (4 + 1.5 * math.log(total[0])) else None


def newcomers(came):
    """The last arms, as far as they came in the second half of the time before the last of all did."""
    new = []
    for k in reversed(range(len(came))):
        if came[k] == 0 or 2 * came[k] <= max(came):
            break
        new.append(k)
    return new


def evidence(policy, history, n, horizon, shows=None, came=None):
    """``came`` says after how many observations each arm came, where arms came later."""
    new = newcomers(came or [0])
    taken = np.full(n, 1 / n)
    if new:
        taken /= 2
        taken[new] += 1 / (2 * len(new))
    caution = min(1.0, policy.safety / math.sqrt(len(history) + 1))
    tables, highest = [(1.0, np.zeros(n), np.zeros(n), np.zeros(n))], 1.0
    if history:
        tables, (_, highest), _ = evidence_tables(policy, history, n)
    law = np.zeros(n)
    for share_of_table, number, mean, variance in tables:
        lead = (
            min(np.flatnonzero(number), key=lambda k: (-round(mean[k], 13), number[k], k))
            if history
            else None
        )
        for cautious, share_of in ((True, caution), (False, 1 - caution)):
            weights = np.minimum(1 / (n * taken), 1)
            for k in np.flatnonzero(number):
                x = number[k] * two_moments(mean[k], variance[k], mean[lead], 1.0 if cautious else highest)
                weights[k] = math.erfc(math.sqrt(x))
            if lead is not None:
                weights[lead] = (1 - np.delete(taken * weights, lead).sum()) / taken[lead]
            for k in range(n):
                play = k
                if shows is not None and policy.aim and k != lead:
                    play = best_observer(mean, shows(len(history) + 1), weights, lead, k)
                law[play] += share_of_table * share_of * taken[k] * weights[k]
    return law


def best_observer(mean, graph, weights, lead, k):
    who = [i for i in range(len(mean)) if graph[i, k] and i != k] + [k]
    if lead in who:
        return lead
    loss = np.ones(len(mean)) if lead is None else mean[lead] - mean
    worth = np.where(np.arange(len(mean)) == lead, 0.0, weights) if lead is not None else weights
    return min(who, key=lambda i: loss[i] / max(graph[i] @ worth, 1e-300))


# -- draws whose winner plays: an integral over the winner's draw ------------------------------------------


def posteriors(policy, history, n):
    seen = [observed(history, k) for k in range(n)]
    a = np.array([policy.successes + sum(x) for x in seen])
    return a, np.array([policy.failures + len(x) - sum(x) for x in seen])


def best_of_betas(a, b):
    """The chance of each arm to have the largest draw, an integral over its value (finer towards both ends)."""
    u = (np.arange(6000) + 0.5) / 6000
    x = u**2 * (3 - 2 * u)
    below = betainc(a[:, None], b[:, None], x)
    logs = (a[:, None] - 1) * np.log(x) + (b[:, None] - 1) * np.log1p(-x) - betaln(a, b)[:, None]
    density = np.exp(logs) * 6 * u * (1 - u) / 6000
    law = np.array([(density[k] * np.delete(below, k, axis=0).prod(axis=0)).sum() for k in range(len(a))])
    assert abs(law.sum() - 1) < 1e-4
    return law / law.sum()


def thompson(policy, history, n, horizon):
    return best_of_betas(*posteriors(policy, history, n))


def ts_u(policy, history, n, horizon):
    epsilon = 1 / math.sqrt(horizon or len(history) + 1) if policy.epsilon is None else policy.epsilon
    return epsilon / n + (1 - epsilon) * thompson(policy, history, n, horizon)


def epsilon_thompson(policy, history, n, horizon):
    """Over the sets of arms that have a draw: the others stand at their means, of which the best is a floor."""
    seen = [observed(history, k) for k in range(n)]
    if not all(seen):
        return share([0.0 if x else 1.0 for x in seen])
    epsilon = 1 / n if policy.epsilon is None else policy.epsilon
    means, law = np.array([np.mean(x) for x in seen]), np.zeros(n)
    a, b = 1 + means * [len(x) for x in seen], 1 + (1 - means) * [len(x) for x in seen]
    for drawn in range(2**n):
        sampled = np.array([drawn >> k & 1 for k in range(n)], bool)
        chance = np.prod(np.where(sampled, epsilon, 1 - epsilon))
        if sampled.all():
            law += chance * best_of_betas(a, b)
            continue
        floor = means[~sampled].max()
        stays = np.prod(betainc(a[sampled], b[sampled], floor))
        law[~sampled] += chance * stays * share(means[~sampled])
        if floor == 1.0:
            continue
        u = (np.arange(3000) + 0.5) / 3000
        x = floor + (1 - floor) * u**2 * (3 - 2 * u)
        below = betainc(a[:, None], b[:, None], x)
        wins = np.zeros(n)
        for k in np.flatnonzero(sampled):
            logs = (a[k] - 1) * np.log(x) + (b[k] - 1) * np.log1p(-x) - betaln(a[k], b[k])
            others = [below[j] for j in np.flatnonzero(sampled) if j != k]
            density = np.exp(logs) * (1 - floor) * 6 * u * (1 - u) / 3000
            wins[k] = (density * np.prod(others, axis=0)).sum()
        law += chance * wins
    assert abs(law.sum() - 1) < 1e-3
    return law / law.sum()


def gumbel(policy, history, n, horizon):
    """Boltzmann-Gumbel: over the noise of the winner, or over the one noise of all, whose sign moves fresh arms."""
    seen = [observed(history, k) for k in range(n)]
    fresh = np.array([not x for x in seen])
    if fresh.all() or (fresh.any() and not policy.shared_noise):
        return fresh / fresh.sum()
    mean = np.array([np.mean(x) if x else 0.0 for x in seen])
    width = np.array([policy.scale / math.sqrt(len(x)) if x else 1e9 for x in seen])
    z = -np.log(-np.log((np.arange(20_000) + 0.5) / 20_000))
    if policy.shared_noise:
        return np.mean([share(mean + width * one) for one in z[::4]], axis=0)
    law = []
    for k in range(n):
        reached = mean[k] + width[k] * z
        below = [np.clip((reached - mean[j]) / width[j], -6, 700) for j in range(n) if j != k]
        law.append(np.prod(np.exp(-np.exp(-np.array(below))), axis=0).mean())
    return np.array(law) / sum(law)


def screening(policy, history, n, horizon):
    """Hill's function of what an arm pays above the baseline, mixed with uniform choice."""
    weight = np.ones(n)
    for k in range(n):
        mean, x = 0.0, observed(history, k)
        for count, reward in enumerate(x, 1):
            mean += (reward - mean) / min(count, policy.memory)
        if len(x):
            excess = max(mean - policy.baseline, 0) + policy.width / math.sqrt(min(len(x), policy.memory))
            weight[k] = excess**4 / (excess**4 + policy.half**4)
    total = sum(len(observed(history, k)) for k in range(n))
    even = policy.exploration * n / (policy.exploration * n + total) if total else 1.0
    return (1 - even) * weight / weight.sum() + even / n


def transport_costs(policy, seen):
    means = [np.mean(x) for x in seen]
    lead = int(np.argmax(means))
    costs = []
    for x in seen:
        both = np.mean([*seen[lead], *x])
        cost = len(seen[lead]) * kl(means[lead], both) + len(x) * kl(np.mean(x), both)
        costs.append(cost + math.log(len(x)))
    return lead, np.array(costs)


def top_two(policy, history, n, horizon):
    seen = [observed(history, k) for k in range(n)]
    if not all(seen):
        return share([0.0 if x else 1.0 for x in seen])
    lead, costs = transport_costs(policy, seen)
    rivals = np.delete(np.arange(n), lead)
    law = np.zeros(n)
    law[rivals] = (1 - policy.share) * (softmax(-costs[rivals]) if policy.soft else share(-costs[rivals]))
    law[lead] = policy.share
    return law


def certify(policy, history, n, horizon):
    inner = policy.policy
    more = (None,) if type(inner).__name__ == "Evidence" else ()
    law = LAWS[type(inner).__name__](inner, history, n, horizon, *more)
    return policy.share * law + (1 - policy.share) * top_two(TopTwo(), history, n, horizon)


def kl_lucb(policy, history, n, horizon):
    seen = [observed(history, k) for k in range(n)]
    if not all(seen):
        return share([0.0 if x else 1.0 for x in seen])
    lead = int(np.argmax([np.mean(x) for x in seen]))
    if len(history) % 2 == 0:
        return np.eye(n)[lead]
    level = math.log((1 + math.log(len(history) + 1)) / policy.risk)
    bounds = np.array(
        [-1.0 if k == lead else kl_level(np.mean(x), level / len(x)) for k, x in enumerate(seen)]
    )
    challenges = bounds >= bounds.max() - 1e-10
    return challenges / challenges.sum()


def kl_level(mean, level):
    low, high = mean, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if kl(mean, middle) <= level else (low, middle)
    return low


def proof_weights(means):
    """Shares of the fastest proof (Garivier and Kaufmann 2016, Theorem 5): roots found by Brent's method."""
    lead = int(np.argmax(means))
    rivals = [k for k in range(len(means)) if k != lead]

    def middle(x, k):
        return (means[lead] + x * means[k]) / (1 + x)

    def weight(cost, k):
        def rate(log_x):
            x = math.exp(log_x)
            return kl(means[lead], middle(x, k)) + x * kl(means[k], middle(x, k)) - cost

        if rate(18.0) < 0:
            return math.exp(18.0)
        return math.exp(brentq(rate, -30.0, 18.0, xtol=1e-13))

    def excess(cost):
        xs = [weight(cost, k) for k in rivals]
        pairs = zip(xs, rivals, strict=True)
        return sum(kl(means[lead], middle(x, k)) / kl(means[k], middle(x, k)) for x, k in pairs) - 1

    most = min(kl(means[lead], means[k]) for k in rivals)
    low, high = 0.0, most * (1 - 1e-9)
    for _ in range(60):
        cost = (low + high) / 2
        low, high = (cost, high) if excess(cost) < 0 else (low, cost)
    shares = np.ones(len(means))
    shares[rivals] = [weight(low, k) for k in rivals]
    return shares / shares.sum()


def tracking(policy, history, n, horizon):
    t, seen = len(history) + 1, [observed(history, k) for k in range(n)]
    counts = np.array([len(x) for x in seen], float)
    if counts.min() <= max(math.sqrt(t) - n / 2, 0):
        return share(-counts)
    means = np.clip([np.mean(x) for x in seen], 1e-6, 1 - 1e-6)
    tied = means >= means.max() - 1e-9
    return share(t * (tied / tied.sum() if tied.sum() > 1 else proof_weights(means)) - counts)


def successive_halving(policy, history, n, horizon):
    rounds = max(math.ceil(math.log2(n)), 1)
    inside, taken = np.ones(n, bool), np.zeros(n)
    for step, (_, seen) in enumerate(history):
        for k in seen:
            taken[k] += 1
        quota = max(math.floor((policy.budget or horizon) / rounds / inside.sum()), 1)
        if inside.sum() > 1 and taken[inside].min() >= quota:
            means = means_or(history[: step + 1], n, 0.0)
            worst = sorted(np.flatnonzero(inside), key=lambda k: (means[k], -k))
            inside[worst[: len(worst) // 2]] = False
            taken[:] = 0
    return share(np.where(inside, -taken, -1e9 * (1 + taken)))


LAWS = {
    "Boltzmann": boltzmann,
    "BoltzmannGumbel": gumbel,
    "Certify": certify,
    "DTracking": tracking,
    "EpsilonGreedy": epsilon,
    "EpsilonThompson": epsilon_thompson,
    "Evidence": evidence,
    "Exp3": weights(exp3_rule),
    "Exp3IX": weights(ix_rule),
    "Exp3S": weights(shared_rule),
    "Exp3P": weights(exp3p_rule),
    "Exp3PMultiBoost": weights(multiboost_rule),
    "Exp3PlusPlus": weights(new_rule),
    "Exp3PlusPlus2014": weights(old_rule),
    "ExploreThenCommit": explore_then_commit,
    "FollowTheLeader": indexed(lambda policy, x, t, n, horizon: x.mean()),
    "IMED": imed,
    "INF": weights(tsallis_rule),
    "KLLUCB": kl_lucb,
    "KLUCB": indexed(kl_bound),
    "KLUCBPlusPlus": indexed(kl_bound_plus),
    "MOSS": indexed(moss),
    "Maillard": maillard(
        lambda policy, mean, top: (
            kl(mean, top)
            if policy.divergence == "bernoulli"
            else (top - mean) ** 2 / (2 * policy.deviation**2)
        )
    ),
    "Screening": screening,
    "SuccessiveHalving": successive_halving,
    "TSU": ts_u,
    "Thompson": thompson,
    "TopTwo": top_two,
    "TsallisINF": weights(tsallis_rule),
    "UCB1": indexed(
        lambda policy, x, t, n, horizon: x.mean() + math.sqrt(policy.scale * math.log(t) / len(x))
    ),
    "UCBV": indexed(ucbv),
    "Uniform": lambda policy, history, n, horizon: np.full(n, 1 / n),
}
