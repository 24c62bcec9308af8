"""`abex warm`: compile ahead of time, for images, continuous integration and services."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from abex.cli.help import WholeNumber, examples, print_table
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


Job = tuple[str, Callable[[], object]]  # what is compiled, and what compiles it


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
    jobs = [
        job for text in wanted for count in arms for job in jobs_of(as_policy(text), count, graph, players)
    ]
    jobs += fits() if boosting else []
    folder = cache_folder()
    if folder is None:
        raise UserError("nothing can be kept for the next processes: name a folder of your own in ABEX_CACHE")
    rows = []
    with Progress("compiling", total=len(jobs)) as bar:
        for what, compile in jobs:
            before, began = set(folder.glob("*.kernel")), time.process_time()
            compile()
            new = sum(path.stat().st_size for path in set(folder.glob("*.kernel")) - before)
            seconds = f"{time.process_time() - began:.1f}" if new else "there already"
            rows.append((what, seconds, f"{new / 2**20:.1f}" if new else ""))
            bar.advance()
    print_table(f"compiled code in {folder}", ("what", "seconds of CPU", "MB"), rows, right=(1, 2))


def jobs_of(policy: Any, n_arms: int, graph: bool, players: bool) -> list[Job]:
    """A policy without a feedback graph, where it can do that, and with one where it is asked for or needed."""
    from abex.graphs.generators import star

    work = decide if players else play
    what = f"{'player of ' * players}{policy}, {n_arms:,} arm{'s' * (n_arms > 1)}"
    jobs: list[Job] = [] if policy.needs_graph else [(what, partial(work, policy, n_arms, None))]
    if graph or policy.needs_graph:
        jobs.append((f"{what}, graph", partial(work, policy, n_arms, star(n_arms))))
    return jobs


def play(policy: Any, n_arms: int, graph: Any) -> None:
    """A simulation."""
    from abex.environments import Bernoulli
    from abex.simulation import simulate

    environment = Bernoulli([0.6] + [0.4] * (n_arms - 1))
    simulate(policy, environment, graph=graph, horizon=STEPS, replications=1, workers=1, progress=False)


def decide(policy: Any, n_arms: int, graph: Any) -> None:
    """A compiled player, as a service opens it."""
    from abex import Player

    player = Player(policy, n_arms=n_arms, graph=graph, horizon=STEPS, compiled=True)
    for _ in range(2):
        player.update(player.decide(), 1.0)
    player.summary()


def fits() -> list[Job]:
    """Boosting of every base, on two classes and on three."""
    import numpy as np

    from abex.boosting import AdaBoostMHClassifier

    rows = np.random.default_rng(0).normal(size=(60, 4))

    def fit(base: str, n_classes: int) -> None:
        labels = np.arange(len(rows)) % n_classes
        AdaBoostMHClassifier(3, base=base, random_state=0).fit(rows, labels).predict(rows)

    return [
        (f"boosting, base={base!r}, {n_classes} classes", partial(fit, base, n_classes))
        for base in BASES
        for n_classes in (2, 3)
    ]
