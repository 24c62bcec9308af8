"""Forged player files: one field changed at a time, the checksum made right again, then loaded and played.

`cases(rng)` draws cases for ever, `run(case)` says what came of one: "worked" (valid arms, finite probabilities) or
"refused" (one `UserError`); anything else raises. A crash takes the process along and a hang stays, so run it in one of its own::

    python -m tests.fuzz.players 1000 --seed 7 --limit 20
"""

from __future__ import annotations

import argparse
import base64
import faulthandler
import functools
import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from abex import Player, UserError
from abex.graphs import DropOut, ErdosRenyiEachStep, GraphSequence, cliques, erdos_renyi, star
from abex.kernels import Record
from abex.kinds import Arms, Score, Series
from abex.players.player_file import player_text, read_player, with_checksum
from abex.policies import known_policies, parse_policy
from abex.policies.attribution import can_weigh
from abex.policies.policy import Policy, Setting, plays_on
from tests.examples import examples

ARMS = (1, 3, 9, 30, 100)
STEPS = 40
PLAYED = 12
CASES_OF_ONE = 12  # making a saved player costs more than changing it
COMPILED = (("UCB1(scale=2.0)", 3), ("ABE(eta=1.0, c=1.0, alpha=0.5)", 9), ("ExploreThenCommit()", 3))
NUMBERS: list[Any] = [-1, 0, 1, 2, 0.5, -0.5, 1e-300, -1e300, 1e300, 2**31 - 1, -(2**31), 2**53, 2**63 - 1]
NUMBERS += [-(2**63), 2**63, 2**64, 10**30, float("nan"), float("inf"), -float("inf")]
ODD = ["", "x", None, True, False, [], {}, [1], "9" * 5000]


class OwnState(Record):
    """A state of another package whose index is not declared as one."""

    gains: Score
    last: Series
    rate: float


@dataclass(frozen=True)
class FuzzedOwn(Policy[OwnState]):
    """Plays the arm after the last one that paid, by an index that nobody declared."""

    rate: float = 0.5

    def start(self, setting: Setting) -> OwnState:
        return OwnState(gains=np.zeros(setting.n_arms), last=np.zeros(1, np.int64), rate=self.rate)

    @staticmethod
    def select(state: Any, t: int, rng: Any) -> int:
        best = int(state.last[0])
        return (
            best
            if rng.random() < state.rate or state.gains[best] > 0.0
            else int(rng.random() * state.gains.size)
        )

    @staticmethod
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        state.gains[seen] += reward
        if state.gains[seen] > state.gains[state.last[0]]:
            state.last[0] = seen


class DeclaredState(Record):
    """The same with the kind of an index."""

    gains: Score
    last: Arms
    rate: float


@dataclass(frozen=True)
class FuzzedDeclared(FuzzedOwn):
    """The same with the kind of an index."""

    def start(self, setting: Setting) -> Any:
        return DeclaredState(gains=np.zeros(setting.n_arms), last=np.zeros(1, np.int64), rate=self.rate)


class TupleState(NamedTuple):
    """The same as a NamedTuple."""

    gains: np.ndarray
    last: np.ndarray
    rate: float


@dataclass(frozen=True)
class FuzzedTuple(FuzzedOwn):
    """The same with a NamedTuple, which plays and is not saved."""

    def start(self, setting: Setting) -> Any:
        return TupleState(np.zeros(setting.n_arms), np.zeros(1, np.int64), self.rate)


class Case(NamedTuple):
    """A saved player, where in it something is changed, and to what."""

    policy: str
    n_arms: int
    graph: str
    compiled: bool
    path: tuple[Any, ...]
    change: str
    number: int  # seeds what is left to chance


def graph_of(kind: str, n_arms: int) -> Any:
    """A graph by its name."""
    return {
        "none": lambda: None,
        "random": lambda: erdos_renyi(n_arms, 0.3, seed=1),
        "directed": lambda: erdos_renyi(n_arms, 0.3, seed=2, directed=True),
        "dropping": lambda: DropOut(erdos_renyi(n_arms, 0.4, seed=3), keep=0.5),
        "drawn": lambda: ErdosRenyiEachStep(n_arms, q=0.3),
        "turns": lambda: GraphSequence([star(n_arms), cliques(1, n_arms)]),
    }[kind]()


@functools.cache
def bases() -> list[tuple[str, int, str, bool]]:
    """Every policy, few and many arms, without and with graphs; a few of them compiled."""
    found = []
    for cls in known_policies().values():
        if not cls.__module__.startswith("abex.") and cls.__name__ not in ("FuzzedOwn", "FuzzedDeclared"):
            continue
        for policy in examples(cls):
            kinds = ["none"]
            if policy.needs_graph or cls.__name__ == "ABE":
                kinds = ["random", "directed"] if policy.needs_graph else ["none", "dropping", "turns"]
                if policy.needs_graph:
                    kinds += [
                        one for one in ("turns", "dropping", "drawn") if plays_on(policy, graph_of(one, 3))
                    ]
            sizes = ARMS[:3] if policy.needs_graph else ARMS
            found += [(repr(policy), n, kind, False) for n in sizes for kind in kinds]
    return found + [(policy, n, "none", True) for policy, n in COMPILED] * 4


@functools.lru_cache(maxsize=4096)
def saved(policy: str, n_arms: int, graph: str) -> dict[str, Any]:
    """The body of the file of a player in the middle of its work."""
    options: dict[str, Any] = {"horizon": 500, "seed": 3, "compiled": False}
    if graph == "none" and can_weigh(parse_policy(policy)):  # silence is weighed, and rewards may change
        options |= {"window": 3600, "conversions": "sum", "corrections": 86_400}
    player = Player(parse_policy(policy), n_arms, graph=graph_of(graph, n_arms), **options)
    rng = np.random.default_rng(4)
    waiting = []
    for step in range(STEPS if n_arms < 50 else 2 * n_arms + 20):
        waiting.append(player.decide())
        if step % 3:
            also = {(waiting[0].arm + 1) % n_arms: 0.5} if graph != "none" and n_arms > 1 else None
            oldest = waiting.pop(0)
            player.update(oldest, float(rng.random() < 0.6), also)
            if player.settings.kept is not None:
                player.update(oldest, 0.25, key="again")
                player.correct(oldest, 0.5, key=["again", None][step % 2])
        if n_arms == 3 and step == 20 and player.policy.resizable and graph == "none":
            player.add_arm()
            player.remove_arm(0)
            waiting = [decision for decision in waiting if decision.arm != 0]
        while len(waiting) > 5:
            player.update(waiting.pop(), 0.3)
    return json.loads(player_text(player))["player"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a JSON value at which something can be changed; arrays are one place each."""
    if path:
        yield path
    if isinstance(value, dict) and "data" not in value:
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 3)):
            yield from places(value[index], (*path, index))


def cases(rng: np.random.Generator) -> Iterator[Case]:
    """Cases for ever: policy after policy in random order, some changes of one saved player of each."""
    policies: dict[str, list[Any]] = {}
    for base in bases():
        policies.setdefault(base[0], []).append(base)
    while True:
        for policy in rng.permutation(sorted(policies)):
            base = policies[policy][rng.integers(len(policies[policy]))]
            body = saved(*base[:3])
            everywhere = list(places(body))
            parts = ("state", "graph", "pending", "windows", "answers")
            state = [path for path in everywhere if path[0] in parts and len(path) > 1]
            for _ in range(CASES_OF_ONE):
                chosen = state if state and rng.random() < 0.8 else everywhere
                path = chosen[rng.integers(len(chosen))]
                changes = CHANGES["array" if _is_array(_at(body, path)) else "value"]
                yield Case(*base, path, changes[rng.integers(len(changes))], int(rng.integers(2**31)))


def _at(body: Any, path: tuple[Any, ...]) -> Any:
    return functools.reduce(lambda value, key: value[key], path, body)


def _is_array(value: Any) -> bool:
    return isinstance(value, dict) and "data" in value


CHANGES = {
    "array": ["element"] * 12
    + ["swap"] * 3
    + [
        "fill",
        "reverse",
        "shorter",
        "longer",
        "empty",
        "reshape",
        "dtype",
        "cut",
        "odd",
        "gone",
        "header",
    ],
    "value": ["number"] * 3 + ["nudge"] * 3 + ["neighbour"] * 2 + ["odd", "gone", "twice"],
}


def forged(case: Case) -> str:
    """The text of the changed file."""
    body = json.loads(json.dumps(saved(*case[:3])))
    rng = np.random.default_rng(case.number)
    *above, last = case.path
    parent = _at(body, tuple(above))
    value = parent[last]
    if case.change == "gone":
        del parent[last]
    elif case.change == "odd":
        parent[last] = ODD[rng.integers(len(ODD))]
    elif _is_array(value):
        parent[last] = _changed_array(value, case, rng)
    else:
        parent[last] = _changed_value(value, parent, case, rng)
    return sealed(body)


def sealed(body: Any) -> str:
    """A file with this body and a right checksum."""
    return with_checksum(body, "abex-player", 1)


def _changed_array(value: dict[str, Any], case: Case, rng: np.random.Generator) -> Any:
    dtype = np.dtype(value["dtype"])
    array = np.frombuffer(base64.b64decode(value["data"]), dtype).copy()
    shape = list(value["shape"])
    if case.change == "header":
        return value | {"shape": [NUMBERS[rng.integers(len(NUMBERS))]]}
    if case.change == "cut":
        return value | {"data": value["data"][: len(value["data"]) // 2]}
    if case.change == "element" and array.size:
        where = [0, array.size - 1, int(rng.integers(array.size))][rng.integers(3)]
        there = array[where].item()
        numbers = [*NUMBERS, case.n_arms, case.n_arms - 1, -case.n_arms, case.n_arms + 1, *array[:3].tolist()]
        numbers += [there + 1, there - 1, 2 * there, -there, there + 1e-3] * 2
        with np.errstate(all="ignore"):
            array[where] = _cast(numbers[rng.integers(len(numbers))], dtype)
    elif case.change == "swap" and array.size > 1:
        one, two = rng.choice(array.size, 2, replace=False)
        array[one], array[two] = array[two], array[one]
    elif case.change == "fill":
        array[:] = _cast(NUMBERS[rng.integers(len(NUMBERS))], dtype)
    elif case.change == "reverse":
        array = array[::-1]
    elif case.change == "shorter":
        array, shape = array[:-1], [max(array.size - 1, 0)]
    elif case.change == "longer":
        array, shape = np.append(array, array[:1]), [array.size + min(array.size, 1)]
    elif case.change == "empty":
        array, shape = array[:0], [0]
    elif case.change == "reshape":
        shape = [array.size, 1]
    elif case.change == "dtype":
        kinds = [
            np.dtype(kind)
            for kind in ("f4", "f8", "i4", "i8", "u1", "?", "u8", "f2")
            if np.dtype(kind) != dtype
        ]
        dtype = kinds[rng.integers(len(kinds))]
        with np.errstate(all="ignore"):
            array = array.astype(dtype)
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": dtype.name, "shape": shape, "data": data}


def _cast(number: Any, dtype: Any) -> Any:
    if dtype.kind == "f":
        return dtype.type(float(number))
    if dtype.kind == "b":
        return bool(number)
    whole = 0 if number != number or abs(number) == float("inf") else int(number)
    return np.array([whole % 2 ** (8 * dtype.itemsize)], np.uint64).astype(dtype)[0]


def _changed_value(value: Any, parent: Any, case: Case, rng: np.random.Generator) -> Any:
    if case.change == "number":
        return NUMBERS[rng.integers(len(NUMBERS))]
    if case.change == "nudge" and isinstance(value, int | float):
        return value + (1 if rng.random() < 0.5 else -1)
    if case.change == "twice" and isinstance(value, list | str):
        return value + value
    if case.change == "neighbour":  # what stands elsewhere
        others = list(parent.values()) if isinstance(parent, dict) else list(parent)
        return others[rng.integers(len(others))]
    if case.path == ("policy",):
        names = sorted(known_policies())
        return f"{names[rng.integers(len(names))]}()"
    return [value]


def run(case: Case) -> str:
    """Load what the case forged and play it: "worked" or "refused"."""
    try:
        text = forged(case)
        player = read_player(text, "the forged player", case.compiled)
        play(player)
        again = read_player(player_text(player), "the player saved again", case.compiled)
        play(again)
    except UserError as error:
        sentence = str(error)
        if "\n" in sentence or len(sentence) > 400:
            raise AssertionError(f"not a sentence: {sentence}") from None
        return "refused"
    return "worked"


def play(player: Player) -> None:
    """Decide, learn, ask; assert that what comes out is sane."""
    arms = set(player.arms)
    graph = player._state.setting.graph is not None
    for step in range(PLAYED):
        decision = player.decide()
        assert type(decision.arm) is int
        assert decision.arm in arms, f"arm {decision.arm} does not exist"
        if player.policy.probabilities is not None:
            law = player.probabilities()
            assert np.isfinite(law).all(), f"probabilities {law}"
            assert (law >= -1e-12).all(), f"probabilities {law}"
            assert abs(law.sum() - 1.0) < 1e-4, f"probabilities sum to {law.sum()}"
        others = sorted(arms - {decision.arm})
        also = {others[step % len(others)]: 1.0} if graph and others else None
        if step % 4 != 3:
            player.update(decision, [0.0, 1.0, 0.5][step % 3], also)
            if player.settings.kept is not None:
                player.correct(decision, [0.5, 0.0][step % 2])
    for waiting in player.pending()[:10]:
        player.update(waiting, 1.0)
    player.update(min(arms), 0.25)
    assert len(set(player.select(min(2, len(arms))))) == min(2, len(arms))
    assert all(np.isfinite(value) for value in player.report().values())


def main() -> None:
    """Run so many cases; print how often each outcome came as JSON. A hang ends the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of CPU for one case")
    options = parser.parse_args()
    np.seterr(all="ignore")
    faulthandler.register(signal.SIGVTALRM, chain=True)  # says where, then the signal ends the process
    for policy, n_arms in COMPILED:
        play(read_player(sealed(saved(policy, n_arms, "none")), "a player", True))  # compiling takes its time
    outcomes: Counter[str] = Counter()
    failures = []
    for case, _ in zip(cases(np.random.default_rng(options.seed)), range(options.cases), strict=False):
        print(case, file=sys.stderr, flush=True)
        signal.setitimer(signal.ITIMER_VIRTUAL, options.limit)
        try:
            outcomes[run(case)] += 1
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error} <- {case}")
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    print(json.dumps({"outcomes": outcomes, "failures": failures}))


if __name__ == "__main__":
    main()
