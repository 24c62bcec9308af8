"""The study `arena-v3`: which policy plays which instance how often, as cells of a sweep.

All policies of an instance face the same rewards and graphs (common random numbers), so their differences are paired.
A policy plays an instance 200 times, and less often the few on which its runs take long: `replications_for` says how often
from a table of costs, not from a clock, so that the same cells are asked for on every machine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs import DropOut, ErdosRenyiEachStep, GraphSequence, complete, star
from abex.inference.winner import BETS, SUMS
from abex.lab.arena.instances import GROUPS, IDENTIFICATION, SEEDS, VERSION, Instance, grid_of
from abex.lab.results import Cell, Store, key_of
from abex.lab.sweeps.cells import module_of, new_cell
from abex.lab.sweeps.problems import MissingData, with_checksums
from abex.lab.sweeps.sweep import SweepStatus, sweep
from abex.policies.naming import known_policies, parse_policy
from abex.policies.policy import Policy, plays_on
from abex.support.errors import one_of, whole_number

NAME = f"arena-v{VERSION}"
REPLICATIONS = 200
BLOCK = 50  # replications of a cell
SLOW, SLOW_REPLICATIONS = 0.5, BLOCK  # where a run takes more seconds of CPU, and how often it is played then
SLOWEST, LEAST = 3.1, 5  # the same of the slowest
MAX_SECONDS = 8.0  # seconds of a single run; where one would take longer the policy does not play
BASE = 500.0  # nanoseconds of a step, about
#: nanoseconds for each arm and step, about, of the policies that look at every arm, measured on the instances of most arms
PER_ARM = {
    "ELP": 9.0, "EpsilonGreedy": 2.5, "EpsilonThompson": 6.0,
    "Exp3DOM": 9.0, "Exp3IX": 6.5, "Exp3IXGraph": 25.0, "Exp3P": 9.0,
    "Exp3PMultiBoost": 8.0, "Exp3PlusPlus": 11.0, "Exp3PlusPlus2014": 11.0, "Exp3S": 1.2, "Exp3SET": 7.0,
    "ExploreThenCommit": 2.5, "FollowTheLeader": 2.7, "IMED": 11.0, "INF": 24.0,
    "Maillard": 30.0, "TSMaxN": 41.0, "TsallisINF": 24.0, "UCBMaxN": 2.5,
}  # fmt: skip
#: a small graph of each class of graphs that change
CHANGING = {
    "GraphSequence": GraphSequence([star(3), complete(3)]),
    "DropOut": DropOut(complete(3), keep=0.5),
    "ErdosRenyiEachStep": ErdosRenyiEachStep(3, q=0.5),
}
#: columns of the data sets of boosting
FEATURES = {"digits": 64, "isolet": 617, "letter": 16, "mnist": 784, "pendigits": 16, "usps": 256}
#: the rivals one asks for first; all others follow by name
FIRST = (
    "Evidence", "Uniform", "Thompson", "KLUCB", "IMED", "KL-MS", "MOSS-anytime", "KLUCBPlusPlus", "MOSS", "EpsilonThompson",
    "UCB1", "UCBV", "EpsilonGreedy", "TsallisINF", "TSMaxN", "UCBMaxN", "ABE", "BoltzmannGumbel", "Maillard", "Boltzmann",
)  # fmt: skip


RISK = 0.01  # of a wrong winner, in the group identification
#: the usual ones that play there beside all that identify
USUAL = ("Uniform", "EpsilonGreedy", "Thompson", "Evidence")
#: their winners follow from sums: they choose without chance, leave rivals without a probability, or have integrals for them
BY_SUMS = ("DTracking", "KLLUCB", "SuccessiveHalving", "Thompson", "TopTwo(soft=False)")


@dataclass(frozen=True)
class Entry:
    """A policy that plays, and the source of the file it comes from, if it is a person's own."""

    policy: Policy[Any]
    code: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """Its name, with a mark if it is told the horizon."""
        return f"{self.policy} (told the horizon)" if self.policy.needs_horizon else str(self.policy)


@dataclass(frozen=True)
class Played:
    """What a policy lost on an instance: over the whole run and over its second half, in each replication.

    In boosting both are the share of rows that are wrong at the end.
    """

    regret: NDArray[np.float64]
    second_half: NDArray[np.float64]


def library(identifies: bool = False) -> list[Entry]:
    """Who plays: every policy of the library that aims at reward, the best known first, at its defaults and in its variants.

    In the group identification, where it ``identifies``: every policy that aims at knowing the best arm, and the usual ones.
    """
    import abex  # noqa: F401 - registers every policy

    found = [cls for cls in known_policies().values() if cls.__module__.startswith("abex.")]
    wanted = [cls for cls in found if cls.identifies == identifies]
    policies = [
        policy for cls in wanted for policy in (cls(), *(cls(**one) for one in cls.variants.values()))
    ]
    first = map(parse_policy, USUAL if identifies else FIRST)
    return [Entry(policy) for policy in dict.fromkeys([*first, *policies])]


def method_of(policy: Policy[Any]) -> str:
    """What names the winner of a policy: bets where it knows the probabilities of all arms in closed form, else sums."""
    return SUMS if policy.probabilities is None or str(policy) in BY_SUMS else BETS


def entry_of(text: str, code: dict[str, str] | None = None) -> Entry:
    """A policy by its text; one of a person's own files, ``code`` by their names, brings them along with its cells."""
    policy = parse_policy(text)
    own = {module_of(name, source) for name, source in (code or {}).items()}
    return Entry(policy, tuple((code or {}).items()) if type(policy).__module__ in own else ())


def arms_of(problem: dict[str, Any]) -> int:
    """The number of arms of a problem, from its text alone; of features those that vary may be fewer."""
    if "recommendation" in problem:
        return 4_711
    if "data" in problem:
        return FEATURES[problem["data"]]
    environment = problem["environment"]
    if "K" in environment:
        return int(environment["K"])
    lists = environment.get("values") or environment["means"]
    return len(lists[0]) if environment["name"] == "Phases" else len(lists)


def can_play(policy: Policy[Any], instance: Instance) -> bool:
    """Whether a policy plays an instance: some need a graph, refuse one that changes, or take too long."""
    if not policy.needs_graph:
        return True
    if run_seconds(policy, instance) > MAX_SECONDS:
        return False
    graph = instance.problem.get("graph") or {}
    name = "fixed" if "recommendation" in instance.problem else graph.get("name", "")
    if not name:
        return False
    return name not in CHANGING or plays_on(policy, CHANGING[name])


def replications_for(policy: Policy[Any], instance: Instance, most: int = REPLICATIONS) -> int:
    """How often a policy plays an instance."""
    if instance.most is not None:
        return min(most, instance.most)
    each = run_seconds(policy, instance)
    return min(most, REPLICATIONS if each <= SLOW else SLOW_REPLICATIONS if each <= SLOWEST else LEAST)


def run_seconds(policy: Policy[Any], instance: Instance) -> float:
    """About how long one run of a policy on an instance takes, by the table of costs."""
    each = BASE + PER_ARM.get(type(policy).__name__, 0.0) * arms_of(instance.problem)
    return each * instance.horizon * 1e-9


def playable(instances: Iterable[Instance]) -> tuple[list[Instance], list[str]]:
    """The instances whose data are here, with checksums, and the names of the others."""
    there, missing = [], []
    for one in instances:
        try:
            there.append(dataclasses.replace(one, problem=with_checksums(one.problem)))
        except MissingData:
            missing.append(one.name)
    return there, missing


def cells_of(entry: Entry, instance: Instance, grid: str, most: int = REPLICATIONS) -> list[Cell]:
    """The cells of a policy on an instance, blocks of replications; a fit of boosting is a cell of its own."""
    checkpoints: Any
    kind, checkpoints, more = "bandit", [instance.horizon // 2, instance.horizon], dict[str, Any]()
    if instance.group == IDENTIFICATION:
        checkpoints, more = 1, {"risk": RISK, "test": method_of(entry.policy)}
    elif instance.group == "boosting":
        kind, checkpoints = "boosting", 1
    block = 1 if kind == "boosting" else BLOCK
    count = replications_for(entry.policy, instance, most)
    return [
        new_cell(
            kind, repr(entry.policy), instance.problem, instance.horizon, checkpoints=checkpoints, seed=SEEDS[grid],
            replication=first, replications=None if kind == "boosting" else min(block, count - first),
            code=dict(entry.code), **more,
        )
        for first in range(0, count, block)
    ]  # fmt: skip


def run(
    entries: Sequence[Entry], instances: Sequence[Instance], grid: str, store: Store,
    executor: Executor | None = None, tell: Any = lambda status: None, most: int = REPLICATIONS,
) -> SweepStatus:  # fmt: skip
    """Compute what the store does not hold; policies in the order given."""
    whole_number("replications", most, least=1)
    cells = [
        cell
        for entry in entries
        for one in instances
        if can_play(entry.policy, one)
        for cell in cells_of(entry, one, grid, most)
    ]
    return sweep(cells, store, executor, tell)


def losses_of(instance: Instance, arrays: list[dict[str, NDArray[Any]]]) -> Played:
    """What was lost, from the arrays of all cells of a policy on an instance."""
    if instance.group == "boosting":
        errors = np.array([one["error"][-1] for one in arrays])
        return Played(errors, errors)
    curves = np.concatenate([one["regret"] for one in arrays])
    return Played(curves[:, -1], curves[:, -1] - curves[:, 0])


def collect(
    entries: Sequence[Entry], instances: Sequence[Instance], grid: str, store: Store, most: int = REPLICATIONS,
    of: Callable[[Instance, list[dict[str, NDArray[Any]]]], Any] = losses_of,
) -> dict[tuple[str, str], Any]:  # fmt: skip
    """What the store holds: (policy, instance) -> what it lost in the replications that are there, or what ``of`` finds there."""
    found: dict[tuple[str, str], Any] = {}
    for entry in entries:
        for one in instances:
            if not can_play(entry.policy, one):
                continue
            cells = cells_of(entry, one, grid, most)
            payloads = store.read(key_of(cell) for cell in cells)
            arrays = [payloads[key].arrays for key in map(key_of, cells) if key in payloads]
            if arrays:
                found[entry.label, one.name] = of(one, arrays)
    return found


def instances_of(grid: str, group: str | None = None) -> tuple[Instance, ...]:
    """The instances of one group of a grid, or of all that are scored by what is lost."""
    groups = GROUPS if group is None else (one_of("group", group, (*GROUPS, IDENTIFICATION)),)
    return grid_of(grid, groups)
