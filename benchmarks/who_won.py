"""False winners, times to a winner, regret and widths of the tests of `abex.inference`, as tables.

    python -m benchmarks.who_won [--runs 10000] [--only false|stops|certify|widths|rivals] [--out docs/why_one_may_look_tables.md]

Seeds are fixed. Every step is looked at. Two equal arms name a winner with at most twice the risk (either direction).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from abex import Certify, EpsilonGreedy, Evidence, Setting, Thompson, TopTwo, Uniform
from abex.inference import betting, moments, sums
from abex.kernels import Record, compiled, kernel
from abex.samplers.scan import pick
from abex.theory import garivier_kaufmann

RISK = 0.05
STEPS = 2_000
POLICIES = (Uniform(), EpsilonGreedy(), Evidence(), TopTwo(), Certify())
COINS, HEAVY, NARROW = range(3)
REWARDS = ("coins", "heavy tail", "small variance")
CONSTANT, SEASON, JUMPS = range(3)
LEVELS = ("constant", "season of 50 %", "jumps .5 / 1.3")
TEST = (
    [0.5, 0.45], [0.1, 0.12], [0.02, 0.03], [0.5, 0.48], [0.6, 0.5, 0.5, 0.5, 0.5], [0.12, 0.1, 0.1, 0.1],
    [0.7, 0.65, 0.5, 0.4, 0.3], [0.3, 0.25, 0.2, 0.15, 0.1, 0.05], [0.55] + [0.45] * 9, [0.8, 0.7, 0.7], [0.9, 0.85],
    [0.2, 0.18, 0.1], [0.05, 0.04], [0.5] + [0.3] * 19, [0.4, 0.35, 0.35], [0.95, 0.9, 0.8], [0.06, 0.05, 0.04],
    [0.65, 0.6, 0.3, 0.3], [0.25, 0.2], [0.5, 0.4, 0.39, 0.38, 0.37],
)  # fmt: skip
PARTS = ([0.6, 0.5, 0.5, 0.5, 0.5], [0.12, 0.1, 0.1, 0.1], [0.7, 0.65, 0.5, 0.4, 0.3], [0.6, 0.5])


class World(Record):
    """Means, what rewards look like, how their common level moves; what came of a run."""

    means: Any
    law: Any  # room for probabilities
    kind: int
    level: int
    stop: int  # the step of a decision, 0 for none
    winner: int
    regret: float


@kernel
def level_at(world: World, t: int) -> float:
    """The common level of all arms at step t."""
    if world.level == SEASON:
        return 1.0 + 0.5 * math.sin(t * 2.0 * math.pi / 500.0)
    if world.level == JUMPS:
        return 0.5 if (t // 300) % 2 == 1 else 1.3
    return 1.0


@kernel
def paid(world: World, t: int, arm: int, rng: Any) -> float:
    """The reward of an arm at step t."""
    mean = world.means[arm] * level_at(world, t)
    if world.kind == COINS:
        return 1.0 if rng.random() < mean else 0.0
    if world.kind == HEAVY:
        return rng.random() ** 9 if rng.random() < 10.0 * mean else 0.0
    return mean * (0.9 + 0.2 * rng.random())


@cache
def player(policy: Any) -> Callable[..., None]:
    """A run of a policy, compiled: it draws from the policy's own probabilities and stops when one arm is left over."""
    law, update = policy.probabilities, policy.kernels().update

    @compiled(law, update, paid, pick, betting.take_in, betting.left_over)
    def run(state: Any, bets: Any, world: Any, steps: int, bar: float, rng: Any) -> None:
        best = 0.0
        for k in range(world.means.size):
            best = max(best, world.means[k])
        for t in range(1, steps + 1):
            law(state, t, world.law)
            arm = pick(world.law, 1.0, rng)
            reward = paid(world, t, arm, rng)
            world.regret += best - world.means[arm]
            betting.take_in(bets, arm, reward, world.law)
            update(state, t, arm, arm, reward, rng)
            found = betting.left_over(bets, bar)
            if found >= 0:
                world.stop, world.winner = t, found
                return

    return run


def play(
    policy: Any,
    means: list[float],
    runs: int,
    steps: int,
    risk: float,
    kind: int = COINS,
    level: int = CONSTANT,
) -> Any:
    """(winner or -1, step of the decision or 0, regret) of each run."""
    out = np.zeros((runs, 3))
    for run in range(runs):
        world = World(means=np.array(means), law=np.zeros(len(means)), kind=kind, level=level, winner=-1)
        rng = np.random.Generator(np.random.PCG64([32, run, kind, level]))
        state = policy.start(Setting(len(means), steps))
        player(policy)(state, betting.new_comparison(len(means)), world, steps, 1.0 / risk, rng)
        out[run] = world.winner, world.stop, world.regret
    return out


def share(found: Any) -> str:
    """A share with its standard error."""
    p = float(np.mean(found))
    return f"{p:.3f} ± {math.sqrt(max(p * (1 - p), 1e-9) / len(found)):.3f}"


def table(headings: list[str], rows: list[list[str]]) -> str:
    """Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [headings, ["---"] * len(headings), *rows])


def false_winners(runs: int) -> str:
    """Two equal arms, and two that differ by .01: how often a winner is named, and how often the wrong one."""
    rows = []
    for kind, mean in ((COINS, 0.3), (HEAVY, 0.06), (NARROW, 0.3)):
        for level in range(3):
            cells = [f"{REWARDS[kind]}, {LEVELS[level]}"]
            for policy in (*POLICIES, Thompson(resample=False)):
                few, steps = (max(runs // 20, 1), 500) if isinstance(policy, Thompson) else (runs, STEPS)
                found = play(policy, [mean, mean], few, steps, RISK, kind, level)
                cells.append(share(found[:, 0] >= 0))
            rows.append(cells)
    text = f"Two *equal* arms, {STEPS:,} steps, risk {RISK}: share of {runs:,} runs that name a winner (bound {2 * RISK}; "
    text += f"Thompson: {runs // 20:,} runs of 500 steps).\n\n"
    text += table(["rewards, level", *map(str, POLICIES), "Thompson"], rows)
    cells = [
        share(play(policy, [0.31, 0.30], runs, STEPS, RISK, COINS, level)[:, 0] == 1)
        for level in range(3)
        for policy in POLICIES
    ]
    rows = [
        [LEVELS[level], *cells[level * len(POLICIES) : (level + 1) * len(POLICIES)]] for level in range(3)
    ]
    return (
        text
        + f"\n\nCoins .31 and .30: share that names the wrong one (bound {RISK}).\n\n"
        + table(["level", *map(str, POLICIES)], rows)
    )


def stops(runs: int) -> str:
    """Median stop over the lower bound at risk .01, for soft top-two and uniform choice."""
    rows, ratios = [], []
    for means in TEST:
        bound = garivier_kaufmann(means, 0.01)
        cells = [
            ", ".join(f"{m:g}" for m in means[:6]) + (", ..." if len(means) > 6 else ""),
            f"{bound:,.0f}",
        ]
        for policy in (TopTwo(), Uniform()):
            found = play(policy, means, max(runs // 100, 20), int(40 * bound), 0.01)
            median = float(np.median(np.where(found[:, 1] > 0, found[:, 1], np.inf))) / bound
            cells.append(f"{median:.2f}")
            ratios.append(median)
        rows.append(cells)
    soft = np.array(ratios[0::2])
    two = [
        ratio
        for ratio, means in zip(soft, TEST, strict=True)
        if len(means) == 2 and abs(means[0] - means[1]) < 0.1
    ]
    text = f"Median stop over the lower bound at risk .01, bets, {max(runs // 100, 20)} runs. "
    text += f"Soft top-two: geometric mean {math.exp(np.log(soft).mean()):.2f}, largest {soft.max():.2f}; "
    text += f"two arms with gaps below .1: largest {max(two):.2f}.\n\n"
    return text + table(["means", "lower bound", "TopTwo", "Uniform"], rows)


def certify(runs: int) -> str:
    """Steps and regret until bets at risk .01 name a winner: half and half, its parts, and other shares."""
    rows, few, rest, most = [], max(runs // 50, 20), max(runs // 500, 10), 3_000_000
    for means in PARTS:
        cells = [", ".join(f"{m:g}" for m in means)]
        for policy in (Uniform(), TopTwo(), Certify(), Certify(share=0.6), Certify(share=0.7), Evidence()):
            found = play(policy, means, rest if policy == Evidence() else few, most, 0.01)
            stopped = found[:, 1] > 0
            steps = np.median(np.where(stopped, found[:, 1], most))
            error = found[:, 2].std() / math.sqrt(len(found))
            cells.append(
                f"{steps:,.0f}; {found[:, 2].mean():.0f} ± {error:.0f}"
                + ("" if stopped.all() else f" ({stopped.mean():.0%} stop)")
            )
        rows.append(cells)
    text = (
        f"Median stop; mean regret at it, {few} runs (Evidence {rest}), at most {most:,} steps, risk .01.\n\n"
    )
    return text + table(["means", "Uniform", "TopTwo", "Certify", "share .6", "share .7", "Evidence"], rows)


@cache
@kernel
def growth_of_moments(count: float, total: float, squares: float, mean: float, sign: float) -> float:
    """Evidence by moments that a mean is above (sign 1) or below (sign -1) ``mean``."""
    _, shift, spread = moments.by_bound(count, total, squares, mean, sign)
    return moments.mixed(shift, spread)


def leaving(growth: Any, by_moments: bool) -> Any:
    """Whether a run leaves its sequence at any step, compiled."""

    @compiled(growth)
    def leaves(rewards: Any, mean: float, level: float) -> bool:
        s, q = 0.0, 0.0
        for i in range(rewards.size):
            s += rewards[i]
            q += rewards[i] * rewards[i]
            for sign in (1.0, -1.0):
                value = growth(i + 1.0, s, q, mean, sign) if by_moments else growth(i + 1.0, s, mean, sign)
                if value >= level:
                    return True
        return False

    return leaves


def drawn(name: str, rng: Any, n: int) -> tuple[Any, float]:
    """Rewards of a distribution, and their mean."""
    u = rng.random(n)
    return {
        "coins of .5": (lambda: ((u < 0.5).astype(float), 0.5)),
        "coins of .02": (lambda: ((u < 0.02).astype(float), 0.02)),
        "heavy tail, mean .015": (lambda: (u**9 * (rng.random(n) < 0.15), 0.015)),
        "small variance": (lambda: (0.25 + 0.1 * u, 0.3)),
    }[name]()


def widths(runs: int) -> str:
    """Widths over those of the fixed-time interval, and how often a sequence is left at any of 2,000 steps."""
    rows = []
    for name in ("coins of .5", "coins of .02", "heavy tail, mean .015", "small variance"):
        rng = np.random.default_rng([33, len(name)])
        coin = name.startswith("coins")
        leaves = leaving(sums.log_growth, False) if coin else leaving(growth_of_moments, True)
        left = []
        for _ in range(runs):
            x, mean = drawn(name, rng, 2_000)
            left.append(leaves(x, mean, math.log(2 / RISK)))
        cells = [name]
        for n in (100, 1_000, 10_000):
            ratios = []
            for _ in range(40):
                x, y = drawn(name, rng, n)[0], drawn(name, rng, n)[0]
                deviation = max(x.std(), 1e-9)
                one, other = ((n, z.sum(), (z * z).sum()) for z in (x, y))
                low, high = sums.interval(*one[:2]) if coin else moments.interval_by_moments(*one)
                apart = (
                    sums.difference(*one[:2], *other[:2])
                    if coin
                    else moments.difference_by_moments(one, other)
                )
                z = 2 * 1.96 / math.sqrt(n)
                ratios.append(
                    (
                        (high - low) / (z * deviation),
                        (apart[1] - apart[0]) / (z * math.hypot(deviation, max(y.std(), 1e-9))),
                    )
                )
            cells += [f"{median:.2f}" for median in np.median(ratios, axis=0)]
        rows.append([*cells, share(left)])
    heads = [f"{what}, n = {n:,}" for n in (100, 1_000, 10_000) for what in ("mean", "difference")]
    return (
        f"Width over that of the 95 % interval for one look, medians of 40; share of {runs:,} runs "
        + "that leave the sequence at any of 2,000 steps (bound .05).\n\n"
        + table(["rewards", *heads, "left"], rows)
    )


def rivals(runs: int) -> str:
    """What a fixed-horizon test that peeks, a mixture SPRT and a Bayesian dashboard say of the same experiments."""
    count, rows = max(runs // 10, 100), []
    horizon, looks = 10_000, np.arange(100, 10_001, 100)
    for name, means in (("equal, .10", (0.10, 0.10)), (".10 and .12", (0.10, 0.12))):
        found: dict[str, list[tuple[int, int]]] = {
            key: []
            for key in ("bets", "mixture SPRT", "z at the end", "z at every look", "Bayesian dashboard, .95")
        }
        for run in range(count):
            rng = np.random.default_rng([34, run])
            arm = rng.integers(0, 2, horizon)
            x = (rng.random(horizon) < np.array(means)[arm]).astype(float)
            state, when = betting.compared(arm, x, [[0.5, 0.5]], 2, RISK)
            found["bets"].append(
                (when + 1, betting.left_over(state, 1 / RISK)) if when >= 0 else (horizon, -1)
            )
            n = np.array([np.cumsum(arm == k)[looks - 1] for k in (0, 1)])
            s = np.array([np.cumsum(x * (arm == k))[looks - 1] for k in (0, 1)])
            p, both = s / n, s.sum(0) / n.sum(0)
            variance = both * (1 - both) * (1 / n).sum(0)
            z = (p[1] - p[0]) / np.sqrt(np.maximum(variance, 1e-12))
            tau = 0.02**2
            ratio = np.sqrt(variance / (variance + tau)) * np.exp(z**2 * tau / (2 * (variance + tau)))
            posterior = np.sqrt(((p * (1 - p)) / n).sum(0))
            chance = np.array(
                [
                    0.5 * math.erfc(-d / w / math.sqrt(2))
                    for d, w in zip(p[1] - p[0], np.maximum(posterior, 1e-9), strict=True)
                ]
            )
            for key, hits in (
                ("mixture SPRT", ratio >= 1 / RISK),
                ("z at every look", np.abs(z) > 1.96),
                ("z at the end", (np.abs(z) > 1.96) & (looks == horizon)),
                ("Bayesian dashboard, .95", np.abs(chance - 0.5) > 0.45),
            ):
                first = int(np.argmax(hits)) if hits.any() else -1
                found[key].append((int(looks[first]), int(z[first] > 0)) if first >= 0 else (horizon, -1))
        for key, values in found.items():
            when, who = np.array(values).T
            wrong = who >= 0 if means[0] == means[1] else who == 0
            regret = (
                (means[1] - means[0]) / 2 * when
                + (means[1] - means[0]) * (horizon - when) * (who == 0)
                + (means[1] - means[0]) / 2 * (horizon - when) * (who < 0)
            )
            rows.append(
                [name, key, share(wrong), share(who >= 0), f"{np.median(when):,.0f}", f"{regret.mean():.0f}"]
            )
    text = f"The same {count:,} simulated experiments of {horizon:,} visitors, half on each arm; "
    text += "after a decision all get the winner. z, SPRT and dashboard look every 100 visitors, bets at each.\n\n"
    return text + table(["arms", "rule", "false winners", "decided", "median visitors", "regret"], rows)


PARTS_OF_IT = {"false": false_winners, "stops": stops, "certify": certify, "widths": widths, "rivals": rivals}


def main() -> None:
    """Print the tables, and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--only", choices=PARTS_OF_IT, action="append")
    parser.add_argument("--out")
    options = parser.parse_args()
    texts = []
    for name in options.only or PARTS_OF_IT:
        texts.append(PARTS_OF_IT[name](options.runs))
        print(texts[-1], flush=True, end="\n\n")
    if options.out:
        Path(options.out).write_text("\n\n".join(texts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
