"""An experiment is data: a problem, the lines to draw, how often and how long, and what is claimed about them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from abex.lab.results import Cell
from abex.lab.sweeps.boosting_cells import FULL_SEARCH
from abex.lab.sweeps.cells import load_code, new_cell, task_of
from abex.lab.sweeps.task import Task
from abex.policies.abe import ABE
from abex.policies.boltzmann import Boltzmann
from abex.policies.naming import parse_policy
from abex.policies.policy import Policy
from abex.support.errors import UserError, one_of, whole_number
from abex.theory import Schedule

GROUPS = ("paper", "authors", "baseline", "own")  # in the paper; its authors' code; what it left out; ours
RULES = ("better", "as good", "best", "explores", "flat", "sooner")
VALIDATION = 1_000_000  # replications from here on are played for choosing parameters only
STRATUM = 100_000  # replications of the next stratum begin so much later: strata share no random number


@dataclass(frozen=True)
class Line:
    """One line of a figure: a policy, or several of which the one that is best on validation is drawn."""

    label: str
    candidates: tuple[str, ...]
    group: str = "own"
    length: int | None = None  # where it is shorter than the experiment's
    seeds: int | None = None  # where it needs fewer, or more, than the experiment
    tuned_at: int | None = None  # the step whose loss decides between candidates; its last one unless given
    plateau: bool = (
        False  # drawn up to where its loss on validation has stopped falling (`execution.plateau`)
    )


@dataclass(frozen=True)
class Stratum:
    """A part of the instances of a problem, sampled by itself and counted with its exact weight."""

    name: str
    weight: float  # its share of the instances
    share: float  # of the replications: more than its weight where disasters happen
    problem: dict[str, Any]


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody says about the lines, and the rule that decides from the results (`verdicts`)."""

    text: str
    rule: str
    first: str
    second: tuple[str, ...] = ()
    #: differences up to it do not matter; in regret or in percentage points
    margin: Annotated[float, msgspec.Meta(ge=0.0, le=1e300)] = 0.0
    where: str = ""  # section of the paper
    at: int | None = None  # the step at which losses are compared; the last one unless given


@dataclass(frozen=True)
class Experiment:
    """A comparison that can be run, stored, drawn and judged.

    Attributes
    ----------
    name, version : str, int
        Together the id ``name-vN``: whoever changes what is computed raises the version.
    kind : "bandit" or "boosting"
    problem, validation : dict
        Where the lines are drawn, and where parameters are chosen (`abex.lab.sweeps.problems`).
    length : int
        Steps, or boosting iterations.
    seeds, validation_seeds : int
        Replications of each line, and of each candidate on validation.
    strata : tuple of Stratum
        Parts of the problem that are sampled separately; none means plain sampling of ``problem``.
    block : int
        Replications that one cell keeps.
    rows_at : tuple of int
        Boosting: iterations at which every test row's errors are kept, besides the last one.
    equivalent : dict
        Policies that are another, simpler one at this length (`equivalent_policies`): they share its cells.
    figure, deviations : str, tuple of str
        Which figure of the paper it is, and where and why we depart from it.
    code : dict
        Sources of a person's own policies by file name.
    """

    name: str
    title: str
    problem: dict[str, Any]
    lines: tuple[Line, ...]
    length: int
    kind: str = "bandit"
    version: int = 1
    seeds: int = 20
    seed: int = 1
    validation: dict[str, Any] | None = None
    validation_seeds: int = 5
    checkpoints: int = 100
    strata: tuple[Stratum, ...] = ()
    block: int = 1
    rows_at: tuple[int, ...] = ()
    equivalent: dict[str, str] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    figure: str = ""
    deviations: tuple[str, ...] = ()
    command: str = ""
    code: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise UserError(f"name must be words of a-z and 0-9 joined by '-', got {self.name!r}")
        task_of(self.kind)
        for name in ("length", "seeds", "validation_seeds", "version", "block"):
            whole_number(name, getattr(self, name), least=1)
        whole_number("checkpoints", self.checkpoints, least=2)
        if max(self.seeds, *(line.seeds or 1 for line in self.lines), 1) > STRATUM:
            raise UserError(f"seeds must be at most {STRATUM}, got {self.seeds}")
        if self.strata and abs(sum(stratum.weight for stratum in self.strata) - 1.0) > 1e-9:
            raise UserError(f"the weights of the strata of {self.name} must add up to 1")
        labels = [line.label for line in self.lines]
        if not labels:
            raise UserError(f"the experiment {self.name} has no policies")
        for label in labels:
            if labels.count(label) > 1:
                raise UserError(
                    f"the experiment {self.name} has two lines called {label!r}: give them labels"
                )
        for claim in self.claims:
            one_of("rule", claim.rule, RULES)
            for label in (claim.first, *claim.second):
                one_of("line", label, labels)
            if claim.at is not None:
                whole_number("at", claim.at, least=1, most=self.length)
        for one in self.lines:
            if one.tuned_at is not None:
                whole_number("tuned_at", one.tuned_at, least=1, most=self.length_of(one))

    @property
    def id(self) -> str:
        """``name-vN``."""
        return f"{self.name}-v{self.version}"

    @property
    def task(self) -> Task:
        """What it is about, by its ``kind``."""
        return task_of(self.kind)

    def line(self, label: str) -> Line:
        """The line called ``label``."""
        return {line.label: line for line in self.lines}[label]

    def to_json(self) -> dict[str, Any]:
        """The experiment as plain values."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Experiment:
        """The experiment that `to_json` wrote."""
        return msgspec.convert(plain, cls)

    def length_of(self, line: Line) -> int:
        """How long a line is."""
        return min(line.length or self.length, self.length)

    # -- its cells -------------------------------------------------------------------------------------------

    def cells(self, line: Line, policy: str) -> list[Cell]:
        """The cells of a line drawn with ``policy``; equal algorithms have equal cells."""
        played, length, seeds = (
            self.equivalent.get(policy, policy),
            self.length_of(line),
            line.seeds or self.seeds,
        )
        strata = self.strata or (Stratum("all", 1.0, 1.0, self.problem),)
        return [
            cell
            for number, stratum in enumerate(strata)
            for cell in self._cells(
                played, stratum.problem, length, number * STRATUM, max(1, round(seeds * stratum.share))
            )
        ]

    def tuning_cells(self, line: Line, policy: str) -> list[Cell]:
        """The cells that tell how good a candidate is on validation."""
        length = self.length_of(line)
        problem = self.validation or self.problem
        seeds = (
            1 if line.plateau else self.validation_seeds
        )  # full search has no choices that a seed would change
        return self._cells(policy, problem, length, VALIDATION, seeds)

    def _cells(self, policy: str, problem: dict[str, Any], length: int, first: int, seeds: int) -> list[Cell]:
        """Cells of ``block`` replications each, the last one with what is left."""
        starts = range(0, seeds, self.block)
        return [self._cell(policy, problem, length, first + r, min(self.block, seeds - r)) for r in starts]

    def _cell(self, policy: str, problem: dict[str, Any], length: int, replication: int, count: int) -> Cell:
        drawn = replication < VALIDATION
        return new_cell(
            self.kind, policy, problem, length, checkpoints=self.checkpoints, seed=self.seed, replication=replication,
            replications=count if self.block > 1 else None, version=self.version, code=self.code,
            **(self.task.cell_options(self.rows_at, length) if drawn else {}),
        )  # fmt: skip


def equivalent_policies(
    lines: tuple[Line, ...], n_arms: int, length: int, code: dict[str, str] | None = None
) -> dict[str, str]:
    """Policies of lines that are a simpler one up to step ``length``, with the one they are.

    >>> lines = (line("a", "ABE(c=0.1, alpha=0.7)"), line("b", "ABE(c=1.0)"))
    >>> list(equivalent_policies(lines, 333, 50_000).values())
    ["Boltzmann(eta=0.4, schedule='sqrt', initial=0.0)"]
    """
    load_code(code or {})
    found = {}
    for text in (text for one in lines for text in one.candidates if text != FULL_SEARCH):
        simplest = repr(simplest_policy(parse_policy(text), n_arms, length))
        if simplest != text:
            found[text] = simplest
    return found


def simplest_policy(policy: Policy[Any], n_arms: int, horizon: int) -> Policy[Any]:
    """The simplest policy that pulls the same arms on the same random numbers up to ``horizon``.

    ABE without an exploration slot up to there is Boltzmann exploration of the same rate.
    """
    if not isinstance(policy, ABE):
        return policy
    schedule = Schedule(n_arms, policy.c, policy.alpha, policy.rounding)
    silent = schedule.exploration_slots(horizon) == 0
    return Boltzmann(policy.eta, "sqrt", policy.initial) if silent else policy


def line(label: str, *policies: Any, group: str = "own", **more: Any) -> Line:
    """A line from policies as values or as text; text is brought into its full form, so that equal cells are equal."""
    return Line(label, tuple(policy_text(policy) for policy in policies), group, **more)


def policy_text(policy: Any, code: dict[str, str] | None = None) -> str:
    """A policy with all its parameters, as it stands in a cell."""
    import abex  # noqa: F401 - registers every policy

    if policy == FULL_SEARCH:
        return FULL_SEARCH
    load_code(code or {})
    return repr(parse_policy(policy) if isinstance(policy, str) else policy)


def brief(text: str) -> str:
    """The policy of a cell as a person would type it: only what differs from its defaults; the text where it is not known here.

    >>> brief("ABE(eta=0.4, c=0.2, alpha=0.5, rounding='floor', initial=0.0, cover='alpha-sample', order='random')")
    'ABE(c=0.2, alpha=0.5)'
    """
    try:
        return str(parse_policy(text))
    except UserError:
        return text


# -- the registry --------------------------------------------------------------------------------------------

Builder = Callable[[], Experiment]
_registry: dict[str, Builder] = {}


def register(name: str) -> Callable[[Builder], Builder]:
    """Make an experiment known by name. It is built when it is asked for: that may load data."""

    def keep(builder: Builder) -> Builder:
        _registry[name] = builder
        return builder

    return keep


def known_experiments() -> dict[str, Builder]:
    """Builders of all registered experiments by name."""
    from abex.lab.experiments import boosting, networks  # noqa: F401 - they register themselves

    return dict(_registry)


def experiment_of(name: str) -> Experiment:
    """The registered experiment called ``name``, with or without its version."""
    builders = known_experiments()
    plain = re.sub(r"-v\d+$", "", name)
    return builders[one_of("experiment", plain, builders)]()
