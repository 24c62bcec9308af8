"""What forgetting costs: nanoseconds of CPU a step beside the plain policy, on one core.

    python -m benchmarks.forgetting                    the tables of docs/changing_worlds.md and docs/late_rewards.md
    python -m benchmarks.forgetting --only Thompson    one policy

Runs are interleaved, medians of ``--rounds`` are shown. A policy that forgets goes on exploring as a plain one does in the
beginning, and a step that explores takes longer whoever takes it. So there are two tables. *Over a run* compares 200,000
steps of each, whatever they play. *Knowing the same* tells forgetting from playing: at `MOMENTS` moments of a run of the
discounted policy, a memory of M = 1 / (1 - gamma) steps apart, a plain one is given the counts and means that the discounted
one has then; both play M / 20 steps to settle (a fresh sampler files its arms) and then M / 5 steps on the clock, in the same
world. In so short a time the plain one learns little, and its formulas are told that it is step M all the time, as those of the
discounted one are: both explore alike.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from abex import (
    ABE,
    CUSUM,
    GLR,
    KLUCB,
    UCB1,
    Bernoulli,
    Boltzmann,
    BoltzmannGumbel,
    Discounted,
    Evidence,
    PageHinkley,
    Restarting,
    Thompson,
    Windowed,
)
from abex.kernels import Record, compiled, fields_of, laid_out
from abex.kinds import saved
from abex.policies.forgetting import shrink
from abex.policies.policy import Setting
from abex.simulation import as_checkpoints, play_replication
from abex.simulation.delays import Fixed, Geometric
from abex.support.randomness import counter_key, stream

POLICIES = {
    "UCB1": UCB1(scale=0.5), "KLUCB": KLUCB(), "Boltzmann": Boltzmann(eta=1.0), "ABE": ABE(eta=1.0), "Thompson": Thompson(),
    "Evidence": Evidence(), "BoltzmannGumbel": BoltzmannGumbel(),
}  # fmt: skip
GAMMAS = (1.0 - 1e-9, 0.999, 0.99)
STEPS = 200_000
MOMENTS = 500
ARMS = (10, 100)


def arms_of(n_arms: int) -> Bernoulli:
    """One arm is better than the others."""
    return Bernoulli([0.75] + [0.5] * (n_arms - 1))


def nanoseconds(policy, n_arms: int, steps: int, seed: int, **late) -> float:
    """CPU a step of one replication."""
    return play_replication(
        policy, arms_of(n_arms), None, as_checkpoints(10, steps), seed, 0, **late
    ).nanoseconds


def medians(runs, rounds: int) -> list[float]:
    """Of several functions of a seed, interleaved; the first call compiles."""
    for run in runs:
        run(0)
    return [float(x) for x in np.median([[run(seed) for run in runs] for seed in range(rounds)], axis=0)]


@cache
def steps_from_moments(select: Any, update: Any, draw: Any) -> Any:
    """Compiled: put a state back to each of several moments in turn, and play on from there."""

    def play(
        state: Any,
        world: Any,
        words: Any,
        moments: Any,
        begins: Any,
        stands: bool,
        steps: int,
        repeats: int,
        rng: Any,
    ) -> None:
        done = 0
        for r in range(repeats):
            moment = r % begins.size
            for j in range(words.size):
                words[j] = moments[moment, j]
            for i in range(steps):
                t = begins[moment] + (0 if stands else i)
                done += 1
                arm = select(state, t, rng)
                update(state, t, arm, arm, draw(world, done, arm), rng)

    return compiled(select, update, draw)(play)


def all_of(record: Any, known: dict[int, Any]) -> Iterator[Any]:
    """All that changes in a state, once: its arrays, and the words of its numbers."""
    if id(record) in known or not isinstance(record, Record | tuple | np.ndarray):
        return
    known[id(record)] = record
    if isinstance(record, Record):
        yield record._memory
        record = tuple(getattr(record, name) for name in fields_of(record))
    if isinstance(record, tuple):
        for field in record:
            yield from all_of(field, known)
    else:
        yield record


def in_one_piece(state: Any) -> tuple[Any, Any]:
    """A twin of the state with all that changes in it side by side in memory, and that memory as words of eight bytes."""
    words = np.zeros(sum(-(-array.nbytes // 8) for array in all_of(state, {})), np.int64)
    at, known = 0, {}  # a part of the state may stand in two places

    def place(array: Any) -> Any:
        nonlocal at
        size = -(-array.nbytes // 8)
        at += size
        view = words[at - size : at].view(np.uint8)[: array.nbytes].view(array.dtype).reshape(array.shape)
        view[...] = array
        return view

    def moved(record: Any) -> Any:
        if isinstance(record, tuple):
            fields = [moved(field) for field in record]
            return type(record)(*fields) if hasattr(record, "_fields") else tuple(fields)
        if id(record) in known:
            return known[id(record)]
        if isinstance(record, np.ndarray):
            known[id(record)] = place(record)
        elif isinstance(record, Record):
            known[id(record)] = twin = type(record).__new__(type(record))
            twin._allocate(place(record._memory))
            for name in fields_of(record):
                setattr(twin, name, moved(getattr(record, name)))
        return known.get(id(record), record)

    return moved(state), words


def put(record: Any, other: Any) -> None:
    """Write all numbers of another state of the same policy into this one."""
    if isinstance(record, np.ndarray):
        record[...] = other
    elif isinstance(record, Record):
        for name in fields_of(record):
            value = getattr(other, name)
            if isinstance(value, bool | int | float):
                setattr(record, name, value)
            else:
                put(getattr(record, name), value)


class Moments:
    """A discounted policy at several moments of a run, and the plain one that knows the same then."""

    def __init__(self, plain: Any, gamma: float, n_arms: int) -> None:
        self.plain, self.policy = plain, Discounted(plain, gamma=gamma)
        self.memory, self.setting = round(1.0 / (1.0 - gamma)), Setting(n_arms)
        self.arms = arms_of(n_arms)
        self.world = self.arms.open(counter_key(1, "moments"), STEPS)
        state, t = self.policy.start(self.setting), 1
        found = []
        for moment in range(MOMENTS):
            steps = self.memory * (20 if moment == 0 else 1)
            self.play(self.policy, state, t, steps, moment)
            t += steps
            found.append((copy.deepcopy(state), self.knowing(state), t))
        self.discounted = self.settled(self.policy, [(state, t) for state, _, t in found])
        self.undiscounted = self.settled(plain, [(state, self.memory) for _, state, _ in found])

    def knowing(self, state: Any) -> Any:
        """The plain policy with the counts and means of a discounted state."""
        faded = copy.deepcopy(state)
        shrink(faded.memory.shrinking, 1.0 / faded.memory.factor)
        known = {name: value for name, value in saved(faded).items() if name != "memory"}
        return self.plain.resume(self.setting, known)

    def play(self, policy: Any, state: Any, t: int, steps: int, seed: int) -> None:
        """These steps."""
        nowhere = np.zeros(0, np.int64), np.zeros((1, 0), np.int64), np.array([t])
        records, rng = (laid_out(state), laid_out(self.world)), stream(seed, "moments", str(policy))
        self.loop(policy)(*records, *nowhere, policy is self.plain, steps, 1, rng)

    def loop(self, policy: Any) -> Any:
        """`steps_from_moments` of a policy."""
        return steps_from_moments(*policy.kernels(), self.arms.draw)

    def settled(self, policy: Any, found: list[tuple[Any, int]]) -> Any:
        """A function of a seed: nanoseconds a step from these moments on."""
        settling, steps = self.memory // 20, self.memory // 5
        for moment, (state, t) in enumerate(found):
            self.play(policy, state, t, settling, moment)
        stands = policy is self.plain
        begins = np.array([t if stands else t + settling for _, t in found])
        state, words = in_one_piece(found[0][0])
        moments = np.zeros((len(found), words.size), np.int64)
        for moment, (settled, _) in enumerate(found):
            put(state, settled)
            moments[moment] = words
        records, play, repeats = (
            (laid_out(state), laid_out(self.world)),
            self.loop(policy),
            STEPS // steps,
        )

        def spent(steps: int, rng: Any) -> int:
            began = time.thread_time_ns()
            play(*records, words, moments, begins, stands, steps, repeats, rng)
            return time.thread_time_ns() - began

        def run(seed: int) -> float:
            rng = stream(seed, "clocked", str(policy))
            return (spent(steps, rng) - spent(0, rng)) / (repeats * steps)

        return run


def discounting(names: list[str], rounds: int) -> None:
    """Plain and discounted policies of ten and a hundred arms, over a run."""
    print("| policy | arms | plain | " + " | ".join(f"gamma {gamma:.9g}" for gamma in GAMMAS) + " |")
    print("|---|---:|---:|" + "---:|" * len(GAMMAS))
    for name in names:
        plain = POLICIES[name]
        for n_arms in ARMS:
            runs = [
                lambda seed, policy=policy, n=n_arms: nanoseconds(policy, n, STEPS, seed)
                for policy in [plain, *(Discounted(plain, gamma=gamma) for gamma in GAMMAS)]
            ]
            base, *others = medians(runs, rounds)
            cells = [f"{x:.0f} ({x / base:.1f})" for x in others]
            print(f"| {name} | {n_arms} | {base:.0f} | " + " | ".join(cells) + " |", flush=True)


def knowing_the_same(names: list[str], rounds: int) -> None:
    """The same where the plain policy knows what the discounted one knows."""
    print("\n| policy | arms | " + " | ".join(f"plain | gamma {gamma:.9g}" for gamma in GAMMAS[1:]) + " |")
    print("|---|---:|" + "---:|---:|" * (len(GAMMAS) - 1))
    for name in names:
        for n_arms in ARMS:
            pairs = [Moments(POLICIES[name], gamma, n_arms) for gamma in GAMMAS[1:]]
            found = medians([run for pair in pairs for run in (pair.undiscounted, pair.discounted)], rounds)
            cells = [f"{x:.0f} | {y:.0f} ({y / x:.1f})" for x, y in zip(found[::2], found[1::2], strict=True)]
            print(f"| {name} | {n_arms} | " + " | ".join(cells) + " |", flush=True)


def windows(rounds: int) -> None:
    """A window of any width; detectors."""
    plain = UCB1(scale=0.5)
    widths = (100, 1000, 10_000, 100_000, 1_000_000)
    found = medians(
        [
            lambda seed, p=p: nanoseconds(p, 10, 3 * STEPS, seed)
            for p in (plain, *(Windowed(plain, width=w) for w in widths))
        ],
        rounds,
    )
    print("\n| plain | " + " | ".join(f"width {w:,}" for w in widths) + " |\n|" + "---:|" * (len(widths) + 1))
    print("| " + " | ".join(f"{x:.0f}" for x in found) + " |")
    detectors = (GLR(window=100), GLR(window=1000), GLR(window=10_000), CUSUM(), PageHinkley())
    found = medians(
        [lambda seed, d=d: nanoseconds(Restarting(plain, detector=d), 10, STEPS, seed) for d in detectors],
        rounds,
    )
    print("\n| " + " | ".join(str(d) for d in detectors) + " |\n|" + "---:|" * len(detectors))
    print("| " + " | ".join(f"{x:.0f}" for x in found) + " |")


def delays(rounds: int) -> None:
    """What late rewards cost a step."""
    kinds = {
        "at once": {},
        "Fixed(50)": {"delay": Fixed(50)},
        "Geometric(200)": {"delay": Geometric(200)},
        "batch 32": {"batch": 32},
    }
    print("\n| policy | " + " | ".join(kinds) + " |\n|---|" + "---:|" * len(kinds))
    for name in ("UCB1", "ABE"):
        runs = [
            lambda seed, policy=POLICIES[name], late=late: nanoseconds(policy, 10, STEPS, seed, **late)
            for late in kinds.values()
        ]
        print(f"| {name} | " + " | ".join(f"{x:.0f}" for x in medians(runs, rounds)) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    discounting(given.only, given.rounds)
    knowing_the_same(given.only, given.rounds)
    if given.only == list(POLICIES):
        windows(given.rounds)
        delays(given.rounds)
