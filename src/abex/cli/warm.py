"""`abex warm`: compile ahead of time, for images, continuous integration and services."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from abex.cli.help import WholeNumber, examples
from abex.cli.output import print_table
from abex.cli.signals import exit_on_signal
from abex.policies.naming import as_policy, known_policies
from abex.policies.policy import MOST_ARMS
from abex.support.errors import UserError

COMMON = (
    "ABE(eta=1.0)",
    "Boltzmann(eta=1.0)",
    "BoltzmannGumbel",
    "EpsilonGreedy",
    "Exp3",
    "KLUCB",
    "MOSS",
    "Thompson",
    "UCB1",
    "Uniform",
)
STEPS = 10  # enough to be compiled, and to call everything once
BASES = ("stump", "product", "tree")


class Job(NamedTuple):
    """Something to compile."""

    what: str
    compile: Callable[[], object]


@click.command(
    epilog=examples(
        "abex warm",
        "abex warm --policy ABE --policy Thompson --arms 10 --arms 10000",
        "abex warm --policy all --graph --boosting",
        "abex warm --players --policy Evidence --arms 10000",
    ),
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="A policy to compile the simulation of; repeat for more, `all` for all. Without it: the common ones.",
)
@click.option(
    "--arms",
    type=WholeNumber(1, MOST_ARMS),
    multiple=True,
    default=(10,),
    show_default=True,
    help="Number of arms; repeat for more. Many arms are found by other code than few.",
)
@click.option("--graph", is_flag=True, help="With a feedback graph, too.")
@click.option(
    "--players",
    is_flag=True,
    help="Players instead of simulations; those of more than 5,000 arms are compiled.",
)
@click.option("--boosting", is_flag=True, help="Boosting, too; without --policy, boosting alone.")
@exit_on_signal()
def command(
    policies: tuple[str, ...], arms: tuple[int, ...], graph: bool, players: bool, boosting: bool
) -> None:
    """Compile ahead of time what would be compiled at first use, and keep it for the next processes.

    Compiled code lies in the cache folder (set ABEX_CACHE to choose it), for this processor and these versions of Python, Numba
    and abex. What is there already is not compiled again.
    """
    from abex.kernels import cache_folder
    from abex.support.progress import Progress

    wanted = policies or (() if boosting else COMMON)
    if "all" in wanted:
        wanted = tuple(known_policies())
    make = decisions if players else simulations
    jobs = [job for text in wanted for count in arms for job in make(text, count, graph)]
    jobs += fits() if boosting else []
    folder = cache_folder()
    if folder is None:
        raise UserError("nothing can be kept for the next processes: name a folder of your own in ABEX_CACHE")
    rows = []
    with Progress("compiling", total=len(jobs)) as bar:
        for job in jobs:
            before, began = cached_kernels(folder), time.process_time()
            job.compile()
            new = sum((folder / name).stat().st_size for name in cached_kernels(folder) - before)
            seconds = f"{time.process_time() - began:.1f}" if new else "there already"
            rows.append((job.what, seconds, f"{new / 2**20:.1f}" if new else ""))
            bar.advance()
    print_table(f"compiled code in {folder}", ("what", "seconds of CPU", "MB"), rows, right=(1, 2))


def cached_kernels(folder: Path) -> set[str]:
    """The names of what is kept."""
    return {path.name for path in folder.glob("*.kernel")}


def simulations(text: str, n_arms: int, graph: bool) -> list[Job]:
    """The simulation of a policy with so many arms, without and with a feedback graph."""
    from abex.environments import Bernoulli
    from abex.simulation import simulate

    policy = as_policy(text)
    environment = Bernoulli([0.6] + [0.4] * (n_arms - 1))

    def play(feedback: Any) -> Callable[[], object]:
        return lambda: simulate(
            policy, environment, graph=feedback, horizon=STEPS, replications=1, workers=1, progress=False
        )

    return _jobs("", policy, n_arms, graph, play)


def decisions(text: str, n_arms: int, graph: bool) -> list[Job]:
    """A compiled player with so many arms, as a service opens it, without and with a feedback graph."""
    from abex import Player

    policy = as_policy(text)

    def play(feedback: Any) -> Callable[[], object]:
        def work() -> None:
            player = Player(policy, n_arms=n_arms, graph=feedback, horizon=STEPS, compiled=True)
            for _ in range(2):
                player.update(player.decide(), 1.0)
            player.summary()

        return work

    return _jobs("player of ", policy, n_arms, graph, play)


def _jobs(
    kind: str, policy: Any, n_arms: int, graph: bool, play: Callable[[Any], Callable[[], object]]
) -> list[Job]:
    """Without a feedback graph where the policy can do that, and with one where it is asked for or needed."""
    from abex.graphs.generators import star

    what = f"{kind}{policy}, {n_arms:,} arm{'s' if n_arms > 1 else ''}"
    jobs = [] if policy.needs_graph else [Job(what, play(None))]
    if graph or policy.needs_graph:
        jobs.append(Job(f"{what}, graph", play(star(n_arms))))
    return jobs


def fits() -> list[Job]:
    """Boosting of every base, on two classes and on three."""
    import numpy as np

    from abex.boosting import AdaBoostMHClassifier

    rows = np.random.default_rng(0).normal(size=(60, 4))

    def fit(base: str, n_classes: int) -> Callable[[], object]:
        labels = np.arange(len(rows)) % n_classes
        return lambda: AdaBoostMHClassifier(3, base=base, random_state=0).fit(rows, labels).predict(rows)

    return [
        Job(f"boosting, base={base!r}, {n_classes} classes", fit(base, n_classes))
        for base in BASES
        for n_classes in (2, 3)
    ]
